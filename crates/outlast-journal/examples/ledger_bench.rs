//! What the ledger costs: `ledger_bench [EXCHANGES] [ANSWER_BYTES] [FRAMES]`, 10,000, 1,000 and 1 by default.
//!
//! Prints one JSON object: the time an exchange takes on the thread that passes its bytes (what a request feels), how
//! many exchanges per second become durable behind it, at most 50 of them at once on their way, and the processor time
//! all threads together spend on one. Every body is new; half of its bytes do not compress.

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use outlast_core::Timestamp;
use outlast_journal::{AnswerHead, Closing, Journal, Ledger, Opening, Outcome, Usage};

/// As many as a busy gateway has connections.
const IN_FLIGHT_MAX: usize = 50;

fn main() -> Result<(), Box<dyn StdError>> {
    let mut args = std::env::args().skip(1);
    let exchanges: u32 = args.next().map_or(Ok(10_000), |arg| arg.parse())?;
    let answer_bytes: usize = args.next().map_or(Ok(1_000), |arg| arg.parse())?;
    let frames: usize = args.next().map_or(Ok(1), |arg| arg.parse())?;
    let folder = tempfile::tempdir()?;
    let journal = Journal::open(folder.path().join("journal.db"))?;
    let (ledger, _) = Ledger::open(&journal)?;
    let started = Instant::now();
    let mut passing = Duration::ZERO;
    let mut pending = VecDeque::new();
    for turn in 0..exchanges {
        let (request, answer) = (body(turn, 1_000), body(turn + exchanges, answer_bytes));
        let opening = opening(turn);
        let head = AnswerHead { status: 200, first_byte_at: opening.started_at, headers: "{}".to_owned() };
        let begun = Instant::now();
        let mut spool = ledger.begin(&opening, &request)?;
        spool.answer(&head)?;
        for frame in answer.chunks(answer_bytes.div_ceil(frames.max(1)).max(1)) {
            spool.write(frame)?;
        }
        pending.push_back(spool.finish(closing()));
        passing += begun.elapsed();
        if pending.len() > IN_FLIGHT_MAX
            && let Some(oldest) = pending.pop_front()
        {
            oldest.wait()?;
        }
    }
    for pending in pending {
        pending.wait()?;
    }
    let wall = started.elapsed();
    let used = getrusage(UsageWho::RUSAGE_SELF)?;
    let cpu_us = [used.user_time(), used.system_time()].iter().map(TimeValLike::num_microseconds).sum::<i64>();
    let report = serde_json::json!({
        "exchanges": exchanges,
        "answer_bytes": answer_bytes,
        "frames": frames,
        "passing_us_per_exchange": passing.as_secs_f64() * 1e6 / f64::from(exchanges.max(1)),
        "durable_per_second": f64::from(exchanges) / wall.as_secs_f64(),
        "cpu_us_per_exchange": cpu_us as f64 / f64::from(exchanges.max(1)),
        "commits": journal.commits(),
    });
    println!("{report}");
    Ok(())
}

fn opening(turn: u32) -> Opening {
    Opening {
        exchange: format!("x{turn:08}"),
        attempt: None,
        turn,
        dialect: "anthropic".to_owned(),
        model: Some("sonnet".to_owned()),
        account: "max".into(),
        started_at: Timestamp::from_millis(1_780_000_000_000),
    }
}

fn closing() -> Closing {
    let usage = Usage { input: Some(1_000), output: Some(200), ..Usage::default() };
    let ended_at = Timestamp::from_millis(1_780_000_001_000);
    Closing { outcome: Outcome::Complete, ended_at, usage, usd_nanos: Some(1_000_000), estimated: false }
}

/// Bytes of which every second one is noise, different for every `seed`.
fn body(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(2).wrapping_add(1);
    let mut bytes = vec![b'x'; len];
    for byte in bytes.iter_mut().step_by(2) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = (state >> 56) as u8;
    }
    bytes
}
