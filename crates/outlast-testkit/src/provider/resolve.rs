//! Finds the scenario that a conversation is about, and how far it has come, from the conversation alone.

use std::collections::BTreeMap;

use crate::digest;
use crate::script::{Action, Scenario, Turn, inline_script};
use crate::wire::{Call, Conversation, Item};

#[cfg(test)]
mod tests;

/// Where a conversation stands.
#[derive(Debug)]
pub(super) struct Position {
    pub scenario: Scenario,
    /// The same for all requests of one goal, different for different goals with the same script.
    pub conversation: String,
    /// How many tool calls have been answered since the goal.
    pub answered: usize,
    /// The last call was refused because its file must be read first.
    pub unread: bool,
    /// A shell session whose command still runs, as the last tool result says.
    pub running: Option<u64>,
}

/// A way to name a scenario in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    Named(String),
    Inline(String),
}

/// Finds the position; `Ok(None)` when the prompt names no scenario and there is no fallback.
///
/// The newest goal counts. A goal that is repeated (a resumed session is told it again) goes on from where it was.
pub(super) fn position(
    conversation: &Conversation,
    scenarios: &BTreeMap<String, Scenario>,
    fallback: Option<&str>,
) -> Result<Option<Position>, String> {
    let marks: Vec<(usize, Mark, &str)> = conversation
        .items
        .iter()
        .enumerate()
        .filter_map(|(index, item)| match item {
            Item::User { text } => mark(text).map(|mark| (index, mark, text.as_str())),
            _ => None,
        })
        .collect();
    let (goal_at, mark, goal) = match marks.last() {
        Some((_, newest, _)) => {
            let first = marks.iter().rposition(|(_, mark, _)| mark != newest).map_or(0, |before| before + 1);
            marks[first].clone()
        }
        None => match fallback {
            Some(name) => (0, Mark::Named(name.to_owned()), ""),
            None => return Ok(None),
        },
    };
    let scenario = match &mark {
        Mark::Named(name) => scenarios.get(name).cloned().ok_or_else(|| format!("no scenario is named `{name}`"))?,
        Mark::Inline(script) => Scenario::parse(format!("inline-{}", &digest(script.as_bytes())[..8]), script)
            .map_err(|error| error.to_string())?,
    };
    let since = &conversation.items[goal_at.min(conversation.items.len())..];
    let mut progress = progress(since);
    progress.answered += told_done(since, &scenario);
    Ok(Some(Position {
        scenario,
        conversation: digest(goal.as_bytes()),
        answered: progress.answered,
        unread: progress.unread,
        running: running(since),
    }))
}

/// What a prompt says of a call that was cut off and whose effect is in the files all the same.
const EFFECT: &str = "files have changed since ";
/// What stands before a list of what was done last, for a session that may have lost it.
const DONE_LAST: &str = "Done last before that";

/// How many calls the prompts say to be made that the conversation does not know as made: a model that reads so does not
/// make them again.
fn told_done(items: &[Item], scenario: &Scenario) -> usize {
    let mut told = 0;
    for (at, item) in items.iter().enumerate() {
        if let Item::User { text } = item {
            let before = &items[..at];
            told += usize::from(is_told_done(&unquoted(text), before, scenario, progress(before).answered + told));
        }
    }
    told
}

/// Whether a prompt says that the call which comes next is made.
fn is_told_done(told: &str, before: &[Item], scenario: &Scenario, answered: usize) -> bool {
    let Some(action) = &scenario.turn(answered).1.action else { return false };
    match action {
        Action::Run { command } => {
            effect_of(told, "was running when the work stopped").is_some_and(|(named, _)| named.contains(command))
        }
        Action::Edit { path, new: text, .. } | Action::Write { path, text } | Action::Append { path, text } => {
            let changes_it = |turn: &Turn| turn.action.as_ref().and_then(Action::changes) == Some(path.as_str());
            // Of a file that was changed before, too, nobody can say which of the changes is told of.
            let is_first = !scenario.turns().iter().take(answered).any(changes_it);
            changed_it(told, path) || is_first && lost_it(told, path, before, text)
        }
        Action::Read { .. } | Action::Local(_) => false,
    }
}

/// What is told of calls that were cut off, after this lead, and of their effect.
fn effect_of<'a>(told: &'a str, lead: &str) -> Option<(&'a str, &'a str)> {
    // The goal may hold the script itself: what is told of the call stands before what is said of its effect.
    let (before, effect) = told.split_once(EFFECT)?;
    Some((before.rsplit_once(lead)?.1, effect))
}

/// A call that changes this file was cut off, and the file has changed.
fn changed_it(told: &str, path: &str) -> bool {
    let listed =
        |text: &str, is: &dyn Fn(&str) -> bool| text.lines().skip(1).map_while(|line| line.strip_prefix("- ")).any(is);
    effect_of(told, "had no result yet when the work stopped").is_some_and(|(named, effect)| {
        listed(named, &|line| line.ends_with(path)) && listed(effect, &|line| line.starts_with(&format!("{path} (")))
    })
}

/// The file was changed, and the conversation that goes on knows of no call that has put this text there.
fn lost_it(told: &str, path: &str, items: &[Item], text: &str) -> bool {
    let was_changed =
        told.rsplit_once(DONE_LAST).is_some_and(|(_, acts)| acts.contains(&format!("- the file {path} was ")));
    let last = text.lines().last().unwrap_or_default();
    let puts = |item: &Item| matches!(item, Item::Call(call) if call.argument_texts().contains(last));
    was_changed && !items.iter().any(puts)
}

fn mark(text: &str) -> Option<Mark> {
    if let Some(script) = inline_script(&unquoted(text)) {
        return Some(Mark::Inline(script));
    }
    let (_, rest) = text.split_once("[[scenario:")?;
    let (name, _) = rest.split_once("]]")?;
    Some(Mark::Named(name.trim().to_owned()))
}

/// Undoes the quotation that opencode puts around a prompt with spaces: `"` in front and behind, `\"` inside.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('"').and_then(|text| text.trim_end().strip_suffix('"')) {
        Some(inner) => inner.replace("\\\"", "\""),
        None => text.to_owned(),
    }
}

/// How far the calls have come.
#[derive(Debug, Default, PartialEq, Eq)]
struct Progress {
    answered: usize,
    unread: bool,
}

/// Counts the calls that have a result. Repeated results count once; a call that was interrupted, or refused because its
/// file must be read first, not at all: it is made again, the latter after the reading, which counts for nothing.
fn progress(items: &[Item]) -> Progress {
    let mut open: Vec<&Call> = Vec::new();
    let mut progress = Progress::default();
    for item in items {
        match item {
            Item::Call(call) if is_poll(&call.name) => {}
            Item::Call(call) => {
                if !std::mem::take(&mut progress.unread) {
                    open.push(call);
                }
            }
            Item::Result { id, text, .. } => {
                let Some(place) = open.iter().position(|call| call.id == *id) else { continue };
                let call = open.remove(place);
                progress.unread = must_read_first(call, text);
                progress.answered += usize::from(!was_interrupted(text) && !progress.unread);
            }
            Item::User { .. } | Item::Assistant { .. } => {}
        }
    }
    progress
}

/// How claude and qwen refuse to change a file that the session has not seen.
fn must_read_first(call: &Call, result: &str) -> bool {
    let changes = ["Edit", "Write", "edit", "replace", "write_file"].contains(&call.name.as_str());
    changes && result.contains("has not been read")
}

/// The tool that only waits for a command of an earlier call.
fn is_poll(tool: &str) -> bool {
    tool == "write_stdin"
}

/// How codex and opencode mark the call that was running when they were killed.
fn was_interrupted(result: &str) -> bool {
    matches!(result.trim(), "aborted" | "[Tool execution was interrupted]")
}

/// The session that codex names when a command outlives its call.
fn running(items: &[Item]) -> Option<u64> {
    let Some(Item::Result { text, .. }) = items.last() else { return None };
    // What follows is the command's own output, which may say anything.
    let (head, _) = text.split_once("\nOutput:").unwrap_or((text, ""));
    let (_, rest) = head.split_once("Process running with session ID ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}
