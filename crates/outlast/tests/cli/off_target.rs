//! Landed work that a person takes off the target again: told with what helps, and left to them.

use std::process::Command;

use serde_json::Value;

use crate::bench::Bench;

/// Two tasks that have landed on the branch that is checked out, or on the run's own.
fn landed(run: &str) -> Bench {
    let bench = Bench::new();
    let agent = "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > $OUTLAST_TASK.txt\"]\n";
    let task = |id: &str, keys: &str| {
        format!("[[task]]\nid = \"{id}\"\ngoal = \"Do {id}.\"\nwrites = [\"{id}.txt\"]\n{keys}\n")
    };
    let tasks = task("one", "") + &task("two", "needs = [\"one\"]");
    bench.plan(&format!("[run]\nland = \"auto\"\n{run}\n{agent}{tasks}"));
    bench.repo.write(".git/info/exclude", "outlast.toml\n").unwrap();
    bench.run(&["run", "--yes"]).ends(0);
    assert_eq!(off(&bench), [false, false]);
    bench
}

fn on_main() -> Bench {
    landed("target = \"main\"")
}

fn tasks(bench: &Bench) -> Vec<Value> {
    let status = bench.run(&["status", "--json"]).ends(0).json("status");
    assert_eq!(status["state"], "done");
    status["tasks"].as_array().unwrap().clone()
}

/// Whether each task is told to be off the target; all have landed.
fn off(bench: &Bench) -> Vec<bool> {
    let tasks = tasks(bench);
    assert!(tasks.iter().all(|task| task["state"] == "landed" && task["landed"].is_string()), "{tasks:#?}");
    tasks.iter().map(|task| task["off_target"] == true).collect()
}

/// Does what a task's first advice says, in the repository.
fn follow(bench: &Bench, task: usize) {
    let command = tasks(bench)[task]["fix"][0].as_str().unwrap().to_owned();
    let mut shell: Command = bench.env.command("sh");
    let done = shell.args(["-c", &command]).current_dir(bench.repo.dir()).output().unwrap();
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_runs_branch_that_was_merged_and_deleted_goes_on_where_it_was() {
    let bench = Bench::new();
    let agent = "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > $OUTLAST_TASK.txt\"]\n";
    let task = |id: &str, keys: &str| {
        format!("[[task]]\nid = \"{id}\"\ngoal = \"Do {id}.\"\nwrites = [\"{id}.txt\"]\n{keys}\n")
    };
    let needs = "needs = [\"one\"]\nverify = [\"test -e one.txt\"]";
    bench.plan(&format!("{agent}{}{}", task("one", ""), task("two", needs)));
    bench.repo.write(".git/info/exclude", "outlast.toml\n").unwrap();
    bench.run(&["run", "--yes"]).ends(0);
    bench.run(&["land", "one"]).ends(0);
    let target = bench.run(&["status", "--json"]).ends(0).json("status")["target"].as_str().unwrap().to_owned();
    bench.repo.git(&["merge", "--quiet", &target]).unwrap();
    bench.repo.git(&["branch", "--quiet", "-d", &target]).unwrap();
    bench.run(&["land", "two"]).ends(0);
    let tree = bench.repo.text(&["ls-tree", "--name-only", &target]).unwrap();
    assert!(tree.contains("one.txt") && tree.contains("two.txt"), "{tree}");
    assert_eq!(off(&bench), [false, false]);
    // Whoever asks for it again hears that it is gone.
    bench.repo.git(&["branch", "--quiet", "-D", &target]).unwrap();
    assert_eq!(off(&bench), [false, true]);
    bench
        .run(&["land", "two"])
        .ends(0)
        .says("is gone, with nothing of it in what is checked out")
        .says("git cherry-pick");
}

#[test]
fn a_target_that_was_reset_is_told_with_the_command_that_brings_the_work_back() {
    let bench = on_main();
    bench.repo.git(&["reset", "--quiet", "--hard", "HEAD~1"]).unwrap();
    assert_eq!(off(&bench), [false, true]);
    let told = bench.run(&["status"]).ends(0).shows("needs you (1)").shows("off_target");
    told.shows("somebody has taken that off `main` since").shows("git switch main && git cherry-pick ");
    bench.run(&["log", "two"]).ends(0).shows("somebody has taken that off `main` since").shows("outlast status ");
    assert!(!bench.run(&["log", "one"]).ends(0).stdout.contains("taken that off"));
    // Nothing is redone by that, and asked again it says the same.
    assert_eq!(off(&bench), [false, true]);
    follow(&bench, 1);
    assert_eq!(off(&bench), [false, false]);
    assert!(!bench.run(&["status"]).ends(0).stdout.contains("needs you"));
}

#[test]
fn work_that_the_repository_has_dropped_comes_back_from_what_is_kept() {
    let bench = on_main();
    bench.repo.git(&["reset", "--quiet", "--hard", "HEAD~2"]).unwrap();
    bench.repo.git(&["reflog", "expire", "--expire=now", "--all"]).unwrap();
    bench.repo.git(&["update-ref", "-d", "ORIG_HEAD"]).unwrap();
    let pins = bench.repo.text(&["for-each-ref", "--format=%(refname)", "refs/outlast"]).unwrap();
    for pin in pins.lines() {
        bench.repo.git(&["update-ref", "-d", pin]).unwrap();
    }
    bench.repo.git(&["gc", "--quiet", "--prune=now"]).unwrap();
    assert_eq!(off(&bench), [true, true]);
    follow(&bench, 0);
    follow(&bench, 1);
    let tree = bench.repo.text(&["ls-tree", "--name-only", "main"]).unwrap();
    assert!(tree.contains("one.txt") && tree.contains("two.txt"), "{tree}");
    assert_eq!(bench.repo.text(&["log", "-2", "--format=%an", "main"]).unwrap(), "Ann\nAnn");
    assert_eq!(off(&bench), [false, false]);
    // It is here, and not paid for again.
    bench.run(&["run"]).ends(0).says("nothing is left to do");
}

#[test]
fn what_is_there_in_another_shape_is_on_the_target() {
    // Rebased, with another commit in between.
    let bench = on_main();
    bench.repo.git(&["reset", "--quiet", "--hard", "HEAD~2"]).unwrap();
    bench.repo.commit_file("README.md", "# Other\n", "Other").unwrap();
    bench.repo.git(&["cherry-pick", "ORIG_HEAD~1", "ORIG_HEAD"]).unwrap();
    assert_eq!(off(&bench), [false, false]);
    // Squashed, without a word of what it is.
    let bench = on_main();
    bench.repo.git(&["reset", "--quiet", "--soft", "HEAD~2"]).unwrap();
    bench.repo.git(&["commit", "--quiet", "-m", "Both"]).unwrap();
    assert_eq!(off(&bench), [false, false]);
    // Undone by a commit that says so.
    let bench = on_main();
    bench.repo.git(&["revert", "--no-edit", "HEAD"]).unwrap();
    assert_eq!(off(&bench), [false, false]);
}

#[test]
fn a_runs_own_branch_may_go_once_it_is_merged_and_not_before() {
    let bench = landed("");
    let target = bench.run(&["status", "--json"]).json("status")["target"].as_str().unwrap().to_owned();
    bench.repo.git(&["merge", "--quiet", "--ff-only", &target]).unwrap();
    bench.repo.git(&["branch", "--quiet", "-D", &target]).unwrap();
    assert_eq!(off(&bench), [false, false]);
    let bench = landed("");
    let target = bench.run(&["status", "--json"]).json("status")["target"].as_str().unwrap().to_owned();
    bench.repo.git(&["branch", "--quiet", "-D", &target]).unwrap();
    assert_eq!(off(&bench), [true, true]);
    bench.run(&["status"]).ends(0).shows(&format!("the branch `{target}` is gone"));
    follow(&bench, 0);
    assert_eq!(off(&bench), [false, true]);
}
