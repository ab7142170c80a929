//! The testkit's programs as processes: the provider's life, the agent's work, and each of its misbehaviours.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as loudly as the test")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::fixture::TestEnv;
use outlast_testkit::provider::{Background, Provider, Script};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_outlast-testkit");

const WORK: &str = r#"```outlast-script
write a/b.txt "hello old"
read a/b.txt
think "replace it"
edit a/b.txt "old" "new"
append a/b.txt " end"
run "cat a/b.txt > copy.txt"
say "all done"
```"#;

/// A goal file with a script.
fn goal(env: &TestEnv, script: &str) -> PathBuf {
    let path = env.root().join("goal.md");
    let text =
        if script.starts_with("```") { script.to_owned() } else { format!("```outlast-script\n{script}\n```\n") };
    std::fs::write(&path, text).unwrap();
    path
}

fn agent(env: &TestEnv, goal: &Path, arguments: &[&str]) -> Command {
    let mut command = env.command(PROGRAM);
    command.arg("__agent").arg(goal).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// An agent that follows the script by itself.
fn alone(env: &TestEnv, script: &str) -> Command {
    agent(env, &goal(env, script), &["--no-llm"])
}

fn results(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["type"] == "result")
        .collect()
}

fn with_gateway(env: &mut TestEnv, script: Script) -> Background {
    let provider = Provider::start_in_background(script).unwrap();
    env.set("OUTLAST_GATEWAY_URL", format!("{}/t/one", provider.url()));
    env.set("OUTLAST_KEY", "sk-agent");
    provider
}

/// Reads lines until one contains a word.
fn read_until(child: &mut Child, word: &str) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find_map(|line| line.ok().filter(|line| line.contains(word))).unwrap_or_else(|| panic!("no line with {word}"))
}

#[test]
fn the_agent_works_in_every_dialect_and_reports_what_was_billed() {
    for dialect in ["anthropic", "responses", "chat", "gemini"] {
        for stream in [true, false] {
            let mut env = TestEnv::new().unwrap();
            let provider = with_gateway(&mut env, Script::default().with_keys(["sk-agent"]));
            let goal = goal(&env, WORK);
            let mut command = agent(&env, &goal, &["--dialect", dialect]);
            if !stream {
                command.arg("--no-stream");
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{dialect}: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(std::fs::read_to_string(env.root().join("copy.txt")).unwrap(), "hello new end", "{dialect}");
            let result = results(&output).remove(0);
            assert_eq!((result["result"].as_str(), result["num_turns"].as_u64()), (Some("all done"), Some(6)));
            let bill = provider.bill().total;
            assert_eq!(bill.requests, 6, "{dialect}: one request per turn");
            let counted = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
            let counted = counted.map(|name| result["usage"][name].as_u64().unwrap());
            let tokens = bill.tokens;
            assert_eq!(
                counted,
                [tokens.input, tokens.cache_write, tokens.cache_read, tokens.output],
                "{dialect} {stream}"
            );
        }
    }
}

#[test]
fn the_agent_dies_of_a_refusal_and_only_retries_when_told() {
    let refused = "```outlast-script\nfault {\"kind\": \"refuse\", \"reason\": \"minute-limit\", \"seconds\": 1}\nrun \"echo x > x\"\n```";
    for (arguments, requests) in [(&[][..], 1), (&["--retries", "1"][..], 3)] {
        let mut env = TestEnv::new().unwrap();
        let provider = with_gateway(&mut env, Script::default());
        let goal = goal(&env, refused);
        let output = agent(&env, &goal, arguments).output().unwrap();
        let result = results(&output).remove(0);
        let died = arguments.is_empty();
        assert_eq!(output.status.code(), Some(i32::from(died)));
        assert_eq!(result["api_error_status"].as_u64(), died.then_some(429));
        assert_eq!(provider.bill().total.requests, requests);
        assert_eq!(env.root().join("x").exists(), !died);
    }
}

#[test]
fn the_agent_dies_of_a_cut_stream() {
    let mut env = TestEnv::new().unwrap();
    let _provider = with_gateway(&mut env, Script::default());
    for dialect in ["anthropic", "responses", "chat", "gemini"] {
        let cut =
            format!("```outlast-script\nfault {{\"kind\": \"cut\", \"after_frames\": 2}}\nsay \"{dialect}\"\n```");
        let output = agent(&env, &goal(&env, &cut), &["--dialect", dialect]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{dialect}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("connection to"), "{dialect}");
    }
}

#[test]
fn a_killed_agent_resumes_its_session_where_it_was() {
    let mut env = TestEnv::new().unwrap();
    let provider = with_gateway(&mut env, Script::default());
    let script =
        "write one.txt \"1\"\nrun \"test -e two.txt || { echo 2 > two.txt; kill -9 $PPID; }\"\nwrite three.txt \"3\"";
    let goal = goal(&env, script);
    let killed = agent(&env, &goal, &["--session-id", "s1"]).output().unwrap();
    assert_eq!(killed.status.code(), None, "killed by its own command");
    std::fs::remove_file(env.root().join("one.txt")).unwrap();
    let resumed = agent(&env, &goal, &["--resume", "s1"]).output().unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let steps: Vec<usize> = provider.model_requests().iter().filter_map(|entry| entry.step).collect();
    assert_eq!(steps, [1, 2, 2, 3, 4]);
    assert!(!env.root().join("one.txt").exists() && env.root().join("three.txt").exists());
    let fresh = agent(&env, &goal, &["--resume", "", "--session-id", "s3"]).output().unwrap();
    assert!(fresh.status.success(), "an empty session is none: {}", String::from_utf8_lossy(&fresh.stderr));
    assert!(env.root().join("one.txt").exists(), "it began anew");
    let unknown = agent(&env, &goal, &["--resume", "s2"]).output().unwrap();
    assert_ne!(unknown.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("No conversation found"));
}

#[test]
fn misbehaviour_can_be_scripted_through_the_model_too() {
    let mut env = TestEnv::new().unwrap();
    let provider = with_gateway(&mut env, Script::default());
    let output = agent(&env, &goal(&env, "run \"true\"\ndie 9"), &[]).output().unwrap();
    assert_eq!((output.status.code(), results(&output).len()), (Some(9), 0));
    assert_eq!(provider.bill().total.requests, 2);
}

#[test]
fn die_and_exit_differ_in_the_result() {
    let env = TestEnv::new().unwrap();
    let died = alone(&env, "die 3\nwrite x \"x\"").output().unwrap();
    assert_eq!((died.status.code(), results(&died).len()), (Some(3), 0));
    let exited = alone(&env, "exit 3\nwrite x \"x\"").output().unwrap();
    assert_eq!((exited.status.code(), results(&exited).len()), (Some(3), 1));
    assert!(!env.root().join("x").exists(), "nothing after it is done");
}

#[test]
fn a_question_ends_the_agent_with_its_account() {
    let env = TestEnv::new().unwrap();
    let output = alone(&env, "ask \"which database?\"").output().unwrap();
    let result = results(&output).remove(0);
    assert!(output.status.success());
    assert!(result["result"].as_str().unwrap().contains("Blocked:\n- question: which database?"), "{result}");
}

#[test]
fn the_first_attempts_fail_by_the_environment_or_by_a_counter() {
    let mut env = TestEnv::new().unwrap();
    let script = "fail-first 1 \"echo x >> ran\"\nfrom-attempt 3 \"echo y >> ran\"";
    let codes: Vec<_> = (0..3).map(|_| alone(&env, script).status().unwrap().code()).collect();
    assert_eq!(codes, [Some(1), Some(0), Some(0)], "counted in the home");
    assert_eq!(std::fs::read_to_string(env.root().join("ran")).unwrap(), "x\nx\ny\n");
    env.set("OUTLAST_ATTEMPT", "task.1");
    assert_eq!(alone(&env, script).status().unwrap().code(), Some(1));
    env.set("OUTLAST_ATTEMPT", "dotted.id.2");
    assert_eq!(alone(&env, script).status().unwrap().code(), Some(0));
}

#[test]
fn lingering_and_ignoring_sigterm_take_a_kill_to_end() {
    let env = TestEnv::new().unwrap();
    let mut child = alone(&env, "ignore-term\nlinger").spawn().unwrap();
    read_until(&mut child, "\"type\":\"result\"");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    // Stopped and continued: when that has been waited for, a SIGTERM sent before would have ended it.
    kill(pid, Signal::SIGSTOP).unwrap();
    let stopped = nix::sys::wait::waitpid(pid, Some(nix::sys::wait::WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(stopped, nix::sys::wait::WaitStatus::Stopped(pid, Signal::SIGSTOP), "SIGTERM did not end it");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn d01_the_agent_that_reads_stdin_waits_for_its_end() {
    let env = TestEnv::new().unwrap();
    let mut child = agent(&env, &goal(&env, "say hi"), &["--no-llm", "--before", "read-stdin"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    stdout.read_line(&mut first).unwrap();
    assert!(first.contains("init") && child.try_wait().unwrap().is_none(), "it waits");
    drop(child.stdin.take());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success() && rest.contains("\"result\":\"hi\""));
}

#[test]
fn d16_a_flood_is_one_line_of_its_size() {
    let env = TestEnv::new().unwrap();
    let output = alone(&env, "flood 5000000").output().unwrap();
    let longest = output.stdout.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert_eq!((longest, results(&output).len()), (Some(5_000_000), 1));
}

#[test]
fn d07_a_detached_child_outlives_the_agent_in_a_session_of_its_own() {
    let env = TestEnv::new().unwrap();
    let pipe = env.root().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = "fork-detached \"ps -o pid=,sid=,ppid= -p $$ > pipe; sleep 300\"";
    let mut child = alone(&env, script).spawn().unwrap();
    let agent_pid = child.id();
    let told = std::fs::read_to_string(&pipe).unwrap();
    assert!(child.wait().unwrap().success());
    let numbers: Vec<u32> = told.split_whitespace().map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 3, "{told}");
    let own_session = u32::try_from(nix::unistd::getsid(None).unwrap().as_raw()).unwrap();
    assert!(numbers[1] != own_session && numbers[1] != agent_pid, "a new session: {told}");
    let alive = Pid::from_raw(i32::try_from(numbers[0]).unwrap());
    assert!(kill(alive, None).is_ok(), "it outlives the agent");
    kill(alive, Signal::SIGKILL).unwrap();
}

#[test]
fn the_provider_says_where_it_listens_and_ends_with_stdin_or_sigterm() {
    for by_signal in [false, true] {
        let env = TestEnv::new().unwrap();
        let log = env.root().join("log.jsonl");
        let script = env.root().join("script.toml");
        std::fs::write(&script, "models = [\"m\"]\n[scenario]\nhello = \"say hi\"\n").unwrap();
        let mut command = env.command(PROGRAM);
        command.args(["__provider", "--addr", "127.0.0.1:0", "--script"]).arg(&script).arg("--log").arg(&log);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let ready: Value = serde_json::from_str(&read_until(&mut child, "addr")).unwrap();
        let mut told = agent(&env, &goal(&env, "```\n```"), &["--prompt", "[[scenario:hello]]", "--gateway-url"]);
        let output = told.arg(ready["url"].as_str().unwrap()).env("OUTLAST_KEY", "k").output().unwrap();
        assert_eq!(results(&output)[0]["result"], "hi");
        if by_signal {
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
        } else {
            drop(child.stdin.take());
        }
        assert!(child.wait().unwrap().success());
        let line: Value = serde_json::from_str(std::fs::read_to_string(&log).unwrap().trim()).unwrap();
        assert_eq!((line["scenario"].as_str(), line["ended"].as_str()), (Some("hello"), Some("complete")));
    }
}

#[test]
fn a_script_that_does_not_parse_is_refused_with_its_place() {
    let env = TestEnv::new().unwrap();
    let script = env.root().join("script.toml");
    for (text, told) in
        [("[scenario]\nx = \"fly away\"\n", "fly"), ("keyz = []\n", "keyz"), ("{\"fault\": [{\"fault\": {}}]}", "kind")]
    {
        std::fs::write(&script, text).unwrap();
        let output =
            env.command(PROGRAM).args(["__provider", "--script"]).arg(&script).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
