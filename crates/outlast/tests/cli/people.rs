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
fn the_plan_of_init_is_not_found_fault_with_for_what_init_wrote() {
    let bench = Bench::new();
    bench.run(&["init"]).ends(0);
    let file = bench.repo.dir().join("outlast.toml");
    let text = std::fs::read_to_string(&file).unwrap() + "[[task]]\nid = \"t\"\ngoal = \"g\"\nverify = [\"true\"]\n";
    std::fs::write(&file, text).unwrap();
    let told = bench.run(&["check"]).ends(0);
    assert!(!told.stdout.contains("default-timeout"), "{told:#?}");
}
