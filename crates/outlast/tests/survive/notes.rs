//! What an agent notes of its own work, and what the agents know that it has started: kept beside its attempt, turn by turn.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::{Plan, World, text};

/// What is known of the only attempt.
fn progress(world: &World) -> Value {
    fn find(folder: &Path) -> Option<PathBuf> {
        let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .find_map(|path| if path.is_dir() { find(&path) } else { path.ends_with("progress.json").then_some(path) })
    }
    let file = find(&world.homes()[0].join("attempts")).expect("what is known of a turn is kept");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn temp(world: &World) -> PathBuf {
    world.homes()[0].join("temp").join(text(&world.status()["run"])).join("work")
}

/// The pipe that the agent's second command reads, once it does: that turn is kept, and nobody is at its tree.
fn at_gate(temp: &Path) -> fs::File {
    fs::OpenOptions::new().write(true).open(temp.join("go")).unwrap()
}

#[test]
fn an_agent_notes_steps_and_more_from_inside_its_sandbox() {
    let world = World::new();
    let script = "run \"outlast progress done imports docs && outlast progress left docs && \
                  outlast progress note the retry is in the caller\"\n\
                  run \"mkdir out; outlast progress done nonsense 2> out/refused; echo $? > out/code; \
                  outlast progress --json > out/noted; echo tests >> $OUTLAST_PROGRESS_FILE\"\n\
                  write parts/a.txt \"part a\\n\"";
    let keys = "writes = [\"parts/**\", \"out/**\"]\n\
                steps = { imports = \"test -e a\", tests = \"test -e b\", docs = \"test -e c\" }";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, keys));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let target = world.target();
    let written = |name: &str| world.repo.text(&["show", &format!("{target}:out/{name}")]).unwrap();
    assert_eq!(written("code"), "2");
    let refused = written("refused");
    assert!(refused.contains("no step `nonsense`") && refused.contains("imports, tests, docs"), "{refused}");
    let noted: Value = serde_json::from_str(&written("noted")).unwrap();
    assert_eq!((&noted["task_id"], &noted["completed_steps"]), (&"work".into(), &serde_json::json!(["imports"])));
    let known = progress(&world);
    assert_eq!(known["completed_steps"], serde_json::json!(["imports", "tests"]), "{known:#}");
    assert_eq!(known["remaining_steps"], serde_json::json!(["docs"]));
    assert_eq!(known["notes"], serde_json::json!(["the retry is in the caller"]));
}

/// Asks for an answer as an agent that the attempt's own agent has started.
fn ask_as(sub_agent: &str, url: &str, key: &str, body: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\nx-claude-code-agent-id: {sub_agent}\r\n\
         anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn what_an_agents_own_agents_know_is_kept_under_their_names() {
    let world = World::new();
    let script = "run \"echo $OUTLAST_GATEWAY_URL $OUTLAST_KEY > $TMPDIR/door; mkfifo $TMPDIR/go\"\n\
                  run \"cat $TMPDIR/go\"\nwrite parts/a.txt \"part a\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, "writes = [\"parts/**\"]"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let temp = temp(&world);
    let mut gate = at_gate(&temp);
    let door = fs::read_to_string(temp.join("door")).unwrap();
    let (url, key) = door.trim().split_once(' ').unwrap();
    let body = serde_json::json!({
        "model": "claude-sonnet", "max_tokens": 9, "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "Find callers.\n```outlast-script\nread lib/found.txt\nread README.md\n```\n"},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "lib/found.txt"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found by the helper\n"}]},
        ],
    });
    let answer = ask_as("helper-7", url, key, &body.to_string());
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let by_helper = |known: &Value| {
        let read = known["research"]["read"].as_array().unwrap().clone();
        read.into_iter().any(|file| file["path"] == "lib/found.txt" && file["by"] == "helper-7")
    };
    let known = progress(&world);
    assert!(by_helper(&known), "before its answer was passed on: {known:#}");
    assert_eq!(known["turns"], 2, "it is no turn of the task: {known:#}");
    gate.write_all(b"on\n").unwrap();
    drop(gate);
    run.end().ends(0);
    let known = progress(&world);
    assert!(by_helper(&known) && known["turns"] == 4, "the main turns after it know it still: {known:#}");
}

#[test]
fn a_turn_that_cannot_be_kept_is_said_and_holds_nobody_up() {
    let world = World::new();
    let script = "run \"mkfifo $TMPDIR/go $TMPDIR/on\"\nrun \"echo x > beside; cat $TMPDIR/go\"\n\
                  run \"cat $TMPDIR/on\"\nwrite parts/a.txt \"part a\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("work", script, "writes = [\"parts/**\"]"));
    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let temp = temp(&world);
    let mut gate = at_gate(&temp);
    // A folder in the place of the ref: nothing can be kept there.
    let status = world.status();
    let refs = world.homes()[0].join("store.git/refs/outlast").join(text(&status["run"])).join("work");
    fs::rename(refs.join("1"), refs.join("aside")).unwrap();
    fs::create_dir(refs.join("1")).unwrap();
    gate.write_all(b"on\n").unwrap();
    drop(gate);
    let told = run.until(&["work: turn 3 is not kept", "its agent goes on"]);
    assert!(!told.contains("tried again"), "{told}");
    fs::remove_dir(refs.join("1")).unwrap();
    fs::rename(refs.join("aside"), refs.join("1")).unwrap();
    fs::write(temp.join("on"), "on\n").unwrap();
    run.end().ends(0);
    world.all_are("landed");
}
