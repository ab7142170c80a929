//! Agents whose program comes from the repository: refused before anything starts where their workspaces would not hold it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::bench::Bench;

fn plan(command: &str, run: &str, more: &str) -> String {
    format!(
        "[run]\n{run}\n[agent.a]\nkind = \"command\"\ncommand = {command}\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n{more}\n"
    )
}

/// Puts a program into the checkout, and nowhere else.
fn program(bench: &Bench, path: &str, mode: u32) {
    bench.repo.write(path, "#!/bin/sh\necho x > t.txt\n").unwrap();
    fs::set_permissions(bench.repo.dir().join(path), Permissions::from_mode(mode)).unwrap();
}

fn commit(bench: &Bench) {
    bench.repo.git(&["add", "--all"]).unwrap();
    bench.repo.git(&["commit", "--quiet", "-m", "Tools"]).unwrap();
}

/// Both refuse it, with the reason and with something to do, and nothing has begun.
#[track_caller]
fn refused(bench: &Bench, why: &str, fix: &str) {
    bench.run(&["check"]).ends(3).shows("error[plan/agent-program]").shows(why).shows(&format!("do:      {fix}\n"));
    let view = bench.run(&["check", "--json"]).ends(3).json("check");
    assert_eq!((&view["runnable"], &view["findings"][0]["code"]), (&false.into(), &"plan/agent-program".into()));
    for arguments in [&["run", "--yes"][..], &["run", "--dry-run"], &["run", "--yes", "--detach"]] {
        bench.run(arguments).ends(3).says("error[plan/agent-program]").says(why).says(fix);
    }
    let told = bench.run(&["run", "--yes", "--json"]).fails(3, "plan/agent-program");
    assert_eq!(told["error"]["fix"][0], fix, "{told:#}");
    assert_eq!(bench.run(&["--json"]).ends(0).json("runs")["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn a_program_that_is_not_committed_is_refused_and_runs_when_it_is() {
    for command in ["[\"tools/agent.sh\"]", "[\"./tools/agent.sh\", \"{goal_file}\"]", "[\"sh\", \"tools/agent.sh\"]"] {
        let bench = Bench::new();
        bench.plan(&plan(command, "land = \"auto\"", ""));
        program(&bench, "tools/agent.sh", 0o755);
        let named = if command.contains("./") { "./tools/agent.sh" } else { "tools/agent.sh" };
        refused(
            &bench,
            "it is in your checkout, and agents work on what is committed",
            &format!("git add {named} && git commit"),
        );
        // What is only staged is in no workspace either.
        bench.repo.git(&["add", "tools/agent.sh"]).unwrap();
        bench.run(&["run", "--yes"]).ends(3).says("plan/agent-program");
        bench.repo.git(&["commit", "--quiet", "-m", "Agent"]).unwrap();
        bench.run(&["check"]).ends(0);
        bench.run(&["run", "--yes"]).ends(0);
    }
}

#[test]
fn each_way_in_which_a_program_is_not_there_is_told_with_its_own_remedy() {
    let there = |command: &str| {
        let bench = Bench::new();
        bench.plan(&plan(command, "", ""));
        bench
    };
    let missing = "name a program that is committed, or one on the PATH, in `command` of [agent.a]";
    refused(&there("[\"tools/gone.sh\"]"), "there is no such file", missing);
    refused(&there("[\"sh\", \"gone.sh\", \"{goal_file}\"]"), "there is no such file", missing);
    refused(
        &there("[\"../agent.sh\"]"),
        "leads out of the workspace",
        "name it by its whole path, or commit it to the repository",
    );

    let bench = there("[\"agent.sh\"]".replace("agent.sh", "./agent.sh").as_str());
    program(&bench, "agent.sh", 0o644);
    commit(&bench);
    refused(&bench, "is not executable", "git update-index --chmod=+x ./agent.sh && git commit");
    // A script need not be.
    bench.plan(&plan("[\"sh\", \"agent.sh\"]", "land = \"auto\"", ""));
    bench.run(&["run", "--yes"]).ends(0);

    let bench = there("[\"out/agent.sh\"]");
    bench.repo.commit_file(".gitignore", "out\n", "Ignore").unwrap();
    program(&bench, "out/agent.sh", 0o755);
    refused(&bench, "git ignores it", "git add --force out/agent.sh && git commit, or name it in .worktreeinclude");
    bench.repo.write(".worktreeinclude", "out/agent.sh\n").unwrap();
    bench.plan(&plan("[\"out/agent.sh\"]", "land = \"auto\"", ""));
    bench.run(&["run", "--yes"]).ends(0);

    // The commit that counts is the one that the run would start from.
    let bench = there("[\"tools/agent.sh\"]");
    bench.repo.git(&["branch", "topic"]).unwrap();
    program(&bench, "tools/agent.sh", 0o755);
    commit(&bench);
    bench.run(&["check"]).ends(0);
    bench.plan(&plan("[\"tools/agent.sh\"]", "target = \"topic\"", ""));
    let merge = "merge it into the branch `topic`, which the run starts from";
    refused(&bench, "it is committed, and not on the branch that the run starts from", merge);
}

#[test]
fn what_setup_or_an_earlier_task_may_make_is_not_found_fault_with() {
    let bench = Bench::new();
    let setup = "land = \"auto\"\nsetup = [\"cp made.sh agent.sh\"]";
    bench.plan(&plan("[\"./agent.sh\"]", setup, ""));
    bench.repo.write(".gitignore", "agent.sh\n").unwrap();
    program(&bench, "made.sh", 0o755);
    commit(&bench);
    bench.run(&["run", "--yes"]).ends(0);

    let bench = Bench::new();
    let maker = "needs = [\"maker\"]\n[agent.b]\nkind = \"command\"\ncommand = [\"cp\", \"made.sh\", \"agent.sh\"]\n\
                 [[task]]\nid = \"maker\"\ngoal = \"g\"\nagent = \"b\"\nwrites = [\"agent.sh\"]";
    bench.plan(&plan("[\"./agent.sh\"]", "land = \"auto\"", &format!("agent = \"a\"\n{maker}")));
    program(&bench, "made.sh", 0o755);
    commit(&bench);
    bench.run(&["run", "--yes"]).ends(0);
}

#[test]
fn a_task_is_not_given_to_an_agent_whose_program_its_run_does_not_have() {
    let bench = Bench::new();
    let other = "retries = 0\nagent = \"a\"\n[agent.b]\nkind = \"command\"\ncommand = [\"./agent.sh\"]";
    bench.plan(&plan("[\"false\"]", "", other));
    program(&bench, "agent.sh", 0o755);
    bench.run(&["check"]).ends(0);
    bench.run(&["run", "--yes"]).ends(5);
    let told = bench.run(&["retry", "t", "--agent", "b", "--json"]).fails(3, "plan/agent-program");
    assert_eq!(told["error"]["fix"][0], "git add ./agent.sh && git commit");
    let task = bench.run(&["status", "--json"]).ends(0).json("status")["tasks"][0].clone();
    assert_eq!((&task["state"], &task["attempts"]), (&"failed".into(), &1.into()), "nobody has tried");
}
