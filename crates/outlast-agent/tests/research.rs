//! What is taken from requests of the real CLIs, recorded with the versions of `docs/agents.md` and shortened: the same
//! script for each of them, once to its end and once killed in a command and resumed.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::path::Path;

use outlast_agent::{Kind, adapter, text_hash};
use outlast_core::research::{Conversation, EditKind, Ended, Item, ResearchState, Role};
use outlast_gateway::{Dialect, answer_items, conversation};

fn recorded(name: &str, dialect: Dialect) -> Conversation {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/requests").join(name).with_extension("json");
    conversation(dialect, &std::fs::read(file).unwrap()).unwrap()
}

fn state(kind: Kind, name: &str, dialect: Dialect) -> ResearchState {
    adapter(kind).research(&recorded(name, dialect))
}

fn commands(state: &ResearchState) -> Vec<(&str, Option<i32>, &str)> {
    state.commands.iter().map(|run| (&*run.command, run.exit, run.tail.trim_end())).collect()
}

fn edits(state: &ResearchState) -> Vec<(&str, EditKind)> {
    state.edits.iter().map(|edit| (&*edit.path, edit.kind)).collect()
}

/// The one file that was read, as the agent knows it after its own edit.
fn read_and_edited(state: &ResearchState) {
    let [file] = &state.read[..] else { panic!("{:#?}", state.read) };
    assert_eq!(file.path, "greeting.txt");
    assert_eq!(file.text.as_deref().map(str::trim_end), Some("good day"));
    assert_eq!(file.hash, Some(text_hash(b"good day\n")));
    assert_eq!(edits(state), [("greeting.txt", EditKind::Changed), ("notes/done.md", EditKind::Written)]);
    assert_eq!(state.edits[0].hash, file.hash);
    assert_eq!(state.edits[1].text.as_deref(), Some("# Done\nit's finished\n"));
    assert_eq!(state.edits[1].hash, Some(text_hash(b"# Done\nit's finished")));
}

const FAILS: &str = "echo one; echo two >&2; exit 3";
const REDIRECTS: &str = "cat greeting.txt > seen.txt";
const PRINTS: &str = "printf 'a\nb\n' > two.txt; cat two.txt";
const FINDS_NOTHING: &str = "grep -rn nothing-like-this .";
const SLEEPS: &str = "sleep 3; echo slept";

#[test]
fn claude_code() {
    let state = state(Kind::ClaudeCode, "claude", Dialect::Anthropic);
    read_and_edited(&state);
    assert_eq!(
        commands(&state),
        [(FAILS, Some(3), "one\ntwo"), (REDIRECTS, Some(0), ""), (PRINTS, Some(0), "a\nb"), (SLEEPS, Some(0), "slept")]
    );
    let looked: Vec<&str> = state.lookups.iter().map(|lookup| &*lookup.what).collect();
    assert_eq!(looked, [FINDS_NOTHING], "a search is told as a success though it found nothing");
    assert_eq!(state.decisions, ["The greeting is in one place."]);
    assert!(state.unanswered.is_empty());
}

#[test]
fn codex_with_a_shell_alone_and_with_a_patch_tool() {
    for (name, patches) in [("codex", false), ("codex-patch", true), ("codex-js", true)] {
        let state = state(Kind::Codex, name, Dialect::Responses);
        let [file] = &state.read[..] else { panic!("{name}: {:#?}", state.read) };
        assert_eq!((&*file.path, file.text.as_deref()), ("greeting.txt", Some("hello\n")), "{name}");
        assert_eq!(file.hash, Some(text_hash(b"hello\n")), "its shell changed the file, which the hash will show");
        let told: Vec<_> =
            commands(&state).into_iter().filter(|(command, ..)| !command.contains("printf %s")).collect();
        let expected = [
            (FAILS, Some(3), "one\ntwo"),
            ("cat -- 'missing.txt'", Some(1), "cat: missing.txt: No such file or directory"),
            (REDIRECTS, Some(0), ""),
            (PRINTS, Some(0), "a\nb"),
            (FINDS_NOTHING, Some(1), ""),
            (SLEEPS, Some(0), "slept"),
        ];
        assert_eq!(told, expected, "{name}");
        assert_eq!(state.commands.len() - told.len(), if patches { 1 } else { 2 }, "{name}: edits by the shell");
        let expected: &[_] = if patches { &[("notes/done.md", EditKind::Written)] } else { &[] };
        assert_eq!(edits(&state), expected, "{name}");
        assert_eq!(state.decisions, ["The greeting is in one place."], "{name}");
    }
}

#[test]
fn opencode_which_tells_no_exit_status() {
    let state = state(Kind::OpenCode, "opencode", Dialect::Chat);
    read_and_edited(&state);
    let expected = [
        (FAILS, None, "one\ntwo"),
        (REDIRECTS, None, ""),
        (PRINTS, None, "a\nb"),
        (FINDS_NOTHING, None, ""),
        (SLEEPS, None, "slept"),
    ];
    assert_eq!(commands(&state), expected);
    assert!(state.commands.iter().all(|run| run.ended == Ended::Unknown), "unknown is never a success");
}

#[test]
fn gemini() {
    let state = state(Kind::Gemini, "gemini", Dialect::Gemini);
    read_and_edited(&state);
    let expected = [
        (FAILS, Some(3), "one\ntwo"),
        (REDIRECTS, Some(0), ""),
        (PRINTS, Some(0), "a\nb"),
        (FINDS_NOTHING, Some(1), ""),
        (SLEEPS, Some(0), "slept"),
    ];
    assert_eq!(commands(&state), expected);
}

#[test]
fn qwen_which_refuses_to_sleep() {
    let state = state(Kind::Qwen, "qwen", Dialect::Chat);
    read_and_edited(&state);
    let told = commands(&state);
    let expected = [
        (FAILS, Some(3), "one\ntwo"),
        (REDIRECTS, Some(0), ""),
        (PRINTS, Some(0), "a\nb"),
        (FINDS_NOTHING, Some(1), ""),
    ];
    assert_eq!(told[..4], expected);
    assert_eq!((told[4].0, told[4].1, state.commands[4].ended), (SLEEPS, None, Ended::Failed));
    assert_eq!(state.decisions, ["The greeting is in one place."], "nothing that it says in the model's name");
}

#[test]
fn kimi_whose_tool_makes_no_folder() {
    let state = state(Kind::Kimi, "kimi", Dialect::Chat);
    let [file] = &state.read[..] else { panic!("{:#?}", state.read) };
    assert_eq!((&*file.path, file.text.as_deref().map(str::trim_end)), ("greeting.txt", Some("good day")));
    assert_eq!(file.hash, Some(text_hash(b"good day\n")));
    assert_eq!(edits(&state), [("greeting.txt", EditKind::Changed)], "a write that failed is none");
    let expected =
        [("exec 2>&1; echo one; echo two >&2; exit 3", Some(3), "one\ntwo"), ("printf x >> counter", Some(0), "")];
    assert_eq!(commands(&state), expected);
    assert_eq!(state.decisions, ["The greeting stays in one file."]);
    assert!(state.unanswered.is_empty());
}

/// What was running when the CLI was killed.
const CUT_OFF: &str = "test -e again || { touch again; sleep 100; }";

#[test]
fn h03_the_first_request_after_a_kill_says_what_each_cli_makes_of_it() {
    let claude = state(Kind::ClaudeCode, "claude-resumed", Dialect::Anthropic);
    assert!(claude.commands.is_empty() && claude.unanswered.is_empty(), "the call is dropped");
    assert!(claude.decisions.is_empty(), "the texts that it makes up are not the model's");
    for (kind, name, dialect) in
        [(Kind::Codex, "codex-resumed", Dialect::Responses), (Kind::OpenCode, "opencode-resumed", Dialect::Chat)]
    {
        let state = state(kind, name, dialect);
        let last = state.commands.last().unwrap();
        assert_eq!((&*last.command, last.exit, last.ended), (CUT_OFF, None, Ended::Interrupted), "{name}");
    }
    let gemini = state(Kind::Gemini, "gemini-resumed", Dialect::Gemini);
    assert_eq!((gemini.read.len(), gemini.edits.len(), gemini.commands.len()), (1, 1, 0), "doubled results count once");
    assert!(gemini.decisions.is_empty());
    let qwen = state(Kind::Qwen, "qwen-resumed", Dialect::Chat);
    assert_eq!((qwen.read.len(), qwen.edits.len()), (1, 0), "it forgot a write that was done");
}

#[test]
fn the_call_of_an_answer_has_no_result_while_its_tool_runs() {
    let mut conversation = recorded("claude-resumed", Dialect::Anthropic);
    let answer = serde_json::json!({"content": [{"type": "text", "text": "I count."}, {"type": "tool_use", "id": "c9",
        "name": "Bash", "input": {"command": "echo x >> counter"}}]});
    conversation.items.extend(answer_items(Dialect::Anthropic, answer.to_string().as_bytes()));
    let before = adapter(Kind::ClaudeCode).research(&conversation);
    let [call] = &before.unanswered[..] else { panic!("{before:#?}") };
    assert_eq!((&*call.tool, &*call.about, call.is_command), ("Bash", "echo x >> counter", true));

    let after = state(Kind::ClaudeCode, "claude-resumed", Dialect::Anthropic).after(&before);
    let last = after.commands.last().unwrap();
    assert_eq!((&*last.command, last.ended), ("echo x >> counter", Ended::Interrupted), "though the session forgot it");
}

#[test]
fn results_that_a_cli_has_cleared_are_filled_in_from_an_earlier_turn() {
    for (kind, name, dialect) in [
        (Kind::ClaudeCode, "claude", Dialect::Anthropic),
        (Kind::OpenCode, "opencode", Dialect::Chat),
        (Kind::Qwen, "qwen", Dialect::Chat),
    ] {
        let before = state(kind, name, dialect);
        let mut conversation = recorded(name, dialect);
        for item in &mut conversation.items {
            if let Item::Result { text, is_error, .. } = item {
                (*text, *is_error) = ("[Old tool result content cleared]".to_owned(), false);
            }
        }
        let cleared = adapter(kind).research(&conversation);
        assert!(
            cleared.read.iter().all(|file| file.text.is_none())
                && cleared.commands.iter().all(|run| run.exit.is_none())
        );
        let after = cleared.after(&before);
        assert_eq!(after.read[0], before.read[0], "{name}");
        assert_eq!(after.edits, before.edits, "{name}");
        assert!(before.commands.iter().all(|run| after.commands.contains(run)), "{name}");
    }
}

#[test]
fn an_unknown_program_is_read_by_the_tools_it_uses() {
    let claude = state(Kind::Command, "claude", Dialect::Anthropic);
    assert_eq!(claude, state(Kind::ClaudeCode, "claude", Dialect::Anthropic));
    let gemini = state(Kind::Command, "gemini", Dialect::Gemini);
    assert_eq!(gemini.edits, state(Kind::Gemini, "gemini", Dialect::Gemini).edits);
    assert!(adapter(Kind::Command).research(&Conversation::default()).is_empty());
}

#[test]
fn nothing_of_a_strange_conversation_breaks_any_vocabulary() {
    let names = [
        "Read",
        "Bash",
        "Edit",
        "exec",
        "exec_command",
        "apply_patch",
        "write_stdin",
        "read",
        "todowrite",
        "TaskUpdate",
        "update_plan",
        "?",
    ];
    let texts = [
        "",
        "\"",
        "null",
        "[1]",
        "{}",
        "\"tools.exec_command({cmd: '\\\\\"",
        "{\"cmd\": [1, []]}",
        "{\"file_path\": \"\", \"old_string\": \"\"}",
        "\u{fffd}é",
    ];
    for kind in Kind::ALL {
        for name in names {
            for arguments in texts {
                for result in texts {
                    let items = vec![
                        Item::Said { role: Role::System, text: "<cwd>".to_owned() },
                        Item::Result { id: String::new(), text: result.to_owned(), is_error: true },
                        Item::Call { id: String::new(), name: name.to_owned(), arguments: arguments.to_owned() },
                        Item::Result { id: String::new(), text: result.to_owned(), is_error: false },
                    ];
                    let _state = adapter(kind).research(&Conversation { items });
                }
            }
        }
    }
}
