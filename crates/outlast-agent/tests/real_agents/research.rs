//! What is taken from the requests of the real CLIs is exactly what they did, and fits what is on disk.

use std::fs;

use outlast_agent::{Kind, adapter, prompt, text_hash};
use outlast_core::research::{EditKind, Ended, ResearchState};
use outlast_gateway::{Dialect, conversation};

use crate::lab::Lab;

/// The research state in a request's body.
pub(crate) fn of(kind: Kind, body: &str) -> ResearchState {
    let dialect = match kind {
        Kind::ClaudeCode => Dialect::Anthropic,
        Kind::Codex => Dialect::Responses,
        Kind::OpenCode | Kind::Qwen | Kind::Kimi => Dialect::Chat,
        Kind::Gemini => Dialect::Gemini,
        Kind::Command => unreachable!("a command is no real agent here"),
    };
    adapter(kind).research(&conversation(dialect, body.as_bytes()).expect("it is a request of the dialect"))
}

/// Codex has no tool that replaces a text: its shell would do that, unseen by anyone. Both streams of a command go into one
/// pipe, since a CLI that reads two may see either first.
fn script(kind: Kind) -> String {
    let edit = if kind == Kind::Codex { "" } else { "edit greeting.txt \"hello\" \"good day\"\n" };
    let done = written(kind);
    format!(
        "read greeting.txt\nsay \"The greeting stays in one file.\"\n{edit}run \"exec 2>&1; echo one; echo two >&2; exit 3\"\n\
         write {done} <<END\n# Done\nit's finished\nEND\nrun \"printf x >> counter\"\n\
         say \"Changed: greeting.txt, {done}\"\n"
    )
}

/// The file that it writes: Kimi CLI's tool makes no folder for one.
const fn written(kind: Kind) -> &'static str {
    match kind {
        Kind::Kimi => "done.md",
        _ => "notes/done.md",
    }
}

/// A conversation of several turns: its reads, commands and edits, and nothing else, after each turn as many as there were.
async fn is_exact(kind: Kind, model: Option<&str>) {
    let Some(lab) = Lab::new(kind).await else { return };
    let task = crate::task(&script(kind));
    let mut brief = lab.brief(&prompt::prompt(&task));
    brief.model = model.map(str::to_owned).or(brief.model);
    let ran = tokio::task::block_in_place(|| lab.run(&brief));
    let bodies = lab.bodies().await;
    let states: Vec<ResearchState> = bodies.iter().map(|body| of(kind, body)).collect();
    let done = |state: &ResearchState| state.read.len() + state.commands.len() + state.edits.len();
    let counts: Vec<usize> = states.iter().map(done).collect();
    let turns = if kind == Kind::Codex { 5 } else { 6 };
    assert_eq!(counts, (0..turns).collect::<Vec<_>>(), "one act more with each request: {}", ran.told);

    let state = states.last().expect("there were requests");
    let on_disk = |path: &str| Some(text_hash(&fs::read(lab.workspace().join(path)).unwrap()));
    let read: Vec<_> = state.read.iter().map(|file| (&*file.path, file.hash.clone())).collect();
    assert_eq!(read, [("greeting.txt", on_disk("greeting.txt"))], "what it read, and that it still knows it");
    let told = kind != Kind::OpenCode;
    let commands: Vec<_> = state.commands.iter().map(|run| (&*run.command, run.exit, run.ended)).collect();
    let exit = |code: i32, ended: Ended| if told { (Some(code), ended) } else { (None, Ended::Unknown) };
    let (failed, ok) = (exit(3, Ended::Failed), exit(0, Ended::Ok));
    assert_eq!(
        commands,
        [("exec 2>&1; echo one; echo two >&2; exit 3", failed.0, failed.1), ("printf x >> counter", ok.0, ok.1)],
        "what it ran, with the exit that it was told"
    );
    assert_eq!(state.commands[0].tail.trim_end(), "one\ntwo");
    let edits: Vec<_> = state.edits.iter().map(|edit| (&*edit.path, edit.kind, edit.hash.clone())).collect();
    let mut expected = vec![(written(kind), EditKind::Written, on_disk(written(kind)))];
    if kind != Kind::Codex {
        expected.insert(0, ("greeting.txt", EditKind::Changed, on_disk("greeting.txt")));
    }
    assert_eq!(edits, expected, "what it edited, and what stands there now");
    assert_eq!(state.decisions, ["The greeting stays in one file."]);
    assert!(state.unanswered.is_empty() && state.left_out.is_nothing());

    let note = prompt::handover_note(&prompt::HandOver {
        task: &task,
        research: state,
        done: &[],
        notes: &[],
        changed: &[],
        since: None,
    });
    for fact in ["greeting.txt", "# Done\nit's finished\n", "printf x >> counter", "The greeting stays in one file."] {
        assert!(note.contains(fact), "{fact} is not in\n{note}");
    }
    assert!(note.contains(&fs::read_to_string(lab.workspace().join("greeting.txt")).unwrap()), "{note}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claude_code() {
    is_exact(Kind::ClaudeCode, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_with_a_patch_tool() {
    is_exact(Kind::Codex, Some("gpt-5.5")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codex_with_a_tool_that_runs_scripts() {
    is_exact(Kind::Codex, Some("gpt-6.2-sol")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opencode() {
    is_exact(Kind::OpenCode, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gemini() {
    is_exact(Kind::Gemini, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn qwen() {
    is_exact(Kind::Qwen, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kimi() {
    is_exact(Kind::Kimi, None).await;
}
