//! What no checkpoint could take is told for as long as it lies in the workspace, and not only to who was there.

use std::process::Command;

use serde_json::Value;

use crate::world::{Plan, World, text};

/// An agent that writes its part and, beside it, what is too large to be kept.
fn world() -> World {
    let world = World::new();
    let make = "mkdir -p parts && truncate -s 53000000 parts/big.bin && echo 'part one' > parts/one.txt";
    let agent = format!("[agent.makes]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{make}\"]");
    world.plan(&Plan::new(&format!("land = \"auto\"\n\n{agent}")).task(
        "one",
        "say \"it\"",
        "writes = [\"parts/**\"]\nagent = \"makes\"\nretries = 0",
    ));
    world
}

#[test]
fn a_file_too_large_to_be_kept_is_told_afterwards_with_what_takes_it_over() {
    let world = world();
    world.run(&["run", "--yes"]).ends(0);
    let task = world.task("one");
    assert_eq!(task["state"], "landed", "{task:#}");
    let left = serde_json::json!([{
        "path": "parts/big.bin", "why": "53000000 bytes, more than 52428800", "in_scope": true
    }]);
    assert_eq!(task["left_out"], left, "{task:#}");
    assert!(text(&task["detail"]).contains("only its workspace holds `parts/big.bin`"), "{task:#}");
    let fix = text(&task["fix"][0]);
    world.run(&["status"]).ends(0).says("only its workspace holds `parts/big.bin`").says(&fix);
    world.run(&["log", "one"]).ends(0).says("and none of it lands: parts/big.bin");
    let log = world.run(&["log", "one", "--json"]).ends(0);
    let last: Value = serde_json::from_str(log.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], &last["data"]["files"]), (&"left_out".into(), &left), "{last:#}");
    world.run(&["diff", "one", "--stat"]).ends(0).says("left out     parts/big.bin");
    let diff = world.run(&["diff", "one", "--json"]).ends(0).json();
    assert_eq!(diff["left_out"], left);
    // The command does it, and so it is lost to nobody.
    let done = Command::new("sh").args(["-c", &fix]).status().unwrap();
    assert!(done.success(), "{fix}");
    assert_eq!(world.repo.dir().join("parts/big.bin").metadata().unwrap().len(), 53_000_000);
}

/// An agent whose build makes what it was to write, where git ignores it, and what tools keep for themselves.
fn ignoring(setup: &str, make: &str) -> World {
    let world = World::new();
    world.repo.write(".gitignore", "outlast.toml\ndist/\n*.log\n__pycache__/\n").unwrap();
    world.repo.commit("Ignore what is made").unwrap();
    let agent = format!("{setup}\n[agent.makes]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"{make}\"]");
    world.plan(&Plan::new(&format!("land = \"auto\"\n{agent}")).task(
        "one",
        "say \"it\"",
        "writes = [\"parts/**\", \"dist/**\"]\nagent = \"makes\"\nretries = 0",
    ));
    world
}

#[test]
fn e13_work_that_git_ignores_is_told_and_stays_until_somebody_has_taken_it() {
    let make = "mkdir -p parts/__pycache__ dist && echo x > parts/__pycache__/a.pyc && echo built > dist/out.js \
                && echo seen > parts/trace.log && echo 'part one' > parts/one.txt";
    let world = ignoring("", make);
    world.run(&["run", "--yes"]).ends(0);
    let task = world.task("one");
    assert_eq!(task["state"], "landed", "{task:#}");
    let left = |path: &str| serde_json::json!({"path": path, "why": "git ignores it", "in_scope": true});
    assert_eq!(task["left_out"], serde_json::json!([left("dist/"), left("parts/trace.log")]), "{task:#}");
    assert!(text(&task["detail"]).contains("only its workspace holds `dist/` (git ignores it)"), "{task:#}");
    world.run(&["diff", "one", "--stat"]).ends(0).says("left out     dist/");
    world.run(&["clean", "--yes"]).ends(0).says("git ignores it");
    let workspace = std::path::PathBuf::from(text(&task["workspace"]));
    assert!(workspace.join("dist/out.js").is_file(), "it is nowhere else");

    let done = Command::new("sh").args(["-c", &text(&task["fix"][0])]).status().unwrap();
    assert!(done.success(), "{task:#}");
    assert_eq!(std::fs::read_to_string(world.repo.dir().join("dist/out.js")).unwrap(), "built\n");
    std::fs::remove_dir_all(workspace.join("dist")).unwrap();
    std::fs::remove_file(workspace.join("parts/trace.log")).unwrap();
    assert_eq!(world.task("one")["left_out"], Value::Null);
    world.run(&["clean", "--yes"]).ends(0);
    assert!(!workspace.exists(), "nothing of it is nowhere else any more");
}

#[test]
fn e13_what_setup_made_is_no_work_and_an_agent_that_made_nothing_else_is_told_why() {
    let setup = "setup = [\"mkdir -p dist && echo made > dist/out.js\"]";
    let world = ignoring(setup, "mkdir -p parts && echo 'part one' > parts/one.txt");
    world.run(&["run", "--yes"]).ends(0);
    assert_eq!(world.task("one")["left_out"], Value::Null);

    // Also where it made something beside what was there, or wrote that anew.
    let setup = "setup = [\"mkdir -p dist && echo made > dist/out.js && echo old > dist/old.js\"]";
    let make =
        "mkdir -p parts && echo 'part one' > parts/one.txt && echo new > dist/new.js && echo built > dist/out.js";
    let world = ignoring(setup, make);
    world.run(&["run", "--yes"]).ends(0);
    let task = world.task("one");
    let left = |path: &str| serde_json::json!({"path": path, "why": "git ignores it", "in_scope": true});
    assert_eq!(task["left_out"], serde_json::json!([left("dist/new.js"), left("dist/out.js")]), "{task:#}");
    world.run(&["clean", "--yes"]).ends(0).says("git ignores it");
    assert!(std::path::Path::new(&text(&task["workspace"])).join("dist/new.js").is_file());

    let world = ignoring("", "mkdir -p dist && echo built > dist/out.js");
    world.run(&["run", "--yes"]).ends(5).says("left out: `dist/` (git ignores it)");
    // Given up, it stays all the same: nobody has said that it may go.
    let workspace = text(&world.task("one")["workspace"]);
    world.run(&["discard", "one"]).ends(0).says("its workspace stays").says("git ignores it");
    assert!(std::path::Path::new(&workspace).join("dist/out.js").is_file());
}
