//! The real agent CLIs against the scripted provider, with nothing between: they read, edit and run as told, the file is
//! changed on disk, each turn is one request, and the provider's bill is what the CLI says it used.
//!
//! Needs `OUTLAST_REAL_AGENTS`, a folder with `claude`, `codex`, `gemini`, `kimi`, `opencode` and `qwen`; says so and
//! does nothing without it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a helper of a test may fail as loudly as the test")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use outlast_testkit::fixture::{Repo, TestEnv};
use outlast_testkit::provider::{LogEntry, Provider, Running, Script};
use outlast_testkit::wire::Usage;
use serde_json::{Value, json};

const GOAL: &str = r#"Change the greeting.

```outlast-script
read greeting.txt
think "the old word must go"
say "I will edit it now."
edit greeting.txt "old \"word\"" "brand \"new\" word"
run "cat greeting.txt > seen.txt"
write notes/done.md <<END
# Done
it's 'finished'
END
say "Changed: greeting.txt, notes/done.md"
```
"#;

/// The turns of [`GOAL`]: four tool calls and the closing account.
const TURNS: usize = 5;

struct Bench {
    env: TestEnv,
    repo: Repo,
    provider: Running,
    agents: PathBuf,
}

/// `None`, said aloud, when there are no real agents to test with.
async fn bench(cli: &str) -> Option<Bench> {
    let Some(agents) = std::env::var_os("OUTLAST_REAL_AGENTS").map(PathBuf::from) else {
        eprintln!("SKIPPED: {cli} was not tested, OUTLAST_REAL_AGENTS is not set");
        return None;
    };
    assert!(agents.join(cli).exists(), "{} has no {cli}", agents.display());
    let env = TestEnv::new().unwrap();
    let repo = env.repo("work").unwrap();
    repo.commit_file("greeting.txt", "hello old \"word\" there\n", "First").unwrap();
    let provider = Provider::start_local(Script::default().with_keys(["sk-test"])).await.unwrap();
    Some(Bench { env, repo, provider, agents })
}

impl Bench {
    fn command(&self, cli: &str) -> Command {
        let mut command = self.env.command(self.agents.join(cli));
        command.current_dir(self.repo.dir());
        command
    }

    fn url(&self) -> String {
        format!("{}/t/task-1", self.provider.url())
    }

    /// Runs the CLI and checks everything that is the same for all; its events and the main requests.
    async fn run(&self, mut command: Command) -> (Vec<Value>, Vec<LogEntry>) {
        let run = move || command.stdin(Stdio::null()).output().unwrap();
        let output: Output = in_time(tokio::task::spawn_blocking(run)).await;
        let told = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {told}", output.status);
        let read = |path: &str| {
            std::fs::read_to_string(self.repo.dir().join(path))
                .unwrap_or_else(|error| panic!("{path}: {error}\n{told}"))
        };
        assert_eq!(read("greeting.txt"), "hello brand \"new\" word there\n", "{told}");
        assert_eq!(read("seen.txt"), "hello brand \"new\" word there\n");
        assert_eq!(read("notes/done.md"), "# Done\nit's 'finished'\n");
        let requests = self.provider.model_requests().await;
        let main: Vec<LogEntry> = requests.iter().filter(|entry| !entry.background).cloned().collect();
        let steps: Vec<usize> = main.iter().filter_map(|entry| entry.step).collect();
        assert_eq!(steps, (1..=TURNS).collect::<Vec<_>>(), "one request per turn: {told}");
        assert!(requests.iter().all(|entry| entry.key == "sk-test" && entry.path.starts_with("/t/task-1/")));
        (events(&output.stdout), main)
    }
}

/// Waits for a process; one that hangs fails the test, and the end of the test's environment kills it.
async fn in_time<T>(task: tokio::task::JoinHandle<T>) -> T {
    tokio::time::timeout(Duration::from_secs(300), task).await.expect("the CLI ends within five minutes").unwrap()
}

fn events(stdout: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(stdout).lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().rfind(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} among {events:?}"))
}

fn billed(main: &[LogEntry]) -> Usage {
    main.iter().filter_map(|entry| entry.billed).fold(Usage::default(), |mut sum, usage| {
        sum += usage;
        sum
    })
}

#[tokio::test]
async fn claude_works_through_a_script() {
    let Some(bench) = bench("claude").await else { return };
    let mut command = bench.command("claude");
    command
        .args(["-p", GOAL, "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"])
        .args(["--model", "claude-opus-4-8[1m]"])
        .env("IS_SANDBOX", "1")
        .env("CLAUDE_CONFIG_DIR", bench.env.home().join("cc"))
        .env("ANTHROPIC_BASE_URL", bench.url())
        .env("ANTHROPIC_API_KEY", "sk-test")
        .envs(["DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING"].map(|name| (name, "1")))
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    let (events, main) = bench.run(command).await;
    let result = of_type(&events, "result");
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(false)));
    assert_eq!(result["result"], "Changed: greeting.txt, notes/done.md");
    let bill = billed(&main);
    let usage = &result["usage"];
    assert_eq!(usage["input_tokens"], bill.input);
    assert_eq!(usage["cache_creation_input_tokens"], bill.cache_write);
    assert_eq!(usage["cache_read_input_tokens"], bill.cache_read);
    assert_eq!(usage["output_tokens"], bill.output);
}

/// A model that codex does not know gets plain tools, one of its catalogue a patch tool, the newest one JavaScript.
#[tokio::test]
async fn codex_works_through_a_script_with_every_family_of_tools() {
    for model in ["gpt-test", "gpt-5.5", "gpt-6.2-sol"] {
        let Some(bench) = bench("codex").await else { return };
        let home = bench.env.home().join("cx");
        std::fs::create_dir(&home).unwrap();
        let mut command = bench.command("codex");
        command.args(["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "-m", model]);
        let base_url = format!("{}/v1", bench.url());
        let settings = [("name", "gw"), ("base_url", &base_url), ("wire_api", "responses"), ("env_key", "GWKEY")];
        command.args(["-c", "model_provider=gw"]);
        for (key, value) in settings {
            command.args(["-c", &format!("model_providers.gw.{key}={value}")]);
        }
        command.arg(GOAL).env("CODEX_HOME", home).env("GWKEY", "sk-test");
        let (events, main) = bench.run(command).await;
        let usage = &of_type(&events, "turn.completed")["usage"];
        let bill = billed(&main);
        assert_eq!(usage["input_tokens"], bill.all_input(), "{model}");
        assert_eq!(usage["cached_input_tokens"], bill.cache_read, "{model}");
        assert_eq!(usage["output_tokens"], bill.output, "{model}");
        assert_eq!(usage["reasoning_output_tokens"], bill.reasoning, "{model}");
        let patched = events.iter().any(|event| event["item"]["type"] == "file_change");
        assert_eq!(patched, model != "gpt-test", "{model}: the patch tool is used where it is offered");
    }
}

#[tokio::test]
async fn gemini_works_through_a_script() {
    let Some(bench) = bench("gemini").await else { return };
    let folder = bench.env.home().join(".gemini");
    std::fs::create_dir(&folder).unwrap();
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"enableAutoUpdate": false},
    });
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    let mut command = bench.command("gemini");
    command
        .args(["-p", GOAL, "-o", "stream-json", "-y", "-m", "gemini-2.5-pro"])
        .env("GEMINI_API_KEY", "sk-test")
        .env("GOOGLE_GEMINI_BASE_URL", bench.url())
        .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    let (events, main) = bench.run(command).await;
    let result = of_type(&events, "result");
    assert_eq!(result["status"], "success");
    let bill = billed(&main);
    assert_eq!(result["stats"]["input_tokens"], bill.all_input());
    assert_eq!(result["stats"]["cached"], bill.cache_read);
    // This CLI leaves the thoughts out of its count of output tokens, and has them in the total.
    assert_eq!(result["stats"]["output_tokens"], bill.output - bill.reasoning);
    assert_eq!(result["stats"]["total_tokens"], bill.total());
}

#[tokio::test]
async fn qwen_works_through_a_script() {
    let Some(bench) = bench("qwen").await else { return };
    let mut command = bench.command("qwen");
    command
        .args(["-p", GOAL, "--auth-type", "openai", "-o", "stream-json", "-y"])
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_BASE_URL", format!("{}/v1", bench.url()))
        .env("OPENAI_MODEL", "scripted-model");
    let (events, main) = bench.run(command).await;
    let result = of_type(&events, "result");
    assert_eq!(result["result"], "Changed: greeting.txt, notes/done.md");
    let bill = billed(&main);
    assert_eq!(result["usage"]["input_tokens"], bill.all_input());
    assert_eq!(result["usage"]["cache_read_input_tokens"], bill.cache_read);
    assert_eq!(result["usage"]["output_tokens"], bill.output);
}

#[tokio::test]
async fn opencode_works_through_a_script() {
    let Some(bench) = bench("opencode").await else { return };
    let model = json!({"name": "Scripted", "limit": {"context": 200_000, "output": 8192}, "tool_call": true});
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "permission": "allow",
        "model": "gw/scripted",
        "provider": {"gw": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "gw",
            "options": {"baseURL": format!("{}/v1", bench.url()), "apiKey": "sk-test"},
            "models": {"scripted": model},
        }},
    });
    let mut command = bench.command("opencode");
    let quiet = ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"];
    command
        .args(["run", "--format", "json", GOAL])
        .env("OPENCODE_CONFIG_CONTENT", config.to_string())
        .envs(quiet.map(|name| (format!("OPENCODE_DISABLE_{name}"), "1")));
    let (events, main) = bench.run(command).await;
    let sum = |pointer: &str| -> u64 { events.iter().filter_map(|event| event.pointer(pointer)?.as_u64()).sum() };
    let bill = billed(&main);
    assert_eq!(sum("/part/tokens/input"), bill.input);
    assert_eq!(sum("/part/tokens/cache/read"), bill.cache_read);
    assert_eq!(sum("/part/tokens/output") + sum("/part/tokens/reasoning"), bill.output);
    let log = bench.provider.model_requests().await;
    assert_eq!(
        log.iter().filter(|entry| entry.background).count(),
        1,
        "the title is a request beside the conversation"
    );
}

#[tokio::test]
async fn kimi_works_through_a_script() {
    let Some(bench) = bench("kimi").await else { return };
    let config = json!({
        "default_model": "scripted",
        "telemetry": false,
        "models": {"scripted": {"provider": "gw", "model": "scripted-model", "max_context_size": 200_000}},
        "providers": {"gw": {"type": "kimi", "base_url": format!("{}/v1", bench.url()), "api_key": "sk-test"}},
    });
    let mut command = bench.command("kimi");
    command.args(["--print", "--output-format", "stream-json", "--config", &config.to_string(), "--prompt", GOAL]);
    let (events, main) = bench.run(command).await;
    let last = events.iter().rfind(|event| event["role"] == "assistant").expect("the model spoke");
    assert_eq!(last["content"], "Changed: greeting.txt, notes/done.md");
    // It tells nobody what it used, but writes it down.
    let written = session_records(&bench.env.home().join(".kimi/sessions"));
    let sum = |kind: &str| -> u64 {
        let pointer = format!("/message/payload/token_usage/{kind}");
        written.iter().filter_map(|record| record.pointer(&pointer)?.as_u64()).sum()
    };
    let bill = billed(&main);
    assert_eq!(
        (sum("input_other"), sum("input_cache_read"), sum("output")),
        (bill.input, bill.cache_read, bill.output)
    );
}

/// The records of the one session that kimi keeps below a folder.
fn session_records(folder: &Path) -> Vec<Value> {
    let inner = |folder: &Path| std::fs::read_dir(folder).unwrap().next().expect("it is kept").unwrap().path();
    events(&std::fs::read(inner(&inner(folder)).join("wire.jsonl")).unwrap())
}

/// A session that was killed while its tool ran goes on where it was, and does not begin again.
#[tokio::test]
async fn claude_goes_on_after_a_kill_in_the_middle_of_a_tool() {
    let Some(bench) = bench("claude").await else { return };
    let pipe = bench.env.root().join("started");
    make_pipe(&pipe);
    let goal = format!(
        "```outlast-script\nread greeting.txt\nrun \"if [ -e once ]; then echo again > second.txt; else touch once; echo x > '{}'; sleep 300; fi\"\nsay \"finished\"\n```",
        pipe.display()
    );
    let session = "6c1f8a3e-4d2b-4f0a-9d57-1f2e3d4c5b6a";
    let with = |arguments: &[&str]| {
        let mut command = bench.command("claude");
        command
            .args(arguments)
            .args(["--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"])
            .args(["--model", "claude-opus-4-8[1m]"])
            .env("IS_SANDBOX", "1")
            .env("CLAUDE_CONFIG_DIR", bench.env.home().join("cc"))
            .env("ANTHROPIC_BASE_URL", bench.url())
            .env("ANTHROPIC_API_KEY", "sk-test")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command
    };
    let mut first = with(&["-p", &goal, "--session-id", session]).spawn().unwrap();
    let pipe_read = pipe.clone();
    in_time(tokio::task::spawn_blocking(move || std::fs::read(pipe_read).unwrap())).await;
    first.kill().unwrap();
    first.wait().unwrap();
    let mut second = with(&["-p", "Continue.", "--resume", session]);
    let output = in_time(tokio::task::spawn_blocking(move || second.output().unwrap())).await;
    let events = events(&output.stdout);
    assert_eq!(of_type(&events, "result")["result"], "finished");
    assert_eq!(std::fs::read_to_string(bench.repo.dir().join("second.txt")).unwrap(), "again\n");
    let steps: Vec<usize> = bench.provider.model_requests().await.iter().filter_map(|entry| entry.step).collect();
    assert_eq!(steps, [1, 2, 2, 3], "the read is not repeated, the command that was killed is");
}

fn make_pipe(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}
