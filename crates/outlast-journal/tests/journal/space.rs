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
    let path = folder.join("journal.db");
    resize(&folder, 12, MsFlags::empty());
    let journal = Journal::open(&path).unwrap();
    let (ledger, _) = Ledger::open(&journal).unwrap();
    let mut written = Vec::new();
    for round in 1..=3 {
        assert!(!journal.is_short_of_space());
        // An exchange that begins while there is room, and meets the end of it.
        let mut spool = ledger.begin(&opening(&format!("x{round}"), 1), b"?").unwrap();
        spool.answer(&head()).unwrap();
        spool.write(b"begun ").unwrap();
        fill_with_ballast(&folder.join("ballast"));
        let full = (0..50).filter_map(|_| spool.write(&[7; 4_000]).err()).last();
        assert!(matches!(full, Some(Error::NoSpace { .. })), "{full:?}");
        assert!(matches!(ledger.begin(&opening("never", 1), &[7; 100_000]), Err(Error::NoSpace { .. })));
        let refused = spool.finish(closing(Outcome::Complete)).wait();
        // Later rounds may find room in a log that has grown already.
        let has_room = round > 1 && refused.is_ok();
        assert!(has_room || matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
        assert!(!journal.is_short_of_space(), "the reserve is not for exchanges");
        let in_reserve = fill(&journal, &mut written);
        assert!(in_reserve > 20, "{in_reserve} appends with the disk full");
        assert!(journal.is_short_of_space());
        assert!(matches!(journal.restore_reserve(), Err(Error::NoSpace { .. })));
        assert_eq!(read_all(&path).unwrap(), written, "what was refused is not there, what was acknowledged is");
        fs::remove_file(folder.join("ballast")).unwrap();
        resize(&folder, 12 + 12 * round, MsFlags::MS_REMOUNT);
        journal.restore_reserve().unwrap();
        // The next success of the ledger brings in the one that was refused.
        for next in ["y", "z"] {
            let next = ledger.begin(&opening(&format!("{next}{round}"), 1), b"?").unwrap();
            next.finish(closing(Outcome::Complete)).wait().unwrap();
        }
        let row = journal.reader().unwrap().exchange(&format!("x{round}")).unwrap().unwrap();
        assert_eq!((row.usage.output, row.response_bytes, row.response_hash), (Some(56), 200_006, None));
    }
    drop((ledger, journal));
    let journal = Journal::open(&path).unwrap();
    assert_eq!(journal.last_seq(), written.len() as u64);
    assert_eq!(read_all(&path).unwrap(), written);
}

/// Gives the file system at `folder` that many MiB.
fn resize(folder: &Path, mib: u32, flags: MsFlags) {
    mount(Some("tmpfs"), folder, Some("tmpfs"), flags, Some(&*format!("size={mib}m"))).unwrap();
}

/// Appends until even the reserve is spent; returns how many appends succeeded once it was in use.
fn fill(journal: &Journal, written: &mut Vec<Entry>) -> u32 {
    let mut in_reserve = 0;
    loop {
        let first = written.len() as u64 + 1;
        let batch: Vec<Entry> = (first..first + 5).map(|revision| entry("run/a", revision)).collect();
        match journal.append(batch.clone()) {
            Ok(_) => written.extend(batch),
            Err(Error::NoSpace { .. }) => return in_reserve,
            Err(error) => panic!("{error:?}"),
        }
        in_reserve += u32::from(journal.is_short_of_space());
    }
}

/// Fills the disk to its last page.
fn fill_with_ballast(path: &Path) {
    let mut ballast = fs::File::create(path).unwrap();
    while ballast.write_all(&[0; 4096]).is_ok() {}
}
