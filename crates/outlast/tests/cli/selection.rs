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
fn a_task_of_an_older_run_is_told_with_its_run() {
    let bench = Bench::new();
    bench.plan(PLAN);
    bench.run(&["run", "--yes"]);
    let first = bench.run(&["status", "--json"]).json("status")["run"].as_str().unwrap().to_owned();
    bench.plan(&PLAN.replace("\"t\"", "\"u\"").replace("\"g\"", "\"another\""));
    bench.run(&["run", "--yes"]);
    for command in ["log", "diff", "land", "discard", "retry"] {
        let told = bench.run(&[command, "t"]).ends(9).says(&format!("because: run `{first}` has it"));
        told.says(&format!("do:      outlast {command} t --run {first}\n"));
    }
    bench.run(&["log", "t", "--run", &first]).ends(0);
    bench.run(&["resume", "t"]).ends(9).says(&format!("outlast resume {first} t\n"));
}

#[test]
fn a_name_of_another_kind_is_told_with_the_command_that_takes_it() {
    let bench = Bench::new();
    bench.plan(PLAN);
    bench.run(&["run", "t"]).ends(3).says("because: `t` is a task of `outlast.toml`").says("outlast run --only t\n");
    bench.run(&["run", "--yes"]);
    let run = bench.run(&["status", "--json"]).json("status")["run"].as_str().unwrap().to_owned();
    let is_a_task = format!("because: `t` is a task of run `{run}`");
    for verb in ["status", "pause", "stop"] {
        let told = bench.run(&[verb, "t"]).ends(9).says(&is_a_task);
        told.says(&format!("do:      outlast {verb} {run}\n")).says(&format!("outlast log --run {run} t\n"));
    }
    bench
        .run(&["log", "--run", "t", "t"])
        .ends(9)
        .says(&is_a_task)
        .says(&format!("do:      outlast log --run {run} t\n"));
    bench.run(&["run", "t"]).ends(3).says(&format!("outlast retry --run {run} t\n"));
    bench
        .run(&["run", &run])
        .ends(3)
        .says(&format!("because: `{run}` is a run\n"))
        .says(&format!("outlast resume {run}\n"));
    for (verb, whom) in [("log", "--all"), ("diff", "--all"), ("land", "state:done"), ("retry", "state:failed")] {
        let told = bench.run(&[verb, &run]).ends(9).says(&format!("because: `{run}` is a run, and no task of one"));
        told.says(&format!("do:      outlast {verb} --run {run} {whom}\n")).says(&format!("outlast status {run} "));
    }
    let told = bench.run(&["discard", &run]).ends(9).says(&format!("do:      outlast status {run} "));
    assert!(!told.stderr.contains("--all"), "{}", told.stderr);
    for words in [&["status", "--run", &run][..], &["stop", &format!("--run={run}")]] {
        bench.run(words).ends(2).says(&format!("do:      outlast {} {run}\n", words[0]));
    }
    let told = bench.run(&["status", "--run", &run, "--json"]).fails(2, "usage");
    assert_eq!(told["error"]["fix"][0], format!("outlast status {run} --json"), "{told:#}");
    let told = bench.run(&["status", "--nonsense"]).ends(2);
    assert!(!told.stderr.contains("takes the run itself"), "{}", told.stderr);
}

#[test]
fn a_configuration_that_is_named_and_not_there_is_refused() {
    let bench = Bench::new();
    bench.plan(PLAN);
    for command in [&["check"][..], &["run", "--yes"], &["run", "--dry-run"]] {
        let words = [command, &["--config", "nope.toml"]].concat();
        let told = bench.run(&words).ends(2).says("error[config/missing]: there is no configuration");
        told.says("nope.toml").says(&format!("do:      outlast {}\n", command.join(" ")));
    }
    // What a variable names may come to be.
    bench.run(&["check"]).ends(0);
}

#[test]
fn several_agents_that_cannot_work_are_told_one_by_one() {
    let bench = Bench::new();
    let agent = |name: &str| format!("[agent.{name}]\nkind = \"command\"\ncommand = [\"no-such-{name}\"]\n");
    let task = |name: &str| format!("[[task]]\nid = {name:?}\ngoal = \"g\"\nagent = {name:?}\n");
    let names = ["one", "two", "three"];
    let plan: String = names.iter().map(|name| agent(name)).chain(names.iter().map(|name| task(name))).collect();
    bench.plan(&plan);
    let told = bench.run(&["run", "--yes"]).ends(12);
    assert_eq!(
        told.stderr.matches("\nerror[").count() + usize::from(told.stderr.starts_with("error[")),
        3,
        "{}",
        told.stderr
    );
    for name in names {
        let line =
            told.stderr.lines().find(|line| line.starts_with("error[") && line.contains(&format!("no-such-{name}")));
        assert!(line.is_some(), "{name}: {}", told.stderr);
    }
    // Scripts are told of one, with the others beside it.
    let told = bench.run(&["run", "--yes", "--json"]).fails(12, "host/agent-missing");
    assert!(names.iter().all(|name| told.to_string().contains(&format!("no-such-{name}"))), "{told:#}");
}

#[test]
fn a_command_that_names_no_task_is_told_which_there_are() {
    let bench = Bench::new();
    bench.plan(
        "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"test $OUTLAST_TASK != bad && echo x > $OUTLAST_TASK\"]\n\
         [defaults]\nretries = 0\n[[task]]\nid = \"good\"\ngoal = \"g\"\n[[task]]\nid = \"bad\"\ngoal = \"g\"\n",
    );
    bench.run(&["run", "--yes"]).ends(5);
    let run = bench.run(&["status", "--json"]).json("status")["run"].as_str().unwrap().to_owned();
    let told = |verb: &str, tasks: &str, one: &str, all: &str| {
        let ran = bench.run(&[verb]).ends(2).says("<TASKS>...");
        let ran = ran.says(&format!("tasks of run {run} that could be meant: {tasks}\n"));
        ran.says(&format!("do:      outlast {verb} --run {run} {one}\n"))
            .says(&format!("outlast {verb} --run {run} {all}\n"));
    };
    told("land", "good (done)", "good", "state:done");
    told("retry", "bad (failed)", "bad", "state:failed");
    told("discard", "good (done), bad (failed)", "good", "state:done");
    told("log", "good (done), bad (failed)", "good", "--all");
    told("diff", "good (done), bad (failed)", "good", "--all");
    bench.run(&["diff", "--stat", "good"]).ends(0).shows("added        good  +1 -0\n");
    bench.run(&["land", "good"]).ends(0);
    bench.run(&["land"]).ends(2).says(&format!("run {run} has no task that is done; its tasks: outlast status {run}"));
}

#[test]
fn a_damaged_journal_keeps_nobody_from_the_other_runs_nor_a_damaged_plan_from_being_told() {
    let bench = Bench::new();
    bench.plan(PLAN);
    bench.run(&["run", "--yes"]);
    let run = bench.run(&["status", "--json"]).json("status")["run"].as_str().unwrap().to_owned();
    let other = bench.env.outlast_home().join("other-1234");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("journal.db"), b"not a journal at all".repeat(500)).unwrap();
    bench.run::<&str>(&[]).ends(10).shows(&run).says("error[journal/damaged]");
    assert_eq!(bench.run(&["--json"]).ends(10).json("runs")["runs"][0]["run"], run.as_str());
    bench.run_outside(&["status", &run]).ends(0).shows(&run);
    bench.run_outside(&["status", "gone", "--json"]).fails(10, "journal/damaged");
}

#[test]
fn a_run_whose_plan_is_damaged_is_not_begun_a_second_time() {
    let bench = Bench::new();
    bench.plan(&PLAN.replace("\"true\"", "\"sh\", \"-c\", \"exit 75\""));
    bench.run(&["run", "--yes", "--no-wait"]).ends(6);
    let run = bench.run(&["status", "--json"]).json("status")["run"].as_str().unwrap().to_owned();
    bench.run(&["run"]).ends(3).says("plan/unfinished-run");
    let common_dir = bench.repo.dir().canonicalize().unwrap().join(".git");
    let home = Home::new(bench.env.outlast_home()).repository(&common_dir);
    for copy in fs::read_dir(home.root().join("plans")).unwrap() {
        fs::write(copy.unwrap().path(), "{").unwrap();
    }
    let told = bench.run(&["run", "--json"]).fails(12, "plan/damaged");
    assert!(told["error"]["fix"][0].as_str().unwrap().starts_with(&format!("outlast resume {run} ")), "{told:#}");
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

#[test]
fn a_typo_is_told_with_the_nearest_name() {
    let bench = Bench::new();
    bench.plan(&PLAN.replace("\"t\"", "\"payment-client\""));
    bench.run(&["run", "--yes", "--only", "paymnt-client"]).ends(9).says("did you mean `payment-client`?");
    bench.run(&["check", "--prompt", "payment-clinet"]).ends(9).says("did you mean `payment-client`?");
    bench.run(&["run", "--yes"]);
    let told = bench.run(&["log", "paymnt-client"]).ends(9).says("the nearest that it has is `payment-client`");
    told.says("outlast log payment-client\n");
}
