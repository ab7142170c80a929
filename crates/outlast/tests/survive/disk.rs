//! The disk with the state fills up: it is said, nothing is lost, and with room again it goes on.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::world::{Plan, World};

/// Room for a run of a few small tasks, and quickly filled.
const SIZE_MIB: u32 = 24;

#[test]
fn e25_a_full_disk_is_told_and_resume_goes_on_when_there_is_room() {
    let probe = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this system allows no mounts of one's own (unshare --user --mount)");
        return;
    }
    let mut child = Command::new("unshare");
    child.args(["--user", "--map-root-user", "--mount", "--"]).arg(std::env::current_exe().unwrap());
    child.args(["--exact", "disk::on_a_small_disk", "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
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
    let size = format!("size={SIZE_MIB}m");
    mount(Some("tmpfs"), world.env.outlast_home(), Some("tmpfs"), MsFlags::empty(), Some(&*size)).unwrap();
    world.plan(&Plan::new("land = \"auto\"\nconcurrency = 2").part("one").part("two").part("three"));
    let base = world.repo.commit_id("HEAD").unwrap();

    let mut run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    let ballast = world.env.outlast_home().join("ballast");
    fill(&ballast);
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
fn fill(path: &std::path::Path) {
    let mut file = File::create(path).unwrap();
    for chunk in [1 << 20, 4096, 1] {
        while file.write(&vec![0; chunk]).is_ok_and(|written| written > 0) {}
    }
}
