//! Turns failures of SQLite and of the file system into [`Error`]s whose remedy is known.
//!
//! A full disk must never look like damage, and damage must never look like a passing failure.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use rusqlite::ffi;

use crate::Error;

/// Bytes written to find out whether a file system is full; more than any single page or frame SQLite writes.
const PROBE_LEN: usize = 64 * 1024;

/// Classifies a failure of SQLite on the journal at `path`.
pub(crate) fn sqlite(path: &Path, action: &'static str, error: rusqlite::Error) -> Error {
    let path = path.to_owned();
    match &error {
        rusqlite::Error::SqliteFailure(code, _) => match code.code {
            ErrorCode::DiskFull => Error::NoSpace { path },
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Damaged { path, why: error.to_string() },
            ErrorCode::SystemIoFailure if unconfirmed(code.extended_code) => Error::Stopped {
                why: format!("the disk did not confirm a write ({error}); the last entries may or may not be there"),
                path,
            },
            ErrorCode::SystemIoFailure if is_full(&path) => Error::NoSpace { path },
            _ => Error::Sqlite { action, path, source: Arc::new(error) },
        },
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => Error::Damaged { path, why: error.to_string() },
        _ => Error::Sqlite { action, path, source: Arc::new(error) },
    }
}

/// Classifies a failure of the file system at `path`.
pub(crate) fn io(path: &Path, action: &'static str, error: io::Error) -> Error {
    let path = path.to_owned();
    if is_lack_of_space(&error) { Error::NoSpace { path } } else { Error::Io { action, path, source: Arc::new(error) } }
}

/// Classifies a failed fsync of `path`: after one, the kernel may have dropped the very pages that failed, so no later
/// success proves anything about them.
pub(crate) fn unconfirmed_sync(path: &Path, error: &io::Error) -> Error {
    Error::Stopped { path: path.to_owned(), why: format!("the disk did not confirm a write ({error})") }
}

/// A number as SQLite stores it.
///
/// # Errors
/// [`Error::TooLarge`] beyond 2^63 - 1.
pub(crate) fn integer(what: &'static str, value: u64) -> Result<i64, Error> {
    i64::try_from(value).map_err(|_| Error::TooLarge { what, value })
}

fn unconfirmed(extended: i32) -> bool {
    matches!(extended, ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)
}

fn is_lack_of_space(error: &io::Error) -> bool {
    // A file that may not become larger (`ulimit -f`) takes no more than one on a full disk does.
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Whether the file system of `path` has no room, or the file may not become larger: SQLite reports both as a bare I/O error
/// without its cause, so a file written beside the journal has to tell.
fn is_full(path: &Path) -> bool {
    let probe = beside(path, ".probe");
    let len = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len());
    let largest = len(path).max(len(&beside(path, "-wal")));
    let written = File::create(&probe).and_then(|mut file| {
        file.write_all(&[0x5a; PROBE_LEN])?;
        // As large as the journal would become; what lies between is a hole.
        file.write_all_at(&[0x5a; PROBE_LEN], largest)?;
        file.sync_all()
    });
    // A probe that cannot be removed tells nothing about space, and holds no data.
    drop(std::fs::remove_file(&probe));
    written.is_err_and(|error| is_lack_of_space(&error))
}

/// The path with `suffix` appended to its last component.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
