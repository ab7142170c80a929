//! A plan or a program that is mended after its run began: the run goes by what it began with, and says so.

use crate::bench::Bench;

const COMMITTED: &str = "tools/agent.sh";

/// A task whose agent is a program of the repository that fails, in a plan of this text.
fn failing(file: &str, goal: &str) -> (Bench, String) {
    let bench = Bench::new();
    bench.repo.commit_file(COMMITTED, "exit 1\n", "Agent").unwrap();
    let text = plan(goal);
    bench.repo.write(file, &text).unwrap();
    (bench, text)
}

fn plan(goal: &str) -> String {
    format!(
        "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"{COMMITTED}\"]\n[defaults]\nretries = 0\n\
         [[task]]\nid = \"one\"\ngoal = \"{goal}\"\nwrites = [\"one.txt\"]\n"
    )
}

#[test]
fn retry_says_what_of_a_mended_plan_it_does_not_take_and_what_does() {
    let (bench, _) = failing("outlast.toml", "Do it.");
    bench.run(&["run", "--yes"]).ends(5);
    let told = bench.run(&["retry", "one"]).ends(5);
    assert!(!told.stderr.contains("not taken up"), "nothing was changed: {told:#?}");
    bench.plan(&format!("# A comment.\n{}", plan("Do it.")));
    let told = bench.run(&["retry", "one"]).ends(5);
    assert!(!told.stderr.contains("not taken up"), "a comment is no change: {told:#?}");
    bench.plan(&plan("Do it well."));
    let told = bench.run(&["retry", "one"]).ends(5).says("not taken up: `goal` of one");
    told.says("to take it up: outlast run --only one ");
    bench.run(&["resume", "one"]).ends(5).says("not taken up: `goal` of one");
    bench.plan(&plan("Do it.").replace("[defaults]", "env = { X = \"y\" }\n[defaults]"));
    bench.run(&["retry", "one"]).ends(5).says("not taken up: agent `a` of one");
}

#[test]
fn retry_says_that_a_mended_program_of_the_repository_is_in_no_commit_that_it_starts_from() {
    let (bench, _) = failing("plans/slow.toml", "Do it.");
    bench.run(&["run", "slow", "--yes"]).ends(5);
    bench.repo.write(COMMITTED, "echo x > one.txt\n").unwrap();
    bench.run(&["retry", "one"]).ends(5).says("tools/agent.sh (commit it first) of one");
    bench.repo.git(&["commit", "--quiet", "--all", "-m", "Mended"]).unwrap();
    let told = bench.run(&["retry", "one"]).ends(5).says("not taken up: tools/agent.sh of one");
    told.says("to take it up: outlast run slow --only one ");
    bench.run(&["run", "slow", "--only", "one"]).ends(0);
}

#[test]
fn of_many_tasks_the_checkout_is_looked_at_once() {
    let (bench, text) = failing("outlast.toml", "Do it.");
    let tasks = |goal: &str| -> String {
        let others = (1..=20).map(|n| format!("[[task]]\nid = \"t{n}\"\ngoal = \"{goal}\"\nwrites = [\"t{n}.txt\"]\n"));
        others.collect::<String>()
    };
    bench.plan(&format!("{text}{}", tasks("As well.")));
    bench.run(&["run", "--yes"]).ends(5);
    // The one on the PATH is a link to the system's own.
    let on_path = bench.env.root().join("bin/git");
    let git = on_path.canonicalize().unwrap();
    std::fs::remove_file(&on_path).unwrap();
    let asked = bench.env.root().join("asked");
    bench.program("git", &format!("#!/bin/sh\necho \"$*\" >> {}\nexec {} \"$@\"\n", asked.display(), git.display()));
    bench.plan(&format!("{text}{}", tasks("As well, and better.")));
    bench.run(&["retry", "--all"]).ends(5).says("not taken up: `goal` of t1, t2,");
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_eq!(asked.lines().filter(|line| line.contains("status --porcelain")).count(), 2, "{asked}");
}

#[test]
fn a_plan_that_was_named_is_named_in_each_advice() {
    let (bench, text) = failing("plans/slow.toml", "Do it.");
    let told = bench.run(&["run", "slow", "--only", "one"]).ends(3).says("outlast check slow ");
    told.says("outlast run slow --only one --yes ");
    bench.run(&["check", "slow"]).ends(0).shows("`outlast run slow` asks for your approval");
    bench.run(&["check", "slow", "--prompt", "two"]).ends(9).says("outlast check slow ");
    bench.run(&["run", "slow", "--only", "two"]).ends(9).says("outlast check slow\n");
    bench.repo.write("plans/slow.toml", text.replace("goal", "gaol")).unwrap();
    bench.run(&["run", "slow"]).ends(3).says("mend what is named above; outlast check slow\n");
    let good = text.replace(&format!("\"sh\", \"{COMMITTED}\""), "\"sh\", \"-c\", \"echo x > one.txt\"");
    bench.repo.write("plans/slow.toml", &good).unwrap();
    bench.run(&["run", "slow", "--yes"]).ends(0);
    bench
        .run(&["run", "slow"])
        .ends(3)
        .says("outlast run slow --again ")
        .says("`outlast run slow` starts what is left");
}

#[test]
fn retry_spends_no_try_where_what_failed_is_mended_in_a_plan_that_its_run_does_not_take() {
    let bench = Bench::new();
    let plan = |check: &str, goal: &str| {
        format!(
            "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo $OUTLAST_ATTEMPT > $OUTLAST_TASK.txt\"]\n\
             [defaults]\nretries = 0\n[[task]]\nid = \"one\"\ngoal = \"{goal}\"\nwrites = [\"one.txt\"]\nverify = [\"{check}\"]\n\
             [[task]]\nid = \"two\"\ngoal = \"Do two.\"\nwrites = [\"two.txt\"]\nverify = [\"test -e gone\"]\n"
        )
    };
    bench.plan(&plan("test -e nothing", "Do one."));
    bench.run(&["run", "--yes"]).ends(5);
    let attempts = || {
        let status = bench.run(&["status", "--json"]).json("status");
        let of = |at: usize| status["tasks"][at]["attempts"].as_u64().unwrap();
        (status["run"].as_str().unwrap().to_owned(), of(0), of(1))
    };
    let (run, ..) = attempts();
    // Another goal is no mend of a check: it is said, and tried.
    bench.plan(&plan("test -e nothing", "Do one well."));
    bench.run(&["retry", "one"]).ends(5).says("not taken up: `goal` of one");
    assert_eq!(attempts(), (run.clone(), 2, 1));
    bench.plan(&plan("test -e one.txt", "Do one."));
    let told = bench
        .run(&["retry", "one"])
        .ends(5)
        .says("error[task/mended-elsewhere]: `one` failed (verify) by what has been changed since");
    told.says("do:      outlast run --only one ").says(&format!("or: outlast resume {run} one "));
    assert_eq!(attempts(), (run.clone(), 2, 1), "no agent was paid");
    assert_eq!(
        bench.run(&["retry", "one", "--json"]).fails(5, "task/mended-elsewhere")["error"]["exit"],
        "tasks_failed"
    );
    // Of several, the others are tried again, and whoever insists is heard.
    bench
        .run(&["retry", "--all"])
        .ends(5)
        .says("not tried again: `one` failed (verify) by what has been changed since");
    assert_eq!(attempts(), (run.clone(), 2, 2));
    bench.run(&["resume", &run, "one"]).ends(5).says("not taken up: `verify` of one");
    assert_eq!(attempts(), (run, 3, 2));
}

#[test]
fn retry_spends_no_try_on_a_command_that_changed_nothing_and_is_mended() {
    let (bench, _) = failing("outlast.toml", "Do it.");
    bench.repo.commit_file(COMMITTED, "exit 0\n", "Nothing is done").unwrap();
    bench.run(&["run", "--yes"]).ends(5);
    let attempts = || bench.run(&["status", "--json"]).json("status")["tasks"][0]["attempts"].clone();
    let before = attempts();
    let mended = plan("Do it.").replace(&format!("\"{COMMITTED}\""), "\"-c\", \"echo x > one.txt\"");
    bench.plan(&mended);
    let told = bench
        .run(&["retry", "one"])
        .ends(5)
        .says("error[task/mended-elsewhere]")
        .says("(gave_up) by what has been changed since: agent `a`");
    told.says("do:      outlast run --only one ");
    assert_eq!(attempts(), before, "no agent was paid");
    bench.plan(&plan("Do it."));
    bench.repo.commit_file(COMMITTED, "echo x > one.txt\n", "Mended").unwrap();
    bench.run(&["retry", "one"]).ends(5).says("(gave_up) by what has been changed since: tools/agent.sh");
    assert_eq!(attempts(), before, "no agent was paid");
}

#[test]
fn what_takes_a_mend_up_is_a_command_that_works_where_the_task_has_landed_in_an_older_run() {
    let bench = Bench::new();
    let agent = |does: &str| {
        let text = plan("Do it.").replace(&format!("\"{COMMITTED}\""), &format!("\"-c\", \"{does}\""));
        format!("[run]\nland = \"auto\"\n{text}")
    };
    let (works, fails) = (agent("echo $OUTLAST_ATTEMPT > one.txt"), agent("exit 1"));
    bench.repo.write("plans/p2.toml", &works).unwrap();
    bench.run(&["run", "p2", "--yes"]).ends(0);
    bench.repo.write("plans/p2.toml", &fails).unwrap();
    bench.run(&["run", "p2", "--again", "--yes"]).ends(5);
    bench.repo.write("plans/p2.toml", &works).unwrap();
    let told = bench.run(&["retry", "one"]).ends(5).says("error[task/mended-elsewhere]");
    let told = told.says("to take it up: outlast run p2 --only one --again ");
    told.says("do:      outlast run p2 --only one --again ");
    bench.run(&["run", "p2", "--only", "one"]).ends(0).says("nothing is left to do");
    // What is another thing to do by now has not landed.
    bench.repo.write("plans/p2.toml", works.replace("Do it.", "Do it well.")).unwrap();
    bench.run(&["retry", "one"]).ends(5).says("do:      outlast run p2 --only one  ");
    bench.repo.write("plans/p2.toml", &works).unwrap();
    bench.run(&["run", "p2", "--only", "one", "--again", "--yes"]).ends(0);
    assert_eq!(bench.run(&["status", "--json"]).json("status")["tasks"][0]["state"], "landed");
}

#[test]
fn what_does_a_task_anew_that_was_given_up_works_where_it_has_landed_in_an_older_run() {
    let bench = Bench::new();
    let text = plan("Do it.").replace(&format!("\"{COMMITTED}\""), "\"-c\", \"echo $OUTLAST_ATTEMPT > one.txt\"");
    bench.plan(&format!("[run]\nland = \"auto\"\n{text}"));
    bench.run(&["run", "--yes"]).ends(0);
    bench.plan(&text);
    bench.run(&["run", "--again", "--yes"]).ends(0);
    bench.run(&["discard", "one"]).ends(0);
    bench.run(&["retry", "one"]).says("outlast run --only one --again ");
}
