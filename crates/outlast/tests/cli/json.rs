//! With `--json` whatever comes of a command is JSON, also where it was not understood.

use serde_json::Value;

use crate::bench::{Bench, Ran};

const PLAN: &str = "[agent.a]\nkind = \"command\"\ncommand = [\"cp\", \"{goal_file}\", \"made.txt\"]\n\
                    [[task]]\nid = \"one\"\ngoal = \"g\"\nwrites = [\"made.txt\"]\n\
                    [[task]]\nid = \"two\"\ngoal = \"g\"\nneeds = [\"one\"]\nwrites = [\"made.txt\"]\n";

#[test]
fn what_is_not_understood_is_an_error_object() {
    let bench = Bench::new();
    for (arguments, word) in [
        (&["run", "--bogus", "--json"][..], "`run`--bogus"),
        (&["--json", "frobnicate"], "`frobnicate"),
        (&["land", "--json"], "land`<TASKS>"),
        (&["run", "--concurrency", "many", "--json"], "run`many"),
        (&["budget", "--json", "--usd", "0"], "budget`sum above zero"),
    ] {
        let ran = bench.run(arguments).ends(2);
        let told: Value =
            serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {ran:#?}"));
        assert_eq!((&told["schema"], &told["exit_code"]), (&"outlast/error/v1".into(), &2.into()), "{told:#}");
        assert_eq!((&told["error"]["code"], ran.stderr.as_str()), (&"usage".into(), ""), "{told:#}");
        let what = told["error"]["what"].as_str().unwrap();
        assert!(word.split('`').next_back().is_some_and(|word| what.contains(word)), "{what}");
        assert!(told["error"]["fix"].as_array().is_some_and(|fix| !fix.is_empty()), "{told:#}");
    }
    // As text it stays what it was, and so does what is no error.
    bench.run(&["run", "--bogus"]).ends(2).says("unexpected argument '--bogus'");
    bench.run(&["--json", "run", "--help"]).ends(0).shows("Usage:");
    bench.run(&["run", "--bogus", "--", "--json"]).ends(2).says("unexpected argument '--bogus'");
}

#[test]
fn a_dry_run_is_an_object() {
    let bench = Bench::new();
    bench.plan(PLAN);
    let told = bench.run(&["run", "--dry-run", "--json"]).ends(0).json("dry_run");
    assert_eq!(told["waves"], serde_json::json!([["one"], ["two"]]), "{told:#}");
    assert_eq!(told["critical_path"], serde_json::json!(["one", "two"]), "{told:#}");
    assert_eq!(told["edges"][0]["reason"], "needs", "{told:#}");
}

#[test]
fn the_demo_is_one_object() {
    let bench = Bench::new();
    // It checks with the usual tools.
    let mut demo = bench.command(&["demo", "--json"]);
    demo.env("PATH", std::env::var_os("PATH").unwrap());
    let told = Ran::of(&mut demo).ends(0).says("git log").json("status");
    assert_eq!(told["state"], "done", "{told:#}");
}

#[test]
fn a_state_that_no_task_can_be_in_is_refused_with_those_that_there_are() {
    let bench = Bench::new();
    bench.plan(PLAN);
    bench.run(&["run", "--yes"]).ends(0);
    for command in ["land", "discard", "retry", "diff", "log"] {
        bench.run(&[command, "state:bogus"]).ends(2).says("error[task/unknown-state]").says("stale, failed, blocked");
        bench.run(&[command, "state:bogus", "--json"]).fails(2, "task/unknown-state");
    }
    bench.run(&["diff", "state:done"]).ends(0);
    bench.run(&["diff", "state:failed"]).ends(0);
}
