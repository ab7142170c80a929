//! One record as the journal stores it: a place in a stream and an opaque body.

use std::path::Path;

use outlast_core::Timestamp;
use outlast_core::hash::fnv1a;
use rusqlite::{Connection, Row, params};

use crate::writer::{Failed, is_taken};
use crate::{Error, fault};

/// One record of a stream; the journal never looks into its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The stream it belongs to, such as `run/migrate-7f3a`.
    pub stream: String,
    /// Its place in the stream; no two entries of a stream share one.
    pub revision: u64,
    /// When the fact happened, as its author says.
    pub at: Timestamp,
    /// The version of the body's format.
    pub version: u16,
    /// JSON, expected to be under 300 bytes.
    pub body: String,
}

impl Entry {
    /// A checksum over every field, stored beside them: SQLite's pages carry none, so this is what finds a changed bit.
    ///
    /// `scratch` is working memory that callers keep between calls.
    pub(crate) fn sum(&self, scratch: &mut Vec<u8>) -> i64 {
        scratch.clear();
        scratch.extend_from_slice(&(self.stream.len() as u64).to_le_bytes());
        scratch.extend_from_slice(self.stream.as_bytes());
        scratch.extend_from_slice(&self.revision.to_le_bytes());
        scratch.extend_from_slice(&self.at.as_millis().to_le_bytes());
        scratch.extend_from_slice(&self.version.to_le_bytes());
        scratch.extend_from_slice(self.body.as_bytes());
        fnv1a(scratch).cast_signed()
    }
}

/// Inserts `entries` into the transaction that is open on `connection`, after the entry `last`, which moves along.
pub(crate) fn insert(
    connection: &Connection,
    path: &Path,
    last: &mut u64,
    scratch: &mut Vec<u8>,
    entries: &[Entry],
) -> Result<(), Failed> {
    let failed = |error| Failed::Group(fault::sqlite(path, "append", error));
    let mut insert = connection
        .prepare_cached(
            "INSERT INTO record (seq, stream, revision, at, version, body, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )
        .map_err(failed)?;
    for entry in entries {
        let seq = *last + 1;
        let values = params![
            fault::integer("sequence number", seq)?,
            entry.stream,
            fault::integer("revision", entry.revision).map_err(Failed::Refused)?,
            entry.at.as_millis(),
            entry.version,
            entry.body,
            entry.sum(scratch),
        ];
        match insert.execute(values) {
            Ok(_) => *last = seq,
            Err(error) if is_taken(&error) => {
                let (stream, revision) = (entry.stream.clone(), entry.revision);
                return Err(Failed::Refused(Error::Revision { stream, revision }));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// The columns [`read`] takes.
pub(crate) const COLUMNS: &str = "seq, stream, revision, at, version, body, sum";

/// Reads a row of [`COLUMNS`]: its sequence number, the entry and the stored checksum.
pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<(u64, Entry, i64)> {
    let entry = Entry {
        stream: row.get(1)?,
        revision: row.get(2)?,
        at: Timestamp::from_millis(row.get(3)?),
        version: row.get(4)?,
        body: row.get(5)?,
    };
    Ok((row.get(0)?, entry, row.get(6)?))
}

/// The last sequence number, once the index over the entries agrees that none after it is lost: a page may have lost
/// its last entries without looking broken, and new ones must not take their numbers.
pub(crate) fn last(connection: &Connection, path: &Path) -> Result<u64, Error> {
    let number = |query| {
        connection
            .query_row(query, [], |row| row.get::<_, u64>(0))
            .map_err(|error| fault::sqlite(path, "find the last entry", error))
    };
    let last = number("SELECT coalesce(max(seq), 0) FROM record")?;
    let indexed = number("SELECT count(*) FROM record INDEXED BY sqlite_autoindex_record_1")?;
    if last == indexed {
        return Ok(last);
    }
    let why = format!("its last entry is {last}, but its index knows {indexed}");
    Err(Error::Damaged { path: path.to_owned(), why })
}
