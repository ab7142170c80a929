//! Agents that do the same over and over: each turn's tool calls are compared with those of the turns before it.
//!
//! A turn is without progress when its calls were made in one of the last turns already and the tree has not changed since.
//! What a tool brings back is not looked at: output that differs by a time or a process id would hide every loop.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use outlast_core::hash::fnv1a;
use outlast_core::research::{Conversation, Item};
use outlast_core::{AttemptId, Oid};

use crate::turns::Turn;

/// How many turns back a call counts as a repetition: loops of two and three calls are seen.
const LOOKED_BACK: usize = 6;

/// What every living attempt has done lately.
#[derive(Debug, Default)]
pub(crate) struct Loops(Mutex<BTreeMap<AttemptId, Lately>>);

#[derive(Debug, Default)]
struct Lately {
    /// The newest turn that was counted: a request that is sent again is no other turn.
    turn: u32,
    tree: Option<Oid>,
    acts: VecDeque<u64>,
    without_progress: u32,
}

impl Loops {
    /// Takes a turn in; how many turns in a row have been without progress by now.
    pub(crate) fn turn(&self, turn: &Turn, tree: &Oid, conversation: &Conversation) -> u32 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = all.entry(turn.id.clone()).or_default();
        if turn.number <= lately.turn {
            return lately.without_progress;
        }
        lately.turn = turn.number;
        let acts = acts(conversation);
        let is_new = acts.is_none_or(|acts| !lately.acts.contains(&acts)) || lately.tree.as_ref() != Some(tree);
        lately.without_progress = if is_new { 0 } else { lately.without_progress + 1 };
        if lately.tree.as_ref() != Some(tree) {
            lately.acts.clear();
            lately.tree = Some(tree.clone());
        }
        if let Some(acts) = acts {
            lately.acts.push_back(acts);
            if lately.acts.len() > LOOKED_BACK {
                lately.acts.pop_front();
            }
        }
        lately.without_progress
    }

    /// Forgets an attempt that is over.
    pub(crate) fn forget(&self, id: &AttemptId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// The calls of the last turn, as one number; nothing where it made none.
fn acts(conversation: &Conversation) -> Option<u64> {
    let mut items = conversation.items.iter().rev().skip_while(|item| !matches!(item, Item::Call { .. })).peekable();
    items.peek()?;
    let mut text = String::new();
    for item in items {
        let Item::Call { name, arguments, .. } = item else { break };
        text.push_str(name);
        text.push('\0');
        text.push_str(arguments);
        text.push('\0');
    }
    Some(fnv1a(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use outlast_core::research::Role;
    use outlast_core::{Epoch, RunId, TaskId};

    use super::*;

    /// What comes of a row of turns, each a call and the tree after it.
    fn counted(turns: &[(&str, &str)]) -> Vec<u32> {
        let loops = Loops::default();
        let id = AttemptId { run: RunId::new("r"), task: TaskId::new("t"), number: 1 };
        let mut conversation = Conversation::default();
        conversation.items.push(Item::Said { role: Role::User, text: "do it".to_owned() });
        let mut counts = Vec::new();
        for (at, (call, tree)) in turns.iter().enumerate() {
            let (call_id, name) = (at.to_string(), "Bash".to_owned());
            let text = format!("output {at}");
            conversation.items.push(Item::Call { id: call_id.clone(), name, arguments: (*call).to_owned() });
            conversation.items.push(Item::Result { id: call_id, text, is_error: false });
            let number = u32::try_from(at).unwrap() + 2;
            let turn = Turn { id: id.clone(), epoch: Epoch(1), number };
            counts.push(loops.turn(&turn, &Oid::new(*tree), &conversation));
            assert_eq!(loops.turn(&turn, &Oid::new(*tree), &conversation), *counts.last().unwrap(), "sent again");
        }
        counts
    }

    #[test]
    fn the_same_call_over_and_over_is_counted_until_something_changes() {
        assert_eq!(counted(&[("ls", "x"); 5]), [0, 1, 2, 3, 4]);
        assert_eq!(counted(&[("ls", "x"), ("ls", "x"), ("ls", "y"), ("ls", "y")]), [0, 1, 0, 1], "the tree");
        assert_eq!(counted(&[("ls", "x"), ("ls", "x"), ("cat a", "x"), ("ls", "x")]), [0, 1, 0, 1], "the call");
    }

    #[test]
    fn a_round_of_several_calls_is_a_loop_too() {
        let round = [("ls", "x"), ("cat a", "x"), ("make", "x")];
        assert_eq!(counted(&round.repeat(3)), [0, 0, 0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn reading_one_file_after_another_is_none() {
        let files: Vec<String> = (0..50).map(|n| format!("cat file-{n}")).collect();
        let turns: Vec<(&str, &str)> = files.iter().map(|call| (call.as_str(), "x")).collect();
        assert!(counted(&turns).iter().all(|count| *count == 0));
    }
}
