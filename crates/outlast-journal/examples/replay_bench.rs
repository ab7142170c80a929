//! How fast the journal appends and replays: `replay_bench [RECORDS] [APPENDERS]`, 100,000 and 64 by default.
//!
//! Prints one JSON object: records per second appended durably by that many threads that each wait for every record,
//! the transactions that took, and the time of a replay of all of them by a process that has just opened the file.

use std::error::Error as StdError;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_core::Timestamp;
use outlast_journal::{Entry, Error, Journal, JournalReader};

fn main() -> Result<(), Box<dyn StdError>> {
    let mut args = std::env::args().skip(1);
    let records: u64 = args.next().map_or(Ok(100_000), |arg| arg.parse())?;
    let appenders: u64 = args.next().map_or(Ok(64), |arg| arg.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal.db");
    let (appending, commits) = append(&path, records, appenders)?;
    let started = Instant::now();
    let (mut replayed, mut bytes) = (0_u64, 0);
    JournalReader::open(&path)?.replay(0, |_, entry| {
        replayed += 1;
        bytes += entry.body.len();
        Ok::<_, Error>(())
    })?;
    let replaying = started.elapsed();
    if replayed != records {
        return Err(format!("{records} records appended, {replayed} replayed").into());
    }
    let report = serde_json::json!({
        "records": records,
        "body_bytes": bytes as u64 / records.max(1),
        "appenders": appenders,
        "append_records_per_second": rate(records, appending),
        "commits": commits,
        "replay_ms": replaying.as_millis() as u64,
        "replay_records_per_second": rate(records, replaying),
    });
    println!("{report}");
    Ok(())
}

/// Appends one record at a time in each of `appenders` threads; returns the time and the transactions it took.
fn append(path: &Path, records: u64, appenders: u64) -> Result<(Duration, u64), Error> {
    let journal = Journal::open(path)?;
    let started = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..appenders)
            .map(|appender| {
                let journal = &journal;
                let share = records / appenders + u64::from(appender < records % appenders);
                scope.spawn(move || (1..=share).try_for_each(|n| journal.append(vec![record(appender, n)]).map(drop)))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    Ok((started.elapsed(), journal.commits()))
}

/// A record of a common kind and size.
fn record(appender: u64, revision: u64) -> Entry {
    let body = serde_json::json!({
        "type": "exchange_settled",
        "attempt": { "run": "migrate-7f3a", "task": format!("payment-client-{appender}"), "number": 2 },
        "turn": revision,
        "account": "max",
        "tokens": { "input": 12, "cache_write": 1_840, "cache_read": 48_211, "output": 733 },
        "usd_nanos": 31_405_000,
    });
    Entry {
        stream: format!("task/migrate-7f3a/payment-client-{appender}"),
        revision,
        at: Timestamp::from_millis(1_780_000_000_000),
        version: 1,
        body: body.to_string(),
    }
}

fn rate(records: u64, time: Duration) -> u64 {
    (records as f64 / time.as_secs_f64()) as u64
}
