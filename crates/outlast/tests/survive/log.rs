//! The log: what went wrong inside is found there, no key is, and whoever needs it is told where it is.

use std::fs;

use crate::running::Running;
use crate::world::{Plan, World};

#[test]
fn the_log_says_what_happened_holds_no_key_and_is_named_where_it_is_needed() {
    let world = World::new();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let traced = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.env("OUTLAST_LOG", "trace");
        command
    };
    let mut killed = traced(&["run", "--yes"]);
    killed.env("OUTLAST_FAULT", "after_answer:1");
    assert!(Running::of(killed).end().was_killed());
    Running::of(traced(&["resume"])).end().ends(0);
    let path = world.env.outlast_home().join("outlast.log");
    let log = fs::read_to_string(&path).unwrap();
    assert_eq!(log.matches("an engine begins").count(), 2, "{log}");
    assert!(log.contains("is in the ledger now"), "{log}");
    // The real key and those of attempts begin like this.
    assert!(!log.contains("sk-"), "{log}");
    let place = path.display().to_string();
    let doctor = world.run(&["doctor", "--offline"]);
    assert!(doctor.stdout.contains(&place), "{}", doctor.stdout);

    // A link to itself in a journal's place is nothing that outlast does: as good a defect as any.
    let journal = world.homes()[0].join("journal.db");
    fs::remove_file(&journal).unwrap();
    std::os::unix::fs::symlink(&journal, &journal).unwrap();
    world.run(&["diff", "one"]).ends(1).says("outlast doctor --json").says(&place);
    assert!(fs::read_to_string(&path).unwrap().contains("journal.db"), "the defect is in the log");
}

#[test]
fn a_filter_that_cannot_be_read_is_told_and_nothing_fails_of_it() {
    let world = World::new();
    let mut command = world.command(&["doctor", "--offline"]);
    command.env("OUTLAST_LOG", "outlast=loud");
    Running::of(command).end().says("OUTLAST_LOG is not used");
}
