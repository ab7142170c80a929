//! `outlast status --json`, and the views that share its shapes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A run and everything in it: `outlast/status/v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `outlast/status/v1`.
    pub schema: String,
    /// The run's id.
    pub run: String,
    /// `running`, `parked`, `done`, `degraded`, `stopped` or `failed`.
    pub state: String,
    /// Whether an engine is at work on it right now.
    pub engine: Option<EngineView>,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// The commit that tasks start from.
    pub base: String,
    /// The branch that results land on.
    pub target: String,
    /// How many tasks are in each state; states without a task are left out.
    pub counts: BTreeMap<String, u32>,
    /// Every task, in the plan's order.
    pub tasks: Vec<TaskView>,
    /// Every account that this run's tasks may use.
    pub accounts: Vec<AccountView>,
    /// What was consumed, and what may be.
    pub budget: BudgetView,
}

/// Who works on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineView {
    /// The process id.
    pub pid: u32,
}

/// One task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its id in the plan.
    pub id: String,
    /// One of the contract's task states.
    pub state: String,
    /// Why it is there: a failure class, a landing's cause, or the name of what it waits for.
    pub cause: Option<String>,
    /// The cause, for people.
    pub detail: Option<String>,
    /// What a person can do about it: commands, the first of which is the likeliest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fix: Vec<String>,
    /// Files that its workspace alone holds: they are in no checkpoint and land nowhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What its agent has put away where no HEAD leads to: it is kept, and lands nowhere by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub put_away: Vec<PutAway>,
    /// When it goes on by itself, RFC 3339.
    pub reset_at: Option<String>,
    /// How many attempts were started.
    pub attempts: u32,
    /// Main turns so far.
    pub turns: u32,
    /// How the last attempt took up the work: `fresh`, `session` or `hand_over`.
    pub resumed_by: Option<String>,
    /// Tokens so far.
    pub tokens: TokensView,
    /// Price so far; absent where a part of it is unknown.
    pub usd: Option<f64>,
    /// Its working tree, while there is one.
    pub workspace: Option<String>,
    /// Its branch in its own repository.
    pub branch: Option<String>,
    /// The newest tree that is kept.
    pub checkpoint: Option<String>,
    /// What verify came to: `passed`, `failed`, or absent where it has not run.
    pub verify: Option<String>,
    /// The commit on the target.
    pub landed: Option<String>,
    /// Whether that commit was made for something else, and held its change already.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_there: bool,
    /// Whether somebody has taken that off the target again: the state stays `landed`, and nothing is done anew by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off_target: bool,
}

/// A file that a checkpoint could not take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The path in the workspace; a folder where none of it could be taken.
    pub path: String,
    /// Why, for people.
    pub why: String,
    /// Whether it is inside the task's scope.
    pub in_scope: bool,
}

/// A stash, or commits on a branch or a detached HEAD that an agent has left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutAway {
    /// Its name in the agent's repository: `stash@{0}`, a branch or tag, or `detached-ID`.
    pub name: String,
    /// The commit.
    pub commit: String,
    /// The command that brings it into the user's repository, as a branch.
    pub get_back: String,
}

/// Tokens by kind; a kind that a provider did not state is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensView {
    /// Read by the model, not from a cache.
    pub input: Option<u64>,
    /// Written into a cache.
    pub cache_write: Option<u64>,
    /// Read from a cache.
    pub cache_read: Option<u64>,
    /// Produced.
    pub output: Option<u64>,
    /// Paid for again after interruptions: answers that broke, and what of the first request of an attempt that takes up
    /// earlier work was in no cache; absent where that is not known.
    pub spent_again: Option<u64>,
    /// How many answers named no tokens: the sums are without theirs.
    #[serde(default)]
    pub unmetered: u32,
}

/// One account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountView {
    /// Its name in the user's configuration.
    pub name: String,
    /// What is known of its windows.
    pub windows: Vec<WindowView>,
}

/// One window of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowView {
    /// Which, where the provider said: `minute_limit`, `window_quota`, `overload`, `network`.
    pub kind: Option<String>,
    /// How much is used, where known.
    pub used: Option<u64>,
    /// How much there is, where known.
    pub limit: Option<u64>,
    /// When it opens, RFC 3339.
    pub reset_at: Option<String>,
    /// `open` or `closed`.
    pub state: String,
}

/// Consumption against what the user allows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BudgetView {
    /// Price so far; absent where a part of it is unknown.
    pub usd_used: Option<f64>,
    /// The most it may cost.
    pub usd_limit: Option<f64>,
    /// Tokens so far, as far as they are known.
    pub tokens_used: u64,
    /// How many answers named no tokens: `tokens_used` is without theirs.
    #[serde(default)]
    pub unmetered: u32,
    /// The most it may take, of tokens as they count.
    pub tokens_limit: Option<u64>,
    /// What of the money is left, where there is a limit. What has no known price counts as what was reserved for it.
    #[serde(default)]
    pub usd_left: Option<f64>,
    /// Tokens as they count against the limit: those read from a cache a tenth, unknown ones as they were reserved.
    #[serde(default)]
    pub tokens_counted: u64,
    /// What of the tokens is left, where there is a limit.
    #[serde(default)]
    pub tokens_left: Option<u64>,
    /// How many answers have no known price.
    #[serde(default)]
    pub unpriced: u32,
    /// Set while nothing more goes out.
    #[serde(default)]
    pub reached: Option<ReachedView>,
}

/// Why nothing more goes out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReachedView {
    /// What there is too little of: `usd` or `tokens`; `price` where a budget in money cannot be kept, since the price
    /// is not known and no tokens are allowed in its place.
    pub lack: String,
    /// What the next request may cost; absent where its price is not known.
    pub next_usd: Option<f64>,
    /// What it may take, of tokens as they count.
    pub next_tokens: u64,
}

/// Every run on this machine: `outlast/runs/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// `outlast/runs/v1`.
    pub schema: String,
    /// One line each, the newest first.
    pub runs: Vec<RunLine>,
}

/// One run in one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLine {
    /// The run's id.
    pub run: String,
    /// The repository it works on, where it is known.
    pub repository: Option<String>,
    /// As in [`Status::state`].
    pub state: String,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// How many tasks are in each state.
    pub counts: BTreeMap<String, u32>,
    /// When the first task that waits goes on by itself, RFC 3339, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<String>,
}

/// The five groups of task states that people think in.
pub const GROUPS: [(&str, &[&str]); 5] = [
    ("needs you", &["asking", "done", "stale"]),
    ("working", &["running", "verifying", "landing"]),
    ("waiting", &["held", "parked"]),
    ("queued", &["ready", "pending"]),
    ("finished", &["landed", "failed", "blocked", "discarded"]),
];

/// The group of a task's state; `None` for a word that is no state.
pub fn group_of(state: &str) -> Option<&'static str> {
    GROUPS.iter().find(|(_, states)| states.contains(&state)).map(|(group, _)| *group)
}

#[cfg(test)]
mod tests {
    use super::{GROUPS, group_of};

    #[test]
    fn every_state_of_the_contract_is_in_one_group() {
        let mut states: Vec<&str> = GROUPS.iter().flat_map(|(_, states)| states.iter().copied()).collect();
        states.sort_unstable();
        let contract =
            "asking blocked discarded done failed held landed landing parked pending ready running stale verifying";
        assert_eq!(states.join(" "), contract);
        assert_eq!(
            (group_of("held"), group_of("asking"), group_of("holding")),
            (Some("waiting"), Some("needs you"), None)
        );
    }
}
