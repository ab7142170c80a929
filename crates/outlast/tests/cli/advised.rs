//! Advice is run as it stands, and does what it says.

use std::process::Output;

use serde_json::Value;

use crate::bench::Bench;

/// An agent that writes the file of its task's name, but for what is to fail or to wait.
const AGENT: &str = "case $OUTLAST_TASK in bad) exit 1;; later) exit 75;; nested) mkdir -p new && echo x > new/nested.txt;; \
                     *) echo x > $OUTLAST_TASK.txt;; esac";

/// Tasks with their further keys.
fn plan(run: &str, tasks: &[(&str, &str)]) -> String {
    let mut text = format!(
        "[run]\n{run}\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{AGENT}''']\n[defaults]\nretries = 0\n"
    );
    for (id, keys) in tasks {
        text += &format!("[[task]]\nid = \"{id}\"\ngoal = \"Do {id}.\"\nwrites = [\"{id}.txt\", \"new/**\"]\n{keys}\n");
    }
    text
}

/// A repository in which a shell finds the binary.
fn bench(text: &str) -> Bench {
    let bench = Bench::new();
    bench.program("outlast", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_outlast")));
    bench.repo.write(".git/info/exclude", "outlast.toml\nplans/\n").unwrap();
    bench.plan(text);
    bench
}

fn status(bench: &Bench) -> Value {
    bench.run(&["status", "--json"]).ends(0).json("status")
}

fn run_of(bench: &Bench) -> String {
    status(bench)["run"].as_str().unwrap().to_owned()
}

/// Runs a command in the repository, as somebody does who pastes it.
fn paste(bench: &Bench, command: &str) -> Output {
    let mut shell = bench.env.command("sh");
    for role in ["AUTHOR", "COMMITTER"] {
        shell.env_remove(format!("GIT_{role}_NAME")).env_remove(format!("GIT_{role}_EMAIL"));
    }
    shell.args(["-c", command]).current_dir(bench.repo.dir()).output().unwrap()
}

#[track_caller]
fn works(bench: &Bench, command: &str) -> String {
    let done = paste(bench, command);
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn fix(error: &Value, at: usize) -> &str {
    error["error"]["fix"][at].as_str().unwrap()
}

/// The command that a landing which was kept from its checkout names.
fn landing(bench: &Bench, task: &str) -> String {
    let acted = bench.run(&["land", task, "--json"]).ends(8).json("act");
    assert_eq!(acted["tasks"][0]["cause"], "target_checked_out", "{acted:#}");
    acted["tasks"][0]["refused"].as_str().unwrap().split_once("run: ").unwrap().1.to_owned()
}

#[test]
fn a_landing_goes_through_with_a_file_where_it_brings_a_folder() {
    let bench = bench(&plan("target = \"main\"", &[("nested", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    bench.repo.write("new", "mine\n").unwrap();
    works(&bench, &landing(&bench, "nested"));
    assert_eq!(bench.repo.text(&["show", "main:new/nested.txt"]).unwrap(), "x");
    assert_eq!(bench.repo.text(&["show", "stash@{0}^3:new"]).unwrap(), "mine");
}

#[test]
fn e09_a_landing_goes_through_where_the_worktree_of_its_target_is_gone() {
    let bench = bench(&plan("target = \"topic\"", &[("one", "")]));
    let second = bench.env.root().join("second");
    bench.repo.git(&["worktree", "add", "--quiet", "-b", "topic", second.to_str().unwrap()]).unwrap();
    bench.run(&["run", "--yes"]).ends(0);
    std::fs::remove_dir_all(&second).unwrap();
    works(&bench, &landing(&bench, "one"));
    assert_eq!(bench.repo.text(&["show", "topic:one.txt"]).unwrap(), "x");
}

#[test]
fn what_cannot_be_tried_again_is_done_anew_by_the_plan_that_it_is_of() {
    let bench = bench(&plan("", &[]));
    bench.repo.write("plans/slow.toml", plan("land = \"auto\"", &[("one", ""), ("two", "needs = [\"one\"]")])).unwrap();
    bench.run(&["run", "slow", "--yes"]).ends(0);
    let first = run_of(&bench);
    // It is where it was to get to, alone or in a list.
    for command in [&["retry", "one"][..], &["retry", "one", "two"], &["resume", "one"], &["resume", &first, "two"]] {
        let told = bench.run(command).ends(0).says("has landed as").says("there is nothing to try again");
        assert!(told.stderr.contains("outlast run slow --only ") && !told.stderr.contains("starts"), "{told:#?}");
    }
    assert_eq!(bench.run(&["retry", "one", "--json"]).ends(0).json("status")["run"], first.as_str());
    let told = bench.run(&["retry", "two"]).ends(0).stderr;
    let command = told.lines().find_map(|line| line.trim_start().strip_prefix("or:")).unwrap().trim();
    works(&bench, command);
    let anew = status(&bench);
    assert_ne!(anew["run"], first.as_str(), "{told}");
    assert_eq!(anew["tasks"].as_array().unwrap().len(), 2, "with what it needs: {anew:#}");
}

#[test]
fn what_was_given_up_or_waits_to_land_is_told_with_its_plan_and_its_run() {
    let bench = bench(&plan("", &[]));
    bench.repo.write("plans/slow.toml", plan("", &[("one", ""), ("two", "needs = [\"one\"]"), ("bad", "")])).unwrap();
    bench.run(&["run", "slow", "--yes"]).ends(5);
    let first = run_of(&bench);
    bench.plan(&plan("", &[("other", "")]));
    bench.run(&["run", "--yes"]).ends(0);

    let told = bench.run(&["retry", "--run", &first, "one", "--json"]).fails(2, "task/state");
    works(&bench, fix(&told, 0));
    assert_eq!(bench.repo.text(&["show", &format!("outlast/{first}:one.txt")]).unwrap(), "x");
    bench.run(&["discard", "--run", &first, "two"]).ends(0);
    let told = bench.run(&["retry", "--run", &first, "two", "--json"]).fails(2, "task/state");
    bench.repo.git(&["merge", "--quiet", &format!("outlast/{first}")]).unwrap();
    let command = fix(&told, 0);
    assert!(command.starts_with("outlast run slow --only two "), "{command}");
    works(&bench, command);
    assert_eq!(status(&bench)["tasks"][0]["id"], "two");
}

#[test]
fn a_task_of_another_run_is_told_with_a_command_that_takes_it() {
    let bench = bench(&plan("", &[("one", ""), ("two", ""), ("bad", "")]));
    bench.run(&["run", "--yes"]).ends(5);
    let first = run_of(&bench);
    bench.plan(&plan("", &[("three", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    let second = run_of(&bench);

    // Of two, each is in another one: each command names what is there.
    let told = bench.run(&["diff", "one", "three", "--run", &second, "--stat", "--json"]).fails(9, "task/none");
    assert!(works(&bench, fix(&told, 0)).contains("one.txt"), "{told:#}");
    assert!(works(&bench, fix(&told, 1)).contains("three.txt"), "{told:#}");
    // Both are in the other one.
    let told = bench.run(&["diff", "two", "one", "--stat", "--json"]).fails(9, "task/none");
    let shown = works(&bench, fix(&told, 0));
    assert!(shown.contains("one.txt") && shown.contains("two.txt"), "{shown}");

    // `resume` names its run by itself, and has no `--run`.
    let told = bench.run(&["resume", &second, "bad", "--json"]).fails(9, "task/none");
    assert_eq!(fix(&told, 0), format!("outlast resume {first} bad"));
    assert_eq!(paste(&bench, fix(&told, 0)).status.code(), Some(5), "it is tried again, and fails again");
    let tasks = bench.run(&["status", &first, "--json"]).ends(0).json("status");
    assert_eq!(tasks["tasks"][2]["attempts"], 2, "{tasks:#}");
}

#[test]
fn clean_cleans_the_run_that_was_named_and_no_other() {
    let bench = bench(&plan("land = \"auto\"", &[("one", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    let first = run_of(&bench);
    bench.plan(&plan("land = \"auto\"", &[("two", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    let told = bench.run(&["clean", "--run", &first]).ends(0).stderr;
    let command = told.split_once("can be freed: ").unwrap().1.trim();
    works(&bench, command);
    let has_workspace = |run: &str| {
        let view = bench.run(&["status", run, "--json"]).ends(0).json("status");
        view["tasks"][0]["workspace"].is_string()
    };
    assert_eq!((has_workspace(&first), has_workspace(&run_of(&bench))), (false, true), "{command}");
    bench.run(&["clean", "--run", &first]).ends(0).says("0 B can be freed\n");

    for command in [&["clean", "--run", "nope", "--json"][..], &["clean", "--yes", "--run", "nope", "--json"]] {
        bench.run(command).fails(9, "run/none");
    }
    // One that another repository has is told with it.
    let other = bench.env.repo("other").unwrap();
    other.commit_file("README.md", "# Other\n", "First").unwrap();
    let mut elsewhere = bench.command(&["clean", "--run", &first, "--json"]);
    let told = crate::bench::Ran::of(elsewhere.current_dir(other.dir())).fails(9, "run/elsewhere");
    let command = fix(&told, 0);
    let done = bench.env.command("sh").args(["-c", command]).current_dir(other.dir()).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
}

#[test]
fn a_stopped_run_of_which_all_is_given_up_is_over() {
    let bench = bench(&plan("", &[("later", "")]));
    bench.run(&["run", "--yes", "--no-wait"]).ends(6);
    let run = run_of(&bench);
    bench.run(&["stop"]).ends(0);
    bench.run(&["status"]).ends(0).shows("outlast resume ");
    bench.run(&["discard", "later"]).ends(0);
    let told = bench.run(&["status"]).ends(0);
    assert!(!told.stdout.contains("outlast resume"), "{told:#?}");
    assert_eq!(status(&bench)["state"], "failed");
    bench.run(&["stop"]).ends(0).says(&format!("{run} is over"));
}

#[test]
fn what_is_named_lands_in_the_order_in_which_it_is_named_and_after_what_it_needs() {
    let tasks = [("one", ""), ("two", ""), ("after", "needs = [\"one\"]"), ("three", "")];
    let bench = bench(&plan("target = \"landed\"\nconcurrency = 1", &tasks));
    bench.run(&["run", "--yes"]).ends(0);
    let run = run_of(&bench);
    let told = bench.run(&["land", "after"]).ends(8).says(&format!("do: outlast land --run {run} one after\n"));
    assert!(told.stdout.contains("need_not_landed"), "{told:#?}");
    bench.run(&["land", "three", "after", "two", "one"]).ends(0);
    let log = bench.repo.text(&[
        "log",
        "--reverse",
        "--format=%(trailers:key=Outlast-Task,valueonly,separator=)",
        "main..landed",
    ]);
    assert_eq!(log.unwrap().lines().collect::<Vec<_>>(), ["three", "one", "after", "two"]);
}

#[test]
fn what_has_landed_on_a_branch_of_its_own_is_told_with_what_takes_it_over() {
    let bench = bench(&plan("", &[("one", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    let merge = format!("git merge outlast/{}", run_of(&bench));
    assert!(!bench.run(&["status"]).ends(0).stdout.contains("git merge"), "nothing has landed yet");
    bench.run(&["land", "one"]).ends(0).says(&merge);
    bench.run(&["status"]).ends(0).shows(&merge);
    works(&bench, &merge);
    assert_eq!(std::fs::read_to_string(bench.repo.dir().join("one.txt")).unwrap(), "x\n");
}

#[test]
fn what_is_verified_after_its_need_has_landed_lands_from_its_run() {
    let bench = bench(&plan("", &[("one", ""), ("two", "needs = [\"one\"]")]));
    bench.run(&["run", "--yes"]).ends(0);
    bench.run(&["land", "one"]).ends(0);
    let error = bench.run(&["run", "--yes", "--json"]).fails(3, "plan/need-apart");
    works(&bench, fix(&error, 0));
    assert_eq!(status(&bench)["counts"]["landed"], 2);
}

#[test]
fn a_branch_that_came_in_the_way_of_a_landing_is_told_with_what_moves_it() {
    let bench = bench(&plan("", &[("one", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    bench.repo.git(&["branch", "outlast"]).unwrap();
    let told = bench.run(&["land", "one"]).ends(12).says("cannot exist beside `outlast`");
    let moves = told.stderr.split_once("git branch -m").unwrap().1.split_once(';').unwrap().0.to_owned();
    works(&bench, &format!("git branch -m{moves}"));
    bench.run(&["land", "one"]).ends(0);
}
