//! The case H09 on the real binary: of more than a hundred tasks one fails, and it alone is run again, wherever it stands in the
//! plan and whatever the others are called by then.

use std::fs;

use crate::world::{World, text};

const TASKS: usize = 102;
const FAILS: usize = 4;

/// Writes the part that its goal names. The fourth fails at its first try.
const AGENT: &str = "part=$(grep -o 'Write part [0-9]*' $OUTLAST_GOAL_FILE | grep -o '[0-9]*'); \
    case $part-$OUTLAST_ATTEMPT in 4-*.1) exit 1;; esac; mkdir -p parts; echo part $part > parts/$part.txt";

/// A plan of these tasks, in this order: its own name, and the part that it writes.
fn plan(world: &World, tasks: &[(String, usize)]) {
    let mut plan = format!(
        "[run]\nconcurrency = 8\nland = \"auto\"\n\n[agent.sh]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{AGENT}''']\n\n\
         [defaults]\nretries = 0\nverify = [\"test -d parts\"]\n"
    );
    for (id, part) in tasks {
        plan += &format!("\n[[task]]\nid = {id:?}\ngoal = \"Write part {part}.\"\nwrites = [\"parts/{part}.txt\"]\n");
    }
    world.repo.write("outlast.toml", plan).unwrap();
}

/// Every start of an agent there ever was, by the folders that they leave.
fn starts(world: &World) -> Vec<String> {
    let names = |folder: std::path::PathBuf| {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        entries.collect::<Vec<_>>()
    };
    let attempts = world.homes()[0].join("attempts");
    let mut found: Vec<String> = names(attempts.clone()).iter().flat_map(|run| names(attempts.join(run))).collect();
    found.sort();
    found
}

#[test]
fn h09_of_a_hundred_and_two_tasks_only_what_failed_runs_again_wherever_it_stands_in_the_plan() {
    let world = World::new();
    let tasks: Vec<(String, usize)> = (1..=TASKS).map(|part| (format!("t{part}"), part)).collect();
    plan(&world, &tasks);
    // The engine dies in the midst of it: what has landed by then, and who is at work, is not begun anew either.
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["t20 ", "landed"]);
    run.kill_9();
    world.run(&["resume"]).ends(5);
    let mut once: Vec<String> = tasks.iter().map(|(id, _)| format!("{id}.1")).collect();
    once.sort();
    assert_eq!(starts(&world), once, "each was started once");

    world.run(&["resume", &format!("t{FAILS}")]).ends(0);
    world.all_are("landed");
    let mut all = [once, vec![format!("t{FAILS}.2")]].concat();
    all.sort();
    assert_eq!(starts(&world), all, "exactly one was started again");

    // Backwards, and each of the others under its neighbour's name: it is known by what it is to do.
    world.repo.git(&["merge", "--quiet", &world.target()]).unwrap();
    let named = |part: usize| if part == FAILS { format!("t{FAILS}") } else { format!("t{}", part % TASKS + 1) };
    let mut others: Vec<(String, usize)> =
        (1..=TASKS).rev().map(|part| (named(part), part)).filter(|(id, part)| *part == FAILS || *id != "t4").collect();
    plan(&world, &others);
    world.run(&["run", "--yes"]).ends(0).says("nothing is left to do");
    assert_eq!(starts(&world), all, "nothing was started");

    // One that has more to do is started, and no other.
    let renamed = others.iter_mut().find(|(_, part)| *part == 50).unwrap();
    renamed.1 = 1050;
    plan(&world, &others);
    world.run(&["run", "--yes"]).ends(0);
    assert_eq!(text(&world.task("t51")["state"]), "landed");
    assert_eq!(starts(&world).len(), all.len() + 1, "it alone was started");
    world.nothing_is_left();
}
