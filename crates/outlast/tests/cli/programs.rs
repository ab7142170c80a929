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

/// Both refuse it with this exit code and kind, with the reason and with something to do, and nothing has begun.
#[track_caller]
fn cannot_work(bench: &Bench, exit: i32, code: &str, what: &str, fix: &str) {
    bench.run(&["check"]).ends(exit).shows(&format!("error[{code}]")).shows(what).shows(fix);
    let view = bench.run(&["check", "--json"]).ends(exit).json("check");
    let finding = &view["findings"][0];
    assert_eq!(
        (&view["runnable"], &finding["code"], &finding["severity"]),
        (&false.into(), &code.into(), &"error".into())
    );
    for arguments in [&["run", "--yes"][..], &["run", "--dry-run"], &["run", "--yes", "--detach"]] {
        bench.run(arguments).ends(exit).says(&format!("error[{code}]")).says(what).says(fix);
    }
    bench.run(&["run", "--yes", "--json"]).fails(exit, code);
    assert_eq!(bench.run(&["--json"]).ends(0).json("runs")["runs"].as_array().unwrap().len(), 0);
}

#[test]
fn a_command_whose_program_is_not_there_is_refused_before_an_agent_is_paid_for_it() {
    let made = "[\"sh\", \"-c\", \"echo x > t.txt\"]";
    let bench = Bench::new();
    for (run, more, key) in [
        ("", "verify = [\"pytset -q tests\"]", "verify"),
        ("", "verify = [\"true\", \"test -e t.txt && pytset -q\"]", "verify"),
        // This one would always pass, and show nothing.
        ("", "[task.steps]\none = \"! pytset -q\"", "steps"),
        ("setup = [\"CI=1 pytset install\"]", "", "setup"),
    ] {
        bench.plan(&plan(made, run, more));
        let what = format!("of `{key}` cannot run: its program `pytset` is not there for it");
        cannot_work(&bench, 12, "host/program-missing", &what, "install pytset, or name it as it is called here");
    }
    bench.plan(&plan(made, "", "verify = [\"/no/such/check\"]"));
    cannot_work(&bench, 12, "host/program-missing", "there is no such program on this host", "install /no/such/check");

    for command in ["./check.sh -q", "sh check.sh"] {
        bench.plan(&plan(made, "", &format!("verify = [{command:?}]")));
        let fix = "name a program that is committed, or one on the PATH, in `verify`";
        cannot_work(&bench, 3, "plan/command-program", "there is no such file", fix);
    }
    program(&bench, "check.sh", 0o644);
    cannot_work(&bench, 3, "plan/command-program", "it is in your checkout", "git add check.sh && git commit");
    commit(&bench);
    bench.run(&["check"]).ends(0);
    bench.plan(&plan(made, "", "verify = [\"./check.sh\"]"));
    cannot_work(&bench, 3, "plan/command-program", "is not executable", "git update-index --chmod=+x ./check.sh");
}

#[test]
fn a_script_that_its_own_task_or_setup_may_make_and_what_is_not_plain_is_not_found_fault_with() {
    let bench = Bench::new();
    let made = "[\"sh\", \"-c\", \"echo true > t.txt\"]";
    for (run, verify) in [
        ("", "sh t.txt"),
        ("", "./t.txt || true"),
        ("setup = [\"cp README.md gone.sh\"]", "sh gone.sh || true"),
        ("setup = [\"cp README.md gone.sh\"]", "sh gone.sh"),
        ("", "cd . && sh gone.sh; true"),
        ("", "if pytset -q; then false; fi"),
        ("", "pytset -q || true"),
    ] {
        bench.plan(&plan(made, run, &format!("verify = [{verify:?}]")));
        bench.run(&["check"]).ends(0);
    }
}

#[test]
fn an_agent_that_is_not_there_or_that_nobody_answers_is_told_by_check_as_by_run() {
    let mut bench = Bench::new();
    bench.env.set("KEY", "k");
    let account = |provider: &str, models: &str| {
        format!("[account.x]\nprovider = {provider:?}\nkey_env = \"KEY\"\nmodels = {models}\n")
    };
    let agent = |kind: &str, model: &str| {
        format!("[agent.a]\nkind = {kind:?}\n{model}\n[[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n")
    };
    bench.env.write_config(&account("anthropic", "[]")).unwrap();
    bench.plan(&agent("claude-code", ""));
    cannot_work(&bench, 12, "host/agent-missing", "`claude` is not on the PATH", "install `claude`");
    bench.plan(&plan("[\"no-such-agent\"]", "", ""));
    cannot_work(&bench, 12, "host/agent-missing", "`no-such-agent` is not on the PATH", "install `no-such-agent`");

    bench.program("claude", "#!/bin/sh\nexit 0\n");
    bench.program("opencode", "#!/bin/sh\nexit 0\n");
    bench.env.write_config(&account("openai", "[]")).unwrap();
    bench.plan(&agent("claude-code", ""));
    let told =
        bench.run(&["check"]).ends(0).shows("warning[config/no-account]").shows("agent `a` has no account to use");
    told.shows("add [account.NAME]");
    bench.run(&["run", "--yes", "--json"]).fails(3, "config/no-account");
    bench.plan(&agent("opencode", ""));
    cannot_work(&bench, 3, "plan/no-model", "needs a model", "add model = ");

    bench.env.write_config(&account("anthropic", "[\"haiku\"]")).unwrap();
    for model in ["model = \"sonnet\"", "model = \"haiku\"\n[defaults]\nmodel = \"claude-opus-4-1\""] {
        bench.plan(&agent("claude-code", model));
        cannot_work(&bench, 3, "plan/model-not-allowed", "`x` is for haiku", "to `models` of one of them");
    }
    bench.plan(&agent("claude-code", "model = \"haiku\""));
    bench.run(&["check"]).ends(0);
    // A command is held to it where it is given the model, and accounts to ask.
    let command = |accounts: &str| plan(&format!("[\"true\", \"{{model}}\"]\nmodel = \"gpt-5\"\n{accounts}"), "", "");
    bench.plan(&command("accounts = [\"x\"]"));
    cannot_work(&bench, 3, "plan/model-not-allowed", "`gpt-5`", "to `models` of one of them");
    bench.plan(&command(""));
    bench.run(&["check"]).ends(0);
}
