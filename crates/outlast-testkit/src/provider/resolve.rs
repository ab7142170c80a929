//! Finds the scenario that a conversation is about, and how far it has come, from the conversation alone.

use std::collections::BTreeMap;

use crate::digest;
use crate::script::{Action, Scenario, inline_script};
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
    progress.answered += usize::from(is_told_done(since, &scenario, progress.answered));
    Ok(Some(Position {
        scenario,
        conversation: digest(goal.as_bytes()),
        answered: progress.answered,
        unread: progress.unread,
        running: running(since),
    }))
}

/// What a prompt says of a command that was cut off and whose effect is in the files all the same.
const EFFECT: &str = "files have changed since it was asked for";

/// Whether the newest prompt names the command that comes next, and says that it has had an effect: a model that reads so
/// does not run it again.
fn is_told_done(items: &[Item], scenario: &Scenario, answered: usize) -> bool {
    let (_, turn) = scenario.turn(answered);
    match (items.last(), &turn.action) {
        (Some(Item::User { text }), Some(Action::Run { command })) => {
            let told = unquoted(text);
            // The goal may hold the script itself: what is told of the command stands before what is said of its effect.
            told.split_once(EFFECT).is_some_and(|(before, _)| {
                before
                    .rsplit_once("was running when the work stopped")
                    .is_some_and(|(_, named)| named.contains(command))
            })
        }
        _ => false,
    }
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
