//! What `outlast clean` lets go: not what somebody worked for, and all that nobody did.

use std::fs;
use std::path::PathBuf;

use crate::bench::Bench;

/// A task that has landed, whose check has left what git does not ignore; and its workspace.
fn landed() -> (Bench, PathBuf) {
    let bench = Bench::new();
    bench.plan(
        "[run]\nland = \"auto\"\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > t.txt\"]\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"*.txt\"]\nverify = [\"cp t.txt made.pyc && cp README.md more.txt\"]\n",
    );
    bench.run(&["run", "--yes"]).ends(0);
    let status = bench.run(&["status", "--json"]).ends(0).json("status");
    assert_eq!(status["tasks"][0]["state"], "landed");
    let workspace = PathBuf::from(status["tasks"][0]["workspace"].as_str().unwrap());
    assert!(workspace.join("made.pyc").is_file());
    (bench, workspace)
}

/// Why it stays; nothing where it can go.
fn kept(bench: &Bench) -> Option<String> {
    let view = bench.run(&["clean", "--json"]).ends(0).json("clean");
    view["items"][0]["kept"].as_str().map(str::to_owned)
}

#[test]
fn what_a_check_has_made_keeps_no_workspace() {
    let (bench, workspace) = landed();
    assert_eq!(kept(&bench), None);
    bench.run(&["clean", "--yes"]).ends(0);
    assert!(!workspace.exists());
}

#[test]
fn what_anybody_has_written_since_keeps_it_also_where_the_check_had_made_the_file() {
    for (file, text) in
        [("new.txt", Some("a person's")), ("made.pyc", Some("a person's")), ("t.txt", Some("y")), ("t.txt", None)]
    {
        let (bench, workspace) = landed();
        match text {
            Some(text) => fs::write(workspace.join(file), text).unwrap(),
            None => fs::remove_file(workspace.join(file)).unwrap(),
        }
        let why = kept(&bench).expect(file);
        assert!(why.contains(&format!("`{file}` differs from the last checkpoint")), "{why}");
        bench.run(&["clean", "--yes"]).ends(0);
        assert!(workspace.exists(), "{file}");
    }
}
