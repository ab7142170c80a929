//! The disk with the state fills up: it is said, nothing is lost, and with room again it goes on.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::Running;
use crate::world::{Plan, World};

/// Room for a run of a few small tasks, and quickly filled.
const SIZE_MIB: u32 = 24;

#[test]
fn e25_a_full_disk_is_told_and_resume_goes_on_when_there_is_room() {
    in_own_mounts("disk::on_a_small_disk");
}

#[test]
fn e25_on_a_disk_that_is_full_while_it_lands_nothing_is_half_written_and_everything_lands_once() {
    in_own_mounts("disk::landing_on_small_disks");
}

#[test]
fn e25_in_a_checkout_without_room_for_what_lands_nothing_is_written_until_there_is() {
    in_own_mounts("disk::landing_in_a_full_checkout");
}

#[test]
fn e25_a_check_that_finds_the_disk_full_refuses_no_landing() {
    in_own_mounts("disk::landing_with_a_check_that_fills_the_disk");
}

#[test]
fn e25_a_check_that_fills_the_disk_each_time_is_not_made_for_ever() {
    in_own_mounts("disk::landing_with_a_check_that_fills_the_disk_each_time");
}

/// Runs a test of this program where it may mount.
fn in_own_mounts(test: &str) {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this system allows no mounts of one's own (unshare --user --mount): {test}");
        return;
    }
    let mut child = unshare();
    child.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
}

fn mount_small(folder: &Path) {
    let size = format!("size={SIZE_MIB}m");
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::empty(), Some(&*size)).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_on_small_disks() {
    for (target, point) in [
        ("main", "after_candidate:1"),
        ("main", "before_move:1"),
        ("main", "after_move:1"),
        ("outlast/{run}", "before_move:2"),
        ("outlast/{run}", "after_move:2"),
    ] {
        full_while_it_lands(target, point);
    }
}

/// The engine is killed in the middle of a landing; state and checkout are full when the next one goes on with it.
fn full_while_it_lands(target: &str, point: &str) {
    let world = World::new();
    mount_small(world.env.outlast_home());
    move_to_small(&world);
    world.plan(&Plan::new(&format!("land = \"auto\"\ntarget = {target:?}")).part("one").part("two").part("three"));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, point);
    let ballasts = [world.env.outlast_home().join("ballast"), world.repo.dir().join(".git/ballast")];
    ballasts.iter().for_each(|ballast| drop(fill(ballast)));
    goes_on_when_there_is_room(&world, &ballasts, &base, &["one", "three", "two"]);
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
    umount2(world.repo.dir(), MntFlags::MNT_DETACH).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_in_a_full_checkout() {
    let world = World::new();
    move_to_small(&world);
    // Small as objects, which are written first, and large as a file, which git writes after the README.
    let script = "read README.md\nedit README.md \"# Parts\" \"# All parts\"\n\
                  run \"mkdir -p parts && yes 'part big' | head -c 2700000 > parts/big.txt\"";
    let plan = Plan::new("land = \"auto\"\ntarget = \"main\"");
    world.plan(&plan.task("big", script, "writes = [\"README.md\", \"parts/**\"]"));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, "before_move:1");
    let ballast = world.repo.dir().join(".git/ballast");
    let full = fill(&ballast);
    full.set_len(full.metadata().unwrap().len() - 300_000).unwrap();
    // An open file takes its room, whether or not it has a name.
    drop(full);
    goes_on_when_there_is_room(&world, &[ballast], &base, &["big"]);
    umount2(world.repo.dir(), MntFlags::MNT_DETACH).unwrap();
}

/// The engine is killed before it lands what it has checked; where a file `fill` lies, the check then fills the disk.
fn checked_on_a_small_disk(fills: &str) -> (World, String, PathBuf) {
    let world = World::new();
    mount_small(world.env.outlast_home());
    let fills = format!("test ! -e $TMPDIR/fill || {{ {fills}; exit 1; }}");
    let keys = format!("writes = [\"parts/**\"]\nverify = [\"sh check.sh\", \"{fills}\"]");
    world.plan(&Plan::new("land = \"auto\"").task("one", "write parts/one.txt \"part one\\n\"", &keys));
    let base = world.repo.commit_id("HEAD").unwrap();
    killed(&world, "after_candidate:1");
    let run = world.status()["run"].as_str().unwrap().to_owned();
    let temp = world.homes().remove(0).join("verify").join(run).join("temp");
    fs::write(temp.join("fill"), "").unwrap();
    (world, base, temp)
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_with_a_check_that_fills_the_disk() {
    let (world, base, temp) = checked_on_a_small_disk("rm $TMPDIR/fill; cat /dev/zero > $TMPDIR/ballast");
    goes_on_when_there_is_room(&world, &[temp.join("ballast")], &base, &["one"]);
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn landing_with_a_check_that_fills_the_disk_each_time() {
    // What it writes where it is checked goes before the next check, for which it leaves a little: there is room again.
    let (world, _, temp) = checked_on_a_small_disk("cat /dev/zero > ballast; truncate -s -300K ballast");
    world.run(&["resume"]).says("`outlast land` tries again: nothing was shown in 4 runs");
    world.all_are("done");
    fs::remove_file(temp.join("fill")).unwrap();
    world.run(&["land", "one"]).ends(0);
    world.all_are("landed");
    umount2(world.env.outlast_home(), MntFlags::MNT_DETACH).unwrap();
}

/// Moves the repository to a small disk of its own.
fn move_to_small(world: &World) {
    let (checkout, away) = (world.repo.dir(), world.env.root().join("away"));
    fs::rename(checkout, &away).unwrap();
    fs::create_dir(checkout).unwrap();
    mount_small(checkout);
    assert!(Command::new("cp").arg("-a").arg(away.join(".")).arg(checkout).status().unwrap().success());
}

fn killed(world: &World, point: &str) {
    let mut run = world.command(&["run", "--yes"]);
    run.env("OUTLAST_FAULT", point);
    let ran = Running::of(run).end();
    assert!(ran.was_killed(), "{point}:\n{}", ran.stderr);
}

/// The next engine says what it lacks, and touches nothing; with the ballasts gone everything lands, once.
fn goes_on_when_there_is_room(world: &World, ballasts: &[PathBuf], base: &str, tasks: &[&str]) {
    let mut resume = world.start(&["resume"]);
    resume.until(&["free some space"]);
    // Without the locks that it can do without, git looks and writes nothing.
    let status = || world.repo.text(&["--no-optional-locks", "status", "--porcelain"]).unwrap();
    assert_eq!(status(), "");
    ballasts.iter().for_each(|ballast| fs::remove_file(ballast).unwrap());
    // It either went on by itself, or left with the command that goes on.
    let ended = resume.end();
    if ended.code() != Some(0) {
        ended.ends(12).says("outlast resume");
        world.run(&["resume"]).ends(0);
    }
    world.all_are("landed");
    let mut landed = world.landed_on(&world.target(), base);
    landed.sort();
    assert_eq!(landed, tasks);
    assert_eq!(status(), "");
    assert_eq!(world.repo.text(&["fsck", "--strict", "--no-dangling"]).unwrap(), "");
    world.every_commit_passes(&world.target(), base);
    world.nothing_is_left();
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn on_a_small_disk() {
    // Every frame of the second turn takes a while: long enough to fill the disk before the agent is done.
    let slow = Rule {
        when: When { step: Some(2), ..When::default() },
        fault: Fault::Slow { per_frame_ms: 150 },
        times: Some(1),
    };
    let world = World::with_script(Script::default().with_fault(slow));
    mount_small(world.env.outlast_home());
    world.plan(&Plan::new("land = \"auto\"\nconcurrency = 2").part("one").part("two").part("three"));
    let base = world.repo.commit_id("HEAD").unwrap();

    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let ballast = world.env.outlast_home().join("ballast");
    drop(fill(&ballast));
    run.until(&["free some space"]);
    // What is on record can be read without a byte of room.
    assert_eq!(world.states().len(), 3);
    fs::remove_file(&ballast).unwrap();
    // It either went on by itself, or left with the command that goes on.
    let ended = run.end();
    if ended.code() != Some(0) {
        ended.ends(12).says("outlast resume");
        world.run(&["resume"]).ends(0);
    }
    world.all_are("landed");
    assert_eq!(world.landed_on(&world.target(), &base).len(), 3);
    world.nothing_is_left();
}

/// Writes until not a byte more goes in.
fn fill(path: &Path) -> File {
    let mut file = File::create(path).unwrap();
    for chunk in [1 << 20, 4096, 1] {
        while file.write(&vec![0; chunk]).is_ok_and(|written| written > 0) {}
    }
    file
}
