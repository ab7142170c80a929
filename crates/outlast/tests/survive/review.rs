//! What a person does with verified work: look at it, land it in order, give it up, clean up.

use std::path::PathBuf;

use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::world::{Plan, World, text};

/// A commit on a detached HEAD, to which no branch of the agent's leads.
const COMMIT_APART: &str = "run \"git checkout -q --detach && git add -A && git -c user.name=Agent \
     -c user.email=a@example.invalid commit -q -m 'made by the agent'\"";

fn reviewed() -> World {
    let world = World::new();
    let outside = "write parts/first.txt \"part first\\n\"\nwrite notes.txt \"not asked for\\n\"";
    let second = "read parts/first.txt\nwrite parts/second.txt \"part second\\n\"";
    // What it needs has not landed either, and is there all the same when it is verified.
    let both = "verify = [\"cat parts/first.txt parts/second.txt\"]";
    let apart = format!("write parts/apart.txt \"part apart\\n\"\n{COMMIT_APART}");
    world.plan(
        &Plan::new("concurrency = 2")
            .task("first", outside, "writes = [\"parts/first.txt\"]")
            .task("second", second, &format!("writes = [\"parts/second.txt\"]\nneeds = [\"first\"]\n{both}"))
            .part("third")
            .task("apart", &apart, "writes = [\"parts/apart.txt\"]"),
    );
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("done");
    world
}

fn store(world: &World) -> Repo {
    Repo::at(world.homes()[0].join("store.git"))
}

fn workspace(world: &World, id: &str) -> PathBuf {
    text(&world.task(id)["workspace"]).into()
}

#[test]
fn of_work_that_goes_on_the_last_checkpoint_is_shown_and_what_is_not_in_it_is_told() {
    // A turn's checkpoint is made beside its request: certain is the one before.
    for (turn, part) in [(1, "works  0 files"), (3, "+part one")] {
        let hold = Fault::Hold { seconds: None };
        let rule = Rule { when: When { step: Some(turn), ..When::default() }, fault: hold, times: Some(1) };
        let world = World::with_script(Script::default().with_fault(rule));
        let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"\nread parts/two.txt";
        let plan = Plan::new("").task("works", script, "writes = [\"parts/**\"]");
        world.plan(&plan.task("later", script, "writes = [\"parts/**\"]\nneeds = [\"works\"]"));
        let run = world.start(&["run", "--yes"]);
        world.provider_saw("the turn", |log| log.iter().any(|entry| entry.step == Some(turn)));
        let place = workspace(&world, "works").display().to_string();
        let told = format!("; what it has changed since is in {place}");
        world
            .run(&["diff", "works"])
            .ends(0)
            .says(part)
            .says("works is at work: this is its last checkpoint, of ")
            .says(&told);
        let view = world.run(&["diff", "works", "--json"]).ends(0).json();
        assert_eq!((&view["state"], &view["workspace"]), (&"running".into(), &place.into()), "{view:#}");
        let (kept_at, started_at) = (text(&view["kept_at"]), text(&world.status()["started_at"]));
        assert!(kept_at >= started_at, "{kept_at} {started_at}");
        assert_eq!(text(&view["patch"]).contains("+part one"), turn == 3, "{view:#}");
        assert_eq!(view["files"].as_array().unwrap().is_empty(), turn == 1, "{view:#}");

        world.run(&["diff", "later"]).ends(0).says("later has changed nothing yet");
        let view = world.run(&["diff", "later", "--json"]).ends(0).json();
        assert_eq!(
            (&view["state"], &view["files"], &view["patch"]),
            (&"pending".into(), &serde_json::json!([]), &"".into())
        );
        assert!(view["kept_at"].is_null() && view["base"] == view["commit"], "{view:#}");
        world.run(&["stop"]).ends(0);
        run.end().ends(0);
        let told = world.run(&["diff", "works"]).ends(0);
        assert!(!told.stderr.contains("is at work"), "{}", told.stderr);
        world.nothing_is_left();
    }
}

#[test]
fn verified_work_is_shown_landed_in_order_and_only_as_far_as_it_was_asked_for() {
    let world = reviewed();
    let base = world.repo.commit_id("HEAD").unwrap();
    let target = world.target();
    let shown = world.run(&["diff", "first", "--json"]).ends(0).json();
    let files: Vec<(String, bool)> = shown["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (text(&file["path"]), file["in_scope"].as_bool().unwrap()))
        .collect();
    assert_eq!(files, [("notes.txt".to_owned(), false), ("parts/first.txt".to_owned(), true)]);
    world.run(&["diff", "first"]).ends(0).says("outside `writes`").says("+part first");
    assert!(world.repo.commit_id(&target).is_err(), "nothing has landed by itself");

    world.run(&["land", "second"]).ends(8).says("`first`");
    assert_eq!(world.task("second")["state"], "done");
    world.run(&["land", "first"]).ends(0).says("landed");
    world.run(&["land", "sec*", "apart"]).ends(0);
    assert_eq!(world.landed_on(&target, &base).len(), 3);
    let tree = world.repo.text(&["ls-tree", "-r", "--name-only", &target]).unwrap();
    assert!(tree.contains("parts/first.txt") && !tree.contains("notes.txt"), "{tree}");
    world.run(&["land", "--all"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.landed_on(&target, &base).len(), 4, "nothing landed twice");
}

#[test]
fn e13_e14_what_is_given_up_is_kept_under_a_ref_with_untracked_files_and_commits_apart() {
    let world = reviewed();
    let (third, apart) = (workspace(&world, "third"), workspace(&world, "apart"));
    world.run(&["discard", "third", "apart"]).ends(0);
    for (id, workspace) in [("third", &third), ("apart", &apart)] {
        assert_eq!(world.task(id)["state"], "discarded");
        assert!(!workspace.exists(), "{id}: its workspace is gone");
    }
    let run = text(&world.status()["run"]);
    let store = store(&world);
    let archived = |task: &str| {
        let pattern = format!("refs/outlast/archive/{run}/{task}");
        store.text(&["for-each-ref", "--format=%(objectname)", &pattern]).unwrap()
    };
    // The work of `third` was only ever an untracked file.
    let kept = archived("third");
    let shown = kept.lines().map(|id| store.text(&["show", &format!("{id}:parts/third.txt")]).unwrap_or_default());
    assert!(shown.into_iter().any(|content| content == "part third"), "{kept}");
    // No branch led to the commit of `apart`.
    let kept = archived("apart");
    let subjects: String = kept.lines().map(|id| store.text(&["log", "--format=%s", id]).unwrap()).collect();
    assert!(subjects.contains("made by the agent"), "{subjects}");

    world.run(&["land", "--all"]).ends(5);
    assert_eq!(world.task("second")["state"], "landed");
    world.nothing_is_left();
}

#[test]
fn e14_clean_removes_only_what_is_kept_elsewhere_and_only_when_told() {
    let world = reviewed();
    let all = ["first", "second", "third", "apart"].map(|id| workspace(&world, id));
    world.run(&["land", "first", "second"]).ends(0);
    world.run(&["clean", "--json"]).ends(0);
    assert!(all.iter().all(|workspace| workspace.is_dir()), "a list removes nothing");

    // Somebody has worked on in a workspace whose result has landed: that is nowhere else.
    std::fs::write(all[1].join("by-hand.txt"), "not yet anywhere\n").unwrap();
    let cleaned = world.run(&["clean", "--yes", "--json"]).ends(0).json();
    assert_eq!(cleaned["removed"], true, "{cleaned:#}");
    let there: Vec<bool> = all.iter().map(|workspace| workspace.is_dir()).collect();
    assert_eq!(there, [false, true, true, true], "{cleaned:#}");
    assert!(all[1].join("by-hand.txt").is_file());
    // What waits for a person is all there.
    world.run(&["land", "third", "apart"]).ends(0);
    world.all_are("landed");
}

#[test]
fn a_workspace_in_use_stays_and_keeps_none_of_the_others() {
    let world = reviewed();
    let all = ["first", "second", "third", "apart"].map(|id| workspace(&world, id));
    world.run(&["land", "--all"]).ends(0);
    let shell = |folder: &std::path::Path| {
        let mut shell = std::process::Command::new("sleep");
        shell.arg("600").current_dir(folder).spawn().unwrap()
    };
    let mut shells = [shell(&all[1]), shell(&all[2])];
    let cleaned = world.run(&["clean", "--yes", "--json"]).ends(0).json();
    let there: Vec<bool> = all.iter().map(|workspace| workspace.is_dir()).collect();
    let items = cleaned["items"].as_array().unwrap();
    let kept: Vec<(&str, bool)> = items
        .iter()
        .filter_map(|item| Some((item["task"].as_str()?, item["kept"].as_str()?.contains("works in it"))))
        .collect();
    for shell in &mut shells {
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
    assert_eq!((there, cleaned["removed"].as_bool()), (vec![false, true, true, false], Some(true)), "{cleaned:#}");
    assert_eq!(kept, [("second", true), ("third", true)], "{cleaned:#}");
    world.run(&["clean", "--yes"]).ends(0);
    assert!(all.iter().all(|workspace| !workspace.is_dir()));
}

#[test]
fn what_is_done_in_a_paused_run_lands_when_a_person_asks() {
    let silent =
        Rule { when: When { nth: Some(3), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(silent));
    world.plan(&Plan::new("concurrency = 1").part("one").part("two"));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["one", "is verified"]);
    world.provider_saw("the second task", |log| log.len() >= 3);
    world.run(&["pause"]).ends(0);
    run.end();
    assert_eq!(world.task("two")["state"], "parked");
    world.run(&["land", "one"]).ends(0);
    assert_eq!(world.task("one")["state"], "landed");
    world.nothing_is_left();
}
