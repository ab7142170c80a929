//! Typed values out of the common tree; whatever does not fit becomes a finding and reads as absent.

use std::time::Duration;

use outlast_core::TaskId;
use outlast_core::plan::Span;

use crate::document::{Entry, Node, Table, Value};
use crate::keys::{self, LATER, USER_ONLY};
use crate::{Code, Finding, Source, suggest, units};

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: Span,
}

/// Where a finding belongs.
pub(crate) enum Place<'p> {
    Offset(usize),
    Span(&'p Span),
}

impl From<usize> for Place<'_> {
    fn from(at: usize) -> Self {
        Self::Offset(at)
    }
}

impl<'p> From<&'p Span> for Place<'p> {
    fn from(at: &'p Span) -> Self {
        Self::Span(at)
    }
}

/// Reads one file's tree, and collects what is wrong with it.
pub(crate) struct Reader<'a> {
    pub(crate) source: &'a Source,
    pub(crate) findings: Vec<Finding>,
    /// The task whose keys are being read.
    pub(crate) task: Option<TaskId>,
    /// The file is the user's own, so it may name credentials, addresses and ceilings.
    trusted: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the user's own configuration.
    pub(crate) fn trusted(source: &'a Source) -> Self {
        Self { source, findings: Vec::new(), task: None, trusted: true }
    }

    /// A reader of a file that comes with a repository.
    pub(crate) fn untrusted(source: &'a Source) -> Self {
        Self { trusted: false, ..Self::trusted(source) }
    }

    pub(crate) fn span(&self, at: usize) -> Span {
        self.source.span(at)
    }

    pub(crate) fn located<T>(&self, value: T, at: usize) -> Located<T> {
        Located { value, at: self.span(at) }
    }

    /// Notes a finding at a byte offset or at a place read before.
    pub(crate) fn note<'p>(
        &mut self,
        code: Code,
        at: impl Into<Place<'p>>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let at = match at.into() {
            Place::Offset(at) => self.span(at),
            Place::Span(at) => at.clone(),
        };
        let mut finding = Finding::new(code, Some(&at), message).fix(fix);
        finding.task = self.task.clone();
        self.findings.push(finding);
    }

    /// Notes every key that `place` does not know.
    pub(crate) fn check_keys(&mut self, table: &Table, place: &str, known: &[&str]) {
        for Entry { key, key_at, .. } in &table.entries {
            if known.contains(&key.as_str()) {
                continue;
            }
            if !self.trusted && USER_ONLY.contains(&key.as_str()) {
                let message = format!("`{key}` in {place} belongs to your own configuration");
                let fix = "move it to your config.toml; a plan names accounts in `accounts`";
                self.note(Code::UserOnly, *key_at, message, fix);
            } else if LATER.contains(&key.as_str()) {
                let message = format!("`{key}` in {place} is not supported yet");
                self.note(Code::NotSupportedYet, *key_at, message, format!("remove `{key}`"));
            } else {
                let message = format!("unknown key `{key}` in {place}");
                let fix = match keys::homes(key) {
                    Some(homes) => format!("`{key}` is a key of {homes}"),
                    None => suggest::advice(key, known.iter().copied()),
                };
                self.note(Code::UnknownKey, *key_at, message, fix);
            }
        }
    }

    /// Notes a table's name that could be no folder's, or that differs from another only in case.
    pub(crate) fn check_name<'n>(
        &mut self,
        what: &str,
        name: &str,
        at: usize,
        mut others: impl Iterator<Item = &'n str>,
    ) {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fault = if name.is_empty() || name.len() > NAME_LEN_MAX {
            "has to be 1 to 64 bytes long"
        } else if !name.chars().all(allowed) || name.starts_with(['.', '-']) {
            "may hold ASCII letters, digits, `-`, `_` and `.`, and begins with a letter or digit"
        } else if others.any(|other| other.eq_ignore_ascii_case(name)) {
            "differs from another only in case, and folders are named after both"
        } else {
            return;
        };
        let message = format!("the {what} name `{}` {fault}", name.escape_debug());
        self.note(Code::BadValue, at, message, "choose another name");
    }

    fn wrong(&mut self, entry: &Entry, wanted: &str) {
        let message = format!("`{}` is {}, not {}", entry.key, entry.node.value.kind(), wanted);
        self.note(Code::WrongType, entry.node.at, message, format!("give {wanted}"));
    }

    fn bad(&mut self, entry: &Entry, shown: &str, wanted: &str) {
        let message = format!("`{}` cannot be `{shown}`", entry.key);
        self.note(Code::BadValue, entry.node.at, message, format!("give {wanted}"));
    }

    /// The table under a key.
    pub(crate) fn table<'t>(&mut self, parent: &'t Table, key: &str) -> Option<&'t Table> {
        let entry = find(parent, key)?;
        match &entry.node.value {
            Value::Table(table) => Some(table),
            _ => {
                self.wrong(entry, "a table");
                None
            }
        }
    }

    /// A string.
    pub(crate) fn text(&mut self, table: &Table, key: &str) -> Option<Located<String>> {
        let entry = find(table, key)?;
        if let Some(text) = as_text(&entry.node) {
            return Some(self.located(text.to_owned(), entry.node.at));
        }
        self.wrong(entry, "a string");
        None
    }

    /// A list of strings.
    pub(crate) fn texts(&mut self, table: &Table, key: &str) -> Option<Located<Vec<Located<String>>>> {
        let entry = find(table, key)?;
        let Value::List(items) = &entry.node.value else {
            self.wrong(entry, "a list of strings, such as [\"…\"]");
            return None;
        };
        let mut texts = Vec::new();
        for item in items {
            match as_text(item) {
                Some(text) => texts.push(self.located(text.to_owned(), item.at)),
                None => {
                    let message = format!("`{key}` holds {}, not a string", item.value.kind());
                    self.note(Code::WrongType, item.at, message, "quote it");
                }
            }
        }
        Some(self.located(texts, entry.node.at))
    }

    /// A whole number within bounds.
    pub(crate) fn integer(&mut self, table: &Table, key: &str, min: u64, max: u64) -> Option<Located<u64>> {
        let entry = find(table, key)?;
        let wanted = format!("a whole number from {min} to {max}");
        let number = match &entry.node.value {
            Value::Integer(number) => *number,
            Value::Plain(text) if text.parse::<i64>().is_ok() => text.parse().unwrap_or(i64::MIN),
            _ => {
                self.wrong(entry, &wanted);
                return None;
            }
        };
        match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Some(self.located(number, entry.node.at)),
            _ => {
                self.bad(entry, &number.to_string(), &wanted);
                None
            }
        }
    }

    /// A whole number within bounds that fits 32 bits.
    pub(crate) fn small(&mut self, table: &Table, key: &str, min: u32, max: u32) -> Option<Located<u32>> {
        let read = self.integer(table, key, min.into(), max.into())?;
        Some(Located { value: u32::try_from(read.value).unwrap_or(max), at: read.at })
    }

    /// A number, whole or not.
    pub(crate) fn number(&mut self, table: &Table, key: &str) -> Option<Located<f64>> {
        let entry = find(table, key)?;
        let number = match &entry.node.value {
            Value::Float(number) => Some(*number),
            #[expect(clippy::cast_precision_loss, reason = "sums of money are far below 2^53")]
            Value::Integer(number) => Some(*number as f64),
            Value::Plain(text) => text.parse().ok(),
            _ => None,
        };
        match number {
            Some(number) => Some(self.located(number, entry.node.at)),
            None => {
                self.wrong(entry, "a number");
                None
            }
        }
    }

    /// A string in some unit, read by `parse`; `wanted` says what it looks like.
    pub(crate) fn parsed<T>(
        &mut self,
        table: &Table,
        key: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<Located<T>> {
        let entry = find(table, key)?;
        let Some(text) = as_text(&entry.node) else {
            self.wrong(entry, wanted);
            return None;
        };
        match parse(text) {
            Some(value) => Some(self.located(value, entry.node.at)),
            None => {
                self.bad(entry, text, wanted);
                None
            }
        }
    }

    /// A duration within a second and a week: shorter kills every attempt, longer is no limit.
    pub(crate) fn duration(&mut self, table: &Table, key: &str) -> Option<Located<Duration>> {
        let sensible = |text: &str| units::duration(text).filter(|d| (SHORTEST..=LONGEST).contains(d));
        self.parsed(table, key, "a duration from 1s to 7d, such as \"20m\"", sensible)
    }
}

/// The name becomes part of paths below 255 bytes a component.
const NAME_LEN_MAX: usize = 64;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

pub(crate) fn find<'t>(table: &'t Table, key: &str) -> Option<&'t Entry> {
    table.entries.iter().find(|entry| entry.key == key)
}

fn as_text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Text(text) => Some(text),
        Value::Plain(text) if !matches!(text.as_str(), "" | "~" | "null") => Some(text),
        _ => None,
    }
}
