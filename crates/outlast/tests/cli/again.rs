//! What is done once is not done again, and what was given up is tried again when a person says so.

use serde_json::Value;

use crate::bench::Bench;

/// A program that fails at the first try of `flaky`, leaving half of its work, and finishes what it finds at the next one.
const AGENT: &str = r#"
case "$OUTLAST_TASK-$OUTLAST_ATTEMPT" in
  flaky-*.1) echo half > flaky.txt; exit 1;;
  flaky-*) test -e flaky.txt && echo whole >> flaky.txt;;
  *) echo x > "$OUTLAST_TASK.txt";;
esac
"#;

/// Tasks with their further keys, each of which may change the file of its own name.
fn plan(run: &str, tasks: &[(&str, &str)]) -> String {
    let mut text = format!(
        "[run]\n{run}\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{AGENT}''']\n[defaults]\nretries = 0\n"
    );
    for (id, keys) in tasks {
        text += &format!("[[task]]\nid = \"{id}\"\ngoal = \"Do {id}.\"\nwrites = [\"{id}.txt\"]\n{keys}\n");
    }
    text
}

/// Two tasks that land, one that fails at first, and one that needs it.
fn flaky() -> Bench {
    let bench = Bench::new();
    let tasks = [("one", ""), ("flaky", ""), ("after", "needs = [\"flaky\", \"two\"]"), ("two", "")];
    bench.plan(&plan("land = \"auto\"", &tasks));
    bench.run(&["run", "--yes"]).ends(5).shows("outlast retry --run");
    assert_eq!(states(&bench), ["landed", "failed", "blocked", "landed"]);
    // Of a task that never began there is no record that says why.
    bench.run(&["log", "after"]).ends(0).shows("`after` is blocked: `flaky` came to no result");
    bench.run(&["land", "flaky"]).ends(5).says("outlast retry --run");
    bench.run(&["land", "after"]).ends(5).says("outlast log --run");
    bench
}

fn status(bench: &Bench) -> Value {
    bench.run(&["status", "--json"]).ends(0).json("status")
}

fn states(bench: &Bench) -> Vec<String> {
    each(bench, |task| task["state"].as_str().unwrap().to_owned())
}

fn each<T>(bench: &Bench, what: impl Fn(&Value) -> T) -> Vec<T> {
    status(bench)["tasks"].as_array().unwrap().iter().map(what).collect()
}

fn attempts(bench: &Bench) -> Vec<u64> {
    each(bench, |task| task["attempts"].as_u64().unwrap())
}

/// The runs that there are.
fn runs(bench: &Bench) -> usize {
    bench.run(&["--json"]).ends(0).json("runs")["runs"].as_array().unwrap().len()
}

/// The tip of the branch of the newest run, by name.
fn target(bench: &Bench) -> String {
    status(bench)["target"].as_str().unwrap().to_owned()
}

#[test]
fn h09_a_task_that_was_given_up_is_tried_again_with_its_work_and_no_other_is() {
    for command in [&["retry", "flaky"][..], &["resume", "flaky"], &["retry", "state:failed"], &["retry", "--all"]] {
        let bench = flaky();
        bench.run(command).ends(0);
        assert_eq!(states(&bench), ["landed"; 4], "{command:?}");
        assert_eq!(attempts(&bench), [1, 2, 1, 1], "{command:?}");
        let landed = bench.repo.text(&["show", &format!("{}:flaky.txt", target(&bench))]).unwrap();
        assert_eq!(landed, "half\nwhole", "it went on with what was there");
        assert_eq!(runs(&bench), 1);
        bench.run(&["retry", "--all"]).ends(0).says("nothing to try again");
    }
}

#[test]
fn what_cannot_be_tried_again_is_told_and_starts_nothing() {
    let bench = flaky();
    let before = attempts(&bench);
    // What has landed is where it was to get to.
    bench.run(&["retry", "one", "--json"]).ends(0).says("one has landed as").json("status");
    let told = bench.run(&["retry", "after", "--json"]).fails(5, "task/need-without-result");
    assert_eq!(
        told["error"]["fix"][0],
        format!("outlast retry --run {} flaky", status(&bench)["run"].as_str().unwrap())
    );
    bench.run(&["retry", "gone", "--json"]).fails(9, "task/none");
    bench.run(&["resume", "gone", "--json"]).fails(9, "run/none");
    assert_eq!(attempts(&bench), before);
    // One of a list that cannot holds up nobody.
    bench.run(&["retry", "one", "flaky"]).ends(0).says("one has landed as");
    assert_eq!(states(&bench), ["landed"; 4]);
}

#[test]
fn what_has_landed_is_not_started_again_unless_that_is_asked_for() {
    let bench = Bench::new();
    let tasks = [("one", ""), ("two", "needs = [\"one\"]"), ("three", "")];
    bench.plan(&plan("land = \"auto\"", &tasks));
    bench.run(&["run", "--yes"]).ends(0);
    let first = status(&bench)["run"].as_str().unwrap().to_owned();
    let nothing = |what: &str| {
        let told = bench.run(&["run"]).ends(0).says(&format!("landed already in run {first}"));
        assert!(told.stderr.contains("nothing is left to do"), "{what}: {told:#?}");
        assert_eq!(runs(&bench), 1, "{what}");
    };
    nothing("on its own branch");
    let view = bench.run(&["run", "--json"]).ends(0).json("status");
    assert_eq!(view["run"], first.as_str());
    bench.run(&["run", "--only", "two"]).ends(0).says("nothing is left to do");
    bench.repo.git(&["merge", "--quiet", &format!("outlast/{first}")]).unwrap();
    nothing("merged");
    bench.repo.git(&["branch", "--quiet", "-D", &format!("outlast/{first}")]).unwrap();
    nothing("merged, its branch removed");

    // What is to be done is another thing now, and so is what starts from it. Other commands would have to be approved.
    let changed = plan("land = \"auto\"", &[("one", "reads = [\"README.md\"]"), tasks[1], tasks[2]]);
    bench.plan(&changed);
    bench.run(&["run", "--dry-run"]).ends(0).shows("wave 1: one\nwave 2: two").says("landed already").says("three");
    // How long it may take is not what is to be done.
    bench.plan(&plan("land = \"auto\"", &[tasks[0], tasks[1], ("three", "timeout = \"1m\"")]));
    nothing("another timeout");

    bench.run(&["run", "--again", "--only", "three"]).ends(5);
    assert_eq!(runs(&bench), 2, "and it finds nothing to change");
}

#[test]
fn h09_a_task_that_was_renamed_or_moved_in_the_plan_is_not_done_again() {
    let bench = Bench::new();
    let body = |id: &str, file: &str, needs: &str| {
        format!("[[task]]\nid = \"{id}\"\ngoal = \"Do {file}.\"\nwrites = [\"{file}.txt\"]\nneeds = [{needs}]\n")
    };
    // What it writes is said by its goal alone.
    let agent = "case \"$(cat $OUTLAST_GOAL_FILE)\" in *'Do flaky.'*) exit 1;; *'Do one.'*) echo x > one.txt;; \
                 *'Do two.'*) echo x > two.txt;; *) echo x > four.txt;; esac";
    let head = plan("land = \"auto\"", &[]).replace(AGENT, agent);
    let four = [body("a", "one", ""), body("b", "two", "\"a\""), body("c", "flaky", ""), body("d", "four", "")];
    bench.plan(&(head.clone() + &four.concat()));
    bench.run(&["run", "--yes"]).ends(5);
    assert_eq!(states(&bench), ["landed", "landed", "failed", "landed"]);
    let first = status(&bench)["run"].as_str().unwrap().to_owned();
    bench.repo.git(&["merge", "--quiet", &format!("outlast/{first}")]).unwrap();

    // Two have changed names with one another, one has a new name, and all stand elsewhere.
    let four = [body("dd", "four", ""), body("c", "flaky", ""), body("a", "two", "\"b\""), body("b", "one", "")];
    bench.plan(&(head.clone() + &four.concat()));
    let told = bench.run(&["run", "--yes"]).ends(5).says("landed already in run").says("dd (as d)");
    assert!(told.stderr.contains("a (as b)") && told.stderr.contains("b (as a)"), "{told:#?}");
    assert_eq!((states(&bench), attempts(&bench)), (vec!["failed".to_owned()], vec![1]), "one alone runs again");

    // One more of the same work is one more.
    let five = [four.concat(), body("ee", "four", "")].concat();
    bench.plan(&(head + &five));
    bench.run(&["run", "--dry-run"]).ends(0).shows("wave 1: c, ee\n");
}

#[test]
fn verified_work_that_waits_to_be_landed_is_not_done_a_second_time() {
    let bench = Bench::new();
    let start = bench.repo.commit_id("HEAD").unwrap();
    bench.repo.commit_file("README.md", "# Later\n", "Second").unwrap();
    let tasks = [("one", ""), ("two", "")];
    bench.plan(&plan("", &tasks));
    bench.run(&["run", "--yes"]).ends(0);
    let first = status(&bench)["run"].as_str().unwrap().to_owned();
    for command in [&["run"][..], &["run", "--detach"], &["run", "--dry-run"], &["run", "--only", "one"]] {
        let told = bench.run(command).ends(3).says("error[plan/unlanded-work]").says("paid for twice");
        told.says(&format!("outlast land --run {first} state:done")).says("outlast run --again");
    }
    let told = bench.run(&["run", "--json"]).fails(3, "plan/unlanded-work");
    assert_eq!(told["error"]["related"][0], first.as_str(), "{told:#}");
    let what = format!("run `{first}` holds verified work that waits to be landed: one, two");
    assert_eq!(told["error"]["what"], what, "{told:#}");
    assert_eq!((runs(&bench), attempts(&bench)), (1, vec![1, 1]));

    // What is new is named, and starts by its name.
    bench.plan(&plan("", &[tasks[0], tasks[1], ("three", "")]));
    bench.run(&["run"]).ends(3).says("three would be started as well").says("outlast run --only TASK");
    bench.run(&["run", "--only", "three"]).ends(0);
    bench.run(&["land", "--all"]).ends(0);
    assert_eq!((runs(&bench), states(&bench)), (2, vec!["landed".to_owned()]));
    // What lands is left out, and what is given up is done again.
    bench.run(&["land", "--run", &first, "one"]).ends(0);
    bench.run(&["run"]).ends(3).says("landed already").says("waits to be landed: two");
    bench.run(&["discard", "--run", &first, "two"]).ends(0);
    bench.run(&["run"]).ends(0).says("two");
    assert_eq!((runs(&bench), states(&bench)), (3, vec!["done".to_owned()]));
    // What was made with `--again` takes the place of what it was before.
    bench.run(&["run", "--again", "--only", "two"]).ends(0);
    let second = status(&bench)["run"].as_str().unwrap().to_owned();
    bench.run(&["run", "--json"]).fails(3, "plan/unlanded-work");
    bench.run(&["run"]).ends(3).says(&format!("outlast land --run {second} state:done"));
    // Another line of history has nothing of it.
    bench.repo.git(&["checkout", "--quiet", "--detach", &start]).unwrap();
    bench.run(&["run", "--only", "two"]).ends(0);
    assert_eq!(runs(&bench), 5);
}

#[test]
fn what_was_built_on_discarded_work_says_so_and_how_it_comes_back() {
    let bench = Bench::new();
    let tasks = [("one", ""), ("two", "needs = [\"one\"]"), ("three", "needs = [\"two\"]"), ("four", "")];
    bench.plan(&plan("", &tasks));
    bench.run(&["run", "--yes"]).ends(0);
    let run = status(&bench)["run"].as_str().unwrap().to_owned();
    let told = bench.run(&["discard", "one"]).ends(0);
    let told = told.says("two was built on that and is stale now").says("outlast run --only two");
    let told = told.says("three was built on that and is stale now");
    assert!(!told.stderr.contains("four"), "{told:#?}");
    assert_eq!(states(&bench), ["discarded", "stale", "stale", "done"]);
    let why = each(&bench, |task| format!("{}: {}", task["cause"], task["detail"]));
    assert_eq!(why[1], r#""need_given_up": "it was built on `one`, which is discarded""#);
    assert_eq!(why[2], r#""need_given_up": "it was built on `two`, which is stale""#);
    let fixes = each(&bench, |task| task["fix"].to_string());
    assert!(fixes[1].contains("outlast run --only two ") && fixes[1].contains("outlast discard --run"), "{fixes:#?}");
    bench.run(&["status"]).ends(0).shows("it was built on `one`, which is discarded").shows("outlast run --only two");
    bench.run(&["land", "two"]).ends(5).says("outlast run --only two");
    let told = bench.run(&["retry", "two", "--json"]).fails(2, "task/state");
    assert!(told["error"]["fix"][0].as_str().unwrap().starts_with("outlast run --only two "), "{told:#}");

    // A second one says nothing of what was told already.
    let told = bench.run(&["discard", "three"]).ends(0);
    assert!(!told.stderr.contains("stale now"), "{told:#?}");
    bench.run(&["run", "--only", "two"]).ends(0);
    assert_eq!((runs(&bench), states(&bench)), (2, vec!["done".to_owned(); 2]));
    bench.run(&["discard", "--run", &run, "two"]).ends(0);
}

#[test]
fn work_that_was_thrown_away_is_done_again() {
    let bench = Bench::new();
    bench.plan(&plan("land = \"auto\"", &[("one", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    bench.repo.git(&["branch", "--quiet", "-D", &target(&bench)]).unwrap();
    bench.run(&["run"]).ends(0);
    assert_eq!((runs(&bench), states(&bench)), (2, vec!["landed".to_owned()]));
}

#[test]
fn what_was_taken_over_in_another_commit_has_landed_all_the_same() {
    let bench = Bench::new();
    // The second changes what the first has made.
    let more = plan("land = \"auto\"", &[("one", ""), ("more", "needs = [\"one\"]")])
        .replace("  *) echo x", "  more-*) echo y >> one.txt;;\n  *) echo x")
        .replace("writes = [\"more.txt\"]", "writes = [\"one.txt\"]");
    bench.plan(&more);
    bench.run(&["run", "--yes"]).ends(0);
    let branch = target(&bench);
    bench.repo.git(&["merge", "--quiet", "--squash", &branch]).unwrap();
    bench.repo.git(&["commit", "--quiet", "-m", "All at once"]).unwrap();
    bench.repo.git(&["branch", "--quiet", "-D", &branch]).unwrap();
    let told = bench.run(&["run"]).ends(0).says("nothing is left to do");
    assert!(!told.stderr.contains("not merged"), "{told:#?}");
    assert_eq!(runs(&bench), 1);
    // What somebody has changed since is to be done again.
    bench.repo.commit_file("one.txt", "other\n", "Not so").unwrap();
    bench.run(&["run"]).ends(0).says("starts");
    assert_eq!(runs(&bench), 2);
}

#[test]
fn work_on_another_line_of_history_is_done_on_this_one_too() {
    let bench = Bench::new();
    let start = bench.repo.commit_id("HEAD").unwrap();
    bench.repo.commit_file("README.md", "# Later\n", "Second").unwrap();
    bench.plan(&plan("land = \"auto\"", &[("one", "")]));
    bench.run(&["run", "--yes"]).ends(0);
    bench.repo.git(&["checkout", "--quiet", "--detach", &start]).unwrap();
    bench.run(&["run"]).ends(0);
    assert_eq!((runs(&bench), states(&bench)), (2, vec!["landed".to_owned()]));
    // Here it has landed now, too, and there it still has.
    for place in [start.as_str(), "main"] {
        bench.repo.git(&["checkout", "--quiet", "--detach", place]).unwrap();
        bench.run(&["run"]).ends(0).says("landed already");
    }
    assert_eq!(runs(&bench), 2);
}

#[test]
fn what_is_left_starts_from_what_has_landed_or_does_not_start() {
    let bench = Bench::new();
    // The second fails for what is not in the plan's own words, so that it is the same task once that is mended.
    let tasks = [("one", ""), ("flaky", "needs = [\"one\"]")];
    bench.plan(&plan("land = \"auto\"", &tasks));
    bench.run(&["run", "--yes"]).ends(5);
    let first = target(&bench);
    let told = bench.run(&["run", "--json"]).fails(3, "plan/need-apart");
    let fixes = told["error"]["fix"].to_string();
    assert!(fixes.contains(&format!("git merge {first}")) && fixes.contains("outlast retry --run"), "{told:#}");
    assert_eq!(runs(&bench), 1);
    bench.repo.git(&["merge", "--quiet", &first]).unwrap();
    bench.run(&["run"]).ends(5).says("landed already").says("outlast retry --run");
    assert_eq!((runs(&bench), states(&bench)), (2, vec!["failed".to_owned()]), "it alone is in the new run");
    bench.run(&["retry", "flaky"]).ends(0);
    let one = bench.repo.text(&["show", &format!("{}:one.txt", target(&bench))]).unwrap();
    assert_eq!(one, "x", "it started from what had landed");
}

#[test]
fn who_need_not_wait_gets_every_try_of_a_task_that_fails_by_itself() {
    let bench = Bench::new();
    // A command that asks nobody for anything is tried again after a second, and after two more.
    let third = "case \"$OUTLAST_ATTEMPT\" in *.3) echo x > t.txt;; *) exit 1;; esac";
    bench.plan(&format!(
        "[run]\nland = \"auto\"\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{third}''']\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\nretries = 2\n"
    ));
    bench.run(&["run", "--yes", "--no-wait"]).ends(0);
    assert_eq!((states(&bench), attempts(&bench)), (vec!["landed".to_owned()], vec![3]));
}

#[test]
fn nobody_waits_without_wanting_to_for_a_task_that_is_to_be_tried_later() {
    let bench = Bench::new();
    let later = "case \"$OUTLAST_ATTEMPT\" in *.1) exit 75;; *) echo x > t.txt;; esac";
    bench.plan(&format!(
        "[run]\nland = \"auto\"\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{later}''']\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n"
    ));
    let left =
        bench.run(&["run", "--yes", "--no-wait"]).ends(6).says("everything that is left waits, the first until 2");
    let run = status(&bench)["run"].as_str().unwrap().to_owned();
    assert!(left.stderr.contains(&format!("outlast resume {run}")), "{left:#?}");
    let task = &status(&bench)["tasks"][0];
    assert_eq!((&task["state"], &task["cause"], &task["attempts"]), (&"ready".into(), &"overload".into(), &1.into()));
    assert!(task["reset_at"].is_string() && status(&bench)["state"] == "parked", "{task:#}");
    bench.run(&["retry", "t"]).ends(0).says("is tried again");
    assert_eq!(attempts(&bench), [2]);
}

#[test]
fn scripts_are_told_which_tasks_a_discarded_one_takes_with_it() {
    let bench = Bench::new();
    let tasks = [("one", ""), ("two", "needs = [\"one\"]"), ("three", "needs = [\"two\"]"), ("four", "")];
    bench.plan(&plan("", &tasks));
    bench.run(&["run", "--yes"]).ends(0);
    let acted = bench.run(&["discard", "two", "four", "--json"]).ends(0).json("act");
    let stale = |id: &str| serde_json::json!({"id": id, "state": "stale", "fix": format!("outlast run --only {id}")});
    let of = |id: &str| {
        let tasks = acted["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["id"] == id).unwrap()["dependants"].clone()
    };
    assert_eq!((of("two"), of("four")), (serde_json::json!([stale("three")]), Value::Null), "{acted:#}");
    let acted = bench.run(&["discard", "one", "--json"]).ends(0).json("act");
    assert_eq!(acted["tasks"][0]["dependants"], Value::Null, "they were told already: {acted:#}");
}
