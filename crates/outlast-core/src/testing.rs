//! A small language for journals in tests: one record a line, in words, both read and written.
//!
//! ```text
//! run auto concurrency=2          task b needs=a writes=src/** retries=1 quota=max
//! pause · stop · resume           account max closed window_quota 5000 · account max opened
//! budget reached · budget 500 (billionths of a dollar; `usd=500` where the run starts)
//! a start 1 · a exchanged 1 max · a exit 1 window_quota 5000 · a exit 1 finished · a ending 1 parked · a ended 1 · a pass 1 · a fail 1 verify
//! a done                          every record from its start to its verified result
//! a fails crash                   every record from its start to the end of a failed attempt
//! ```
//! `@5000` before a line sets its time and that of those after it.

use crate::budget::{Allowed, Estimate, Lack, Reached};
use crate::class::Class;
use crate::ids::{AccountId, AgentName, Epoch, Oid, RunId, TaskId};
use crate::record::{
    Assigned, EndReason, Fact, LandingCause, Outcome, Record, RunEnd, RunSpec, Rung, ShimRef, Stream, TaskSpec, Verdict,
};
use crate::{Core, Timestamp, Usage};

/// The id of the only run.
pub(crate) fn run() -> RunId {
    RunId::from("r")
}

/// The state after these lines.
pub(crate) fn core(journal: &str) -> Core {
    let mut core = Core::default();
    let mut at = Timestamp::EPOCH;
    for line in journal.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if let Some(time) = words[0].strip_prefix('@') {
            at = Timestamp::from_millis(time.parse().unwrap());
            words.remove(0);
        }
        for (stream, fact) in read(&core, &words) {
            core.apply(&Record { at, stream, fact });
        }
    }
    core
}

/// The records of a line.
pub(crate) fn records(core: &Core, line: &str) -> Vec<Record> {
    let words: Vec<&str> = line.split_whitespace().collect();
    read(core, &words).into_iter().map(|(stream, fact)| Record { at: Timestamp::EPOCH, stream, fact }).collect()
}

/// The facts of a line, each with its stream.
fn read(core: &Core, words: &[&str]) -> Vec<(Stream, Fact)> {
    let on_run = |fact| vec![(Stream::Run(run()), fact)];
    match words {
        ["run", settings @ ..] => on_run(Fact::RunStarted(run_spec(settings))),
        ["pause"] => on_run(Fact::RunPaused),
        ["stop"] => on_run(Fact::RunStopped),
        ["resume"] => on_run(Fact::RunResumed),
        ["tried", "now"] => on_run(Fact::TriedNow),
        ["budget", "reached"] => on_run(Fact::BudgetReached(reached())),
        ["budget", usd] => on_run(Fact::BudgetChanged(Allowed { usd_nanos: Some(usd.parse().unwrap()), tokens: None })),
        ["finished", end] => on_run(Fact::RunFinished { state: named::<RunEnd>(end) }),
        ["account", account, rest @ ..] => {
            let fact = match rest {
                ["closed", class, until, guessed @ ..] => {
                    Fact::AccountClosed { class: named(class), until: time(until), guessed: !guessed.is_empty() }
                }
                ["answered"] => Fact::AccountAnswered,
                ["shut", class] => Fact::AccountShut { class: named(class) },
                _ => Fact::AccountOpened,
            };
            vec![(Stream::Account(AccountId::from(*account)), fact)]
        }
        ["task", id, settings @ ..] => on_task(id, [Fact::TaskAdded(task_spec(settings))]),
        [id, "done"] => on_task(id, attempt(core, id, &Outcome::Finished, Some(verdict(id)))),
        [id, "fails", class] => on_task(id, attempt(core, id, &failed(class), None)),
        [id, rest @ ..] => on_task(id, [task_fact(id, rest)]),
        [] => Vec::new(),
    }
}

fn on_task(id: &str, facts: impl IntoIterator<Item = Fact>) -> Vec<(Stream, Fact)> {
    let stream = Stream::Task(run(), TaskId::from(id));
    facts.into_iter().map(|fact| (stream.clone(), fact)).collect()
}

/// A whole attempt, the next one of the task.
fn attempt(core: &Core, id: &str, outcome: &Outcome, verdict: Option<Verdict>) -> Vec<Fact> {
    let known = core.run(&run()).and_then(|run| run.task(&TaskId::from(id))).map_or(0, |task| task.attempts);
    let number = known + 1;
    let mut facts = vec![
        Fact::AttemptStarted { number, epoch: Epoch(number), rung: Rung::Fresh },
        Fact::AttemptExited { number, outcome: outcome.clone() },
        Fact::AttemptEnding { number, reason: EndReason::from(outcome) },
        Fact::AttemptEnded { number },
    ];
    facts.extend(verdict.map(|verdict| Fact::Verified { number, verdict }));
    facts
}

fn task_fact(id: &str, words: &[&str]) -> Fact {
    let oid = |name: &str| Oid::new(name);
    if let [verb, number, rest @ ..] = words
        && let Ok(number) = number.parse::<u32>()
    {
        return match (*verb, rest) {
            ("start", ["session", name]) => {
                Fact::AttemptStarted { number, epoch: Epoch(number), rung: Rung::Session((*name).to_owned()) }
            }
            ("start", _) => Fact::AttemptStarted { number, epoch: Epoch(number), rung: Rung::Fresh },
            ("workspace", [base]) => Fact::WorkspaceReady { number, base: oid(base) },
            ("spawned", _) => Fact::Spawned { number, shim: shim(number) },
            ("checkpointed", [commit]) => Fact::Checkpointed { number, commit: oid(commit) },
            ("session", [name]) => Fact::SessionSeen { number, session: (*name).to_owned() },
            ("held", [class]) => Fact::Held { number, class: named(class), until: None },
            ("held", [class, until]) => Fact::Held { number, class: named(class), until: Some(time(until)) },
            ("released", _) => Fact::Released { number },
            ("exchanged", [account]) => exchanged(number, account),
            ("exit", ["finished"]) => Fact::AttemptExited { number, outcome: Outcome::Finished },
            ("exit", [class]) => Fact::AttemptExited { number, outcome: failed(class) },
            ("exit", [class, until]) => Fact::AttemptExited { number, outcome: limited(class, until) },
            ("ending", ["limit", class]) => {
                Fact::AttemptEnding { number, reason: EndReason::Limit { class: named(class) } }
            }
            ("ending", ["parked"]) => Fact::AttemptEnding { number, reason: EndReason::Parked },
            ("ending", ["finished"]) => Fact::AttemptEnding { number, reason: EndReason::Finished },
            ("ending", [class]) => Fact::AttemptEnding { number, reason: EndReason::from(&failed(class)) },
            ("ending", [class, until]) => {
                Fact::AttemptEnding { number, reason: EndReason::from(&limited(class, until)) }
            }
            ("ended", _) => Fact::AttemptEnded { number },
            ("pass", _) => Fact::Verified { number, verdict: verdict(id) },
            ("fail", [class]) => {
                Fact::Verified { number, verdict: Verdict::Failed { class: named(class), why: "red".into() } }
            }
            _ => panic!("no such line: {id} {words:?}"),
        };
    }
    match words {
        ["assigned", agent, accounts] => Fact::Assigned(Assigned {
            agent: AgentName::from(*agent),
            accounts: accounts.split(',').map(AccountId::from).collect(),
            needs_quota: true,
        }),
        ["want"] => Fact::LandRequested,
        ["landing", new] => Fact::LandingStarted { old: None, new: oid(new) },
        ["landed", commit] => Fact::Landed { commit: oid(commit), was_there: false },
        ["was", "there", commit] => Fact::Landed { commit: oid(commit), was_there: true },
        ["refused", cause] => Fact::LandingRefused { cause: named::<LandingCause>(cause), detail: "why".into() },
        ["retry"] => Fact::RetryRequested,
        ["discard"] => Fact::DiscardRequested,
        ["discarded"] => Fact::Discarded,
        _ => panic!("no such line: {id} {words:?}"),
    }
}

fn verdict(id: &str) -> Verdict {
    Verdict::Passed { result: Oid::new(format!("result-{id}")) }
}

fn failed(class: &str) -> Outcome {
    Outcome::Failed { class: named::<Class>(class), why: "why".into(), until: None }
}

fn exchanged(number: u32, account: &str) -> Fact {
    let usage = Usage { exchanges: 1, ..Usage::default() };
    Fact::Exchanged { number, account: account.into(), main: true, usage, reserved: None, exchange: None }
}

/// A limit that an agent reports, with its end.
fn limited(class: &str, until: &str) -> Outcome {
    Outcome::Failed { class: named::<Class>(class), why: "why".into(), until: Some(time(until)) }
}

/// The shim of an attempt.
pub(crate) fn shim(number: u32) -> ShimRef {
    ShimRef { pid: number, start_time: 7, boot_id: "boot".into() }
}

/// A request for which too little money is left.
pub(crate) const fn reached() -> Reached {
    Reached { lack: Lack::Usd, wants: Estimate { usd_nanos: Some(7), tokens: 1 } }
}

fn time(text: &str) -> Timestamp {
    Timestamp::from_millis(text.parse().unwrap())
}

/// The value that is written so in JSON.
fn named<T: serde::de::DeserializeOwned>(name: &str) -> T {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn run_spec(settings: &[&str]) -> RunSpec {
    RunSpec {
        plan: "plan".into(),
        base: Oid::new("base"),
        target: "outlast/r".into(),
        concurrency: value(settings, "concurrency").map_or(8, |n| n.parse().unwrap()),
        auto_land: settings.contains(&"auto"),
        seed: 1,
        budget: Allowed { usd_nanos: value(settings, "usd").map(|n| n.parse().unwrap()), tokens: None },
        hold_max_ms: value(settings, "hold").map(|n| n.parse().unwrap()),
    }
}

/// What the plan says of a task, in words such as `needs=a,b`.
pub(crate) fn task_spec(settings: &[&str]) -> TaskSpec {
    let list = |name| value(settings, name).map_or_else(Vec::new, |list| list.split(',').collect());
    TaskSpec {
        needs: list("needs").into_iter().map(TaskId::from).collect(),
        writes: list("writes").into_iter().map(str::to_owned).collect(),
        agent: AgentName::from("scripted"),
        accounts: list("quota").into_iter().map(AccountId::from).collect(),
        retries: value(settings, "retries").map_or(0, |n| n.parse().unwrap()),
        needs_quota: value(settings, "quota").is_some(),
        startup_retries: value(settings, "startups").map(|n| n.parse().unwrap()),
        empty_retries: value(settings, "empties").map(|n| n.parse().unwrap()),
    }
}

fn value<'a>(settings: &[&'a str], name: &str) -> Option<&'a str> {
    settings.iter().find_map(|setting| setting.strip_prefix(name)?.strip_prefix('='))
}

/// Records in the words in which they are read.
pub(crate) fn show(records: &[Record]) -> Vec<String> {
    let line = |record: &Record| match &record.stream {
        Stream::Run(_) | Stream::Ledger => show_fact(&record.fact),
        Stream::Task(_, task) => format!("{task} {}", show_fact(&record.fact)),
        Stream::Account(account) => format!("account {account} {}", show_fact(&record.fact)),
    };
    records.iter().map(line).collect()
}

fn show_fact(fact: &Fact) -> String {
    let outcome = |outcome: &Outcome| match outcome {
        Outcome::Finished => "finished",
        Outcome::Failed { class, .. } => class.name(),
    };
    match fact {
        Fact::RunStarted(_) => "run".into(),
        Fact::RunPaused => "pause".into(),
        Fact::RunStopped => "stop".into(),
        Fact::RunResumed => "resume".into(),
        Fact::TriedNow => "tried now".into(),
        Fact::BudgetReached(_) => "budget reached".into(),
        Fact::BudgetChanged(allowed) => format!("budget {}", allowed.usd_nanos.unwrap_or(0)),
        Fact::RunFinished { state } => format!("finished {state:?}").to_lowercase(),
        Fact::TaskAdded(_) => "task".into(),
        Fact::AttemptStarted { number, rung, .. } => format!("start {number} {}", show_rung(rung)),
        Fact::WorkspaceReady { number, base } => format!("workspace {number} {base}"),
        Fact::Spawned { number, .. } => format!("spawned {number}"),
        Fact::SessionSeen { number, session } => format!("session {number} {session}"),
        Fact::Held { number, class, .. } => format!("held {number} {class}"),
        Fact::Released { number } => format!("released {number}"),
        Fact::Exchanged { number, .. } => format!("exchanged {number}"),
        Fact::Replayed { number, exchange } => format!("replayed {number} {exchange}"),
        Fact::Checkpointed { number, commit } => format!("checkpointed {number} {commit}"),
        Fact::AttemptExited { number, outcome: o } => format!("exit {number} {}", outcome(o)),
        Fact::AttemptEnding { number, reason } => match reason {
            EndReason::Finished => format!("ending {number} finished"),
            EndReason::Failed { class, .. } => format!("ending {number} {class}"),
            EndReason::Parked => format!("ending {number} parked"),
            EndReason::Limit { class } => format!("ending {number} limit {class}"),
            EndReason::Discarded => format!("ending {number} discarded"),
        },
        Fact::AttemptEnded { number } => format!("ended {number}"),
        Fact::Verified { number, verdict: Verdict::Passed { .. } } => format!("pass {number}"),
        Fact::Verified { number, verdict: Verdict::Failed { class, .. } } => format!("fail {number} {class}"),
        Fact::Assigned(to) => {
            let accounts: Vec<&str> = to.accounts.iter().map(AccountId::as_str).collect();
            format!("assigned {} {}", to.agent, accounts.join(","))
        }
        Fact::LandRequested => "want".into(),
        Fact::LandingStarted { new, .. } => format!("landing {new}"),
        Fact::Landed { commit, was_there: false } => format!("landed {commit}"),
        Fact::Landed { commit, was_there: true } => format!("was there {commit}"),
        Fact::LandingRefused { cause, .. } => format!("refused {}", cause.name()),
        Fact::RetryRequested => "retry".into(),
        Fact::DiscardRequested => "discard".into(),
        Fact::Discarded => "discarded".into(),
        Fact::AccountClosed { class, until, guessed } => {
            format!("closed {class} {}{}", until.as_millis(), if *guessed { " guessed" } else { "" })
        }
        Fact::AccountAnswered => "answered".into(),
        Fact::AccountShut { class } => format!("shut {class}"),
        Fact::AccountOpened => "opened".into(),
        Fact::LedgerCounted { row } => format!("ledger counted {row}"),
    }
}

fn show_rung(rung: &Rung) -> String {
    match rung {
        Rung::Fresh => "fresh".into(),
        Rung::Session(session) => format!("session {session}"),
        Rung::HandOver => "handover".into(),
    }
}
