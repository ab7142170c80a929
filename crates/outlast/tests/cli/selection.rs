//! Runs and tasks that are not there, journals that cannot be read, and command lines that cannot be understood.

use std::fs;

use outlast_engine::Home;

use crate::bench::Bench;

const PLAN: &str = "[agent.a]\nkind = \"command\"\ncommand = [\"true\"]\n[[task]]\nid = \"t\"\ngoal = \"g\"\n";

#[test]
fn a_run_or_task_that_is_not_there_is_told() {
    let bench = Bench::new();
    for command in [
        &["status", "--json"][..],
        &["status", "gone", "--json"],
        &["pause", "gone", "--json"],
        &["resume", "gone", "--json"],
        &["stop", "gone", "--json"],
        &["log", "--run", "gone", "t", "--json"],
        &["diff", "--run", "gone", "t", "--json"],
        &["land", "--run", "gone", "t", "--json"],
        &["discard", "--run", "gone", "t", "--json"],
    ] {
        let error = bench.run(command).fails(9, "run/none");
        assert!(command[1] == "--json" || error["error"]["what"].as_str().unwrap().contains("`gone`"), "{error:#}");
    }
    bench.plan(PLAN);
    bench.run(&["run", "--yes"]);
    for command in ["log", "diff", "land", "discard"] {
        bench.run(&[command, "gone", "--json"]).fails(9, "task/none");
    }
    bench.run(&["run", "--yes", "--only", "gone", "--json"]).fails(9, "task/none");
}

#[test]
fn a_damaged_journal_is_told_and_left_as_it_is() {
    let bench = Bench::new();
    bench.plan(PLAN);
    let common_dir = bench.repo.dir().canonicalize().unwrap().join(".git");
    let home = Home::new(bench.env.outlast_home()).repository(&common_dir);
    bench.run(&["run", "--yes"]);
    let journal = home.journal();
    let sound = fs::read(&journal).unwrap();
    assert!(sound.len() > 8192, "there is a journal to damage");

    let mut torn = sound;
    // All pages but the first: the schema is there, what it speaks of is not.
    torn[4096..].fill(0xa5);
    for (what, damaged) in [("no database", b"not a journal at all".repeat(500)), ("pages overwritten", torn)] {
        fs::write(&journal, &damaged).unwrap();
        for suffix in ["-wal", "-shm"] {
            let mut beside = journal.clone().into_os_string();
            beside.push(suffix);
            fs::write(&beside, b"").ok();
            fs::remove_file(&beside).unwrap();
        }
        for command in [&["status", "--json"][..], &["run", "--yes", "--json"], &["resume", "--json"], &["--json"]] {
            bench.run(command).fails(10, "journal/damaged");
            assert!(fs::read(&journal).unwrap() == damaged, "{what}: {command:?} changed the file");
        }
        let shown = bench.run(&["doctor", "--offline", "--json"]).ends(10);
        assert!(shown.stdout.contains("journal"), "{shown:#?}");
        assert!(fs::read(&journal).unwrap() == damaged, "{what}: doctor changed the file");
    }
}

#[test]
fn a_command_line_that_is_not_understood_ends_with_2() {
    let bench = Bench::new();
    for command in [
        &["frobnicate"][..],
        &["run", "--frobnicate"],
        &["run", "--concurrency", "0"],
        &["run", "--concurrency", "many"],
        &["land"],
        &["completions", "cobol"],
        &["gateway", "--listen", "nowhere"],
    ] {
        bench.run(command).ends(2).says("error: ");
    }
    bench.run(&["chekc"]).ends(2).says("'check'");
}
