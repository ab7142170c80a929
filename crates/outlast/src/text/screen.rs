//! A run on one screen: what needs a person first, what works, what waits and until when, and which command helps.

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::Style;
use outlast_api::status::GROUPS;
use outlast_api::{Status, TaskView};
use outlast_core::Timestamp;
use outlast_engine::{DISK_FULL, PLAN_DAMAGED, REPOSITORY_GONE, STORE_GONE};
use outlast_git::word;

use crate::text::budget;
use crate::text::{BOLD, DIM, GREEN, RED, YELLOW, count, duration, shown, styled};

/// How many tasks of a group are named before the rest is summed up: a screen holds about forty lines.
const NAMED_MAX: usize = 12;

/// From how many on tasks share a line, and how many of them are named in it.
const ALIKE_MIN: usize = 6;
const ALIKE_NAMED: usize = 3;

/// The group of what only a person can decide.
const NEEDS_YOU: &str = GROUPS[0].0;
/// The group of what nothing more comes of.
const FINISHED: &str = GROUPS[4].0;

/// The whole screen.
pub(crate) fn status(status: &Status, now: Timestamp) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "{}  {}  {} ▸ {}",
        styled(BOLD, &status.run),
        styled(state_style(&status.state), &status.state),
        short(&status.base),
        status.target
    );
    let engine = match &status.engine {
        Some(engine) => format!("engine: process {}", engine.pid),
        None => "no engine is running".to_owned(),
    };
    let _ = writeln!(
        text,
        "{}",
        styled(DIM, format!("{engine} · {} · {}", budget::in_words(&status.budget), accounts(status, now)))
    );
    for (group, states) in GROUPS {
        let is_of_it = |task: &&TaskView| match task.off_target {
            // Only a person can say whether that is meant.
            true => group == NEEDS_YOU,
            false if is_empty(task) => group == FINISHED,
            false => states.contains(&task.state.as_str()),
        };
        let mut tasks: Vec<&TaskView> = status.tasks.iter().filter(is_of_it).collect();
        if tasks.is_empty() {
            continue;
        }
        // What did not get there is what is looked for.
        tasks.sort_by_key(|task| !matches!(task.state.as_str(), "failed" | "blocked"));
        let _ = writeln!(text, "\n{} ({})", styled(BOLD, group), how_many(&tasks));
        let alike = alike(&tasks);
        for same in alike.iter().take(NAMED_MAX) {
            let task = same[0];
            let _ = writeln!(text, "  {}", line(same, status.engine.is_some(), now));
            // It is the same for all of them, and said once below.
            if !is_in_the_way(task) {
                text.push_str(&fixes(&task.fix));
            }
        }
        let more: usize = alike.iter().skip(NAMED_MAX).map(Vec::len).sum();
        if more > 0 {
            let all = format!("and {more} more; all of them: outlast status --json {}", status.run);
            let _ = writeln!(text, "  {}", styled(DIM, all));
        }
    }
    if let Some(task) = status.tasks.iter().find(|task| is_in_the_way(task)) {
        let what = task.detail.as_deref().unwrap_or_default();
        let _ = writeln!(text, "\n{}\n{}", styled(YELLOW, shown(what)), fixes(&task.fix).trim_end());
        let _ = writeln!(text, "nothing is lost, no task fails and no try is used for it");
    }
    if let Some(reached) = budget::reached(status) {
        let _ = writeln!(text, "\n{}", styled(YELLOW, reached));
    }
    for command in advice(status) {
        let _ = writeln!(text, "\n{command}");
    }
    text
}

/// How many tasks a group has, and how many of them are in which state where they are not all in one.
fn how_many(tasks: &[&TaskView]) -> String {
    let mut states: Vec<(&str, usize)> = Vec::new();
    for task in tasks {
        match states.iter_mut().find(|(state, _)| *state == task.state) {
            Some((_, times)) => *times += 1,
            None => states.push((&task.state, 1)),
        }
    }
    match states.as_slice() {
        [_] => tasks.len().to_string(),
        several => several.iter().map(|(state, times)| format!("{times} {state}")).collect::<Vec<_>>().join(", "),
    }
}

/// Tasks of which the same is to be said, together, where not each of them has a line: sixty agents that wait for one account are
/// one thing to know.
fn alike<'a>(tasks: &[&'a TaskView]) -> Vec<Vec<&'a TaskView>> {
    if tasks.len() <= NAMED_MAX {
        return tasks.iter().map(|task| vec![*task]).collect();
    }
    let mut groups: Vec<Vec<&TaskView>> = Vec::new();
    let mut known = HashMap::new();
    for task in tasks {
        let said = (&task.state, &task.cause, &task.detail, &task.reset_at, &task.fix, task.off_target);
        let group = *known.entry(said).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(task),
            None => groups.push(vec![task]),
        }
    }
    let shares_a_line = |group: &Vec<&TaskView>| group.len() >= ALIKE_MIN;
    let (shared, few): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares_a_line);
    let each = few.into_iter().flatten().map(|task| vec![task]);
    // What is special is looked for among the many.
    each.chain(shared).collect()
}

/// Tasks of which the same is to be said, in one line. Nothing goes on by itself where no engine is at work.
fn line(tasks: &[&TaskView], is_at_work: bool, now: Timestamp) -> String {
    let task = tasks[0];
    // What an attempt is being ended for says more than that it still runs.
    let ending = task.cause.as_deref().filter(|cause| matches!(*cause, "parking" | "discarding"));
    let state = ending.unwrap_or(&task.state);
    let mut text = format!("{} {}", styled(task_style(state), format!("{state:<10}")), names(tasks));
    let is_alone = tasks.len() == 1;
    if is_alone && task.attempts > 1 {
        let _ = write!(text, "  attempt {}", task.attempts);
    }
    if is_alone && task.turns > 0 {
        let _ = write!(text, "  {}", count(task.turns as usize, "turn"));
    }
    if let Some(landed) = task.landed.as_ref().filter(|_| is_alone) {
        let _ = write!(text, "  {}", styled(DIM, short(landed)));
    }
    if let Some(cause) = task.cause.as_ref().filter(|_| ending.is_none()) {
        let _ = write!(text, "  {}", styled(YELLOW, cause));
    }
    if let Some(detail) = task.detail.as_ref().filter(|_| !is_in_the_way(task)) {
        let _ = write!(text, ": {}", shown(detail));
    }
    if let Some(until) = task.reset_at.as_deref().and_then(seconds_until(now)) {
        let when = match (is_at_work, until > 0) {
            (true, _) => format!("goes on in {}", duration(until)),
            (false, true) => format!("due in {}, once it is resumed", duration(until)),
            (false, false) => "due as soon as it is resumed".to_owned(),
        };
        let _ = write!(text, "  {}", styled(BOLD, when));
    }
    text
}

/// A task by its name, or some of several and how many there are.
fn names(tasks: &[&TaskView]) -> String {
    match tasks {
        [task] => task.id.clone(),
        several => {
            let first: Vec<&str> = several.iter().take(ALIKE_NAMED).map(|task| task.id.as_str()).collect();
            format!("{} tasks ({}, …)", several.len(), first.join(", "))
        }
    }
}

/// Whether a task's result changes nothing that the target does not hold: there is nothing to decide.
fn is_empty(task: &TaskView) -> bool {
    task.state == "done" && task.cause.as_deref() == Some("empty")
}

/// Whether a task goes on when nothing is in the way of everything, and not before.
fn is_in_the_way(task: &TaskView) -> bool {
    matches!(task.cause.as_deref(), Some(DISK_FULL | PLAN_DAMAGED | REPOSITORY_GONE | STORE_GONE))
}

/// What to do about a task that a person has to look at.
pub(crate) fn fixes(fixes: &[String]) -> String {
    let mut text = String::new();
    for (index, fix) in fixes.iter().enumerate() {
        let lead = if index == 0 { "do:" } else { "or:" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "             {lead} {}", styled(BOLD, shown(fix)));
    }
    text
}

/// The seconds from `now` to an RFC 3339 time.
fn seconds_until(now: Timestamp) -> impl Fn(&str) -> Option<i64> {
    move |at| {
        let at: jiff::Timestamp = at.parse().ok()?;
        Some((at.as_millisecond() - now.as_millis()) / 1000)
    }
}

fn accounts(status: &Status, now: Timestamp) -> String {
    let closed = status.accounts.iter().filter_map(|account| {
        let window = account.windows.iter().find(|window| window.state == "closed")?;
        let until = window.reset_at.as_deref().and_then(seconds_until(now));
        Some(match until {
            Some(left) if left > 0 => format!("account `{}` opens in {}", account.name, duration(left)),
            Some(_) => format!("account `{}` is due to open", account.name),
            None => format!("account `{}` waits for you", account.name),
        })
    });
    let closed: Vec<String> = closed.collect();
    if closed.is_empty() { "accounts open".to_owned() } else { closed.join(", ") }
}

/// Which commands help now.
fn advice(status: &Status) -> Vec<String> {
    let mut advice = Vec::new();
    let mut say =
        |command: String, what: &str| advice.push(format!("{}  {}", styled(BOLD, command), styled(DIM, what)));
    let run = &status.run;
    if status.tasks.iter().any(|task| task.state == "done" && !is_empty(task)) {
        say(format!("outlast diff --run {run} state:done"), "shows what waits for you");
        say(format!("outlast land --run {run} state:done"), &format!("lands it on {}", status.target));
    }
    let own = format!("outlast/{run}");
    if status.target == own && status.tasks.iter().any(|task| task.landed.is_some()) {
        say(format!("git merge {own}"), "takes what has landed over into the branch that is checked out");
    }
    let goes_on = matches!(status.state.as_str(), "running" | "parked" | "stopped");
    if status.engine.is_none() && goes_on && status.budget.reached.is_none() {
        say(format!("outlast resume {run}"), "goes on where it was");
    }
    let is_halted = status.tasks.iter().any(|task| task.cause.as_deref() == Some("paused"));
    if status.engine.is_some() && is_halted {
        say(format!("outlast resume {run}"), "goes on where it was");
    }
    let waits = status.tasks.iter().any(|task| task.reset_at.is_some());
    let is_stuck = status.tasks.iter().any(is_in_the_way);
    if status.engine.is_some() && status.state == "parked" && (waits || is_stuck) {
        say(format!("outlast stop {run}"), "ends the engine and keeps all work; else it goes on by itself");
    }
    if status.engine.is_some() && waits {
        say(format!("outlast resume {run}"), "tries now, if you know that the limit is over");
    }
    let failed: Vec<&TaskView> = status.tasks.iter().filter(|task| task.state == "failed").collect();
    if let [task, others @ ..] = failed.as_slice() {
        let id = word(&task.id);
        say(format!("outlast log --run {run} {id}"), "shows what happened to it");
        match others {
            [] => say(format!("outlast retry --run {run} {id}"), "tries it again, with its work as it is"),
            _ => say(format!("outlast retry --run {run} state:failed"), "tries them again, with their work as it is"),
        }
    }
    advice
}

/// An object id as people quote it.
pub(crate) fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

pub(crate) fn state_style(state: &str) -> Style {
    match state {
        "done" => GREEN,
        "failed" => RED,
        "degraded" | "parked" | "stopped" => YELLOW,
        _ => BOLD,
    }
}

pub(crate) fn task_style(state: &str) -> Style {
    match state {
        "landed" | "done" => GREEN,
        "failed" | "blocked" | "stale" => RED,
        "held" | "parked" | "parking" | "asking" => YELLOW,
        "running" | "verifying" | "landing" => BOLD,
        _ => DIM,
    }
}

#[cfg(test)]
mod tests;
