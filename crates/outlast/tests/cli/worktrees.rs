//! A worktree that an agent makes inside of its workspace is a second copy of the project: it is kept, and does not land.

use serde_json::Value;

use crate::bench::Bench;

/// Two agents that work in a worktree: one merges what it has done there, the other has it nowhere else.
const AGENT: &str = r#"
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.invalid GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.invalid
git worktree add -q -b side deep/tree && cd deep/tree && echo x > $OUTLAST_TASK.txt && git add . && git commit -q -m done
case $OUTLAST_TASK in merged) echo y > scratch.txt; cd ../.. && git merge -q side;; esac
"#;

fn task(bench: &Bench, at: usize) -> Value {
    bench.run(&["status", "--json"]).ends(0).json("status")["tasks"][at].clone()
}

#[test]
fn e27_a_worktree_in_a_workspace_does_not_land_and_is_told() {
    let bench = Bench::new();
    let tasks = "[[task]]\nid = \"merged\"\ngoal = \"g\"\n[[task]]\nid = \"apart\"\ngoal = \"h\"\n";
    bench.plan(&format!(
        "[run]\nland = \"auto\"\ntarget = \"landed\"\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{AGENT}''']\n\
         [defaults]\nretries = 0\n{tasks}"
    ));
    let left_out = "left out of what lands, being in a worktree that the agent made in its workspace: `deep/tree`";
    bench.run(&["run", "--yes"]).ends(5).says(left_out);
    assert_eq!(task(&bench, 0)["state"], "landed");
    assert_eq!(bench.repo.text(&["ls-tree", "-r", "--name-only", "landed"]).unwrap(), "README.md\nmerged.txt");
    let told = bench.run(&["diff", "merged", "--stat"]).ends(0);
    told.shows("deep/tree/scratch.txt  +1 -0  in a worktree of its agent's own: does not land");
    let diff = bench.run(&["diff", "merged", "--json"]).ends(0).json("diff");
    let of = |path: &str| diff["files"].as_array().unwrap().iter().find(|file| file["path"] == path).unwrap().clone();
    assert_eq!(
        (&of("deep/tree/scratch.txt")["in_worktree"], &of("merged.txt")["in_worktree"]),
        (&true.into(), &Value::Null)
    );

    // Whoever has it there alone has not done it yet, and is told why; the branch is told as well.
    let apart = task(&bench, 1);
    assert_eq!((&apart["state"], &apart["cause"]), (&"failed".into(), &"scope".into()), "{apart:#}");
    let detail = apart["detail"].as_str().unwrap();
    let why = "its work has to be in the workspace's own files, and is in a worktree that it made: `deep/tree`";
    assert!(detail.contains(why), "{detail}");
    assert_eq!(apart["put_away"][0]["name"], "side", "{apart:#}");
}
