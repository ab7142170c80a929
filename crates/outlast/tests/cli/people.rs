//! What a person is told beside what was asked for, so that nothing happens, or does not happen, in silence.

use serde_json::Value;

use crate::bench::{Bench, Ran};

/// A plan for one task of a program.
fn plan(script: &str, run: &str, task: &str) -> String {
    format!(
        "[run]\n{run}\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nretries = 0\n{task}\n"
    )
}

fn status(bench: &Bench) -> Value {
    bench.run(&["status", "--json"]).ends(0).json("status")
}

#[test]
fn a_repository_without_a_run_of_its_own_has_nothing_to_do_with_those_of_others() {
    let bench = Bench::new();
    bench.plan(&plan("echo x > t.txt", "", "writes = [\"t.txt\"]"));
    bench.run(&["run", "--yes"]).ends(0);
    let run = status(&bench)["run"].as_str().unwrap().to_owned();
    let other = bench.env.repo("other").unwrap();
    let there = |arguments: &[&str]| Ran::of(bench.command(arguments).current_dir(other.dir()));
    // Without a commit nothing can run here, and there is still a repository.
    for step in ["no commit", "a commit"] {
        for command in [
            &["status"][..],
            &["pause"],
            &["stop"],
            &["resume"],
            &["retry", "t"],
            &["log", "t"],
            &["diff", "t"],
            &["budget"],
            &["land", "t"],
            &["discard", "t"],
        ] {
            let told = there(&[command, &["--json"]].concat()).fails(9, "run/none");
            let what = told["error"]["what"].as_str().unwrap();
            assert!(what.contains("of this repository") || what.contains("`t`"), "{step}: {command:?}: {told:#}");
        }
        assert_eq!(status(&bench)["tasks"][0]["state"], "done", "{step}");
        other.commit_file("a", "b", "First").unwrap();
    }
    // Whoever names it means it, and where no repository is around, the newest of all is what there is.
    there(&["status", &run]).ends(0).shows(&run);
    bench.run_outside(&["status"]).ends(0).shows(&run);
}

#[test]
fn check_names_the_commands_that_have_to_be_approved_and_whether_they_are() {
    let bench = Bench::new();
    bench.plan(&plan("true", "setup = [\"true # setup\"]", "verify = [\"true # verify\"]"));
    let told = bench.run(&["check"]).ends(0).shows("runs these commands:").shows("asks for your approval first");
    for command in ["  true # setup\n", "  sh -c true\n", "  true # verify\n"] {
        assert!(told.stdout.contains(command), "{told:#?}");
    }
    let view = bench.run(&["check", "--json"]).ends(0).json("check");
    assert_eq!((&view["approved"], view["commands"].as_array().unwrap().len()), (&false.into(), 3), "{view:#}");
    bench.run(&["run", "--yes"]);
    bench.run(&["check"]).ends(0).shows("approved already");
    assert_eq!(bench.run(&["check", "--json"]).ends(0).json("check")["approved"], true);
    // A part of what was approved needs nobody's word again.
    bench.run(&["run", "--only", "t"]).ends(5);
}

#[test]
fn a_plan_with_an_error_is_told_that_error_and_nothing_that_was_not_looked_at() {
    let bench = Bench::new();
    bench.plan(&plan("true", "", "verfy = []"));
    let told = bench.run(&["check"]).ends(3).shows("config/unknown-key");
    assert!(!told.stdout.contains("too many scopes"), "{told:#?}");
}

#[test]
fn a_word_in_braces_is_the_same_error_to_check_and_to_run() {
    for (command, word) in [
        ("command = [\"sh\", \"{prompt}\"]", "`{prompt}`"),
        ("command = [\"sh\", \"-c\", \"echo {goal-file}\"]", "did you mean `{goal_file}`?"),
        ("command = [\"sh\"]\nenv = { MODE = \"{mode}\" }", "`{mode}` in `env`"),
        ("command = [\"{workspace}/tool\"]", "no placeholder can name one"),
    ] {
        let bench = Bench::new();
        bench.plan(&format!("[agent.a]\nkind = \"command\"\n{command}\n[[task]]\nid = \"t\"\ngoal = \"g\"\n"));
        bench.run(&["check"]).ends(3).shows("error[plan/unknown-placeholder]").shows(word);
        bench.run(&["run", "--yes"]).ends(3).says("error[plan/unknown-placeholder]").says(word);
    }
    // What a shell or another language reads is none of ours, and a brace can be written.
    let bench = Bench::new();
    let script = "x=1; echo ${x} {{goal}} {} {a,b} {task} > t.txt";
    bench.plan(&plan(script, "land = \"auto\"", "writes = [\"t.txt\"]"));
    bench.run(&["run", "--yes"]).ends(0);
    let target = status(&bench)["target"].as_str().unwrap().to_owned();
    assert_eq!(bench.repo.text(&["show", &format!("{target}:t.txt")]).unwrap(), "1 {goal} {} {a,b} t");
}

#[test]
fn the_log_ends_with_what_the_agent_said_and_where_all_of_it_is() {
    let bench = Bench::new();
    bench.plan(&plan("echo out loud; echo 'it is broken' >&2; exit 3", "", "writes = [\"t.txt\"]"));
    bench.run(&["run", "--yes"]).ends(5);
    let told = bench.run(&["log", "t"]).ends(0).shows("    out loud\n").shows("    it is broken\n");
    let (_, place) = told.stdout.split_once("all outputs, of verify too: ").unwrap();
    let place = place.lines().next().unwrap();
    assert_eq!(std::fs::read_to_string(format!("{place}/stdout")).unwrap(), "out loud\n");
    let lines = bench.run(&["log", "t", "--json"]).ends(0).stdout;
    let started = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started = started.into_iter().find(|line| line["event"] == "attempt_started").unwrap();
    assert_eq!(started["outputs"], place);
}

#[test]
fn what_is_left_out_of_a_result_is_named_when_it_happens_and_in_the_log() {
    let bench = Bench::new();
    bench.plan(&plan("echo x > t.txt; echo y > extra.txt", "land = \"auto\"", "writes = [\"t.txt\"]"));
    bench.run(&["run", "--yes"]).ends(0).says("outside `writes`: `extra.txt`");
    bench.run(&["log", "t"]).ends(0).shows("outside `writes`, and left out of what lands: `extra.txt`");
}

#[test]
fn what_is_not_committed_is_named_before_agents_start_without_it() {
    let bench = Bench::new();
    bench.repo.write("README.md", "# Mine\n").unwrap();
    bench.repo.write("new/a.txt", "a\n").unwrap();
    bench.plan(&plan("echo x > t.txt", "", "writes = [\"t.txt\"]"));
    let told = bench.run(&["run", "--yes"]).ends(0).says("not committed, and so not seen by agents");
    assert!(told.stderr.contains("README.md") && told.stderr.contains("new/"), "{told:#?}");
    // The plan itself is read from where it is.
    assert!(
        !told.stderr.lines().any(|line| line.contains("not committed") && line.contains("outlast.toml")),
        "{told:#?}"
    );
    bench.repo.git(&["add", "--all"]).unwrap();
    bench.repo.git(&["commit", "--quiet", "-m", "All"]).unwrap();
    let told = bench.run(&["run", "--again"]).ends(0);
    assert!(!told.stderr.contains("not committed"), "{told:#?}");
}

#[test]
fn a_run_that_is_over_is_neither_paused_nor_stopped_and_what_has_landed_is_not_discarded() {
    let bench = Bench::new();
    bench.plan(&plan("echo x > t.txt", "land = \"auto\"", "writes = [\"t.txt\"]"));
    bench.run(&["run", "--yes"]).ends(0);
    for command in ["pause", "stop"] {
        let told = bench.run(&[command]).ends(0).says("is over (done)");
        assert!(!told.stderr.contains("outlast resume"), "{told:#?}");
    }
    let landed = status(&bench)["tasks"][0]["landed"].as_str().unwrap()[..10].to_owned();
    bench.run(&["discard", "t"]).ends(5).shows("its change is on the target").shows(&format!("git revert {landed}"));
}

#[test]
fn a_conflict_is_told_with_commands_that_end_it() {
    let bench = Bench::new();
    bench.repo.git(&["branch", "topic"]).unwrap();
    bench.plan(&plan("echo agent > README.md", "target = \"topic\"", "writes = [\"README.md\"]"));
    bench.run(&["run", "--yes"]).ends(0);
    bench.repo.git(&["checkout", "--quiet", "topic"]).unwrap();
    bench.repo.commit_file("theirs.txt", "begun\n", "Theirs").unwrap();
    bench.repo.commit_file("README.md", "person\n", "Mine").unwrap();
    bench.repo.git(&["checkout", "--quiet", "main"]).unwrap();

    bench.run(&["land", "t"]).ends(8).shows("conflict").says("do: git switch topic && git fetch");
    let task = status(&bench)["tasks"][0].clone();
    let fix = task["fix"][0].as_str().unwrap().to_owned();
    bench.run(&["status"]).ends(0).shows(&format!("do: {fix}"));

    // What is told leads to where a person can merge it, and the landing is known by that.
    let (_, land) = fix.rsplit_once(" && ").unwrap();
    assert!(
        fix.contains(
            "    # stops at the conflict; mend it, then: git diff --name-only -z --diff-filter=U | git add \
             --pathspec-from-file=- --pathspec-file-nul && git cherry-pick --continue && "
        ),
        "{fix}"
    );
    let merge = &fix;
    let merged = bench.env.command("sh").args(["-c", merge]).current_dir(bench.repo.dir()).output().unwrap();
    assert_eq!(merged.status.code(), Some(1), "git stops for the conflict: {merged:?}");
    bench.repo.write("README.md", "both\n").unwrap();
    // What is theirs and open in another file stays theirs.
    bench.repo.write("theirs.txt", "not done\n").unwrap();
    let goes_on = fix.split("then: ").nth(1).unwrap().split(" && outlast").next().unwrap();
    let went_on =
        bench.env.command("sh").args(["-c", goes_on]).env("GIT_EDITOR", "true").current_dir(bench.repo.dir()).output();
    assert!(went_on.as_ref().unwrap().status.success(), "{went_on:?}");
    assert_eq!(bench.repo.text(&["status", "--porcelain", "--untracked-files=no"]).unwrap(), " M theirs.txt");
    let land: Vec<&str> = land.split(' ').skip(1).collect();
    // Taken back before anybody has asked: it has not landed.
    bench.repo.git(&["stash", "push", "--quiet", "--", "theirs.txt"]).unwrap();
    bench.repo.git(&["revert", "--no-edit", "HEAD"]).unwrap();
    bench.run(&land).ends(8).shows("conflict");
    // And taken back itself: it has.
    bench.repo.git(&["revert", "--no-edit", "HEAD"]).unwrap();
    bench.run(&land).ends(0).shows("landed");
    bench.repo.git(&["reset", "--quiet", "--hard", "HEAD~2"]).unwrap();
    assert_eq!(status(&bench)["state"], "done");
    let said = bench.repo.text(&["log", "-1", "--format=%an%n%B", "topic"]).unwrap();
    assert!(said.starts_with("Ann\n") && said.contains("\nOutlast-Task: t"), "{said}");
    assert_eq!(bench.repo.text(&["show", "topic:README.md"]).unwrap(), "both");
}

#[test]
fn the_plan_of_init_is_not_found_fault_with_for_what_init_wrote() {
    let bench = Bench::new();
    bench.program("claude", "#!/bin/sh\nexit 0\n");
    bench.run(&["init"]).ends(0);
    let file = bench.repo.dir().join("outlast.toml");
    let text = std::fs::read_to_string(&file).unwrap() + "[[task]]\nid = \"t\"\ngoal = \"g\"\nverify = [\"true\"]\n";
    std::fs::write(&file, text).unwrap();
    let told = bench.run(&["check"]).ends(0);
    assert!(!told.stdout.contains("default-timeout"), "{told:#?}");
}

#[test]
fn the_environment_of_commands_in_the_reference_is_the_one_that_they_have() {
    let mut bench = Bench::new();
    for (variable, folder) in [("RUSTUP_HOME", "rustup"), ("PYENV_ROOT", "pyenv")] {
        let folder = bench.env.root().join(folder);
        std::fs::create_dir(&folder).unwrap();
        bench.env.set(variable, folder);
    }
    bench.env.set("MY_TOKEN", "secret");
    let run = "land = \"auto\"\nsetup = [\"env\"]";
    bench.plan(&plan(
        "echo x > t.txt",
        run,
        "writes = [\"t.txt\"]\nverify = [\"env\"]\n[task.steps]\nno = \"env; false\"",
    ));
    bench.run(&["run", "--yes"]).ends(0);
    let lines = bench.run(&["log", "t", "--json"]).ends(0).stdout;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let started = lines.iter().find(|line| line["event"] == "attempt_started").unwrap();
    let outputs = std::path::Path::new(started["outputs"].as_str().unwrap());
    let mut told: Vec<&str> = outlast_config::COMMAND_VARIABLES.iter().map(|(name, _)| *name).collect();
    told.sort_unstable();
    let mut seen = Vec::new();
    for folder in std::fs::read_dir(outputs).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(said) = std::fs::read_to_string(folder.join("stdout")) else { continue };
        let names = said.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name));
        // What the shell itself sets is no part of it.
        let mut given: Vec<&str> = names.filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name)).collect();
        given.sort_unstable();
        assert_eq!(given, told, "{}", folder.display());
        seen.push(folder.file_name().unwrap().to_str().unwrap().to_owned());
    }
    for command in ["setup-1", "verify-1", "verify-merged-1"] {
        assert!(seen.iter().any(|name| name == command), "{command} is not among {seen:?}");
    }
    let page = outlast_config::reference();
    assert!(
        outlast_config::COMMAND_VARIABLES.iter().all(|(name, what)| page.contains(&format!("| `{name}` | {what} |")))
    );
}

#[test]
fn what_clean_keeps_is_told_with_the_commands_that_end_it() {
    let bench = Bench::new();
    let two = "writes = [\"t.txt\"]\n[[task]]\nid = \"u\"\ngoal = \"g\"\nretries = 0\nwrites = [\"u.txt\"]";
    bench.plan(&plan("echo x > $OUTLAST_TASK.txt; test $OUTLAST_TASK = u", "", two));
    bench.run(&["run", "--yes"]).ends(5);
    let run = status(&bench)["run"].as_str().unwrap().to_owned();
    let told = bench.run(&["clean"]).ends(0);
    let gives_up = |task: &str| format!("`outlast discard --run {run} {task}` gives it up");
    told.shows(&format!("stays: the task is failed: `outlast retry --run {run} t` goes on with it, {}", gives_up("t")))
        .shows(&format!("stays: the task is done: `outlast land --run {run} u` lands it, {}", gives_up("u")));
    let view = bench.run(&["clean", "--json"]).ends(0).json("clean");
    assert!(view["items"][0]["kept"].as_str().unwrap().contains("outlast "), "{view:#}");
}

#[test]
fn work_that_was_discarded_comes_back_by_the_command_that_is_told() {
    let bench = Bench::new();
    bench.plan(&plan(
        "echo mine > t.txt",
        "",
        "writes = [\"t.txt\"]\n[[task]]\nid = \"u\"\ngoal = \"g\"\nneeds = [\"t\"]",
    ));
    bench.run(&["run", "--yes", "--only", "t"]).ends(0);
    let run = status(&bench)["run"].as_str().unwrap().to_owned();
    let archive = format!("kept in our store as refs/outlast/archive/{run}/t/");
    let told = bench.run(&["discard", "t"]).ends(0).shows(&archive);
    let (_, command) = told.stdout.split_once("to get it back: ").unwrap();
    let done = bench.env.command("sh").args(["-c", command.trim()]).current_dir(bench.repo.dir()).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
    assert_eq!(bench.repo.text(&["show", &format!("discarded/{run}/t:t.txt")]).unwrap(), "mine");

    // What has nothing to keep says nothing of that; JSON has the same.
    bench.plan(&plan("exit 3", "", "writes = [\"t.txt\"]\n[[task]]\nid = \"u\"\ngoal = \"g\"\nneeds = [\"t\"]"));
    bench.run(&["run", "--yes", "--again"]).ends(5);
    let acted = bench.run(&["discard", "--all", "--json"]).ends(0).json("act");
    let [t, u] = &acted["tasks"].as_array().unwrap()[..] else { panic!("{acted:#}") };
    assert!(t["archive"].as_str().unwrap().starts_with("refs/outlast/archive/"), "{acted:#}");
    assert!(t["get_back"].as_str().unwrap().starts_with("git fetch '"), "{acted:#}");
    assert_eq!((&u["state"], &u["archive"], &u["get_back"]), (&"discarded".into(), &Value::Null, &Value::Null));
}

#[test]
fn an_account_that_is_not_configured_is_told_with_where_to_name_one() {
    let bench = Bench::new();
    for (config, known) in
        [("", "there is none yet"), ("[account.work]\nprovider = \"openai\"\nkey_env = \"K\"\n", "known: `work`")]
    {
        bench.env.write_config(config).unwrap();
        bench.plan(&plan("true", "", "").replace("kind = \"command\"", "kind = \"command\"\naccounts = [\"mx\"]"));
        let told = bench.run(&["check"]).ends(3).shows("error[plan/unknown-account]").shows(known);
        told.shows("add [account.mx] there, with `provider` and `key_env` (or `login`)").shows("`outlast doctor`");
    }
}

#[test]
fn the_variables_of_the_reference_are_those_that_a_program_is_given() {
    let bench = Bench::new();
    bench.plan(
        &plan("env > vars.txt; case $OUTLAST_ATTEMPT in *.1) exit 1;; esac", "land = \"auto\"", "")
            .replace("retries = 0", "retries = 1"),
    );
    bench.run(&["run", "--yes"]).ends(0);
    let target = status(&bench)["target"].as_str().unwrap().to_owned();
    let vars = bench.repo.text(&["show", &format!("{target}:vars.txt")]).unwrap();
    let names = vars.lines().filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()));
    let mut given: Vec<String> = names.filter(|name| name.starts_with("OUTLAST_")).collect();
    given.sort();
    let mut told: Vec<&str> = outlast_config::VARIABLES.iter().map(|(name, _)| *name).collect();
    told.sort_unstable();
    assert_eq!(given, told);
}
