//! A full disk, for real: a small file system of the child's own.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use nix::mount::{MsFlags, mount};
use outlast_journal::{Entry, Error, Journal, Ledger, Outcome};

use crate::support::{self, closing, entry, head, opening, read_all};

#[test]
fn e25_a_full_disk_is_said_to_be_one_and_the_journal_goes_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = support::command("space::child_fills_the_disk", folder.path());
    assert!(support::in_own_mounts(&mut child), "the child failed");
}

#[test]
#[ignore = "the child of e25_a_full_disk_is_said_to_be_one_and_the_journal_goes_on_afterwards"]
fn child_fills_the_disk() {
    let folder = support::folder();
    mount(Some("tmpfs"), &folder, Some("tmpfs"), MsFlags::empty(), Some("size=3m")).unwrap();
    let path = folder.join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let mut written = Vec::new();
    fill(&journal, &mut written);
    assert_eq!(read_all(&path).unwrap(), written, "what was refused is not there, what was acknowledged is");
    assert!(matches!(ledger.begin(&opening("x0", 1), &[7; 100_000]), Err(Error::NoSpace { .. })));
    for round in 1..=3 {
        let room = make_room(&journal, &folder, &mut written);
        // An exchange that begins while there is room, and meets the end of it.
        let mut spool = ledger.begin(&opening(&format!("x{round}"), 1), b"?").unwrap();
        spool.answer(&head()).unwrap();
        spool.write(b"begun ").unwrap();
        fill_with_ballast(&room);
        let mut full = None;
        for _ in 0..50 {
            full = spool.write(&[7; 4_000]).err().or(full);
        }
        assert!(matches!(full, Some(Error::NoSpace { .. })), "{full:?}");
        let refused = spool.finish(closing(Outcome::Complete)).wait();
        assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
        fill(&journal, &mut written);
        fs::remove_file(&room).unwrap();
        // The next success of the ledger brings in the one that was refused.
        let next = ledger.begin(&opening(&format!("y{round}"), 1), b"?").unwrap();
        next.finish(closing(Outcome::Complete)).wait().unwrap();
        let last = ledger.begin(&opening(&format!("z{round}"), 1), b"?").unwrap();
        last.finish(closing(Outcome::Complete)).wait().unwrap();
        let row = journal.reader().unwrap().exchange(&format!("x{round}")).unwrap().unwrap();
        assert_eq!((row.usage.output, row.response_bytes, row.response_hash), (Some(56), 200_006, None));
    }
    drop((ledger, journal));
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.last_seq(), written.len() as u64);
    assert_eq!(read_all(&path).unwrap(), written);
}

/// Appends until the disk is full.
fn fill(journal: &Journal, written: &mut Vec<Entry>) {
    loop {
        let first = written.len() as u64 + 1;
        let batch: Vec<Entry> = (first..first + 50).map(|revision| entry("run/a", revision)).collect();
        match journal.append(batch.clone()) {
            Ok(_) => written.extend(batch),
            Err(Error::NoSpace { .. }) => return,
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// Appends one more entry once there is room, and returns the ballast that fills what is left but a little.
fn make_room(journal: &Journal, folder: &Path, written: &mut Vec<Entry>) -> std::path::PathBuf {
    // More room than the file system had: this stands for whatever else filled the disk and was removed.
    mount(Some("tmpfs"), folder, Some("tmpfs"), MsFlags::MS_REMOUNT, Some("size=12m")).unwrap();
    let next = entry("run/a", written.len() as u64 + 1);
    journal.append(vec![next.clone()]).unwrap();
    written.push(next);
    folder.join("ballast")
}

/// Fills the disk to its last page.
fn fill_with_ballast(path: &Path) {
    let mut ballast = fs::File::create(path).unwrap();
    while ballast.write_all(&[0; 4096]).is_ok() {}
}
