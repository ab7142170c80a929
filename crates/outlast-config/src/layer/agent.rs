//! Reading `[agent.NAME]`.

use std::collections::BTreeMap;

use outlast_core::AgentName;
use outlast_core::placeholder::{self, Part};
use outlast_core::plan::Span;

use super::{Texts, over};
use crate::document::{Table, Value};
use crate::reader::{Located, Reader};
use crate::{Code, keys, suggest};

/// An `[agent.NAME]` table.
#[derive(Debug, Clone)]
pub(crate) struct AgentLayer {
    pub(crate) at: Span,
    pub(crate) kind: Option<Located<String>>,
    pub(crate) model: Option<Located<String>>,
    pub(crate) accounts: Option<Texts>,
    pub(crate) inherit: Option<Texts>,
    pub(crate) command: Option<Texts>,
    pub(crate) env: BTreeMap<String, Located<String>>,
}

impl AgentLayer {
    /// Puts `above` on top, key by key.
    pub(super) fn overlay(&mut self, above: Self) {
        over(&mut self.kind, above.kind);
        over(&mut self.model, above.model);
        over(&mut self.accounts, above.accounts);
        over(&mut self.inherit, above.inherit);
        over(&mut self.command, above.command);
        self.env.extend(above.env);
    }
}

pub(super) fn read_all(reader: &mut Reader<'_>, agents: &Table) -> BTreeMap<AgentName, AgentLayer> {
    let mut read: BTreeMap<AgentName, AgentLayer> = BTreeMap::new();
    for entry in &agents.entries {
        let Value::Table(table) = &entry.node.value else {
            let message = format!("`agent.{}` is {}, not a table", entry.key, entry.node.value.kind());
            reader.note(Code::WrongType, entry.node.at, message, format!("write `[agent.{}]`", entry.key));
            continue;
        };
        reader.check_name("agent", &entry.key, entry.key_at, read.keys().map(AgentName::as_str));
        read.insert(AgentName::new(&entry.key), read_one(reader, table, &entry.key, entry.key_at));
    }
    read
}

fn read_one(reader: &mut Reader<'_>, table: &Table, name: &str, at: usize) -> AgentLayer {
    reader.check_keys(table, &format!("`[agent.{name}]`"), keys::AGENT);
    AgentLayer {
        at: reader.span(at),
        kind: read_kind(reader, table),
        model: reader.text(table, "model"),
        accounts: reader.texts(table, "accounts"),
        inherit: read_inherit(reader, table),
        command: read_command(reader, table),
        env: read_env(reader, table),
    }
}

fn read_kind(reader: &mut Reader<'_>, table: &Table) -> Option<Located<String>> {
    let kind = reader.text(table, "kind")?;
    if !keys::KINDS.contains(&kind.value.as_str()) {
        let message = format!("no agent is of the kind `{}`", kind.value);
        reader.note(Code::BadValue, &kind.at, message, suggest::advice(&kind.value, keys::KINDS.iter().copied()));
    }
    Some(kind)
}

fn read_inherit(reader: &mut Reader<'_>, table: &Table) -> Option<Texts> {
    let inherit = reader.texts(table, "inherit")?;
    for item in &inherit.value {
        let server = item.value.strip_prefix("mcp:").is_some_and(|name| !name.is_empty());
        if !server && !keys::INHERIT.contains(&item.value.as_str()) {
            let message = format!("`inherit` cannot hold `{}`", item.value);
            reader.note(Code::BadValue, &item.at, message, "give \"memory\", \"skills\", \"hooks\" or \"mcp:NAME\"");
        }
    }
    Some(inherit)
}

fn read_command(reader: &mut Reader<'_>, table: &Table) -> Option<Texts> {
    let command = reader.texts(table, "command")?;
    if command.value.first().is_none_or(|program| program.value.is_empty()) {
        reader.note(
            Code::AgentCommand,
            &command.at,
            "`command` names no program",
            "give [\"prog\", \"--flag\", \"{goal_file}\"]",
        );
    }
    if let Some((program, arguments)) = command.value.split_first() {
        if placeholder::parts(&program.value).iter().any(|part| !matches!(part, Part::Text(_))) {
            let message = format!("the program of `command` is `{}`, and no placeholder can name one", program.value);
            reader.note(Code::UnknownPlaceholder, &program.at, message, "name the program itself");
        }
        for argument in arguments {
            check_placeholders(reader, "command", argument);
        }
    }
    Some(command)
}

/// Notes the first word in braces that is no placeholder: no agent could be launched with it.
fn check_placeholders(reader: &mut Reader<'_>, key: &str, text: &Located<String>) {
    let Some(name) = placeholder::unknown(&text.value) else { return };
    let message = format!("`{{{name}}}` in `{key}` is no placeholder");
    let meant = suggest::nearest(name, placeholder::NAMES).map(|near| format!("did you mean `{{{near}}}`? "));
    let known = placeholder::NAMES.map(|name| format!("{{{name}}}")).join(" ");
    let fix = format!("{}there are {known}; for the text itself write `{{{{{name}}}}}`", meant.unwrap_or_default());
    reader.note(Code::UnknownPlaceholder, &text.at, message, fix);
}

fn read_env(reader: &mut Reader<'_>, table: &Table) -> BTreeMap<String, Located<String>> {
    let mut env = BTreeMap::new();
    let Some(variables) = reader.table(table, "env") else {
        return env;
    };
    for entry in &variables.entries {
        if let Some((code, fault)) = env_fault(&entry.key) {
            reader.note(code, entry.key_at, format!("`env` cannot set `{}`: {fault}", entry.key), "remove it");
        } else if let Some(text) = reader.text(variables, &entry.key) {
            check_placeholders(reader, "env", &text);
            env.insert(entry.key.clone(), text);
        }
    }
    env
}

/// Variables a plan may not set: ours, and those that name a credential or lead requests past the gateway.
fn env_fault(name: &str) -> Option<(Code, &'static str)> {
    const SECRETS: [&str; 6] = ["_API_KEY", "_AUTH_TOKEN", "_OAUTH_TOKEN", "_BASE_URL", "_API_BASE", "_PROXY"];
    let upper = name.to_ascii_uppercase();
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some((Code::BadValue, "it is no variable's name"));
    }
    if upper.starts_with("OUTLAST_") {
        return Some((Code::BadValue, "the name is outlast's own"));
    }
    SECRETS
        .iter()
        .any(|end| upper.ends_with(end))
        .then_some((Code::UserOnly, "it is a credential, an address or a proxy"))
}
