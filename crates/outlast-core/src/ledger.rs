//! The ledger against the records: what a crash kept from being put on record is put there at the next start, once.
//!
//! An answer is in the ledger before it is on record, so the ledger knows of every exchange that was paid for and the
//! records may not. A start compares what is new in the ledger with what is on record, and notes how far it has come;
//! what lies before that is never looked at again, so that nothing of it need be remembered.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::admit::Command;
use crate::core::Core;
use crate::ids::{AccountId, AttemptId, ExchangeId};
use crate::mutant::{Bug, planted};
use crate::record::{Fact, Record, Stream};
use crate::time::Timestamp;
use crate::usage::Usage;

/// Which exchanges are on record, as far as that may be asked again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counted {
    /// The row of the ledger up to which every exchange is.
    row: u64,
    /// Those that were put on record since.
    since: BTreeSet<ExchangeId>,
    /// Whether one of them has no name, as in records of version 1.
    has_nameless: bool,
}

impl Counted {
    /// Takes note of a fact; whether it is to take effect, which an exchange does once.
    pub(crate) fn takes(&mut self, fact: &Fact) -> bool {
        match fact {
            Fact::Exchanged { exchange: Some(exchange), .. } => {
                self.since.insert(exchange.clone()) || planted(Bug::SpendCountedTwice)
            }
            Fact::Exchanged { exchange: None, .. } => {
                self.has_nameless = true;
                true
            }
            _ => true,
        }
    }

    /// Takes note that the ledger and the records agree up to a row.
    pub(crate) fn up_to(&mut self, row: u64) {
        *self = Self { row, since: BTreeSet::new(), has_nameless: false };
    }
}

/// A row of the ledger, as far as it is put on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Its name.
    pub exchange: ExchangeId,
    /// Who asked.
    pub attempt: AttemptId,
    /// Who bills.
    pub account: AccountId,
    /// Whether it was a main turn.
    pub main: bool,
    /// What it consumed.
    pub usage: Usage,
}

impl Core {
    /// The row of the ledger after which there may be exchanges that are not on record; 0 for all of them.
    pub const fn ledger_row(&self) -> u64 {
        self.ledger.row
    }

    /// What puts on record whatever of the ledger is not: to be asked at a start, when no exchange is under way, of every
    /// row after [`Core::ledger_row`]. `last` is the ledger's last row.
    ///
    /// Exchanges that are on record without a name, by an earlier release, cannot be told from others: then the ledger
    /// counts as it stands.
    pub fn recount(&self, rows: Vec<LedgerRow>, last: u64) -> Vec<Command> {
        let asked = if self.ledger.has_nameless || planted(Bug::SpendForgotten) { Vec::new() } else { rows };
        let missing = asked.into_iter().filter(|row| !self.has_counted(&row.exchange));
        let counted = missing.map(|LedgerRow { exchange, attempt, account, main, usage }| Command::Exchanged {
            run: attempt.run,
            task: attempt.task,
            number: attempt.number,
            account,
            main,
            usage,
            reserved: None,
            exchange,
        });
        counted.chain([Command::LedgerCounted { row: last }]).collect()
    }

    /// Whether an exchange is known to be on record.
    pub(crate) fn has_counted(&self, exchange: &ExchangeId) -> bool {
        self.ledger.since.contains(exchange) && !planted(Bug::SpendCountedTwice)
    }

    pub(crate) fn admit_count(&self, now: Timestamp, row: u64) -> Vec<Record> {
        let Counted { row: known, since, has_nameless } = &self.ledger;
        // The ledger never shrinks: a lower row is news from before.
        if row < *known || row == *known && since.is_empty() && !has_nameless {
            return Vec::new();
        }
        vec![Record { at: now, stream: Stream::Ledger, fact: Fact::LedgerCounted { row } }]
    }
}

#[cfg(test)]
mod tests;
