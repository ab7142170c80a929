//! The user's own configuration: accounts with their credentials' places, and ceilings.
//!
//! Credentials themselves are never read here: only where they are, so that no secret passes through a message.

mod account;
mod models;

use std::collections::BTreeMap;

use outlast_core::AccountId;
use outlast_core::plan::{Budget, CONCURRENCY_AUTO, Concurrency};

pub use account::{Account, KeyCommand, KeySource, Limits, Login, Provider};
#[cfg(test)]
pub(crate) use account::{KEYS as ACCOUNT, LIMITS};
pub use models::{is_for_model, may_be_for_model};

use crate::document::{Table, Value, toml};
use crate::layer::{note_syntax, read_budget};
use crate::reader::Reader;
use crate::{CONCURRENCY_MAX, Code, Finding, Source, finding, given};

/// What the user alone decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserConfig {
    /// Keys and logins at providers.
    pub accounts: BTreeMap<AccountId, Account>,
    /// What no plan may go above.
    pub ceiling: Ceiling,
}

/// What no plan may go above; an absent part is no ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// What one run may spend.
    pub budget: Budget,
    /// How many attempts may be live at once.
    pub concurrency: Option<u32>,
    /// How full the machine's memory may be, in percent, before agents that wait are parked.
    pub memory_percent: u32,
}

/// With a tenth of its memory left, a machine still answers.
const MEMORY_PERCENT_DEFAULT: u32 = 90;

impl Default for Ceiling {
    fn default() -> Self {
        Self { budget: Budget::default(), concurrency: None, memory_percent: MEMORY_PERCENT_DEFAULT }
    }
}

impl Ceiling {
    /// Lowers a number to the ceiling; `auto` that would begin above it becomes the ceiling.
    pub fn over_concurrency(self, wanted: Concurrency) -> Concurrency {
        match (wanted, self.concurrency) {
            (Concurrency::Fixed(wanted), Some(most)) => Concurrency::Fixed(wanted.min(most)),
            (Concurrency::Auto, Some(most)) if most < CONCURRENCY_AUTO => Concurrency::Fixed(most),
            (wanted, _) => wanted,
        }
    }

    /// Lowers each part of a budget to the ceiling, and adds the parts it lacks.
    pub fn over_budget(self, wanted: Budget) -> Budget {
        fn lower<T: Ord>(wanted: Option<T>, most: Option<T>) -> Option<T> {
            match (wanted, most) {
                (Some(wanted), Some(most)) => Some(wanted.min(most)),
                (wanted, most) => wanted.or(most),
            }
        }
        Budget {
            usd_micros: lower(wanted.usd_micros, self.budget.usd_micros),
            tokens: lower(wanted.tokens, self.budget.tokens),
            window_percent: wanted.window_percent,
        }
    }
}

/// A user's configuration, if the file holds one, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserChecked {
    /// The configuration; `None` when a finding is an error.
    pub config: Option<UserConfig>,
    /// Errors first, then warnings; each in the order of the file.
    pub findings: Vec<Finding>,
}

const TOP: &[&str] = &["account", "ceiling"];
/// Keys of `[ceiling]`.
pub(crate) const CEILING: &[&str] = &["budget", "concurrency", "memory_percent"];

/// Reads `config.toml`.
pub fn read_user(source: &Source) -> UserChecked {
    let (mut root, errors) = toml::read(source.text());
    let mut reader = Reader::trusted(source);
    let broken = note_syntax(&mut reader, errors);
    given::check(&mut reader, &mut root);
    reader.check_keys(&root, "your configuration", TOP);
    let accounts = reader.table(&root, "account").map(|table| read_accounts(&mut reader, table)).unwrap_or_default();
    let ceiling = reader.table(&root, "ceiling").map(|table| read_ceiling(&mut reader, table)).unwrap_or_default();
    let mut findings = reader.findings;
    findings.retain(|finding| !broken || finding.code == Code::Syntax);
    finding::finish(&mut findings, &[source]);
    let config = (!findings.iter().any(Finding::is_error)).then_some(UserConfig { accounts, ceiling });
    UserChecked { config, findings }
}

fn read_ceiling(reader: &mut Reader<'_>, table: &Table) -> Ceiling {
    reader.check_keys(table, "`[ceiling]`", CEILING);
    Ceiling {
        budget: read_budget(reader, table).budget,
        concurrency: reader.small(table, "concurrency", 1, CONCURRENCY_MAX).map(|most| most.value),
        memory_percent: reader.small(table, "memory_percent", 1, 100).map_or(MEMORY_PERCENT_DEFAULT, |most| most.value),
    }
}

fn read_accounts(reader: &mut Reader<'_>, accounts: &Table) -> BTreeMap<AccountId, Account> {
    let mut read: BTreeMap<AccountId, Account> = BTreeMap::new();
    for entry in &accounts.entries {
        let Value::Table(table) = &entry.node.value else {
            let message = format!("`account.{}` is {}, not a table", entry.key, entry.node.value.kind());
            reader.note(Code::WrongType, entry.node.at, message, format!("write `[account.{}]`", entry.key));
            continue;
        };
        reader.check_name("account", &entry.key, entry.key_at, read.keys().map(AccountId::as_str));
        if let Some(account) = account::read(reader, table, &entry.key, entry.key_at) {
            read.insert(AccountId::new(&entry.key), account);
        }
    }
    read
}

#[cfg(test)]
mod tests;
