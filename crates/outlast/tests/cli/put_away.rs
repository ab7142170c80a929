//! A stash, and commits on a branch or a detached HEAD that an agent has left: told to whoever goes on without the session, and to people, with the
//! command that brings it back.

use serde_json::Value;

use crate::bench::Bench;

/// A program whose first attempt puts half of its work into stashes, on a branch and on none, and fails; the second one writes down what
/// it was told.
const AGENT: &str = r#"
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.invalid
case "$OUTLAST_ATTEMPT" in
  *.1)
    git branch untouched
    echo early > early.txt; git add early.txt; git commit -q -m early; git branch behind
    echo one > half.txt; git add half.txt; git stash -q
    echo two > half.txt; git add half.txt; git stash -q
    git checkout -q -b feature/side; echo side > side.txt; git add side.txt; git commit -q -m side
    git checkout -q -
    git checkout -q --detach; echo loose > loose.txt; git add loose.txt; git commit -q -m loose; git checkout -q -; exit 1;;
  *) cat "$OUTLAST_HANDOVER_FILE" > one.txt;;
esac
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.plan(&format!(
        "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{AGENT}''']\n[defaults]\nretries = 1\n\
         [[task]]\nid = \"one\"\ngoal = \"Do one.\"\n"
    ));
    bench
}

fn names(view: &Value) -> Vec<&str> {
    view["put_away"].as_array().unwrap().iter().map(|away| away["name"].as_str().unwrap()).collect()
}

/// Runs each command that brings something back, in the repository, and looks whether it did.
#[track_caller]
fn come_back(bench: &Bench, view: &Value, run: &str) {
    for away in view["put_away"].as_array().unwrap() {
        let command = away["get_back"].as_str().unwrap();
        let done = bench.env.command("sh").args(["-c", command]).current_dir(bench.repo.dir()).output().unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let loose = names(view).into_iter().find(|name| name.starts_with("detached-")).unwrap();
    let shown = |name: &str, path: &str| {
        let branch = format!("put-away/{run}/one/{name}");
        let text = bench.repo.text(&["show", &format!("{branch}:{path}")]).unwrap();
        bench.repo.git(&["branch", "--quiet", "-D", &branch]).unwrap();
        text
    };
    let found = [
        shown("stash-0", "half.txt"),
        shown("stash-1", "half.txt"),
        shown("feature/side", "side.txt"),
        shown(loose, "loose.txt"),
    ];
    assert_eq!(found, ["two", "one", "side", "loose"]);
}

#[test]
fn what_an_attempt_has_put_away_is_told_to_its_successor_and_to_people_and_comes_back() {
    let bench = bench();
    bench.run(&["run", "--yes"]).ends(0);
    let status = bench.run(&["status", "--json"]).ends(0).json("status");
    let (run, task) = (status["run"].as_str().unwrap(), &status["tasks"][0]);
    assert_eq!((&task["state"], &task["attempts"]), (&"done".into(), &2.into()), "{task:#}");
    let away = names(task);
    let [loose, rest @ ..] = &away[..] else { panic!("{task:#}") };
    assert_eq!(rest, ["feature/side", "stash@{0}", "stash@{1}"], "{task:#}");
    let id = loose.strip_prefix("detached-").unwrap();
    assert!(task["put_away"][0]["commit"].as_str().unwrap().starts_with(id), "{task:#}");

    // Whoever went on had no session, and was told by the note.
    let diff = bench.run(&["diff", "one", "--json"]).ends(0).json("diff");
    let patch = diff["patch"].as_str().unwrap();
    assert!(patch.contains("work that the files do not show") && patch.contains("+- feature/side"), "{patch}");
    assert!(patch.contains(&format!("+- {id} (a commit that was left on a detached HEAD)")), "{patch}");
    assert!(patch.contains("+- stash@{0}") && !patch.contains("behind") && !patch.contains("untouched"), "{patch}");
    assert_eq!(names(&diff), away);

    // People are told wherever they look.
    let command = task["put_away"][2]["get_back"].as_str().unwrap();
    bench
        .run(&["status"])
        .ends(0)
        .shows(&format!("its agent has put away work as `{loose}`, `feature/side`, `stash@{{0}}`, `stash@{{1}}`"));
    bench.run(&["status"]).ends(0).shows(command);
    bench.run(&["log", "one"]).ends(0).shows("put away as `stash@{0}`").shows(command);
    bench.run(&["diff", "one", "--stat"]).ends(0).shows("put away     stash@{0}").shows(command);
    let log = bench.run(&["log", "one", "--json"]).ends(0).stdout;
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert_eq!((&last["event"], names(&last["data"])), (&"put_away".into(), away.clone()), "{last:#}");
    come_back(&bench, task, run);

    // What is given up comes back in the same way.
    bench.run(&["discard", "one"]).ends(0).shows("what it had put away as `stash@{0}`").shows(command);
    let acted = bench.run(&["discard", "one", "--json"]).ends(0).json("act");
    assert_eq!(acted["tasks"][0]["state"], "discarded");
    come_back(&bench, &acted["tasks"][0], run);
}
