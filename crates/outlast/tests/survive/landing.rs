//! Landing where somebody works: on a branch that is checked out, dirty, in a second worktree, or moved meanwhile.

use std::fs;

use outlast_testkit::fixture::Repo;

use crate::running::Running;
use crate::user::Snapshot;
use crate::world::{Plan, World, text};

const README: &str = "# Parts\n\nAbout parts.\n";

/// A plan with one task that adds a part and one that changes the README, landing on `target`.
fn plan(target: &str, land: &str) -> Plan {
    let edit = "read README.md\nedit README.md \"About parts.\" \"About all parts.\"";
    Plan::new(&format!("target = \"{target}\"\nland = \"{land}\"\nconcurrency = 1")).part("new").task(
        "readme",
        edit,
        "writes = [\"README.md\"]",
    )
}

fn world(target: &str, land: &str) -> World {
    let world = World::new();
    world.repo.commit_file("README.md", README, "Say more").unwrap();
    world.plan(&plan(target, land));
    world
}

/// The command that a refused landing names.
#[track_caller]
fn named_command(world: &World, task: &str) -> String {
    let detail = text(&world.task(task)["detail"]);
    let (_, command) = detail.split_once("run: ").unwrap_or_else(|| panic!("it names no command: {detail}"));
    command.to_owned()
}

#[test]
fn e01_a_lock_that_somebody_holds_on_the_checkout_is_waited_for_and_not_removed() {
    for name in ["index.lock", "HEAD.lock"] {
        let world = world("main", "auto");
        let base = world.repo.commit_id("HEAD").unwrap();
        world.repo.write(format!(".git/{name}"), "").unwrap();
        let lock = world.repo.dir().join(".git").join(name);
        let mut run = world.start(&["run", "--yes"]);
        run.until(&["checked out and locked", name]);
        fs::remove_file(&lock).expect("it is not ours to remove");
        run.end().ends(0);
        world.all_are("landed");
        assert_eq!(world.landed_on("main", &base), ["new", "readme"]);
        assert_eq!(world.repo.text(&["status", "--porcelain"]).unwrap(), "");
    }
}

#[test]
fn a_dirty_checkout_of_the_target_keeps_everything_and_is_told_the_command() {
    let world = world("main", "auto");
    world.repo.write("README.md", "# Mine\n\nAbout parts.\n").unwrap();
    world.repo.write("staged.txt", "staged\n").unwrap();
    world.repo.git(&["add", "staged.txt"]).unwrap();
    let readme = || fs::read_to_string(world.repo.dir().join("README.md")).unwrap();
    let base = world.repo.commit_id("HEAD").unwrap();
    world.run(&["run", "--yes"]).ends(8).says("git -C");

    // What does not touch the dirty file has landed, and git has left the rest of the checkout alone.
    assert_eq!(world.task("new")["state"], "landed");
    assert_eq!(world.landed_on("main", &base), ["new"]);
    assert_eq!(readme(), "# Mine\n\nAbout parts.\n");
    assert_eq!(world.repo.text(&["diff", "--cached", "--name-only"]).unwrap(), "staged.txt");
    let task = world.task("readme");
    assert_eq!((&task["state"], &task["cause"]), (&"done".into(), &"target_checked_out".into()), "{task:#}");

    // Trying again changes nothing but says it again.
    let user = Snapshot::of(&world.repo, None);
    world.run(&["land", "readme"]).ends(8).says("git -C");
    user.is_untouched("a second refusal");

    let command = named_command(&world, "readme");
    let land = format!(" && outlast land --run {} readme", text(&world.status()["run"]));
    let command = command.strip_suffix(&land).unwrap_or_else(|| panic!("{command}"));
    let done = world.env.command("sh").args(["-c", command]).output().unwrap();
    assert!(done.status.success(), "{command}: {done:?}");
    world.run(&["land", "readme"]).ends(0);
    assert_eq!(readme(), "# Parts\n\nAbout all parts.\n");
    assert_eq!(world.landed_on("main", &base), ["new", "readme"]);
    world.repo.git(&["stash", "pop", "--quiet"]).unwrap();
    assert_eq!(readme(), "# Mine\n\nAbout all parts.\n");

    // It is on the target, and lands no second time.
    world.run(&["land", "--all"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.landed_on("main", &base), ["new", "readme"]);
    assert_eq!(world.status()["state"], "done", "the run is told by what it is now");
}

#[test]
fn a_file_that_is_in_the_way_of_a_landing_is_named_whole() {
    let world = world("main", "auto");
    world.repo.write("parts/new.txt", "mine\n").unwrap();
    world.repo.write("README.md", "# Mine\n\nAbout parts.\n").unwrap();
    world.run(&["run", "--yes"]).ends(8);
    let detail = |task: &str| text(&world.task(task)["detail"]);
    let told = "untracked working tree files would be overwritten by merge: `parts/new.txt`); run: git -C";
    assert!(detail("new").contains(told), "{}", detail("new"));
    let told = "local changes to the following files would be overwritten by merge: `README.md`); run: git -C";
    assert!(detail("readme").contains(told), "{}", detail("readme"));
    world.run(&["land", "new"]).ends(8).says("`parts/new.txt`").says("run: git -C");
    assert_eq!(fs::read_to_string(world.repo.dir().join("parts/new.txt")).unwrap(), "mine\n");
}

#[test]
fn killed_while_it_lands_in_a_checkout_everything_lands_once_and_the_checkout_is_clean() {
    for fault in ["before_move:1", "after_move:1", "after_move:2"] {
        let world = world("main", "auto");
        let base = world.repo.commit_id("HEAD").unwrap();
        let mut run = world.command(&["run", "--yes"]);
        run.env("OUTLAST_FAULT", fault);
        assert!(Running::of(run).end().was_killed(), "{fault}");
        // A kill a moment earlier leaves this behind: git has moved the target, and what landed is kept yet.
        let packs = world.repo.dir().join(".git/objects/pack");
        let status = world.status();
        fs::create_dir_all(&packs).unwrap();
        for task in ["new", "readme"] {
            let mark = format!("outlast landing {} {task}\n", status["run"].as_str().unwrap());
            fs::write(packs.join(format!("pack-{task}.keep")), mark).unwrap();
        }
        world.run(&["resume"]).ends(0);
        world.all_are("landed");
        let left = fs::read_dir(&packs).unwrap().map(|file| file.unwrap().path());
        let kept: Vec<_> = left.filter(|file| file.extension().is_some_and(|extension| extension == "keep")).collect();
        assert!(fault.starts_with("after_move:2") || kept.is_empty(), "{fault}: {kept:?}");
        let mut landed = world.landed_on("main", &base);
        landed.sort();
        assert_eq!(landed, ["new", "readme"], "{fault}");
        assert_eq!(world.repo.text(&["status", "--porcelain"]).unwrap(), "", "{fault}");
        assert!(world.repo.dir().join("parts/new.txt").is_file(), "{fault}");
        world.nothing_is_left();
    }
}

#[test]
fn the_next_commit_of_everything_reverts_nothing_that_landed() {
    let world = world("main", "auto");
    world.repo.write("check.sh", format!("{}# mine\n", crate::world::CHECK)).unwrap();
    world.run(&["run", "--yes"]).ends(0);
    let landed = world.repo.commit_id("HEAD").unwrap();
    world.repo.git(&["commit", "--quiet", "-a", "-m", "Mine"]).unwrap();
    assert_eq!(world.repo.text(&["diff", "--name-only", &landed, "HEAD"]).unwrap(), "check.sh");
    assert_eq!(world.repo.text(&["status", "--porcelain"]).unwrap(), "");
}

#[test]
fn after_committing_what_was_in_the_way_the_rest_lands_on_top() {
    let world = world("main", "auto");
    let base = world.repo.commit_id("HEAD").unwrap();
    world.repo.write("README.md", "# Mine\n\nAbout parts.\n").unwrap();
    world.run(&["run", "--yes"]).ends(8);
    world.repo.git(&["commit", "--quiet", "-a", "-m", "Mine"]).unwrap();
    world.run(&["land", "readme"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.landed_on("main", &base), ["new", "readme"]);
    assert_eq!(fs::read_to_string(world.repo.dir().join("README.md")).unwrap(), "# Mine\n\nAbout all parts.\n");
    assert_eq!(world.repo.text(&["status", "--porcelain"]).unwrap(), "");
}

#[test]
fn a_target_in_a_second_worktree_lands_there_or_not_at_all() {
    let world = world("topic", "review");
    let second = world.env.root().join("second");
    world.repo.git(&["worktree", "add", "--quiet", "-b", "topic", &second.display().to_string()]).unwrap();
    let there = Repo::at(&second);
    let base = world.repo.commit_id("HEAD").unwrap();
    there.write("README.md", "# Mine\n\nAbout parts.\n").unwrap();
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("done");

    let (here, in_second) = (Snapshot::of(&world.repo, Some("topic")), Snapshot::of(&there, None));
    world.run(&["land", "readme"]).ends(8).says("second");
    here.is_untouched("the main checkout");
    in_second.is_untouched("the second checkout");
    assert_eq!(world.task("readme")["cause"], "target_checked_out");

    there.git(&["checkout", "--quiet", "README.md"]).unwrap();
    world.run(&["land", "--all"]).ends(0);
    assert_eq!(world.landed_on("topic", &base).len(), 2);
    assert!(second.join("parts/new.txt").is_file(), "the files are where the branch is checked out");
    assert_eq!(there.text(&["status", "--porcelain"]).unwrap(), "");
    assert!(!world.repo.dir().join("parts").exists());
    assert_eq!(world.repo.commit_id("HEAD").unwrap(), base);
}

#[test]
fn after_a_person_moved_the_target_it_lands_on_top_or_conflicts() {
    let world = world("release", "review");
    world.repo.git(&["branch", "release"]).unwrap();
    world.run(&["run", "--yes"]).ends(0);
    world.repo.git(&["checkout", "--quiet", "release"]).unwrap();
    let person = world.repo.commit_file("README.md", "# Parts\n\nAbout no parts.\n", "Another wording").unwrap();
    world.repo.git(&["checkout", "--quiet", "main"]).unwrap();

    world.run(&["land", "--all"]).ends(8);
    assert_eq!(world.landed_on("release", &person), ["new"], "on top of what the person did");
    let task = world.task("readme");
    assert_eq!((&task["state"], &task["cause"]), (&"done".into(), &"conflict".into()), "{task:#}");
    assert_eq!(world.repo.text(&["show", "release:README.md"]).unwrap(), "# Parts\n\nAbout no parts.");

    // The person makes room, and what was verified before lands.
    world.repo.git(&["checkout", "--quiet", "release"]).unwrap();
    world.repo.commit_file("README.md", README, "As it was").unwrap();
    world.repo.git(&["checkout", "--quiet", "main"]).unwrap();
    world.run(&["land", "readme"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.repo.text(&["show", "release:README.md"]).unwrap(), "# Parts\n\nAbout all parts.");
}
