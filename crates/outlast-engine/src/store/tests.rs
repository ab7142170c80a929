//! A full disk, for real: a small file system of the child's own.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

use nix::mount::{MsFlags, mount};
use outlast_core::{RunId, Timestamp};

use super::*;

#[test]
fn e25_the_reserve_is_for_the_end_of_things_and_is_set_aside_again_when_there_is_room() {
    let unshare = || {
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "--"]);
        unshare
    };
    if !unshare().arg("true").status().is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("OUTLAST_OWN_MOUNTS").is_none(), "`unshare --user --mount` does not work here");
        eprintln!("SKIPPED: this system allows no mounts of one's own (unshare --user --mount)");
        return;
    }
    let mut child = unshare();
    child.arg(std::env::current_exe().unwrap());
    child.args(["--exact", "store::tests::on_a_small_disk", "--ignored", "--nocapture"]);
    assert!(child.status().unwrap().success());
}

#[test]
#[ignore = "its parent runs it where it may mount"]
fn on_a_small_disk() {
    let folder = tempfile::tempdir().unwrap();
    mount(Some("tmpfs"), folder.path(), Some("tmpfs"), MsFlags::empty(), Some("size=6m")).unwrap();
    let journal = Journal::open(folder.path().join("journal.db")).unwrap();
    let mut store = JournalStore::new(journal, folder.path().join("journal.db"), broadcast::channel(8).0);
    assert!(store.has_room());
    let ballast = folder.path().join("ballast");
    let mut file = File::create(&ballast).unwrap();
    while file.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    // An open file takes its room, whether or not it has a name.
    drop(file);
    let record = |fact| Record { at: Timestamp::EPOCH, stream: Stream::Run(RunId::new("r")), fact };
    let mut revision = 0;
    while !store.journal.is_short_of_space() {
        revision += 1;
        store.append(&[(revision, record(Fact::RunPaused))]).unwrap();
    }
    assert!(!store.has_room(), "the disk is still full");
    store.append(&[(revision + 1, record(Fact::RunResumed))]).unwrap();
    fs::remove_file(&ballast).unwrap();
    assert!(store.has_room());
    assert!(!store.journal.is_short_of_space(), "the reserve is whole again");
}
