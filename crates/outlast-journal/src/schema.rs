//! The tables, how a new journal comes into being, and how a file is recognised as one.
//!
//! A journal appears at its path whole or not at all, and a file that is not ours is never written to.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::{Error, fault};

/// The schema this release writes, kept in SQLite's `user_version`.
pub(crate) const VERSION: u32 = 1;

/// SQLite's `application_id` of our files: `OLJ1`.
const APPLICATION_ID: u32 = 0x4f4c_4a31;

const TABLES: &str = "
CREATE TABLE record (
    seq INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    sum INTEGER NOT NULL,
    UNIQUE (stream, revision)
) STRICT;
CREATE TABLE snapshot (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE pack (
    pack INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;
CREATE TABLE body (
    sha256 BLOB PRIMARY KEY,
    pack INTEGER NOT NULL REFERENCES pack (pack) DEFERRABLE INITIALLY DEFERRED,
    offset INTEGER NOT NULL,
    packed_bytes INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE exchange (
    exchange TEXT NOT NULL PRIMARY KEY,
    run TEXT,
    task TEXT,
    attempt INTEGER,
    turn INTEGER NOT NULL,
    dialect TEXT NOT NULL,
    model TEXT,
    account TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    first_byte_at INTEGER,
    ended_at INTEGER,
    status INTEGER,
    outcome TEXT NOT NULL,
    request_hash BLOB REFERENCES body (sha256),
    response_hash BLOB REFERENCES body (sha256),
    request_bytes INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL,
    input INTEGER,
    cache_write_5m INTEGER,
    cache_write_1h INTEGER,
    cache_read INTEGER,
    output INTEGER,
    reasoning INTEGER,
    usd_nanos INTEGER,
    estimated INTEGER NOT NULL,
    headers TEXT NOT NULL
) STRICT;
CREATE INDEX exchange_of_task ON exchange (run, task, attempt, turn);
";

/// Creates the journal at `path` when there is none.
///
/// It is built under another name and renamed, so that a crash leaves no half of it. The caller holds the lock.
///
/// # Errors
/// [`Error::Damaged`] when the file is gone but the write-ahead log beside it is not: SQLite would play that log into
/// the new file.
pub(crate) fn create_if_missing(path: &Path) -> Result<(), Error> {
    if exists(path)? {
        return Ok(());
    }
    if exists(&fault::beside(path, "-wal"))? {
        let why = "the file is gone but its write-ahead log is there".to_owned();
        return Err(Error::Damaged { path: path.to_owned(), why });
    }
    let new = fault::beside(path, ".new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(fault::io(&new, "remove", error));
        }
        _ => {}
    }
    build(&new).map_err(|error| fault::sqlite(&new, "create the tables", error))?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(|error| fault::io(&new, "sync", error))?;
    fs::rename(&new, path).map_err(|error| fault::io(path, "move into place", error))?;
    sync_folder_of(path)
}

fn build(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()?;
    connection.close().map_err(|(_, error)| error)
}

/// Checks, by its first bytes and without SQLite, that the file at `path` is a journal of ours.
///
/// # Errors
/// [`Error::Missing`], [`Error::Damaged`], or the failure to read it.
pub(crate) fn recognise(path: &Path) -> Result<(), Error> {
    // SQLite's file format: the first 16 bytes are a fixed text, the application id is at 68 (sqlite.org/fileformat).
    let mut header = [0; 72];
    let damaged = |why: &str| Error::Damaged { path: path.to_owned(), why: why.to_owned() };
    let mut file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
        _ => fault::io(path, "open", error),
    })?;
    file.read_exact(&mut header).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => damaged("it is too short to be a database"),
        _ => fault::io(path, "read", error),
    })?;
    let (magic, rest) = header.split_at(16);
    if magic != b"SQLite format 3\0" {
        return Err(damaged("it is not an SQLite database"));
    }
    if rest.last_chunk() != Some(&APPLICATION_ID.to_be_bytes()) {
        return Err(damaged("it is an SQLite database of another program"));
    }
    Ok(())
}

/// Checks that this release can read what `connection` has open.
///
/// # Errors
/// [`Error::Newer`] for a later schema, [`Error::Damaged`] for one that never was.
pub(crate) fn check_version(connection: &Connection, path: &Path) -> Result<(), Error> {
    let found: u32 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(|error| fault::sqlite(path, "read the schema version", error))?;
    match found {
        VERSION => Ok(()),
        0 => Err(Error::Damaged { path: path.to_owned(), why: "it has no schema version".to_owned() }),
        _ => Err(Error::Newer { path: path.to_owned(), found, known: VERSION }),
    }
}

/// Makes the folder entry of `path` durable.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    File::open(folder).and_then(|file| file.sync_all()).map_err(|error| fault::io(folder, "sync", error))
}

/// The folder that holds `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(|error| fault::io(path, "look for", error))
}
