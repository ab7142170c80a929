//! Opens SQLite the two ways the journal needs it: one writer, any number of readers.
//!
//! A reader never changes the database file, and never opens anything that was not recognised first.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{Error, fault, schema};

/// How long to wait for another process that recovers or checkpoints the write-ahead log.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements kept prepared per connection; more than the crate has.
const STATEMENTS: usize = 32;

/// Opens the journal at `path` for writing; the caller holds the lock and has called [`schema::recognise`].
pub(crate) fn open_writer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| fault::sqlite(path, "open", error))?;
    prepare(&connection, path)?;
    schema::check_version(&connection, path)?;
    let failed = |error| fault::sqlite(path, "set up the connection", error);
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        let why = format!("the file system offers no write-ahead log (SQLite chose {mode:?})");
        return Err(Error::Stopped { path: path.to_owned(), why });
    }
    connection
        .execute_batch(
            // The writer goes back to few of its pages: half a megabyte of them is enough, and SQLite would keep two.
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -512;",
        )
        .map_err(failed)?;
    // Without a limit the log keeps for ever the size of the longest moment in which a reader held it open.
    connection.query_row("PRAGMA journal_size_limit = 67108864", [], |_| Ok(())).map_err(failed)?;
    Ok(connection)
}

/// Opens the journal at `path` for reading, beside a living writer or without one.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, Error> {
    schema::recognise(path)?;
    match open_shared(path) {
        // In a folder where SQLite may not make its shared-memory file it can only read a database at rest.
        Err(Error::Sqlite { source, .. }) if cannot_open(&source) && at_rest(path)? => open_at_rest(path),
        opened => opened,
    }
}

fn open_shared(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|error| fault::sqlite(path, "open", error))?;
    prepare(&connection, path)?;
    schema::check_version(&connection, path)?;
    Ok(connection)
}

fn open_at_rest(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(uri, "%{byte:02x}").unwrap_or_default();
        }
    }
    uri.push_str("?immutable=1");
    let connection = Connection::open_with_flags(uri, flags).map_err(|error| fault::sqlite(path, "open", error))?;
    prepare(&connection, path)?;
    schema::check_version(&connection, path)?;
    Ok(connection)
}

fn prepare(connection: &Connection, path: &Path) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| fault::sqlite(path, "set up the connection", error))
}

fn cannot_open(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
}

/// Whether everything the journal holds is in its main file.
fn at_rest(path: &Path) -> Result<bool, Error> {
    let wal = fault::beside(path, "-wal");
    match wal.metadata() {
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(fault::io(&wal, "look at", error)),
    }
}
