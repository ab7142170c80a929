//! Garbage collections of the user's that look at the refs before a landing, and drop what they found nameless after it.

use std::collections::BTreeSet;

use outlast_git::MoveOutcome;

use crate::fixture::{World, done, git, write};

/// What the marks of packs in the user's repository say that are kept from garbage collection.
pub(crate) fn kept(world: &World) -> String {
    let files = std::fs::read_dir(world.repo.join(".git/objects/pack")).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|file| file.extension().is_some_and(|e| e == "keep"))
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

/// What `git gc --prune=now` does when it has looked at the refs and comes to dropping only now.
struct LateGc {
    named: BTreeSet<String>,
}

impl LateGc {
    fn look(world: &World) -> Self {
        let objects = git(&world.repo, &["rev-list", "--objects", "--no-object-names", "--all", "--reflog"]);
        Self { named: objects.lines().map(str::to_owned).collect() }
    }

    /// How many objects it drops.
    fn end(&self, world: &World) -> usize {
        let mut dropped = 0;
        for fan_out in std::fs::read_dir(world.repo.join(".git/objects")).unwrap().map(|entry| entry.unwrap().path()) {
            let first = fan_out.file_name().unwrap().to_str().unwrap().to_owned();
            for object in std::fs::read_dir(&fan_out).unwrap().map(|entry| entry.unwrap().path()) {
                let id = format!("{first}{}", object.file_name().unwrap().to_str().unwrap());
                if first.len() == 2 && !self.named.contains(&id) {
                    std::fs::remove_file(object).unwrap();
                    dropped += 1;
                }
            }
        }
        dropped
    }
}

#[test]
fn a_garbage_collection_that_looked_before_a_landing_and_drops_after_it_takes_nothing_of_it() {
    let world = World::new();
    let end = done(&world, "t");
    let candidate = world.ready("t", &end, &world.base);
    write(&world.repo, "nobody's", "named by nothing");
    git(&world.repo, &["hash-object", "-w", "nobody's"]);
    let gc = LateGc::look(&world);
    let step = world.published("t", "landed", None, &candidate);
    assert_eq!(gc.end(&world), 1, "what nothing names");
    // Real ones that begin now, before anything names the landing, and while a person has to look.
    for _ in 0..2 {
        git(&world.repo, &["gc", "-q", "--prune=now"]);
        git(&world.repo, &["repack", "-a", "-d", "-q"]);
        git(&world.repo, &["prune", "--expire=now"]);
    }
    let gc = LateGc::look(&world);
    assert_eq!(kept(&world), "outlast landing run-1 t\n");
    assert_eq!(world.user.move_target(&world.store, &step).unwrap(), MoveOutcome::Moved);
    assert_eq!(gc.end(&world), 0);
    assert_eq!(kept(&world), "");
    git(&world.repo, &["fsck", "--strict", "--no-dangling"]);
    git(&world.repo, &["gc", "-q", "--prune=now"]);
    assert_eq!(git(&world.repo, &["show", "landed:new.rs"]), "// new");
}

#[test]
fn what_never_landed_is_left_to_garbage_collection_when_it_is_given_up() {
    let world = World::new();
    let end = done(&world, "t");
    let candidate = world.ready("t", &end, &world.base);
    world.published("t", "landed", None, &candidate);
    // Once more, as after a crash in between: it is the same pack.
    world.published("t", "landed", None, &candidate);
    world.user.let_go(&world.run, &"another".into()).unwrap();
    assert_eq!(kept(&world), "outlast landing run-1 t\n");
    world.user.let_go(&world.run, &"t".into()).unwrap();
    assert_eq!(kept(&world), "");
    git(&world.repo, &["gc", "-q", "--prune=now"]);
    assert!(!world.user.holds(&candidate.commit));
}
