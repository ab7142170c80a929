//! Snapshots: the state after a record, so that a start need not replay everything before it.
//!
//! A snapshot is an optimisation and nothing else: one that is not whole is passed over, never used and never an error.

use std::path::Path;

use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

use crate::writer::Failed;
use crate::{Error, fault};

/// How many are kept: the older one is for the day the newer one is damaged.
const KEPT: u32 = 2;

/// zstd's own default: a snapshot is written once in 10,000 records.
const LEVEL: i32 = 3;

/// A saved state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The last record that is part of it.
    pub seq: u64,
    /// The version of the format of `bytes`, as its writer gave it.
    pub version: u16,
    /// The state.
    pub bytes: Vec<u8>,
}

/// A snapshot compressed and with its checksum, ready to be written.
#[derive(Debug)]
pub(crate) struct Sealed {
    seq: u64,
    version: u16,
    sha256: [u8; 32],
    packed: Vec<u8>,
}

impl Sealed {
    /// Compresses on the caller's thread: the writer is everyone's.
    pub(crate) fn new(seq: u64, version: u16, bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let packed =
            zstd::bulk::compress(bytes, LEVEL).map_err(|error| fault::io(path, "compress a snapshot for", error))?;
        Ok(Self { seq, version, sha256: checksum(seq, version, bytes), packed })
    }
}

fn checksum(seq: u64, version: u16, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(seq.to_le_bytes());
    hasher.update(version.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize().into()
}

/// Writes a snapshot of a journal that ends at `last`, and forgets those before the one before it.
pub(crate) fn insert(connection: &Connection, path: &Path, last: u64, sealed: &Sealed) -> Result<(), Failed> {
    if sealed.seq > last {
        return Err(Failed::Refused(Error::Ahead { seq: sealed.seq, last }));
    }
    let failed = |error| Failed::Group(fault::sqlite(path, "save a snapshot", error));
    let seq = fault::integer("sequence number", sealed.seq)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO snapshot (seq, version, sha256, bytes) VALUES (?1, ?2, ?3, ?4)")
        .and_then(|mut insert| insert.execute(params![seq, sealed.version, sealed.sha256, sealed.packed]))
        .map_err(failed)?;
    connection
        .prepare_cached("DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?1)")
        .and_then(|mut delete| delete.execute([KEPT]))
        .map_err(failed)?;
    Ok(())
}

/// The latest snapshot that is whole and that the journal's records reach.
pub(crate) fn load(connection: &Connection, path: &Path) -> Result<Option<Snapshot>, Error> {
    match load_whole(connection, path) {
        // Replay reads every page that matters, and says so when one of those is damaged.
        Err(Error::Damaged { why, .. }) => {
            tracing::warn!(path = %path.display(), why, "the snapshots are damaged and passed over");
            Ok(None)
        }
        loaded => loaded,
    }
}

fn load_whole(connection: &Connection, path: &Path) -> Result<Option<Snapshot>, Error> {
    let failed = |error| fault::sqlite(path, "load a snapshot", error);
    let mut select = connection
        .prepare_cached(
            "SELECT seq, version, sha256, bytes FROM snapshot
             WHERE seq <= (SELECT coalesce(max(seq), 0) FROM record) ORDER BY seq DESC",
        )
        .map_err(failed)?;
    let mut rows = select.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let (seq, version): (u64, u16) = (row.get(0).map_err(failed)?, row.get(1).map_err(failed)?);
        let sha256: Vec<u8> = row.get(2).map_err(failed)?;
        let packed = row.get_ref(3).map_err(failed)?;
        let bytes = packed.as_blob().ok().and_then(|packed| zstd::stream::decode_all(packed).ok());
        match bytes {
            Some(bytes) if checksum(seq, version, &bytes) == *sha256 => {
                return Ok(Some(Snapshot { seq, version, bytes }));
            }
            _ => {
                tracing::warn!(path = %path.display(), seq, "a snapshot is damaged and passed over");
            }
        }
    }
    Ok(None)
}
