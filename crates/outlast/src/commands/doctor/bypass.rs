//! Files of the repository that an agent's CLI would read by itself: they could send requests past the gateway, sign them
//! with another credential, or start something unasked. Told with how an adapter keeps each of them out.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use outlast_agent::{Kind, adapter};
use outlast_core::plan::Plan;

use super::found::Found;
use super::settings::{Effects, Format, effects};

/// Larger files are no settings.
const FILE_MAX: u64 = 1024 * 1024;

/// Settings files, whose CLI reads them, and how they are written.
const SETTINGS: [(&str, &[Kind], Format); 11] = [
    (".claude/settings.json", &[Kind::ClaudeCode], Format::Json),
    (".claude/settings.local.json", &[Kind::ClaudeCode], Format::Json),
    (".mcp.json", &[Kind::ClaudeCode], Format::Json),
    (".codex/config.toml", &[Kind::Codex], Format::Toml),
    ("opencode.json", &[Kind::OpenCode], Format::Json),
    ("opencode.jsonc", &[Kind::OpenCode], Format::Json),
    (".gemini/settings.json", &[Kind::Gemini], Format::Json),
    (".gemini/.env", &[Kind::Gemini], Format::Variables),
    (".qwen/settings.json", &[Kind::Qwen], Format::Json),
    (".qwen/.env", &[Kind::Qwen], Format::Variables),
    (".env", &[Kind::Gemini, Kind::Qwen, Kind::Kimi], Format::Variables),
];

/// Files and folders that start something by being there, whose CLI takes them up, what they hold, and what `inherit`
/// calls them.
const THERE: [(&str, &[Kind], &str, Option<&str>); 12] = [
    (".claude/skills", &[Kind::ClaudeCode, Kind::OpenCode, Kind::Kimi], "skills", Some("skills")),
    (".claude/agents", &[Kind::ClaudeCode], "agents", None),
    (".claude/commands", &[Kind::ClaudeCode], "commands", None),
    (".codex/hooks.json", &[Kind::Codex], "hooks", None),
    (".codex/skills", &[Kind::Kimi], "skills", Some("skills")),
    (".agents/skills", &[Kind::Codex, Kind::OpenCode, Kind::Gemini, Kind::Qwen, Kind::Kimi], "skills", Some("skills")),
    (".opencode", &[Kind::OpenCode], "settings, plugins, agents and commands", None),
    (".gemini/extensions", &[Kind::Gemini], "extensions", None),
    (".gemini/skills", &[Kind::Gemini], "skills", Some("skills")),
    (".qwen/extensions", &[Kind::Qwen], "extensions", None),
    (".qwen/skills", &[Kind::Qwen], "skills", Some("skills")),
    (".kimi/skills", &[Kind::Kimi], "skills", Some("skills")),
];

/// Instruction files and whose CLI reads them when `inherit` names `memory`.
const MEMORY: [(&str, &[Kind]); 6] = [
    ("CLAUDE.md", &[Kind::ClaudeCode, Kind::OpenCode]),
    (".claude/CLAUDE.md", &[Kind::ClaudeCode]),
    ("AGENTS.md", &[Kind::Codex, Kind::OpenCode, Kind::Qwen, Kind::Kimi]),
    (".kimi/AGENTS.md", &[Kind::Kimi]),
    ("QWEN.md", &[Kind::Qwen]),
    ("GEMINI.md", &[Kind::Gemini]),
];

/// Every such file that is there.
pub(crate) fn look(root: &Path, plan: Option<&Plan>) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, kinds, format) in SETTINGS {
        found.extend(settings(root, file, kinds, format, plan));
    }
    for (file, kinds, what, part) in THERE {
        if root.join(file).exists() {
            let fate = fate(kinds, plan, part);
            found.push(Found::ok(format!("file {file}"), format!("{what} for {}: {fate}", names(kinds))));
        }
    }
    for (file, kinds) in MEMORY {
        if root.join(file).is_file() {
            found.push(Found::ok(format!("file {file}"), memory(kinds, plan)));
        }
    }
    found
}

fn settings(root: &Path, file: &str, kinds: &[Kind], format: Format, plan: Option<&Plan>) -> Option<Found> {
    let title = format!("file {file}");
    let text = match read(&root.join(file))? {
        Ok(text) => text,
        Err(why) => return Some(Found::warning(title, format!("{why}; {}", kept_out(kinds)))),
    };
    let Some(Effects { sets, moves }) = effects(format, &text) else {
        let what = format!("what it sets for {} cannot be told; {}", names(kinds), kept_out(kinds));
        return Some(Found::ok(title, what));
    };
    if sets.is_empty() {
        return None;
    }
    let (readers, sets, fate) = (names(kinds), sets.join(", "), fate(kinds, plan, Some("hooks")));
    if moves {
        let found = Found::warning(title, format!("would take {readers} past the gateway: {sets}; {fate}"));
        return Some(found.fix("find out who put it there; under outlast it has no effect"));
    }
    Some(Found::ok(title, format!("{readers}: {sets}; {fate}")))
}

/// A file's text; nothing where there is none, and why it is not read where it is not.
fn read(path: &Path) -> Option<Result<String, String>> {
    let facts = path.metadata().ok()?;
    if !facts.is_file() {
        return None;
    }
    if facts.len() > FILE_MAX {
        return Some(Err(format!("it is {} bytes long and was not read", facts.len())));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut bytes));
    let text =
        read.map_err(|error| error.to_string()).and_then(|_| String::from_utf8(bytes).map_err(|e| e.to_string()));
    Some(text)
}

fn names(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// What keeps a file out, by the word of each adapter.
fn kept_out(kinds: &[Kind]) -> String {
    let by: Vec<&str> = kinds.iter().map(|&kind| adapter(kind).capabilities().strongest_layer).collect();
    let mut by_once = by.clone();
    by_once.dedup();
    format!("kept out by {}", by_once.join("; "))
}

/// The agents of the plan, of one of these kinds, that inherit a part of what the repository sets.
fn inheriting<'p>(kinds: &[Kind], plan: Option<&'p Plan>, part: &str) -> Vec<&'p str> {
    let agents = plan.into_iter().flat_map(|plan| &plan.agents);
    let of_kind = agents.filter(|(_, agent)| Kind::from_name(&agent.kind).is_some_and(|kind| kinds.contains(&kind)));
    // A server of an MCP file is inherited by its own name.
    let named = |entry: &String| entry == part || (part == "hooks" && entry.starts_with("mcp:"));
    of_kind.filter(|(_, agent)| agent.inherit.iter().any(named)).map(|(name, _)| name.as_str()).collect()
}

fn fate(kinds: &[Kind], plan: Option<&Plan>, part: Option<&str>) -> String {
    let inherited = part.map(|part| inheriting(kinds, plan, part)).unwrap_or_default();
    if inherited.is_empty() {
        return kept_out(kinds);
    }
    format!("{}, but for what `inherit` names for {}", kept_out(kinds), inherited.join(", "))
}

fn memory(kinds: &[Kind], plan: Option<&Plan>) -> String {
    let inherited = inheriting(kinds, plan, "memory");
    let always = if kinds.contains(&Kind::Gemini) { "always read by gemini" } else { "read by no agent" };
    let whom = if inherited.is_empty() { always.to_owned() } else { format!("read by {}", inherited.join(", ")) };
    format!("instructions for {}: {whom}; `inherit = [\"memory\"]` decides", names(kinds))
}
