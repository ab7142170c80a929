//! An agent plants programs where git would run them: none runs with more rights than the agent had.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::{Plan, World, text};

/// Hooks that git runs by itself in the commands that read a tree, check one out, commit or move a branch.
const HOOKS: [&str; 8] = [
    "post-checkout",
    "post-index-change",
    "pre-commit",
    "post-commit",
    "reference-transaction",
    "post-merge",
    "pre-merge-commit",
    "pre-auto-gc",
];

/// A shell script that plants canaries in the repository that the agent is in.
fn planting(canaries: &Path, name: &str) -> String {
    let canary = |what: &str| format!("touch {}/{name}-{what}", canaries.display());
    let mut script = String::from("set -e\nhere=$(pwd)\n");
    for hook in HOOKS {
        script.push_str("for dir in .git/hooks .husky; do\nmkdir -p $dir\n");
        script
            .push_str(&format!("printf '#!/bin/sh\\n{}\\n' > $dir/{hook}\nchmod +x $dir/{hook}\ndone\n", canary(hook)));
    }
    for (key, what) in [
        ("core.fsmonitor", "fsmonitor"),
        ("filter.planted.clean", "clean"),
        ("filter.planted.smudge", "smudge"),
        ("filter.planted.process", "process"),
        ("diff.external", "diff"),
        ("core.pager", "pager"),
        ("core.editor", "editor"),
        ("core.sshCommand", "ssh"),
        ("core.askPass", "askpass"),
        ("uploadpack.packObjectsHook", "pack"),
        ("core.alternateRefsCommand", "alternates"),
        ("gpg.program", "gpg"),
    ] {
        script.push_str(&format!("git config {key} '{}; cat'\n", canary(what)));
    }
    script.push_str("git config core.hooksPath \"$here/.husky\"\ngit config filter.planted.required false\n");
    script.push_str("git config commit.gpgSign true\n");
    script.push_str("echo '*.txt filter=planted diff=planted' > .gitattributes\n");
    script.push_str(&format!("mkdir -p parts\necho 'part {name}' > parts/{name}.txt\n"));
    script
}

fn step(script: &str) -> String {
    format!("write plant.sh <<END\n{script}END\nrun \"sh plant.sh; rm plant.sh\"")
}

#[test]
fn what_an_agent_plants_in_its_repository_runs_nowhere_else() {
    let world = World::new();
    let canaries = world.env.root().join("canaries");
    fs::create_dir(&canaries).unwrap();
    // The second one swaps its repository for one of its own making, reached through a file.
    let swapped = format!(
        "{}cp -r .git planted.git\nrm -rf .git\necho \"gitdir: $here/planted.git\" > .git\n",
        planting(&canaries, "swapped")
    );
    world.plan(
        &Plan::new("concurrency = 1")
            .task("planted", &step(&planting(&canaries, "planted")), "")
            .task(
                "swapped",
                &step(&swapped),
                "writes = [\"parts/**\", \".husky/**\", \".gitattributes\"]\nneeds = [\"planted\"]",
            )
            .part("after"),
    );
    let ran: [&[&str]; 7] = [
        &["run", "--yes"],
        &["diff", "--all"],
        &["status"],
        &["land", "planted", "after"],
        &["discard", "swapped"],
        &["clean", "--yes"],
        &["doctor", "--offline"],
    ];
    let mut workspace = PathBuf::new();
    for command in ran {
        world.run(command);
        let fired = fired(&canaries);
        assert!(fired.is_empty(), "{command:?} ran what was planted: {fired:?}");
        if command[0] == "run" {
            workspace = text(&world.task("planted")["workspace"]).into();
            let kept = world.env.root().join("kept");
            let copied = Command::new("cp").arg("-a").arg(&workspace).arg(&kept).status().unwrap();
            assert!(copied.success());
            workspace = kept;
        }
    }
    assert_eq!(world.task("planted")["state"], "landed", "{:#}", world.task("planted"));
    assert_eq!(world.task("swapped")["state"], "discarded");

    // The canaries were loaded: git itself, run there by hand, sets them off.
    world.env.command("git").arg("-C").arg(&workspace).args(["status", "--short"]).output().unwrap();
    assert!(!fired(&canaries).is_empty(), "a canary that cannot sing proves nothing");
}

fn fired(canaries: &Path) -> Vec<PathBuf> {
    fs::read_dir(canaries).unwrap().map(|entry| entry.unwrap().path()).collect()
}
