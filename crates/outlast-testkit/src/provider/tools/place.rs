//! Where the agent works, as its CLI tells its model.

use crate::wire::{Conversation, Item};

/// The working directory, as the CLIs tell their models; `None` when none is told.
pub(super) fn working_directory(conversation: &Conversation) -> Option<String> {
    // Codex says a new directory in a new message, so the newest counts there.
    let texts = conversation.items.iter().filter_map(|item| match item {
        Item::User { text } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = std::iter::once(conversation.system.as_str()).chain(texts).collect();
    let newest = texts.iter().rev().find_map(|text| after(text, "<cwd>"));
    newest.or_else(|| {
        let leads = [
            "orking directory: ",
            "working in the directory: ",
            "**Workspace Directories:**\n  - ",
            "orking directory is `",
        ];
        texts.iter().find_map(|text| leads.iter().find_map(|lead| after(text, lead)))
    })
}

/// The absolute path that follows a lead-in.
fn after(text: &str, lead: &str) -> Option<String> {
    let (_, rest) = text.split_once(lead)?;
    // What is opened by a quotation mark ends with it.
    let rest = if lead.ends_with('`') { rest.split_once('`')?.0 } else { rest };
    let path = rest.split(['\n', '<']).next()?.trim();
    path.starts_with('/').then(|| path.to_owned())
}

pub(super) fn absolute(cwd: Option<&str>, path: &str) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => format!("{}/{path}", cwd.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}
