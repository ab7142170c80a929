//! Many tasks at once, some of which misbehave in every way that agents do.

use std::collections::BTreeSet;

use crate::world::{Plan, World};

const FAILING: [&str; 3] = ["fails-1", "fails-2", "fails-3"];

/// Forty tasks: three that always fail, one that hangs, one that leaves a detached child spinning, one that never leaves
/// after its last word, one that reads its standard input to the end.
fn forty() -> Plan {
    let mut plan = Plan::new("concurrency = 8\nland = \"auto\"");
    for id in FAILING {
        plan = plan.task(id, "exit 1", &format!("writes = [\"parts/{id}.txt\"]\nretries = 1"));
    }
    plan = plan.task("hangs", "hang", "writes = [\"parts/hangs.txt\"]\nidle_timeout = \"2s\"\nretries = 0");
    let well = |id: &str, before: &str| format!("{before}\nwrite parts/{id}.txt \"part {id}\\n\"");
    let spin = "fork-detached while :; do :; done";
    plan = plan.task("forks", &well("forks", spin), "writes = [\"parts/forks.txt\"]");
    plan = plan.task("lingers", &well("lingers", "linger"), "writes = [\"parts/lingers.txt\"]");
    plan = plan.task("stdin", &well("stdin", "read-stdin"), "writes = [\"parts/stdin.txt\"]");
    for number in 1..=33 {
        plan = plan.part(&format!("well-{number}"));
    }
    plan
}

#[test]
fn d01_d03_d05_d07_of_forty_tasks_the_well_behaved_land_and_nothing_is_left() {
    let world = World::new();
    world.plan(&forty());
    let base = world.repo.commit_id("HEAD").unwrap();
    world.run(&["run", "--yes"]).ends(5);

    let states = world.states();
    assert_eq!(states.len(), 40);
    for (id, state) in &states {
        let fails = FAILING.contains(&id.as_str()) || id == "hangs";
        assert_eq!(state, if fails { "failed" } else { "landed" }, "{id}: {:#}", world.task(id));
    }
    for id in FAILING {
        assert_eq!(world.task(id)["attempts"], 2, "each try was used");
        assert_eq!(world.task(id)["cause"], "crash");
    }
    assert_eq!(world.task("hangs")["cause"], "timeout");

    let target = world.target();
    let landed = world.landed_on(&target, &base);
    assert_eq!(landed.len(), 36, "{landed:?}");
    assert_eq!(landed.iter().collect::<BTreeSet<_>>().len(), 36, "none twice: {landed:?}");
    world.every_commit_passes(&target, &base);
    world.nothing_is_left();
    assert_eq!(world.status()["state"], "degraded");
    // Twelve are named, and what did not get there is among them.
    let screen = world.run(&["status"]).ends(0).stdout;
    assert!(screen.contains("finished (4 failed, 36 landed)"), "{screen}");
    assert!(FAILING.iter().chain(&["hangs"]).all(|id| screen.contains(&format!("failed     {id} "))), "{screen}");
}
