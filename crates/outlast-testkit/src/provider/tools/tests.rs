//! Tests of tool calls against the declarations of the real CLIs (names and arguments as they send them).

use serde_json::{Value, json};

use super::call_for;
use crate::script::{Action, LocalStep};
use crate::wire::{Conversation, Item, Tool};

fn conversation(system: &str, user: &str, tools: &[(&str, &[&str])]) -> Conversation {
    let tool = |(name, arguments): &(&str, &[&str])| {
        let properties: serde_json::Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        Tool { name: (*name).to_owned(), parameters: json!({"properties": properties}) }
    };
    Conversation {
        model: String::new(),
        stream: true,
        system: system.to_owned(),
        tools: tools.iter().map(tool).collect(),
        items: vec![Item::User { text: user.to_owned() }],
        schema: None,
    }
}

fn claude() -> Conversation {
    let tools: [(&str, &[&str]); 4] = [
        ("Bash", &["command", "description", "run_in_background"]),
        ("Edit", &["file_path", "old_string", "new_string", "replace_all"]),
        ("Read", &["file_path", "offset"]),
        ("Write", &["file_path", "content"]),
    ];
    conversation(" - Primary working directory: /w/x\n - Platform: linux", "goal", &tools)
}

fn edit() -> Action {
    Action::Edit { path: "a.txt".to_owned(), old: "old".to_owned(), new: "new".to_owned() }
}

#[test]
fn each_cli_gets_its_own_names_and_absolute_paths() {
    let (name, arguments) = call_for(&edit(), &claude()).unwrap();
    assert_eq!(name, "Edit");
    assert_eq!(arguments, json!({"file_path": "/w/x/a.txt", "old_string": "old", "new_string": "new"}));

    let opencode =
        conversation("  Working directory: /w/x\n", "goal", &[("edit", &["filePath", "oldString", "newString"])]);
    let (name, arguments) = call_for(&edit(), &opencode).unwrap();
    assert_eq!(
        (name.as_str(), arguments),
        ("edit", json!({"filePath": "/w/x/a.txt", "oldString": "old", "newString": "new"}))
    );

    let gemini_user = "- **Workspace Directories:**\n  - /w/x\n- more";
    let gemini =
        conversation("", gemini_user, &[("replace", &["file_path", "instruction", "old_string", "new_string"])]);
    let (name, arguments) = call_for(&edit(), &gemini).unwrap();
    assert_eq!(name, "replace");
    assert_eq!((&arguments["file_path"], arguments["instruction"].is_string()), (&json!("/w/x/a.txt"), true));

    let qwen_user = "I'm currently working in the directory: /w/x\nHere is";
    let qwen = conversation("", qwen_user, &[("edit", &["file_path", "old_string", "new_string", "replace_all"])]);
    let (name, arguments) = call_for(&edit(), &qwen).unwrap();
    assert_eq!((name.as_str(), &arguments["old_string"]), ("edit", &json!("old")));
    assert_eq!(arguments["file_path"], "/w/x/a.txt");

    let kimi_system = "The current working directory is `/w/x`. This should be considered";
    let tools: [(&str, &[&str]); 3] = [
        ("StrReplaceFile", &["path", "edit"]),
        ("WriteFile", &["path", "content", "mode"]),
        ("Shell", &["command", "timeout"]),
    ];
    let kimi = conversation(kimi_system, "goal", &tools);
    let (name, arguments) = call_for(&edit(), &kimi).unwrap();
    assert_eq!(
        (name.as_str(), arguments),
        ("StrReplaceFile", json!({"path": "/w/x/a.txt", "edit": {"old": "old", "new": "new"}}))
    );
    let write = Action::Write { path: "a.txt".to_owned(), text: "x".to_owned() };
    let written = call_for(&write, &kimi).unwrap();
    assert_eq!(written, ("WriteFile".to_owned(), json!({"path": "/w/x/a.txt", "content": "x"})));
    let ran = call_for(&Action::Run { command: "ls".to_owned() }, &kimi).unwrap();
    assert_eq!(ran, ("Shell".to_owned(), json!({"command": "ls", "timeout": 300})));
}

#[test]
fn codex_edits_with_its_shell_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let codex = conversation("", "<cwd>/w/x</cwd>", &[("exec_command", &["cmd", "yield_time_ms"])]);
    let run = |action: &Action| {
        let (name, arguments) = call_for(action, &codex).unwrap();
        assert_eq!(name, "exec_command");
        let command = arguments["cmd"].as_str().unwrap().to_owned();
        std::process::Command::new("sh").arg("-c").arg(command).current_dir(dir.path()).status().unwrap().success()
    };
    let path = "sub dir/it's.txt".to_owned();
    let text = "one 'two' \"$HOME\" \\n `x`\nold & old\n\n".to_owned();
    assert!(run(&Action::Write { path: path.clone(), text: text.clone() }));
    let read = || std::fs::read_to_string(dir.path().join(&path)).unwrap();
    assert_eq!(read(), text);
    assert!(run(&Action::Edit { path: path.clone(), old: "old &".to_owned(), new: "new \\ & 'x'\n".to_owned() }));
    assert_eq!(read(), text.replacen("old &", "new \\ & 'x'\n", 1));
    let before = read();
    assert!(!run(&Action::Edit { path: path.clone(), old: "absent".to_owned(), new: "x".to_owned() }));
    assert_eq!(read(), before, "an edit that fails changes nothing");
    assert!(run(&Action::Append { path: path.clone(), text: "%s end".to_owned() }));
    assert_eq!(read(), format!("{before}%s end"));
}

#[test]
fn codex_patches_whole_lines_and_leaves_parts_of_lines_to_its_shell() {
    let mut codex = conversation("", "<cwd>/w/x</cwd>", &[("exec_command", &["cmd"])]);
    codex.tools.push(Tool { name: "apply_patch".to_owned(), parameters: Value::Null });
    let edit = |old: &str, new: &str| {
        let action = Action::Edit { path: "a.txt".to_owned(), old: old.to_owned(), new: new.to_owned() };
        call_for(&action, &codex).unwrap()
    };
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n-two\n+one\n*** End Patch\n";
    assert_eq!(edit("one\ntwo\n", "one\n"), ("apply_patch".to_owned(), json!(patch)));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n*** End Patch\n";
    assert_eq!(edit("one\n", "").1, json!(patch));
    for (old, new) in [("one", "two\n"), ("one\n", "two")] {
        assert_eq!(edit(old, new).0, "exec_command");
    }
}

#[test]
fn what_no_offered_tool_can_do_is_an_error() {
    let none = conversation("", "goal", &[("WebSearch", &["query"])]);
    assert!(call_for(&edit(), &none).is_err());
    let linger = Action::Local(LocalStep::Linger);
    assert!(call_for(&linger, &claude()).is_err(), "only the scripted agent can linger");
    let sleep = call_for(&Action::Local(LocalStep::Sleep(0.5)), &claude()).unwrap();
    assert_eq!((sleep.0.as_str(), &sleep.1["command"]), ("Bash", &json!("sleep 0.5")));
}
