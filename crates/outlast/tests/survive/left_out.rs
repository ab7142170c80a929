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
