//! A verified result that its target holds already, by the hand of a person who said nothing of where it is from: it has
//! landed, and is neither given up nor paid for again.

use serde_json::Value;

use crate::bench::Bench;

/// Two tasks, the second of which needs the first.
fn plan(target: &str) -> String {
    format!(
        "[run]\ntarget = \"{target}\"\n[agent.a]\nkind = \"command\"\n\
         command = [\"sh\", \"-c\", \"echo x > $OUTLAST_TASK.txt\"]\n\
         [[task]]\nid = \"one\"\ngoal = \"g\"\nwrites = [\"one.txt\"]\n\
         [[task]]\nid = \"two\"\ngoal = \"h\"\nwrites = [\"two.txt\"]\nneeds = [\"one\"]\n"
    )
}

fn status(bench: &Bench) -> Value {
    bench.run(&["status", "--json"]).ends(0).json("status")
}

fn states(bench: &Bench) -> Vec<String> {
    let status = status(bench);
    status["tasks"].as_array().unwrap().iter().map(|task| task["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_a_person_has_merged_without_a_word_has_landed_and_is_not_paid_for_again() {
    let bench = Bench::new();
    bench.plan(&plan("main"));
    bench.repo.write(".git/info/exclude", "outlast.toml\n").unwrap();
    bench.run(&["run", "--yes"]).ends(0);
    assert_eq!(states(&bench), ["done", "done"]);
    // Taken over with a message of their own, and worked on since.
    let commit = bench.repo.commit_file("one.txt", "x\n", "Do one").unwrap();
    bench.repo.commit_file("README.md", "# Later\n", "Later").unwrap();
    let acted = bench.run(&["land", "one", "--json"]).ends(0).json("act");
    let one = &acted["tasks"][0];
    assert_eq!((&one["state"], &one["landed"]), (&"landed".into(), &commit.clone().into()), "{acted:#}");
    assert_eq!(one["by_hand"], true, "{acted:#}");
    let told = format!("its change is there already, by {} (merged by hand): it counts as landed", &commit[..10]);
    bench.run(&["land", "one"]).ends(0).shows(&told);

    // What needs it lands, and a commit of ours is no other's.
    let acted = bench.run(&["land", "two", "--json"]).ends(0).json("act");
    assert_eq!((&acted["tasks"][0]["state"], &acted["tasks"][0]["by_hand"]), (&"landed".into(), &Value::Null));
    let told = bench.run(&["status"]).ends(0).shows("finished (2)");
    assert!(!told.stdout.contains("needs you"), "{told:#?}");
    let first = status(&bench)["run"].clone();
    bench.run(&["run", "--yes"]).ends(0).says("landed already in run").says("nothing is left to do");
    assert_eq!(status(&bench)["run"], first, "nothing was started");
}

#[test]
fn a_target_that_held_it_from_its_beginning_needs_nobody_and_the_workspace_can_go() {
    let bench = Bench::new();
    bench.plan(&plan("topic"));
    bench.run(&["run", "--yes"]).ends(0).shows("outlast land --run");
    bench.repo.write("one.txt", "x\n").unwrap();
    let commit = bench.repo.commit_file("two.txt", "x\n", "The same by hand").unwrap();
    bench.repo.git(&["branch", "topic"]).unwrap();
    bench.run(&["land", "--all"]).ends(0).shows("(merged by hand): it counts as landed");
    assert_eq!(states(&bench), ["landed", "landed"]);
    let told = bench.run(&["status"]).ends(0).shows("finished (2)");
    assert!(!told.stdout.contains("needs you") && !told.stdout.contains("outlast land"), "{told:#?}");
    bench.run(&["discard", "one"]).ends(5).shows(&format!("`git revert {}` undoes it", &commit[..10]));

    let workspace = status(&bench)["tasks"][0]["workspace"].clone();
    bench.run(&["clean", "--yes"]).ends(0).shows("removed");
    assert!(!std::path::Path::new(workspace.as_str().unwrap()).exists());
    bench.run(&["status"]).ends(0).shows("finished (2)");
}

#[test]
fn what_another_task_has_landed_already_is_said_to_have_been_there_with_that_ones_commit() {
    for land in ["auto", "review"] {
        let bench = Bench::new();
        let task = |id: &str| format!("[[task]]\nid = \"{id}\"\ngoal = \"{id}\"\nwrites = [\"same.txt\"]\n");
        let run = format!("[run]\nland = \"{land}\"\n[agent.a]\nkind = \"command\"\n");
        let command = "command = [\"sh\", \"-c\", \"echo x > same.txt\"]\n";
        bench.plan(&format!("{run}{command}{}{}", task("one"), task("two")));
        let ran = bench.run(&["run", "--yes"]).ends(0);
        let told = match land {
            "auto" => ran,
            _ => {
                bench.run(&["land", "one"]).ends(0).shows("landed     one  as ");
                bench.run(&["land", "two"]).ends(0).shows("which landed with `one`: it counts as landed")
            }
        };
        let status = status(&bench);
        let [one, two] = [0, 1].map(|at| status["tasks"][at].clone());
        assert_eq!((&one["state"], &two["state"]), (&"landed".into(), &"landed".into()), "{status:#}");
        assert_eq!(one["landed"], two["landed"]);
        assert_eq!((&one["was_there"], &two["was_there"]), (&Value::Null, &true.into()));
        let commit = &one["landed"].as_str().unwrap()[..10];
        let was_there = format!("its change was already there: {commit}");
        if land == "auto" {
            told.says(&was_there).shows(&was_there);
        }
        bench.run(&["status"]).ends(0).shows(&format!("{was_there} landed with `one`"));
        bench.run(&["log", "two"]).ends(0).shows(&was_there);
    }
}
