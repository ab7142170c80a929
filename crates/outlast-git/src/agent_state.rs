//! What a checkpoint's message says of the agent's own repository: where HEAD stands, what is staged, what is under way.
//!
//! It is said in trailers (git-interpret-trailers), so that programs read it too. What the trailers name is held by the
//! checkpoint's parents: the last checkpoint, the agent's HEAD where that is a commit of its own, and the commit beside
//! ([`crate::beside`]).

use std::fmt::Write as _;

use outlast_core::Oid;

use crate::source::Source;
use crate::{Result, Store, oid};

/// The state of an agent's repository at a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentState {
    /// The branch that HEAD names, such as `outlast/payment-client`; `None` where HEAD names none or cannot be kept.
    pub branch: Option<String>,
    /// The commit HEAD stands for; `None` where there is none yet or it cannot be kept.
    pub head: Option<Oid>,
    /// The tree of what is staged, without paths that a merge left open; `None` where there is no index that can be read.
    pub index: Option<Oid>,
    /// How many paths a merge left open.
    pub unmerged: usize,
    /// What the agent has begun and not ended.
    pub in_progress: Vec<InProgress>,
    /// The commit that holds what neither the tree nor HEAD does; `None` where there is nothing of that kind.
    pub beside: Option<Oid>,
}

/// Something that git has begun and waits for the agent to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InProgress {
    /// What it is.
    pub what: Operation,
    /// The commits it is about, as far as it names them.
    pub heads: Vec<Oid>,
}

/// An operation of git's that takes several commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `git merge` with conflicts, or with `--no-commit`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git rebase`; of one that goes by patches, also what an earlier version has called so that was a `git am`.
    Rebase,
    /// `git am`.
    Am,
    /// `git bisect`.
    Bisect,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Merge, Self::CherryPick, Self::Revert, Self::Rebase, Self::Am, Self::Bisect];

    /// The name, as in a checkpoint's message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::Bisect => "bisect",
        }
    }
}

const BRANCH: &str = "Outlast-Branch";
const HEAD: &str = "Outlast-Head";
const INDEX: &str = "Outlast-Index";
const UNMERGED: &str = "Outlast-Unmerged";
const IN_PROGRESS: &str = "Outlast-In-Progress";
const BESIDE: &str = "Outlast-Beside";

impl AgentState {
    /// A commit message with the trailers at its end.
    pub(crate) fn message(&self, subject: &str) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{key}: {value}");
        };
        if let Some(branch) = &self.branch {
            line(BRANCH, branch);
        }
        for (key, id) in [(HEAD, &self.head), (INDEX, &self.index)] {
            if let Some(id) = id {
                line(key, id.as_str());
            }
        }
        if self.unmerged > 0 {
            line(UNMERGED, &self.unmerged.to_string());
        }
        for each in &self.in_progress {
            let words: Vec<&str> =
                std::iter::once(each.what.as_str()).chain(each.heads.iter().map(Oid::as_str)).collect();
            line(IN_PROGRESS, &words.join(" "));
        }
        if let Some(id) = &self.beside {
            line(BESIDE, id.as_str());
        }
        format!("{}\n\n{text}", subject.trim_end()).trim_end().to_owned() + "\n"
    }

    /// Reads the trailers of a checkpoint's message; all of it is empty for one that has none.
    pub(crate) fn parse(message: &str) -> Self {
        let mut state = Self::default();
        let trailers = message.rsplit_once("\n\n").map_or("", |(_, trailers)| trailers);
        for (key, value) in trailers.lines().filter_map(|line| line.split_once(": ")) {
            let id = || oid::parse_text(value).ok().map(oid::of);
            match key {
                BRANCH => state.branch = Some(value.to_owned()),
                HEAD => state.head = id(),
                INDEX => state.index = id(),
                UNMERGED => state.unmerged = value.parse().unwrap_or_default(),
                BESIDE => state.beside = id(),
                IN_PROGRESS => {
                    let mut words = value.split(' ');
                    let name = words.next().unwrap_or_default();
                    let what = Operation::ALL.into_iter().find(|operation| operation.as_str() == name);
                    let heads = words.filter_map(|word| oid::parse_text(word).ok().map(oid::of)).collect();
                    state.in_progress.extend(what.map(|what| InProgress { what, heads }));
                }
                _ => {}
            }
        }
        state
    }
}

impl Store {
    /// What a checkpoint says of the agent's own repository.
    ///
    /// # Errors
    /// There is no such commit.
    pub fn agent_state(&self, checkpoint: &Oid) -> Result<AgentState> {
        Ok(AgentState::parse(&self.reader().message(oid::parse(checkpoint)?)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_all_of_it_and_is_read_again() {
        let id = |digit: &str| Some(Oid::new(digit.repeat(40)));
        let state = AgentState {
            branch: Some("feature/支付".to_owned()),
            head: id("1"),
            index: id("2"),
            unmerged: 3,
            in_progress: vec![
                InProgress { what: Operation::Merge, heads: vec![id("3").unwrap(), id("4").unwrap()] },
                InProgress { what: Operation::Bisect, heads: Vec::new() },
            ],
            beside: id("5"),
        };
        let message = state.message("run/t.1: turn 7\n");
        let heads = format!("{} {}", "3".repeat(40), "4".repeat(40));
        assert!(
            message.starts_with("run/t.1: turn 7\n\nOutlast-Branch: feature/支付\nOutlast-Head: 1111"),
            "{message}"
        );
        assert!(message.contains(&format!("\nOutlast-In-Progress: merge {heads}\n")), "{message}");
        assert_eq!(AgentState::parse(&message), state);
        assert_eq!(AgentState::default().message("turn\n"), "turn\n");
        assert_eq!(AgentState::parse("turn\n"), AgentState::default());
    }
}
