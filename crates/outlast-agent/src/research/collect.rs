//! The walk through a conversation that keeps the books of what its calls did.

use std::collections::BTreeMap;

use outlast_core::research::{
    CommandRun, Conversation, Ended, Item, Lookup, ResearchState, Role, SubAgent, TodoItem, TodoState, Unanswered,
};
use serde_json::Value;

use super::files::Files;
use super::patch::FilePatch;
use super::shell::{self, Plain};
use super::{Outcome, Shown, Use, Vocabulary};

/// The research state of a conversation in a CLI's vocabulary, within its bounds.
///
/// A result counts once, however often the conversation repeats it; a call counts once it has a result.
pub(crate) fn collect(conversation: &Conversation, vocabulary: &Vocabulary) -> ResearchState {
    let mut walk = Walk {
        vocabulary,
        folder: working_folder(conversation, vocabulary),
        files: Files::default(),
        state: ResearchState::default(),
        open: Vec::new(),
        sessions: BTreeMap::new(),
    };
    for item in &conversation.items {
        match item {
            Item::Said { role: Role::Assistant, text } => walk.say(text),
            Item::Said { .. } => {}
            Item::Call { id, name, arguments } => walk.call(id, name, arguments),
            Item::Result { id, text, is_error } => walk.result(id, text, *is_error),
        }
    }
    walk.finish()
}

/// What CLIs put in the place of old results to save room.
const CLEARED: [&str; 1] = ["[Old tool result content cleared]"];

/// How many of the first items can name the working directory: instructions, context and the goal.
const LEADING_ITEMS: usize = 8;

/// The working directory as the CLI names it to its model, the newest one.
fn working_folder(conversation: &Conversation, vocabulary: &Vocabulary) -> Option<String> {
    let texts = conversation.items.iter().take(LEADING_ITEMS).filter_map(|item| match item {
        Item::Said { role: Role::System | Role::User, text } => Some(text),
        _ => None,
    });
    let mut named = texts.filter_map(|text| {
        vocabulary.folder_leads.iter().find_map(|lead| {
            let (_, after) = text.split_once(lead)?;
            // What is opened by a quotation mark ends with it.
            let quoted = if lead.ends_with('`') { after.split_once('`')?.0 } else { after };
            let path = quoted.split(['\n', '<']).next()?.trim_end();
            (path.starts_with('/') && path.len() > 1).then(|| path.trim_end_matches('/').to_owned())
        })
    });
    named.next_back()
}

struct OpenCall<'a> {
    id: &'a str,
    tool: &'a str,
    arguments: &'a str,
    uses: Vec<Use>,
}

struct Walk<'a> {
    vocabulary: &'a Vocabulary,
    folder: Option<String>,
    files: Files,
    state: ResearchState,
    /// Calls without a result, oldest first.
    open: Vec<OpenCall<'a>>,
    /// Commands that still run, by the name under which they are looked after, and their place among all commands.
    sessions: BTreeMap<String, usize>,
}

impl<'a> Walk<'a> {
    fn say(&mut self, text: &str) {
        let text = text.trim();
        let made_up = self.vocabulary.made_up.iter().any(|start| text.starts_with(start));
        if !text.is_empty() && !made_up && self.state.decisions.last().is_none_or(|last| last != text) {
            self.state.decisions.push(text.to_owned());
        }
    }

    fn call(&mut self, id: &'a str, tool: &'a str, arguments: &'a str) {
        let parsed: Value = serde_json::from_str(arguments).unwrap_or(Value::Null);
        let uses = (self.vocabulary.uses)(tool, &parsed);
        for text in uses.iter().filter_map(|what| if let Use::Say(text) = what { Some(text) } else { None }) {
            self.say(text);
        }
        // Some dialects send a call again when its conversation goes on.
        if !self.open.iter().any(|open| open.id == id && open.arguments == arguments) {
            self.open.push(OpenCall { id, tool, arguments, uses });
        }
    }

    fn result(&mut self, id: &str, text: &str, is_error: bool) {
        let Some(place) = self.open.iter().position(|open| open.id == id) else { return };
        let open = self.open.remove(place);
        if CLEARED.contains(&text.trim()) {
            return open.uses.iter().for_each(|what| self.settle_cleared(id, what));
        }
        for what in &open.uses {
            let outcome = (self.vocabulary.outcome)(what, text, is_error);
            self.settle(id, what, outcome);
        }
    }

    /// A call whose result is gone. That it was made is known and no more; it is taken for one that was not refused, as
    /// CLIs clear long results, and an earlier turn's state knows better where there is one.
    fn settle_cleared(&mut self, id: &str, what: &Use) {
        match what {
            Use::Shell { command, folder } => {
                self.command(id, command, folder.as_deref(), Outcome::new(Ended::Unknown, ""));
            }
            Use::Read { path, .. } => {
                let path = self.place(path, None);
                self.files.read(&path, None);
            }
            Use::Look(_) | Use::Agent(_) | Use::Poll { .. } => {}
            _ => self.settle(id, what, Outcome::new(Ended::Ok, "")),
        }
    }

    fn settle(&mut self, id: &str, what: &Use, outcome: Outcome<'_>) {
        let ok = outcome.ended == Ended::Ok;
        match what {
            Use::Shell { command, folder } => self.command(id, command, folder.as_deref(), outcome),
            Use::Poll { session } => self.poll(session, &outcome),
            Use::Agent(about) => self.state.sub_agents.push(SubAgent {
                id: id.to_owned(),
                about: about.clone(),
                ended: outcome.ended,
                report: outcome.text.into_owned(),
            }),
            Use::Look(what) if ok => {
                self.state.lookups.push(Lookup { what: what.clone(), found: outcome.text.into_owned(), by: None });
            }
            Use::Read { path, part, from } if ok => {
                let shown = (self.vocabulary.shown)(&outcome.text, *part, *from);
                let path = self.place(path, None);
                self.files.read(&path, shown);
            }
            Use::Write { path, text } if ok => {
                let path = self.place(path, None);
                self.files.written(&path, text);
            }
            Use::Append { path, text } if ok => {
                let path = self.place(path, None);
                self.files.appended(&path, text);
            }
            Use::Edit { path, changes } if ok => {
                let path = self.place(path, None);
                self.files.edited(&path, changes);
            }
            Use::Patch(files) if ok => files.iter().for_each(|file| self.patch(file)),
            Use::Todo(list) if ok => self.state.todo.clone_from(list),
            Use::TodoAdd(text) if ok => {
                self.state.todo.push(TodoItem { text: text.clone(), state: TodoState::Open });
            }
            Use::TodoSet { number, text, state } if ok => {
                let Some(item) = number.checked_sub(1).and_then(|at| self.state.todo.get_mut(at)) else { return };
                if let Some(text) = text {
                    item.text.clone_from(text);
                }
                item.state = state.unwrap_or(item.state);
            }
            Use::Look(_)
            | Use::Read { .. }
            | Use::Write { .. }
            | Use::Append { .. }
            | Use::Edit { .. }
            | Use::Patch(_)
            | Use::Todo(_)
            | Use::TodoAdd(_)
            | Use::TodoSet { .. }
            | Use::Say(_) => {}
        }
    }

    fn command(&mut self, id: &str, command: &str, folder: Option<&str>, outcome: Outcome<'_>) {
        let plain_command = shell::unwrapped(command);
        if outcome.ended == Ended::Ok {
            match shell::plain(&plain_command) {
                Some(Plain::Read { path, from, part, numbered }) => {
                    let path = self.place(&path, folder);
                    let shown = shell::output(&outcome.text, from, numbered).map(|(text, first)| Shown {
                        text,
                        first,
                        whole: !part && !outcome.cut,
                    });
                    return self.files.read(&path, shown);
                }
                Some(Plain::Look) => {
                    let found = outcome.text.into_owned();
                    return self.state.lookups.push(Lookup { what: plain_command, found, by: None });
                }
                None => {}
            }
        }
        if let Some(session) = outcome.session {
            self.sessions.insert(session, self.state.commands.len());
        }
        self.state.commands.push(CommandRun {
            id: id.to_owned(),
            command: plain_command,
            exit: outcome.exit,
            ended: outcome.ended,
            tail: outcome.text.into_owned(),
            by: None,
        });
    }

    /// More of a command that was begun by an earlier call.
    fn poll(&mut self, session: &str, outcome: &Outcome<'_>) {
        let Some(run) = self.sessions.get(session).and_then(|&place| self.state.commands.get_mut(place)) else {
            return;
        };
        run.tail.push_str(&outcome.text);
        run.ended = outcome.ended;
        run.exit = outcome.exit;
    }

    fn patch(&mut self, file: &FilePatch) {
        match file {
            FilePatch::Add { path, text } => {
                let path = self.place(path, None);
                self.files.written(&path, text);
            }
            FilePatch::Update { path, hunks, to } => {
                let to = to.as_ref().map(|to| self.place(to, None));
                let path = self.place(path, None);
                self.files.patched(&path, hunks, to.as_deref());
            }
            FilePatch::Delete { path } => {
                let path = self.place(path, None);
                self.files.deleted(&path);
            }
        }
    }

    fn place(&self, path: &str, folder: Option<&str>) -> String {
        place(self.folder.as_deref(), path, folder)
    }

    fn finish(mut self) -> ResearchState {
        for call in &self.open {
            let unanswered = self.unanswered(call);
            self.state.unanswered.extend(unanswered);
        }
        let Self { mut state, files, .. } = self;
        (state.read, state.edits) = files.finish();
        state.bound();
        state
    }

    /// A call without a result; `None` for one that only keeps the agent's own books.
    fn unanswered(&self, call: &OpenCall<'_>) -> Option<Unanswered> {
        let (about, is_command) = match call.uses.first() {
            Some(Use::Shell { command, .. }) => (shell::unwrapped(command), true),
            Some(Use::Poll { session }) => {
                (self.state.commands.get(*self.sessions.get(session)?)?.command.clone(), true)
            }
            Some(
                Use::Read { path, .. } | Use::Write { path, .. } | Use::Append { path, .. } | Use::Edit { path, .. },
            ) => (self.place(path, None), false),
            Some(Use::Patch(files)) => {
                let paths: Vec<String> = files.iter().map(|file| self.place(patched_path(file), None)).collect();
                (paths.join(", "), false)
            }
            Some(Use::Look(about) | Use::Agent(about)) => (about.clone(), false),
            Some(Use::Todo(_) | Use::TodoAdd(_) | Use::TodoSet { .. } | Use::Say(_)) => return None,
            None => (call.arguments.to_owned(), false),
        };
        Some(Unanswered { id: call.id.to_owned(), tool: call.tool.to_owned(), about, is_command })
    }
}

/// A path from the working directory `root`, where it lies below it; `folder` is where a relative one begins.
fn place(root: Option<&str>, path: &str, folder: Option<&str>) -> String {
    let mut path = path.to_owned();
    if let Some(folder) = folder.filter(|_| !path.starts_with('/')) {
        path = format!("{}/{path}", folder.trim_end_matches('/'));
    }
    let below = root.and_then(|root| path.strip_prefix(root)).and_then(|rest| rest.strip_prefix('/'));
    let path = below.unwrap_or(&path);
    path.strip_prefix("./").unwrap_or(path).to_owned()
}

fn patched_path(file: &FilePatch) -> &str {
    match file {
        FilePatch::Add { path, .. } | FilePatch::Update { path, .. } | FilePatch::Delete { path } => path,
    }
}
