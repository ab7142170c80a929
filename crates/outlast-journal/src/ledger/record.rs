//! Writes one finished exchange: its bodies, where they are new, and its row.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::BodyHash;
use super::pack::PackWriter;
use super::row::ExchangeRow;
use crate::writer::{Failed, is_taken};
use crate::{Error, fault};

/// An exchange ready to be written.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(super) row: ExchangeRow,
    pub(super) bodies: [Option<Packed>; 2],
}

/// A body, compressed.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) hash: BodyHash,
    pub(super) len: u64,
    pub(super) packed: Vec<u8>,
}

/// Inserts the exchange into the transaction that is open on `connection`.
pub(crate) fn insert(
    connection: &Connection,
    path: &Path,
    packs: &mut PackWriter,
    recorded: &Recorded,
) -> Result<(), Failed> {
    for body in recorded.bodies.iter().flatten() {
        insert_body(connection, path, packs, body)?;
    }
    let row = &recorded.row;
    match insert_row(connection, row)? {
        Ok(()) => Ok(()),
        Err(error) if is_taken(&error) => {
            Err(Failed::Refused(Error::DuplicateExchange { exchange: row.exchange.clone() }))
        }
        Err(error) => Err(Failed::Group(fault::sqlite(path, "write an exchange", error))),
    }
}

fn insert_body(connection: &Connection, path: &Path, packs: &mut PackWriter, body: &Packed) -> Result<(), Failed> {
    let failed = |error| Failed::Group(fault::sqlite(path, "write a body", error));
    let known = connection
        .prepare_cached("SELECT 1 FROM body WHERE sha256 = ?1")
        .and_then(|mut select| select.query_row([body.hash], |_| Ok(())).optional())
        .map_err(failed)?;
    if known.is_some() {
        return Ok(());
    }
    let place = packs.add(&body.packed);
    let row = params![
        body.hash,
        place.pack,
        fault::integer("offset", place.offset)?,
        fault::integer("length", body.packed.len() as u64)?,
        fault::integer("length", body.len)?,
    ];
    connection
        .prepare_cached("INSERT INTO body (sha256, pack, offset, packed_bytes, bytes) VALUES (?1, ?2, ?3, ?4, ?5)")
        .and_then(|mut insert| insert.execute(row))
        .map_err(failed)?;
    Ok(())
}

/// Outer error: a number that does not fit.
fn insert_row(connection: &Connection, row: &ExchangeRow) -> Result<rusqlite::Result<()>, Failed> {
    let tokens = |what, tokens: Option<u64>| {
        tokens.map(|tokens| fault::integer(what, tokens)).transpose().map_err(Failed::Refused)
    };
    let attempt = row.attempt.as_ref();
    let values = params![
        row.exchange,
        attempt.map(|attempt| attempt.run.as_str()),
        attempt.map(|attempt| attempt.task.as_str()),
        attempt.map(|attempt| attempt.number),
        row.turn,
        row.dialect,
        row.model,
        row.account.as_str(),
        row.started_at.as_millis(),
        row.first_byte_at.map(outlast_core::Timestamp::as_millis),
        row.ended_at.map(outlast_core::Timestamp::as_millis),
        row.status,
        row.outcome.as_str(),
        row.request_hash,
        row.response_hash,
        fault::integer("length", row.request_bytes)?,
        fault::integer("length", row.response_bytes)?,
        tokens("input tokens", row.usage.input)?,
        tokens("cache write tokens", row.usage.cache_write_5m)?,
        tokens("cache write tokens", row.usage.cache_write_1h)?,
        tokens("cache read tokens", row.usage.cache_read)?,
        tokens("output tokens", row.usage.output)?,
        tokens("reasoning tokens", row.usage.reasoning)?,
        row.usd_nanos,
        row.estimated,
        row.headers,
    ];
    Ok(connection
        .prepare_cached(
            "INSERT INTO exchange (exchange, run, task, attempt, turn, dialect, model, account, started_at,
             first_byte_at, ended_at, status, outcome, request_hash, response_hash, request_bytes, response_bytes,
             input, cache_write_5m, cache_write_1h, cache_read, output, reasoning, usd_nanos, estimated, headers)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21,
             ?22, ?23, ?24, ?25, ?26)",
        )
        .and_then(|mut insert| insert.execute(values))
        .map(drop))
}
