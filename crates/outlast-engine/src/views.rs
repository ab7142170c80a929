//! What scripts and faces see of the state. The same views come from a running engine and from a journal alone.

use std::collections::BTreeMap;
use std::path::Path;

use outlast_api::{
    AccountView, BudgetView, Diagnostic, EngineView, ReachedView, RunLine, Status, TaskView, TokensView, WindowView,
    rfc3339, schema,
};
use outlast_core::budget::Lack;
use outlast_core::explain::Why;
use outlast_core::record::{EndReason, RunEnd, Rung};
use outlast_core::run::{Mode, Run};
use outlast_core::task::{Failure, Phase, Stage, Task};
use outlast_core::{Class, Core, Oid, TaskId, Timestamp, Usage, Window, total};

use crate::advice::fixes;
use crate::held_up::{self, Tried};
use crate::home::RepoHome;
use crate::left_out;
use crate::obstacle::Obstacle;
use crate::put_away;

/// Billionths of a dollar in a dollar.
const NANOS: f64 = 1e9;

/// The cause of what comes to nothing each time that an engine tries it.
pub const TRIED_AGAIN: &str = "tried_again";

/// What keeps a run from going on and is no record.
#[derive(Default)]
struct InTheWay {
    /// Of everything.
    obstacle: Option<Obstacle>,
    /// Of single tasks.
    tried: Vec<Tried>,
}

impl InTheWay {
    fn of(home: &RepoHome) -> Self {
        Self { obstacle: Obstacle::of(home), tried: held_up::load(&home.tried()) }
    }

    /// What everything waits for, where this task does.
    fn obstacle(&self, core: &Core, run: &Run, task: &Task, now: Timestamp) -> Option<&Obstacle> {
        self.obstacle.as_ref().filter(|_| would_go_on(core, run, task, now))
    }

    /// What is done with a task and comes to nothing.
    fn tried(&self, run: &Run, task: &Task) -> Option<&Diagnostic> {
        let is_under_way = match task.state() {
            "running" | "verifying" | "landing" => true,
            "done" => run.lands_next(),
            _ => false,
        };
        let of = |tried: &&Tried| tried.run == run.id && tried.task == task.id;
        self.tried.iter().find(of).filter(|_| is_under_way).map(|tried| &tried.told)
    }
}

/// What a run that is being worked on by an engine, or was, leaves undone for now: what comes to nothing each time. Nothing
/// where nothing of it is alive or half done.
pub fn left_undone(run: &Run, home: &RepoHome) -> Option<Diagnostic> {
    let way = InTheWay::of(home);
    let of = |task: &Task| {
        let is_alive = matches!(task.phase, Phase::Live(_) | Phase::Landing { .. } | Phase::Discarding);
        let obstacle = way.obstacle.as_ref().filter(|_| is_alive);
        obstacle.map(|obstacle| obstacle.told(Some(&run.id), None)).or_else(|| way.tried(run, task).cloned())
    };
    run.tasks.iter().find_map(of)
}

/// A run as `status --json` shows it; `found` is where its repository is now, where it was moved and is found.
pub fn status(
    core: &Core,
    run: &Run,
    home: &RepoHome,
    engine: Option<u32>,
    found: Option<&Path>,
    now: Timestamp,
) -> Status {
    let mut way = InTheWay::of(home);
    // An engine that has read the copy of the plan needs it no more, and tells of one that it cannot read.
    if engine.is_none() {
        way.obstacle = way.obstacle.or_else(|| Obstacle::of_run(home, run));
    }
    let tasks: Vec<TaskView> =
        run.tasks.iter().map(|task| task_view(core, run, task, home, &way, found, now)).collect();
    Status {
        schema: schema("status"),
        run: run.id.to_string(),
        state: state_on(core, run, &way, now).to_owned(),
        engine: engine.map(|pid| EngineView { pid }),
        started_at: rfc3339(run.started_at),
        base: run.spec.base.to_string(),
        target: run.spec.target.clone(),
        counts: counts(core, run, &way, now),
        accounts: accounts(core, run),
        budget: budget(run),
        tasks,
    }
}

/// A run in one line.
pub fn run_line(core: &Core, run: &Run, home: &RepoHome, repository: Option<String>, now: Timestamp) -> RunLine {
    let way = &InTheWay::of(home);
    RunLine {
        run: run.id.to_string(),
        repository,
        state: state_on(core, run, way, now).to_owned(),
        started_at: rfc3339(run.started_at),
        counts: counts(core, run, way, now),
        reset_at: first_reset(core, run, now).map(rfc3339),
    }
}

/// When the first of the tasks that wait goes on by itself, where that is known.
pub fn first_reset(core: &Core, run: &Run, now: Timestamp) -> Option<Timestamp> {
    let waits = |task: &&Task| matches!(task.state(), "held" | "parked" | "ready");
    run.tasks.iter().filter(waits).filter_map(|task| reason(core, run, task, &InTheWay::default(), now).until).min()
}

/// The run's state in the contract.
///
/// A run whose tasks a person changed after its end (landed, discarded) is told by what they are now.
pub fn state(core: &Core, run: &Run, now: Timestamp) -> &'static str {
    match run.mode {
        Mode::Running if run.waits_for_budget() || only_waits(core, run, now) => "parked",
        Mode::Running => "running",
        Mode::Paused => "parked",
        Mode::Stopped => "stopped",
        Mode::Finished(_) if run.tasks.iter().all(|task| is_good(run, task)) => "done",
        Mode::Finished(RunEnd::Done) => "done",
        Mode::Finished(RunEnd::Degraded) => "degraded",
        Mode::Finished(RunEnd::Failed) => "failed",
    }
}

/// As [`state`], where something may be in the way of everything: nothing goes on then.
fn state_on(core: &Core, run: &Run, way: &InTheWay, now: Timestamp) -> &'static str {
    let is_waiting = |task: &Task| way.obstacle(core, run, task, now).is_some();
    match state(core, run, now) {
        "running" if run.tasks.iter().any(is_waiting) => "parked",
        state => state,
    }
}

/// Whether a task goes on when nothing is in the way of everything any more. Why a task waits takes a look at all the others:
/// not for each of ten thousand where nothing is.
fn would_go_on(core: &Core, run: &Run, task: &Task, now: Timestamp) -> bool {
    match task.state() {
        "running" | "verifying" | "landing" => true,
        "ready" => matches!(core.explain(&run.id, &task.id, now), None | Some(Why::Starting | Why::NoRoom { .. })),
        "done" => matches!(core.explain(&run.id, &task.id, now), Some(Why::LandingQueue)),
        _ => false,
    }
}

/// Whether a task has got where the plan wants it.
fn is_good(run: &Run, task: &Task) -> bool {
    task.is_on_target() || matches!(task.phase, Phase::Done(_)) && !run.spec.auto_land
}

/// Whether everything that is left waits for a provider, for the hours of its accounts, for its budget, or for the time
/// at which it is tried again.
fn only_waits(core: &Core, run: &Run, now: Timestamp) -> bool {
    if run.lands_next() {
        return false;
    }
    let mut waits = false;
    for task in &run.tasks {
        match task.state() {
            "held" | "parked" => waits = true,
            "running" | "verifying" | "landing" => return false,
            "ready" => match core.explain(&run.id, &task.id, now) {
                Some(Why::Quota { .. } | Why::Person { .. } | Why::Budget | Why::Retry { .. }) => waits = true,
                _ => return false,
            },
            _ => {}
        }
    }
    waits
}

/// The task's state in the contract. The check of a stopped run's work waits until the run goes on; where something is in
/// the way of everything an agent is held with its next request, and what we do ourselves waits.
fn task_state(core: &Core, run: &Run, task: &Task, way: &InTheWay, now: Timestamp) -> &'static str {
    let is_waiting = way.obstacle(core, run, task, now).is_some();
    match &task.phase {
        Phase::Verifying { .. } if run.mode == Mode::Stopped => "parked",
        Phase::Live(attempt) if is_waiting && attempt.stage == Stage::Working && attempt.shim.is_some() => "held",
        Phase::Live(_) | Phase::Verifying { .. } | Phase::Landing { .. } | Phase::Discarding if is_waiting => "parked",
        _ => task.state(),
    }
}

fn counts(core: &Core, run: &Run, way: &InTheWay, now: Timestamp) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for task in &run.tasks {
        *counts.entry(task_state(core, run, task, way, now).to_owned()).or_default() += 1;
    }
    counts
}

fn task_view(
    core: &Core,
    run: &Run,
    task: &Task,
    home: &RepoHome,
    way: &InTheWay,
    found: Option<&Path>,
    now: Timestamp,
) -> TaskView {
    let mut reason = reason(core, run, task, way, now);
    let obstacle = way.obstacle(core, run, task, now);
    let mut fix = match (obstacle, way.tried(run, task)) {
        (Some(obstacle), _) => obstacle.fixes(found),
        (None, Some(told)) => told.fix.clone(),
        (None, None) => fixes(core, run, task, home),
    };
    let left_out = left_out::left_out(home, run, task);
    // What is in the way of everything is gone first: it is told once for all tasks.
    if !left_out.is_empty() && obstacle.is_none() {
        let what = left_out::in_words(&left_out);
        reason.detail = Some(reason.detail.map_or_else(|| what.clone(), |detail| format!("{detail}; {what}")));
        fix.extend(left_out::fix(home, run, task, &left_out));
    }
    // What is put away for a moment is taken out again by whoever is at work.
    let put_away = if task.is_busy() { Vec::new() } else { put_away::put_away(home, run, task) };
    if !put_away.is_empty() && obstacle.is_none() {
        let what = put_away::in_words(&put_away);
        reason.detail = Some(reason.detail.map_or_else(|| what.clone(), |detail| format!("{detail}; {what}")));
        fix.extend(put_away.iter().map(|away| away.get_back.clone()));
    }
    let workspace = home.workspace(&run.id, &task.id);
    TaskView {
        id: task.id.to_string(),
        state: task_state(core, run, task, way, now).to_owned(),
        cause: reason.cause,
        detail: reason.detail,
        fix,
        left_out,
        put_away,
        reset_at: reason.until.map(rfc3339),
        attempts: task.attempts,
        turns: task.turns,
        resumed_by: task.resumed_by.as_ref().map(rung),
        tokens: tokens(task),
        usd: usd(&task.usage),
        workspace: workspace.is_dir().then(|| workspace.display().to_string()),
        branch: (task.attempts > 0).then(|| format!("outlast/{}", task.id.slug())),
        checkpoint: task.checkpoint.as_ref().map(ToString::to_string),
        verify: verify(task),
        landed: match &task.phase {
            Phase::Landed { commit, .. } => Some(commit.to_string()),
            _ => None,
        },
        was_there: matches!(task.phase, Phase::Landed { was_there: true, .. }),
        // The journal says what happened; where the branch is now, the repository does.
        off_target: false,
    }
}

struct Reason {
    cause: Option<String>,
    detail: Option<String>,
    until: Option<Timestamp>,
}

fn reason(core: &Core, run: &Run, task: &Task, way: &InTheWay, now: Timestamp) -> Reason {
    let say =
        |cause: &str, detail: String, until| Reason { cause: Some(cause.to_owned()), detail: Some(detail), until };
    let none = Reason { cause: None, detail: None, until: None };
    let failure = |failure: Option<Failure>, until| match failure {
        Some(failure) => say(failure.class.name(), failure.why, until),
        None => Reason { cause: None, detail: None, until },
    };
    if let Some(obstacle) = way.obstacle(core, run, task, now) {
        return say(obstacle.cause(), obstacle.detail(), None);
    }
    if let Some(told) = way.tried(run, task) {
        return say(TRIED_AGAIN, format!("{}; it is tried again", told.what), None);
    }
    if let Some((cause, detail)) = ending(task) {
        return say(cause, detail.to_owned(), None);
    }
    if let Phase::Landed { commit, was_there: true, .. } = &task.phase {
        return Reason { detail: Some(was_there(run, task, commit)), ..none };
    }
    if task.phase == Phase::Stale {
        return say("need_given_up", built_on(run, task), None);
    }
    match core.explain(&run.id, &task.id, now) {
        Some(Why::Needs { tasks }) => say("needs", format!("waits for {}", names(&tasks)), None),
        Some(Why::NoRoom { concurrency }) => say("no_room", format!("all {concurrency} slots are taken"), None),
        Some(Why::Scope { task }) => say("scope", format!("`{task}` may change the same files"), None),
        Some(Why::Quota { account, until, class: Class::Hours }) => {
            say("hours", format!("account `{account}` is used at other hours"), Some(until))
        }
        // The class says whether a window is used up, the provider is overloaded or the network is gone.
        Some(Why::Quota { account, until, class }) => {
            say(class.name(), format!("account `{account}` is closed"), Some(until))
        }
        Some(Why::Person { account, class }) => {
            let what = match class {
                Class::Billing => "has to be paid for",
                _ => "is refused: its key or login is not taken",
            };
            say(class.name(), format!("account `{account}` {what}; nothing is started for it until you say so"), None)
        }
        Some(Why::Budget) => say("own_budget", "the run's budget is reached".to_owned(), None),
        Some(Why::Retry { until, failure: f }) if run.mode == Mode::Running => failure(f, Some(until)),
        // Nothing goes on by itself, whatever the time was that it waited for.
        Some(Why::Retry { failure: f, .. }) => {
            let last = f.map(|f| format!("; its last try: {}: {}", f.class, f.why)).unwrap_or_default();
            say("paused", format!("{}{last}", halted(run)), None)
        }
        Some(Why::Paused) => say("paused", halted(run).to_owned(), None),
        Some(Why::Held(held)) => say(held.class.name(), "its request waits at the gateway".to_owned(), held.until),
        Some(Why::LandingRefused { cause, detail }) => say(cause.name(), detail, None),
        Some(Why::Failed { failure: f }) => failure(f, None),
        Some(Why::Blocked { by }) => say("blocked", format!("`{by}` came to no result"), None),
        // No engine is there to start it, or its turn has just come.
        Some(Why::Starting) => task.parked_for.map_or(none, |class| {
            say(class.name(), "its agent was parked while its request waited".to_owned(), task.parked_until)
        }),
        Some(Why::Working | Why::Verifying | Why::Review | Why::LandingQueue | Why::Over) | None => none,
    }
}

/// That nothing of a run goes on until a person says so.
fn halted(run: &Run) -> &'static str {
    match run.mode {
        Mode::Stopped => "the run is stopped",
        _ => "the run is paused",
    }
}

/// That what a task changes was there without it, and by whose commit that is so.
fn was_there(run: &Run, task: &Task, commit: &Oid) -> String {
    let short = commit.as_str().get(..10).unwrap_or_else(|| commit.as_str());
    match landed_with(run, &task.id, commit) {
        Some(other) => format!("its change was already there: {short} landed with `{other}`"),
        None => format!("its change was already there: {short}"),
    }
}

/// The task whose own commit this is, other than the one that was found to have landed by it.
pub fn landed_with<'a>(run: &'a Run, task: &TaskId, commit: &Oid) -> Option<&'a TaskId> {
    let is_own =
        |phase: &Phase| matches!(phase, Phase::Landed { commit: known, was_there: false, .. } if known == commit);
    run.tasks.iter().find(|other| other.id != *task && is_own(&other.phase)).map(|other| &other.id)
}

/// What a stale task was built on that is given up since.
fn built_on(run: &Run, task: &Task) -> String {
    let gone = |need: &&Task| matches!(need.phase, Phase::Discarding | Phase::Discarded | Phase::Stale);
    let need = task.spec.needs.iter().filter_map(|need| run.task(need)).find(gone);
    need.map_or_else(
        || "what it was built on is given up".to_owned(),
        |need| match need.phase {
            Phase::Stale => format!("it was built on `{}`, which is stale", need.id),
            _ => format!("it was built on `{}`, which is discarded", need.id),
        },
    )
}

/// What an attempt is being ended for that was at work: its state stays `running` until no process of it lives.
fn ending(task: &Task) -> Option<(&'static str, &'static str)> {
    let cause = match &task.attempt()?.stage {
        Stage::Ending(EndReason::Parked | EndReason::Limit { .. }) => "parking",
        Stage::Ending(EndReason::Discarded) => "discarding",
        _ => return None,
    };
    Some((cause, "its work is being kept and its processes are being ended"))
}

fn names(tasks: &[outlast_core::TaskId]) -> String {
    tasks.iter().map(|task| format!("`{task}`")).collect::<Vec<_>>().join(", ")
}

fn rung(rung: &Rung) -> String {
    let name = match rung {
        Rung::Fresh => "fresh",
        Rung::Session(_) => "session",
        Rung::HandOver => "hand_over",
    };
    name.to_owned()
}

/// Tokens by kind: where no exchange was metered, none is known.
fn tokens(task: &Task) -> TokensView {
    let usage = &task.usage;
    let known = |tokens| (usage.exchanges > usage.unmetered || usage.exchanges == 0).then_some(tokens);
    TokensView {
        input: known(usage.input),
        cache_write: known(usage.cache_write),
        cache_read: known(usage.cache_read),
        output: known(usage.output),
        spent_again: task.paid_again.tokens(task.attempts),
        unmetered: usage.unmetered,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a price for people: 2^53 billionths are nine million dollars")]
fn usd(usage: &Usage) -> Option<f64> {
    usage.price().map(|nanos| nanos as f64 / NANOS)
}

fn verify(task: &Task) -> Option<String> {
    let failed = task.last_failure.as_ref().is_some_and(|failure| failure.class == Class::Verify);
    match (task.result().is_some(), failed) {
        (true, _) => Some("passed".to_owned()),
        (false, true) => Some("failed".to_owned()),
        (false, false) => None,
    }
}

fn accounts(core: &Core, run: &Run) -> Vec<AccountView> {
    let mut names: Vec<_> = run.tasks.iter().flat_map(|task| &task.spec.accounts).collect();
    names.sort();
    names.dedup();
    let windows = |name| match core.accounts.get(name) {
        Some(Window::Closed { class, until, .. }) => vec![WindowView {
            kind: Some(class.name().to_owned()),
            used: None,
            limit: None,
            reset_at: Some(rfc3339(*until)),
            state: "closed".to_owned(),
        }],
        Some(Window::Shut { class }) => vec![WindowView {
            kind: Some(class.name().to_owned()),
            used: None,
            limit: None,
            reset_at: None,
            state: "closed".to_owned(),
        }],
        Some(Window::Probing { class, .. }) => vec![WindowView {
            kind: Some(class.name().to_owned()),
            used: None,
            limit: None,
            reset_at: None,
            state: "probing".to_owned(),
        }],
        Some(Window::Open) | None => {
            vec![WindowView { kind: None, used: None, limit: None, reset_at: None, state: "open".to_owned() }]
        }
    };
    names.into_iter().map(|name| AccountView { name: name.to_string(), windows: windows(name) }).collect()
}

fn budget(run: &Run) -> BudgetView {
    let (usage, purse) = (total(run), &run.purse);
    let left = |limit: Option<u64>, spent: u64| limit.map(|limit| limit.saturating_sub(spent));
    let lack = |lack| match lack {
        Lack::Usd => "usd",
        Lack::Tokens => "tokens",
        Lack::Price => "price",
    };
    BudgetView {
        usd_used: usd(&usage),
        usd_limit: purse.allowed.usd_nanos.map(dollars),
        tokens_used: usage.total_tokens(),
        unmetered: usage.unmetered,
        tokens_limit: purse.allowed.tokens,
        // What an answer without a price has cost is not known, and so neither is what is left.
        usd_left: left(purse.allowed.usd_nanos, purse.spent.usd_nanos).filter(|_| usage.unpriced == 0).map(dollars),
        tokens_counted: purse.spent.tokens,
        tokens_left: left(purse.allowed.tokens, purse.spent.tokens),
        unpriced: usage.unpriced,
        reached: purse.reached.map(|reached| ReachedView {
            lack: lack(reached.lack).to_owned(),
            next_usd: reached.wants.usd_nanos.map(dollars),
            next_tokens: reached.wants.tokens,
        }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a price for people: 2^53 billionths are nine million dollars")]
fn dollars(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}
