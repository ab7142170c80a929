//! Progress as lines: each says what has just become true, and reads the same on a terminal and in a file.

use outlast_core::budget::Allowed;
use outlast_core::record::{EndReason, Outcome, RunEnd, Rung, Verdict};
use outlast_core::{Fact, Record, Stream};

use crate::text::budget::usd_text;
use crate::text::screen::short;
use crate::text::{BOLD, DIM, GREEN, RED, YELLOW, shown, styled};

/// A record as a line, however small what it says.
pub(crate) fn line_of(record: &Record) -> String {
    let said = said(&record.fact).unwrap_or_else(|| styled(DIM, quiet(&record.fact)));
    format!("{} {}{said}", styled(DIM, clock(record.at)), subject(&record.stream))
}

/// A record as a line of live progress; nothing where a person need not see it.
pub(crate) fn progress(record: &Record) -> Option<String> {
    let said = said(&record.fact)?;
    Some(format!("{} {}{said}", styled(DIM, clock(record.at)), subject(&record.stream)))
}

fn subject(stream: &Stream) -> String {
    match stream {
        Stream::Task(_, task) => format!("{:<20} ", task.to_string()),
        Stream::Run(_) => String::new(),
        Stream::Account(account) => format!("account {account} "),
        Stream::Ledger => "ledger ".to_owned(),
    }
}

/// The local time of day.
pub(crate) fn clock(at: outlast_core::Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// What a person is told.
fn said(fact: &Fact) -> Option<String> {
    Some(match fact {
        Fact::RunStarted(spec) => {
            format!("the run starts from {} and lands on {}", short(spec.base.as_str()), spec.target)
        }
        Fact::RunPaused => styled(YELLOW, "the run is paused"),
        Fact::RunStopped => styled(YELLOW, "the run is stopped"),
        Fact::RunResumed => "the run goes on".to_owned(),
        Fact::TriedNow => "what waits for a limit is tried now".to_owned(),
        Fact::BudgetReached(_) => styled(YELLOW, "the budget is reached: nothing more goes out until it is raised"),
        Fact::BudgetChanged(allowed) => format!("the budget is {}", allowed_in_words(*allowed)),
        Fact::RunFinished { state } => match state {
            RunEnd::Done => styled(GREEN, "the run is done"),
            RunEnd::Degraded => styled(YELLOW, "the run is over: some tasks came to no result"),
            RunEnd::Failed => styled(RED, "the run is over: no task came to a result"),
        },
        Fact::AttemptStarted { number, rung, .. } => {
            let how = match rung {
                Rung::Fresh => "",
                Rung::Session(_) => ", continuing its session",
                Rung::HandOver => ", continuing from what is there",
            };
            format!("{} (attempt {number}{how})", styled(BOLD, "starts"))
        }
        Fact::Held { class, until, .. } => {
            let until = until.map_or_else(|| "no end is stated".to_owned(), |until| format!("until {}", clock(until)));
            styled(YELLOW, format!("is held: {class}, {until}"))
        }
        Fact::Released { .. } => "goes on".to_owned(),
        Fact::AttemptExited { outcome: Outcome::Failed { class, why, .. }, .. }
        | Fact::Verified { verdict: Verdict::Failed { class, why }, .. } => {
            styled(RED, format!("{class}: {}", shown(why)))
        }
        Fact::Replayed { exchange, .. } => {
            styled(DIM, format!("gets an answer that was paid for and had not arrived ({exchange}); nothing is billed"))
        }
        Fact::AttemptEnding { reason: EndReason::Parked, .. } => styled(YELLOW, "is being parked"),
        Fact::AttemptEnding { reason: EndReason::Limit { class }, .. } => {
            styled(YELLOW, format!("is being parked until an account opens ({class})"))
        }
        Fact::AttemptExited { outcome: Outcome::Finished, .. } => "the agent has ended; its work is checked".to_owned(),
        Fact::Verified { verdict: Verdict::Passed { .. }, .. } => styled(GREEN, "is verified"),
        Fact::Assigned(to) => format!("goes to agent {}", to.agent),
        Fact::Landed { commit, was_there: false } => styled(GREEN, format!("has landed as {}", short(commit.as_str()))),
        Fact::Landed { commit, was_there: true } => {
            let what = format!("its change was already there: {}; it counts as landed", short(commit.as_str()));
            styled(GREEN, what)
        }
        Fact::LandingRefused { cause, detail } => {
            styled(YELLOW, format!("does not land ({}): {}", cause.name(), shown(detail)))
        }
        Fact::RetryRequested => "is tried again, with its work as it is".to_owned(),
        Fact::Discarded => "is discarded; its work is archived".to_owned(),
        Fact::AccountClosed { class, until, guessed } => {
            let when = if *guessed { "tried again at" } else { "until" };
            styled(YELLOW, format!("is closed ({class}), {when} {}", clock(*until)))
        }
        Fact::AccountShut { class } => styled(RED, format!("is closed ({class}) until somebody sees to it")),
        Fact::AccountOpened => "is tried again, with one request first".to_owned(),
        _ => return None,
    })
}

fn allowed_in_words(allowed: Allowed) -> String {
    let usd = allowed.usd_nanos.map(|nanos| format!("{} USD", usd_text(nanos / 1000)));
    let tokens = allowed.tokens.map(|tokens| format!("{tokens} tokens"));
    usd.into_iter().chain(tokens).collect::<Vec<_>>().join(" and ")
}

/// What only a log shows.
fn quiet(fact: &Fact) -> String {
    match fact {
        Fact::TaskAdded(spec) => format!("is in the run, for agent {}", spec.agent),
        Fact::WorkspaceReady { base, .. } => format!("workspace on {}", short(base.as_str())),
        Fact::Spawned { shim, .. } => format!("its shim is process {}", shim.pid),
        Fact::SessionSeen { session, .. } => format!("session {}", shown(session)),
        Fact::Exchanged { account, usage, .. } => format!(
            "{} tokens in, {} out, {} cached, billed to {account}",
            usage.input + usage.cache_write,
            usage.output,
            usage.cache_read
        ),
        Fact::Checkpointed { commit, .. } => format!("checkpoint {}", short(commit.as_str())),
        Fact::AttemptEnding { .. } => "its processes are being ended".to_owned(),
        Fact::AttemptEnded { .. } => "no process of it lives".to_owned(),
        Fact::LandRequested => "is to land".to_owned(),
        Fact::LandingStarted { new, .. } => format!("lands as {}", short(new.as_str())),
        Fact::DiscardRequested => "is to be discarded".to_owned(),
        Fact::LedgerCounted { row } => format!("is on record up to row {row}"),
        Fact::AccountAnswered => "has taken a request".to_owned(),
        _ => String::new(),
    }
}
