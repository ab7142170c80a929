//! The real CLIs, launched exactly as the adapters say, against the scripted provider.
//!
//! Needs `OUTLAST_REAL_AGENTS`, a folder with `claude`, `codex`, `opencode`, `gemini`, `qwen` and `kimi`; says so and
//! does nothing without it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests may fail loudly")]

#[path = "real_agents/hostile.rs"]
mod hostile;
#[path = "real_agents/lab.rs"]
mod lab;
#[path = "real_agents/research.rs"]
mod research;

use std::cell::Cell;
use std::fs;

use lab::{KEY, Lab, Ran, holds};
use outlast_agent::{Event, ExitStatus, Inherit, KeyShape, Kind, Launch, Session, Verdict, adapter, prompt};
use outlast_core::Class;
use outlast_core::plan::Task;

/// A task whose goal carries its own script.
fn task(script: &str) -> Task {
    Task::new("greet", format!("Change the \"greeting\" 007 times.\n\n```outlast-script\n{script}\n```"), "agent")
}

/// The turns of [`WORK`]: two tool calls and the closing account.
const WORK: &str =
    "write made.txt \"by the agent\"\nrun \"cat made.txt > seen.txt\"\nsay \"Changed: made.txt\\nBlocked: none\"";
const WORK_TURNS: usize = 3;

fn finished(ran: &Ran) {
    let Verdict::Finished { account } = &ran.verdict else { panic!("{:?}\n{}", ran.verdict, ran.told) };
    assert_eq!(account.changed, ["made.txt"], "{}", ran.told);
}

async fn works_in_a_hostile_repository(kind: Kind, shape: KeyShape) {
    let Some(lab) = Lab::new(kind).await else { return };
    lab.turn_hostile();
    let mut brief = lab.brief(&prompt::prompt(&task(WORK)));
    brief.key_shape = shape;
    let ran = tokio::task::block_in_place(|| lab.run(&brief));

    finished(&ran);
    assert!(holds(&lab.workspace().join("seen.txt"), "by the agent"), "{}", ran.told);
    assert_eq!(lab.evil.heard(), Vec::<String>::new(), "{}", ran.told);
    let log = lab.provider.log().await;
    assert!(log.iter().all(|entry| entry.key == KEY || entry.key.is_empty() && entry.method == "HEAD"), "{log:#?}");
    assert!(log.iter().all(|entry| !entry.headers.iter().any(|(name, _)| name == "x-evil")), "{log:#?}");
    let turns: Vec<_> =
        log.iter().filter(|entry| entry.dialect.is_some()).map(|entry| (entry.background, entry.step)).collect();
    assert_eq!(turns, (1..=WORK_TURNS).map(|step| (false, Some(step))).collect::<Vec<_>>(), "one request per turn");
    assert_eq!(ran.summary.turns as usize, WORK_TURNS, "{:#?}", ran.events);
    assert_eq!(ran.summary.tools, 2, "{:#?}", ran.events);

    let bodies = lab.bodies().await;
    let memory_is_always_read = kind == Kind::Gemini;
    assert!(bodies.iter().all(|body| !body.contains("EVIL-SKILL")), "nothing of the repository's skills");
    assert!(memory_is_always_read || bodies.iter().all(|body| !body.contains("EVIL-MEMORY")), "nor of its memory");

    let bill = lab.provider.bill().await.total.tokens;
    if adapter(kind).capabilities().reports_usage {
        let usage = ran.summary.usage.expect("usage was reported");
        let reported = usage.input + usage.cache_read + usage.cache_write + usage.output;
        assert_eq!(reported, bill.total(), "{usage:?} {bill:?}");
    } else {
        assert_eq!(ran.summary.usage, None);
    }
    if adapter(kind).capabilities().session_id_fixed {
        let Session::Fresh { id } = &brief.session else { unreachable!("the session is fresh") };
        assert_eq!(ran.summary.session.as_ref(), Some(id));
    }
}

/// The same repository with the protection taken off: something must reach the listener, or the test above proves
/// nothing.
async fn without_protection(kind: Kind, unprotect: fn(&mut Launch)) {
    let Some(lab) = Lab::new(kind).await else { return };
    hostile::repository(&lab.workspace(), &lab.evil.url);
    let mut launch = adapter(kind).launch(&lab.brief(&prompt::prompt(&task(WORK)))).unwrap();
    unprotect(&mut launch);
    let heard = tokio::task::block_in_place(|| lab.run_until_heard(&launch));
    assert!(heard.is_some());
}

/// What a plan names does reach the agent, from a repository whose other settings still change nothing.
async fn inherits(kind: Kind, parts: &[&str], heard: &[&str]) {
    let Some(lab) = Lab::new(kind).await else { return };
    lab.turn_hostile();
    let mut brief = lab.brief(&prompt::prompt(&task(WORK)));
    brief.inherit = parts.iter().map(|part| Inherit::parse(part).unwrap()).collect();
    let ran = tokio::task::block_in_place(|| lab.run(&brief));

    finished(&ran);
    let bodies = lab.bodies().await;
    assert!(bodies.iter().any(|body| body.contains("EVIL-MEMORY")), "its memory is there");
    assert!(bodies.iter().any(|body| body.contains("EVIL-SKILL")), "its skills are there");
    let mut reached: Vec<String> = lab.evil.heard();
    reached.sort();
    reached.dedup();
    assert_eq!(reached, heard, "{}", ran.told);
    assert!(lab.provider.model_requests().await.iter().all(|entry| entry.key == KEY));
}

/// Killed in the middle of a tool, then resumed: the verdicts, and a conversation that goes on.
async fn killed_and_resumed(kind: Kind) {
    let Some(lab) = Lab::new(kind).await else { return };
    let script = "write made.txt \"by the agent\"\nrun \"test -e again || { touch again; sleep 100; }\"\nsay \"Changed: made.txt\\nBlocked: none\"";
    let mut brief = lab.brief(&prompt::prompt(&task(script)));
    let launch = adapter(kind).launch(&brief).unwrap();
    // OpenCode tells of a tool only when it has ended, so there the second answer is the sign; Kimi CLI tells of an answer
    // only then too, so there it is what the tool has made.
    let answers = Cell::new(0);
    let started = |event: &Event| match event {
        Event::ToolStarted { summary, .. } => summary.contains("again"),
        Event::Turn => kind == Kind::OpenCode && answers.replace(answers.get() + 1) == 1,
        Event::ToolEnded => kind == Kind::Kimi,
        _ => false,
    };
    // Claude Code tells of a tool before it has written its session: a kill in between leaves none to resume
    // (`h04_a_session_that_is_not_there_is_told_apart`), which is not what this test is about.
    let stop = |event: &Event| {
        let stop = started(event);
        if stop && kind == Kind::ClaudeCode {
            lab.wait_until_home_holds("jsonl", r#""type":"tool_use""#);
        }
        if stop && kind == Kind::Kimi {
            lab.wait_until_workspace_has("again");
        }
        stop
    };
    let killed = tokio::task::block_in_place(|| lab.run_launch(&launch, stop));
    assert!(
        matches!(killed.verdict, Verdict::Failed { class: Class::Crash, .. }),
        "{:?}\n{}",
        killed.verdict,
        killed.told
    );
    assert_eq!(killed.exit.status, ExitStatus::Signal(9));
    let session = killed.summary.session.expect("the session was named before the kill");
    let bodies = lab.bodies().await;
    let before = bodies.len();
    let known = research::of(kind, bodies.last().expect("there was a request"));

    fs::write(lab.workspace().join("again"), "").unwrap();
    brief.session = Session::Resume { id: session };
    let interrupted = prompt::last_acts(&known, None);
    assert!(interrupted.as_ref().is_some_and(|told| told.contains("made.txt")), "{interrupted:?}");
    brief.prompt = prompt::resume_prompt(&prompt::Resumption { interrupted, ..Default::default() });
    brief.attempt = "test/task.2".into();
    let resumed = tokio::task::block_in_place(|| lab.run(&brief));
    finished(&resumed);
    let bodies = lab.bodies().await;
    assert!(bodies.len() > before);
    let first = &bodies[before];
    assert!(first.contains("Change the") && first.contains("by the agent"), "the conversation is there");
    assert!(first.contains("You go on with your task now"), "and the new prompt");
    assert!(first.contains("Done last before that"), "which says what the session may have lost");
}

/// A refusal that reaches the CLI, and the class it gets.
async fn refused(kind: Kind, fault: &str, class: Class) {
    let Some(lab) = Lab::new(kind).await else { return };
    let script = format!("write made.txt \"x\"\nfault 50 {fault}\nsay \"Changed: made.txt\"");
    let ran = tokio::task::block_in_place(|| lab.run(&lab.brief(&prompt::prompt(&task(&script)))));
    let Verdict::Failed { class: got, why, .. } = &ran.verdict else { panic!("{:?}\n{}", ran.verdict, ran.told) };
    assert_eq!(*got, class, "{why}\n{}", ran.told);
}

fn take(argv: &mut Vec<String>, option: &str, values: usize) {
    let at = argv.iter().position(|word| word == option).expect("the option is there");
    argv.drain(at..=at + values);
}

mod claude {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        let heard = ["GET /mcp HTTP/1.1", "GET /pre HTTP/1.1", "GET /start HTTP/1.1", "GET /stop HTTP/1.1"];
        inherits(Kind::ClaudeCode, &["memory", "skills", "hooks", "mcp:evil"], &heard).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::ClaudeCode, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_with_the_key_in_the_shape_of_a_login() {
        works_in_a_hostile_repository(Kind::ClaudeCode, KeyShape::Login).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_be_moved_without_our_settings() {
        without_protection(Kind::ClaudeCode, |launch| {
            take(&mut launch.argv, "--setting-sources", 1);
            take(&mut launch.argv, "--settings", 1);
            take(&mut launch.argv, "--strict-mcp-config", 0);
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::ClaudeCode).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn tells_a_used_up_window_from_a_wrong_key() {
        refused(Kind::ClaudeCode, r#"{"kind":"refuse","reason":"billing-cycle"}"#, Class::WindowQuota).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h04_a_session_that_is_not_there_is_told_apart() {
        let Some(lab) = Lab::new(Kind::ClaudeCode).await else { return };
        let mut brief = lab.brief("Go on.");
        brief.session = Session::Resume { id: outlast_agent::session_uuid(b"another") };
        let ran = tokio::task::block_in_place(|| lab.run(&brief));
        assert!(
            matches!(ran.verdict, Verdict::Failed { class: Class::CorruptSession, .. }),
            "{:?}\n{}",
            ran.verdict,
            ran.told
        );
    }
}

mod codex {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        inherits(Kind::Codex, &["memory", "skills"], &[]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::Codex, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_with_the_key_in_the_shape_of_a_login() {
        works_in_a_hostile_repository(Kind::Codex, KeyShape::Login).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_start_the_repositorys_servers_if_it_were_trusted() {
        without_protection(Kind::Codex, |launch| {
            let trust =
                launch.argv.iter_mut().find(|word| word.starts_with("projects=")).expect("the setting is there");
            *trust = trust.replace("untrusted", "trusted");
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::Codex).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn dies_of_a_minute_limit_and_says_so() {
        refused(
            Kind::Codex,
            r#"{"kind":"status","status":429,"body":{"error":{"message":"made up"}}}"#,
            Class::MinuteLimit,
        )
        .await;
    }
}

mod opencode {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        inherits(Kind::OpenCode, &["memory", "skills", "mcp:evil"], &["GET /mcp HTTP/1.1"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::OpenCode, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_load_the_repositorys_plugins_without_our_switches() {
        without_protection(Kind::OpenCode, |launch| {
            launch.env.remove("OPENCODE_DISABLE_PROJECT_CONFIG");
            launch.env.remove("OPENCODE_PURE");
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::OpenCode).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn dies_of_a_wrong_key_and_says_so() {
        refused(Kind::OpenCode, r#"{"kind":"refuse","reason":"auth"}"#, Class::Auth).await;
    }
}

fn without_guard(launch: &mut Launch) {
    take(&mut launch.argv, "--require", 1);
}

mod gemini {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        inherits(Kind::Gemini, &["memory", "skills", "mcp:evil"], &["GET /mcp HTTP/1.1"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::Gemini, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_be_moved_without_the_guard() {
        without_protection(Kind::Gemini, without_guard).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::Gemini).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn dies_of_a_wrong_key_and_says_so() {
        refused(Kind::Gemini, r#"{"kind":"status","status":401,"body":{"error":{"message":"made up"}}}"#, Class::Auth)
            .await;
    }
}

mod qwen {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        inherits(Kind::Qwen, &["memory", "skills", "mcp:evil"], &["GET /mcp HTTP/1.1"]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::Qwen, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_be_moved_without_the_guard() {
        without_protection(Kind::Qwen, without_guard).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::Qwen).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_success_that_is_a_refusal_is_none() {
        refused(Kind::Qwen, r#"{"kind":"refuse","reason":"auth"}"#, Class::Auth).await;
    }
}

mod kimi {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn inherits_what_the_plan_names_and_nothing_else() {
        inherits(Kind::Kimi, &["memory", "skills"], &[]).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn works_in_a_hostile_repository_that_bypasses_nothing() {
        works_in_a_hostile_repository(Kind::Kimi, KeyShape::ApiKey).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_be_moved_without_our_settings() {
        without_protection(Kind::Kimi, |launch| {
            // What is read where nothing is named, here the repository's.
            take(&mut launch.argv, "--config-file", 1);
            launch.env.retain(|name, _| !name.starts_with("KIMI_"));
            launch.env.insert("KIMI_SHARE_DIR".to_owned(), ".kimi".to_owned());
            launch.env.insert("KIMI_DISABLE_TELEMETRY".to_owned(), "1".to_owned());
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn would_load_the_repositorys_modules_if_it_were_not_isolated() {
        without_protection(Kind::Kimi, |launch| {
            take(&mut launch.argv, "-I", 0);
            launch.env.insert("PYTHONPATH".to_owned(), ".".to_owned());
        })
        .await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h18_is_judged_when_killed_and_goes_on_when_resumed() {
        killed_and_resumed(Kind::Kimi).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn dies_of_a_wrong_key_and_says_so() {
        refused(Kind::Kimi, r#"{"kind":"refuse","reason":"auth"}"#, Class::Auth).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn h04_a_session_that_is_not_there_is_told_apart() {
        let Some(lab) = Lab::new(Kind::Kimi).await else { return };
        let mut brief = lab.brief("Go on.");
        brief.session = Session::Resume { id: outlast_agent::session_uuid(b"another") };
        let ran = tokio::task::block_in_place(|| lab.run(&brief));
        assert!(
            matches!(ran.verdict, Verdict::Failed { class: Class::CorruptSession, .. }),
            "{:?}\n{}",
            ran.verdict,
            ran.told
        );
        assert!(lab.bodies().await.is_empty(), "nothing is asked in a session that knows nothing");
    }
}
