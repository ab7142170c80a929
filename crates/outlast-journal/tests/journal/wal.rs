//! SQLite's log cut off or changed at many places, as a power cut may leave it.

use std::fs;
use std::path::Path;

use outlast_journal::{Entry, Error, Journal};

use crate::support::{entry, read_all};

/// Batches of one to four entries, each acknowledged, and the files as they are while the writer lives.
struct Written {
    entries: Vec<Entry>,
    /// Entries in the journal after each batch, from none on.
    ends: Vec<usize>,
    main: Vec<u8>,
    log: Vec<u8>,
}

fn written() -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let journal = Journal::open(&path).unwrap();
    let (mut entries, mut ends) = (Vec::new(), vec![0]);
    for batch in 0..30 {
        let first = entries.len() as u64 + 1;
        let batch: Vec<Entry> = (first..=first + batch % 4).map(|revision| entry("run/a", revision)).collect();
        entries.extend(batch.clone());
        ends.push(entries.len());
        journal.append(batch).unwrap();
    }
    let log = fs::read(folder.path().join("journal.db-wal")).unwrap();
    Written { entries, ends, main: fs::read(path).unwrap(), log }
}

/// What a journal of these files holds, which must be a whole number of batches, and that it takes more.
fn opens_to(written: &Written, log: &[u8], what: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    fs::write(&path, &written.main).unwrap();
    fs::write(folder.path().join("journal.db-wal"), log).unwrap();
    let journal = Journal::open(&path).unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let found = read_all(&path).unwrap();
    assert!(written.ends.contains(&found.len()), "{what}: half a batch, {} entries", found.len());
    assert!(found == written.entries[..found.len()], "{what}: garbage");
    journal.append(vec![entry("run/b", 1)]).unwrap();
    drop(journal);
    assert_eq!(read_all(&path).unwrap().len(), found.len() + 1, "{what}");
    found.len()
}

#[test]
fn a_log_cut_anywhere_leaves_a_prefix_of_whole_batches() {
    let written = written();
    assert_eq!(opens_to(&written, &written.log, "whole"), written.entries.len());
    let (mut last, mut seen) = (0, Vec::new());
    for cut in (0..written.log.len()).step_by(written.log.len() / 100) {
        let found = opens_to(&written, &written.log[..cut], &format!("cut at {cut}"));
        assert!(found >= last, "cut at {cut}: a longer log holds less");
        last = found;
        seen.push(found);
    }
    seen.dedup();
    assert!(seen.len() > 20, "the cuts met {} different ends", seen.len());
}

#[test]
fn a_changed_byte_in_the_log_ends_it_there() {
    let written = written();
    for at in (0..written.log.len()).step_by(written.log.len() / 60) {
        let mut log = written.log.clone();
        log[at] ^= 0x10;
        opens_to(&written, &log, &format!("byte {at} changed"));
    }
}

#[test]
fn a_reader_reads_what_a_dead_writer_left_in_its_log() {
    let written = written();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    let log = folder.path().join("journal.db-wal");
    fs::write(&path, &written.main).unwrap();
    fs::write(&log, &written.log).unwrap();
    assert_eq!(read_all(&path).unwrap(), written.entries);
    assert!(fs::read(&path).unwrap() == written.main, "a reader changes nothing");
    assert!(fs::read(&log).unwrap() == written.log, "a reader changes nothing");
    assert_eq!(Journal::open(&path).unwrap().last_seq(), written.entries.len() as u64);
}

#[test]
fn a_reader_of_a_journal_at_rest_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.db");
    Journal::open(&path).unwrap().append(vec![entry("run/a", 1)]).unwrap();
    let before = (names(folder.path()), fs::read(&path).unwrap());
    assert_eq!(read_all(&path).unwrap(), [entry("run/a", 1)]);
    assert!(before.1 == fs::read(&path).unwrap());
    let left: Vec<String> = names(folder.path()).into_iter().filter(|name| !before.0.contains(name)).collect();
    assert!(left.iter().all(|name| name.ends_with("-wal") || name.ends_with("-shm")), "{left:?}");
    // What SQLite's reading may leave must not keep the next writer out.
    assert_eq!(Journal::open(&path).unwrap().last_seq(), 1);
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_journal_at_rest_is_read_where_nothing_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal #1?.db");
    Journal::open(&path).unwrap().append(vec![entry("run/a", 1)]).unwrap();
    let mut child = crate::support::command("wal::child_reads_a_read_only_folder", folder.path());
    assert!(crate::support::in_own_mounts(&mut child), "the journal could not be read on a read-only file system");
}

#[test]
#[ignore = "the child of a_journal_at_rest_is_read_where_nothing_can_be_written"]
fn child_reads_a_read_only_folder() {
    use nix::mount::{MsFlags, mount};
    let folder = crate::support::folder();
    let none = None::<&str>;
    mount(Some(&folder), &folder, none, MsFlags::MS_BIND, none).unwrap();
    let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
    mount(none, &folder, none, flags, none).unwrap();
    assert_eq!(read_all(&folder.join("journal #1?.db")).unwrap(), [entry("run/a", 1)]);
    assert!(matches!(Journal::open(folder.join("journal #1?.db")), Err(Error::Io { .. })));
}
