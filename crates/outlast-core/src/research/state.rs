//! The research state: what an agent has read, run, changed, decided and still means to do.
//!
//! Every list and every text in it has a bound, so that a state is at most [`STATE_LEN_MAX`] bytes of text however long
//! the conversation is; [`ResearchState::bound`] holds them, and counts what it leaves out. Of most lists the newest
//! entries are the ones that matter; of what the agent said, its first words too, as they hold its plan.

use serde::{Deserialize, Serialize};

use super::bounds::{keep_head, keep_tail};

/// How many files read are kept, the ones read last.
pub const FILES_MAX: usize = 200;
/// How many edited files are kept, the ones edited last.
pub const EDITS_MAX: usize = 200;
/// How many commands are kept, the last ones.
pub const COMMANDS_MAX: usize = 60;
/// How many searches and listings are kept, the last ones.
pub const LOOKUPS_MAX: usize = 30;
/// How many of the agent's own texts are kept: the first few and the last ones.
pub const DECISIONS_MAX: usize = 40;
/// How many of them are the first.
const DECISIONS_FIRST: usize = 8;
/// How many entries of a to-do list are kept, the first ones.
pub const LISTED_MAX: usize = 60;
/// How many sub-agents are kept, the last ones.
pub const SUB_AGENTS_MAX: usize = 30;
/// How many calls without a result are kept, the last ones.
pub const UNANSWERED_MAX: usize = 8;
/// Longest path, in bytes; a file with a longer one is left out, since a cut path is another file's.
pub const PATH_LEN_MAX: usize = 512;
/// Longest command, in bytes, kept from its beginning.
pub const COMMAND_LEN_MAX: usize = 2048;
/// Kept of a command's output, in bytes, its end.
pub const TAIL_LEN_MAX: usize = 1536;
/// Kept of one file's text, in bytes, its beginning.
pub const SHOWN_LEN_MAX: usize = 12 * 1024;
/// Kept of all files' texts together, in bytes; those seen last are kept first.
pub const SHOWN_TOTAL_MAX: usize = 96 * 1024;
/// Kept of one text of the agent, one entry of its list or one search, in bytes, its beginning.
pub const TEXT_LEN_MAX: usize = 800;
/// Kept of a sub-agent's report or of a search's result, in bytes, its beginning.
pub const REPORT_LEN_MAX: usize = 2048;
/// Longest name of a call, a tool or a sub-agent, in bytes.
const NAME_LEN_MAX: usize = 96;
/// Length of a hash as text.
const HASH_LEN: usize = 64;

/// The most text that a state can hold, in bytes: every list full of the longest entries.
pub const STATE_LEN_MAX: usize = FILES_MAX * (PATH_LEN_MAX + HASH_LEN + NAME_LEN_MAX)
    + EDITS_MAX * (PATH_LEN_MAX + HASH_LEN + NAME_LEN_MAX)
    + SHOWN_TOTAL_MAX
    + COMMANDS_MAX * (2 * NAME_LEN_MAX + COMMAND_LEN_MAX + TAIL_LEN_MAX)
    + LOOKUPS_MAX * (TEXT_LEN_MAX + REPORT_LEN_MAX + NAME_LEN_MAX)
    + (DECISIONS_MAX + LISTED_MAX) * TEXT_LEN_MAX
    + SUB_AGENTS_MAX * (NAME_LEN_MAX + TEXT_LEN_MAX + REPORT_LEN_MAX)
    + UNANSWERED_MAX * (2 * NAME_LEN_MAX + COMMAND_LEN_MAX);

/// What an agent knows of its task, taken from its conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResearchState {
    /// Files it read, the one read last at the end.
    pub read: Vec<FileRead>,
    /// Commands it ran, oldest first.
    pub commands: Vec<CommandRun>,
    /// Files it changed with a tool for that, the one changed last at the end. What a command changed is not known here.
    pub edits: Vec<EditMade>,
    /// What it searched for or listed, oldest first.
    pub lookups: Vec<Lookup>,
    /// What it said, oldest first: its reasons and decisions.
    pub decisions: Vec<String>,
    /// Its own list of what is to be done, as it stands now.
    pub todo: Vec<TodoItem>,
    /// Calls that have no result: what was running when the conversation stopped, oldest first.
    pub unanswered: Vec<Unanswered>,
    /// Agents that it started itself, oldest first.
    pub sub_agents: Vec<SubAgent>,
    /// What the bounds left out.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
}

/// A file that the agent read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileRead {
    /// Below the workspace where it lies there, see [`ResearchState::relative_to`].
    pub path: String,
    /// The hash of its whole text as the agent knows it, edits of its own included; absent where it never saw the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The first line that the agent saw, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u64>,
    /// The beginning of what it saw, its own edits included; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether `text` is less than the agent saw.
    #[serde(skip_serializing_if = "is_false")]
    pub cut: bool,
    /// Whether the file was changed since in a way that `text` does not show.
    #[serde(skip_serializing_if = "is_false")]
    pub outdated: bool,
    /// The sub-agent that read it; absent for the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A command that the agent ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandRun {
    /// The call's id.
    pub id: String,
    /// As it was given to the shell.
    pub command: String,
    /// Its exit status, where the agent was told one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// How it ended.
    pub ended: Ended,
    /// The end of its output.
    pub tail: String,
    /// The sub-agent that ran it; absent for the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// How a command ended, as far as the agent was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It is not told.
    #[default]
    Unknown,
    /// With success.
    Ok,
    /// With an error, or it could not be run.
    Failed,
    /// Not yet: it runs in the background.
    Running,
    /// It was cut off: how much of it was done is not known.
    Interrupted,
}

/// A file that the agent changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditMade {
    /// Below the workspace where it lies there.
    pub path: String,
    /// What was done to it, last.
    pub kind: EditKind,
    /// How many edits of it the conversation holds.
    #[serde(default)]
    pub times: u32,
    /// The hash of its whole text after the edit, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The beginning of its text after the edit, where that is known and no [`FileRead`] has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether `text` is less than the whole.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cut: bool,
    /// The sub-agent that changed it; absent for the agent itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditKind {
    /// A part of it was replaced.
    Changed,
    /// It was written whole: created or replaced.
    Written,
    /// It was deleted, or moved away.
    Deleted,
}

/// A search or a listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lookup {
    /// The tool and what it was asked.
    pub what: String,
    /// The beginning of what it found.
    pub found: String,
    /// The sub-agent that asked; absent for the agent itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// An entry of the agent's to-do list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TodoItem {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub state: TodoState,
}

/// How far an entry of a to-do list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    /// Not begun.
    Open,
    /// Begun.
    Begun,
    /// Done.
    Done,
    /// Given up.
    Dropped,
}

/// A tool call whose result the conversation does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unanswered {
    /// The call's id.
    pub id: String,
    /// The tool's name in the CLI.
    pub tool: String,
    /// What it was asked to do: a command as it was given to the shell, a path, or the arguments.
    pub about: String,
    /// Whether `about` is a command.
    pub is_command: bool,
}

/// An agent that the agent started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubAgent {
    /// The id of the call that started it.
    pub id: String,
    /// What it was asked to do.
    pub about: String,
    /// How it ended.
    pub ended: Ended,
    /// The beginning of its report.
    pub report: String,
}

/// At least how many entries the bounds left out, by list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Files read.
    pub read: u32,
    /// Commands.
    pub commands: u32,
    /// Edited files.
    pub edits: u32,
    /// Searches and listings.
    pub lookups: u32,
    /// Texts of the agent.
    pub decisions: u32,
    /// Entries of its to-do list.
    pub todo: u32,
    /// Sub-agents.
    pub sub_agents: u32,
}

impl LeftOut {
    /// What is left out of two states that were put together: `here` and `earlier` before, `now` by putting them together.
    /// What one conversation left out already is not counted again.
    pub(super) fn joined(&self, earlier: &Self, now: &Self) -> Self {
        let of = |here: u32, earlier: u32, now: u32| if here > 0 { here.max(earlier) } else { earlier + now };
        Self {
            read: of(self.read, earlier.read, now.read),
            commands: of(self.commands, earlier.commands, now.commands),
            edits: of(self.edits, earlier.edits, now.edits),
            lookups: of(self.lookups, earlier.lookups, now.lookups),
            decisions: of(self.decisions, earlier.decisions, now.decisions),
            todo: of(self.todo, earlier.todo, now.todo),
            sub_agents: of(self.sub_agents, earlier.sub_agents, now.sub_agents),
        }
    }

    /// Whether everything is there.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over like that")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl ResearchState {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Names files below `workspace` by their path from there, as the repository does.
    pub fn relative_to(&mut self, workspace: &str) {
        let root = workspace.trim_end_matches('/');
        let relative = |path: &mut String| {
            let below = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
            if let Some(below) = below.filter(|below| !root.is_empty() && !below.is_empty()) {
                *path = below.to_owned();
            } else if let Some(here) = path.strip_prefix("./") {
                *path = here.to_owned();
            }
        };
        self.read.iter_mut().for_each(|file| relative(&mut file.path));
        self.edits.iter_mut().for_each(|edit| relative(&mut edit.path));
    }

    /// Cuts every list and text to its bound, and counts the entries that are left out.
    pub fn bound(&mut self) {
        let fits = |path: &str| path.len() <= PATH_LEN_MAX;
        let before = self.read.len();
        self.read.retain(|file| fits(&file.path));
        self.left_out.read += (before - self.read.len()) as u32;
        let before = self.edits.len();
        self.edits.retain(|edit| fits(&edit.path));
        self.left_out.edits += (before - self.edits.len()) as u32;

        self.left_out.read += keep_last(&mut self.read, FILES_MAX);
        self.left_out.commands += keep_last(&mut self.commands, COMMANDS_MAX);
        self.left_out.edits += keep_last(&mut self.edits, EDITS_MAX);
        self.left_out.lookups += keep_last(&mut self.lookups, LOOKUPS_MAX);
        self.left_out.sub_agents += keep_last(&mut self.sub_agents, SUB_AGENTS_MAX);
        keep_last(&mut self.unanswered, UNANSWERED_MAX);
        self.left_out.todo += self.todo.len().saturating_sub(LISTED_MAX) as u32;
        self.todo.truncate(LISTED_MAX);
        let surplus = self.decisions.len().saturating_sub(DECISIONS_MAX);
        if surplus > 0 {
            self.left_out.decisions += surplus as u32;
            self.decisions.drain(DECISIONS_FIRST..DECISIONS_FIRST + surplus);
        }
        self.bound_texts();
        self.bound_shown();
    }

    fn bound_texts(&mut self) {
        for run in &mut self.commands {
            keep_head(&mut run.id, NAME_LEN_MAX);
            keep_head(&mut run.command, COMMAND_LEN_MAX);
            keep_tail(&mut run.tail, TAIL_LEN_MAX);
            bound_name(&mut run.by);
        }
        for lookup in &mut self.lookups {
            keep_head(&mut lookup.what, TEXT_LEN_MAX);
            keep_head(&mut lookup.found, REPORT_LEN_MAX);
            bound_name(&mut lookup.by);
        }
        self.decisions.iter_mut().for_each(|text| keep_head(text, TEXT_LEN_MAX));
        self.todo.iter_mut().for_each(|item| keep_head(&mut item.text, TEXT_LEN_MAX));
        for call in &mut self.unanswered {
            keep_head(&mut call.id, NAME_LEN_MAX);
            keep_head(&mut call.tool, NAME_LEN_MAX);
            keep_head(&mut call.about, COMMAND_LEN_MAX);
        }
        for agent in &mut self.sub_agents {
            keep_head(&mut agent.id, NAME_LEN_MAX);
            keep_head(&mut agent.about, TEXT_LEN_MAX);
            keep_head(&mut agent.report, REPORT_LEN_MAX);
        }
    }

    /// Cuts the texts of files, those seen last kept first; one that does not fit any more is left out whole.
    fn bound_shown(&mut self) {
        let mut room = SHOWN_TOTAL_MAX;
        let mut bound = |text: &mut Option<String>, hash: &mut Option<String>, cut: &mut bool| {
            if let Some(hash) = hash {
                keep_head(hash, HASH_LEN);
            }
            let Some(shown) = text else { return };
            let len = shown.len();
            keep_head(shown, SHOWN_LEN_MAX.min(room));
            *cut |= shown.len() < len;
            room -= shown.len();
            if shown.is_empty() && len > 0 {
                *text = None;
            }
        };
        for file in self.read.iter_mut().rev() {
            bound(&mut file.text, &mut file.hash, &mut file.cut);
            bound_name(&mut file.by);
        }
        for edit in self.edits.iter_mut().rev() {
            bound(&mut edit.text, &mut edit.hash, &mut edit.cut);
            bound_name(&mut edit.by);
        }
    }
}

/// Keeps the last `max` entries; how many were left out.
fn keep_last<T>(list: &mut Vec<T>, max: usize) -> u32 {
    let surplus = list.len().saturating_sub(max);
    list.drain(..surplus);
    surplus as u32
}

fn bound_name(name: &mut Option<String>) {
    if let Some(name) = name {
        keep_head(name, NAME_LEN_MAX);
    }
}
