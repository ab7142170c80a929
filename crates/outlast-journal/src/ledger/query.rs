//! The ledger's questions: rows, totals and bodies.
//!
//! A body is handed out only if its bytes still have the hash it is known by.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use rusqlite::types::{Type, Value};
use rusqlite::{OptionalExtension, Row, params_from_iter};

use outlast_core::{AccountId, AttemptId, RunId, TaskId, Timestamp};

use super::row::{ExchangeRow, Outcome, Usage};
use super::{BodyHash, pack};
use crate::{Error, JournalReader, fault};

/// Which exchanges; a field that is not given restricts nothing.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Of this run.
    pub run: Option<RunId>,
    /// Of this task.
    pub task: Option<TaskId>,
    /// Of this try, counted from 1.
    pub attempt: Option<u32>,
}

/// Sums over exchanges. What is unknown is left out of a sum and counted beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// How many exchanges.
    pub exchanges: u64,
    /// How many of them name neither input nor output tokens.
    pub unmetered: u64,
    /// How many of them have no price.
    pub unpriced: u64,
    /// How many of them hold an estimate.
    pub estimated: u64,
    /// Input tokens that no cache served or kept.
    pub input: u64,
    /// Tokens written to a cache for five minutes.
    pub cache_write_5m: u64,
    /// Tokens written to a cache for an hour.
    pub cache_write_1h: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Output tokens.
    pub output: u64,
    /// The part of the output that was reasoning.
    pub reasoning: u64,
    /// Billionths of a US dollar.
    pub usd_nanos: i64,
}

const COLUMNS: &str = "exchange, run, task, attempt, turn, dialect, model, account, started_at, first_byte_at, \
    ended_at, status, outcome, request_hash, response_hash, request_bytes, response_bytes, input, cache_write_5m, \
    cache_write_1h, cache_read, output, reasoning, usd_nanos, estimated, headers";

const SUMS: &str = "count(*), coalesce(sum(input IS NULL AND output IS NULL), 0), coalesce(sum(usd_nanos IS NULL), 0), \
    coalesce(sum(estimated), 0), coalesce(sum(input), 0), coalesce(sum(cache_write_5m), 0), \
    coalesce(sum(cache_write_1h), 0), coalesce(sum(cache_read), 0), coalesce(sum(output), 0), \
    coalesce(sum(reasoning), 0), coalesce(sum(usd_nanos), 0)";

impl Selection {
    /// All exchanges of a run.
    pub fn run(run: RunId) -> Self {
        Self { run: Some(run), ..Self::default() }
    }

    /// All exchanges of a task.
    pub fn task(run: RunId, task: TaskId) -> Self {
        Self { run: Some(run), task: Some(task), attempt: None }
    }

    /// The condition and its values; the column names are ours, the values are bound.
    fn condition(&self) -> (String, Vec<Value>) {
        let given = [
            ("run", self.run.as_ref().map(|run| Value::from(run.as_str().to_owned()))),
            ("task", self.task.as_ref().map(|task| Value::from(task.as_str().to_owned()))),
            ("attempt", self.attempt.map(Value::from)),
        ];
        let mut condition = "true".to_owned();
        let mut values = Vec::new();
        for (column, value) in given {
            if let Some(value) = value {
                values.push(value);
                condition.push_str(&format!(" AND {column} = ?{}", values.len()));
            }
        }
        (condition, values)
    }
}

impl JournalReader {
    /// The exchanges of `selection`, in the order they entered the ledger.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn exchanges(&self, selection: &Selection) -> Result<Vec<ExchangeRow>, Error> {
        let (condition, values) = selection.condition();
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM exchange WHERE {condition} ORDER BY rowid"))
            .and_then(|mut select| select.query_map(params_from_iter(values), exchange)?.collect())
            .map_err(|error| fault::sqlite(&self.path, "read the exchanges", error))
    }

    /// Hands every exchange that entered the ledger after its row `after` to `each`, in order, and returns the last row
    /// (`after` when there was none). Rows are counted from 1 and never given twice.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn exchanges_after(&self, after: u64, mut each: impl FnMut(ExchangeRow)) -> Result<u64, Error> {
        let failed = |error| fault::sqlite(&self.path, "read the exchanges", error);
        let first = fault::integer("row", after)?;
        let mut select = self
            .connection
            .prepare_cached(&format!("SELECT {COLUMNS}, rowid FROM exchange WHERE rowid > ?1 ORDER BY rowid"))
            .map_err(failed)?;
        let mut rows = select.query([first]).map_err(failed)?;
        let mut last = after;
        while let Some(row) = rows.next().map_err(failed)? {
            last = row.get("rowid").map_err(failed)?;
            each(exchange(row).map_err(failed)?);
        }
        Ok(last)
    }

    /// One exchange; none when the ledger does not have it (yet).
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn exchange(&self, id: &str) -> Result<Option<ExchangeRow>, Error> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM exchange WHERE exchange = ?1"))
            .and_then(|mut select| select.query_row([id], exchange).optional())
            .map_err(|error| fault::sqlite(&self.path, "read an exchange", error))
    }

    /// The sums over `selection`.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn totals(&self, selection: &Selection) -> Result<Totals, Error> {
        let (condition, values) = selection.condition();
        self.connection
            .prepare_cached(&format!("SELECT {SUMS} FROM exchange WHERE {condition}"))
            .and_then(|mut select| select.query_row(params_from_iter(values), |row| totals(row, 0)))
            .map_err(|error| fault::sqlite(&self.path, "sum up the exchanges", error))
    }

    /// The sums of every task of `run` that has exchanges, in the order of their ids.
    ///
    /// # Errors
    /// The failure to read the file.
    pub fn totals_by_task(&self, run: &RunId) -> Result<Vec<(TaskId, Totals)>, Error> {
        self.connection
            .prepare_cached(&format!("SELECT task, {SUMS} FROM exchange WHERE run = ?1 GROUP BY task ORDER BY task"))
            .and_then(|mut select| {
                let each = |row: &Row<'_>| Ok((TaskId::new(row.get::<_, String>(0)?), totals(row, 1)?));
                select.query_map([run.as_str()], each)?.collect()
            })
            .map_err(|error| fault::sqlite(&self.path, "sum up the exchanges", error))
    }

    /// The bytes of a body; none when the ledger does not have it.
    ///
    /// # Errors
    /// [`Error::Damaged`], naming the pack, when the bytes are not there or not those that were written.
    pub fn body(&self, hash: &BodyHash) -> Result<Option<Vec<u8>>, Error> {
        let place = self
            .connection
            .prepare_cached("SELECT pack, offset, packed_bytes FROM body WHERE sha256 = ?1")
            .and_then(|mut select| {
                select.query_row([hash], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
            })
            .map_err(|error| fault::sqlite(&self.path, "find a body", error))?;
        place.map(|(pack, offset, len)| self.unpack(hash, pack, offset, len)).transpose()
    }

    fn unpack(&self, hash: &BodyHash, pack: u32, offset: u64, len: u64) -> Result<Vec<u8>, Error> {
        let path = pack::path_of(&self.path, pack);
        let damaged = |why: String| Error::Damaged { path: path.clone(), why };
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => damaged("the pack is gone".to_owned()),
            _ => fault::io(&path, "open", error),
        })?;
        let end = file.metadata().map_err(|error| fault::io(&path, "look at", error))?.len();
        if offset.checked_add(len).is_none_or(|needed| needed > end) {
            return Err(damaged(format!("body {hash} lies beyond its end")));
        }
        let len = usize::try_from(len).map_err(|_| Error::TooLarge { what: "length", value: len })?;
        let mut packed = vec![0; len];
        file.read_exact_at(&mut packed, offset).map_err(|error| fault::io(&path, "read", error))?;
        match zstd::stream::decode_all(packed.as_slice()) {
            Ok(bytes) if BodyHash::of(&bytes) == *hash => Ok(bytes),
            _ => Err(damaged(format!("body {hash} is not what was written"))),
        }
    }
}

fn totals(row: &Row<'_>, first: usize) -> rusqlite::Result<Totals> {
    Ok(Totals {
        exchanges: row.get(first)?,
        unmetered: row.get(first + 1)?,
        unpriced: row.get(first + 2)?,
        estimated: row.get(first + 3)?,
        input: row.get(first + 4)?,
        cache_write_5m: row.get(first + 5)?,
        cache_write_1h: row.get(first + 6)?,
        cache_read: row.get(first + 7)?,
        output: row.get(first + 8)?,
        reasoning: row.get(first + 9)?,
        usd_nanos: row.get(first + 10)?,
    })
}

/// Reads [`COLUMNS`].
fn exchange(row: &Row<'_>) -> rusqlite::Result<ExchangeRow> {
    let text = |column| row.get::<_, Option<String>>(column);
    let instant = |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis));
    let attempt = match (text(1)?, text(2)?, row.get(3)?) {
        (Some(run), Some(task), Some(number)) => {
            Some(AttemptId { run: RunId::new(run), task: TaskId::new(task), number })
        }
        _ => None,
    };
    let word: String = row.get(12)?;
    let unknown = || rusqlite::Error::InvalidColumnType(12, format!("outcome {word:?}"), Type::Text);
    Ok(ExchangeRow {
        exchange: row.get(0)?,
        attempt,
        turn: row.get(4)?,
        dialect: row.get(5)?,
        model: row.get(6)?,
        account: AccountId::new(row.get::<_, String>(7)?),
        started_at: Timestamp::from_millis(row.get(8)?),
        first_byte_at: instant(9)?,
        ended_at: instant(10)?,
        status: row.get(11)?,
        outcome: Outcome::parse(&word).ok_or_else(unknown)?,
        request_hash: row.get(13)?,
        response_hash: row.get(14)?,
        request_bytes: row.get(15)?,
        response_bytes: row.get(16)?,
        usage: Usage {
            input: row.get(17)?,
            cache_write_5m: row.get(18)?,
            cache_write_1h: row.get(19)?,
            cache_read: row.get(20)?,
            output: row.get(21)?,
            reasoning: row.get(22)?,
        },
        usd_nanos: row.get(23)?,
        estimated: row.get(24)?,
        headers: row.get(25)?,
    })
}
