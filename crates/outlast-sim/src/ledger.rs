//! The simulated ledger: every exchange that was paid for, whether or not anybody lived to put it on record.

use outlast_core::admit::Command;
use outlast_core::hash::fnv1a;
use outlast_core::usage::Usage;
use outlast_core::{AccountId, AttemptId, Core, ExchangeId, LedgerRow};

use crate::invariant::{Invariant, Violation};
use crate::scenario::{Scenario, Spot};

/// The least that an exchange costs, in billionths of a dollar; the most is twice that.
pub(crate) const PRICE_MIN: u64 = 1_000;
/// One in so many exchanges is told of twice.
const TOLD_TWICE: u64 = 8;

/// The rows, in the order in which they were written; they outlive every crash.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    rows: Vec<Row>,
}

/// A row, and whose it is.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    spot: Spot,
    row: LedgerRow,
}

impl Row {
    /// The news of it.
    pub(crate) fn told(&self) -> Command {
        let LedgerRow { exchange, attempt, account, main, usage } = self.row.clone();
        let AttemptId { run, task, number } = attempt;
        Command::Exchanged { run, task, number, account, main, usage, reserved: None, exchange }
    }

    /// What it cost, in billionths of a dollar.
    pub(crate) fn cost(&self) -> u64 {
        u64::try_from(self.row.usage.usd_nanos).unwrap_or(0)
    }

    /// How often the news comes: by its name, so that nothing else is drawn differently for it.
    pub(crate) fn times_told(&self) -> u32 {
        1 + u32::from(fnv1a(self.row.exchange.as_str().as_bytes()).is_multiple_of(TOLD_TWICE))
    }
}

impl Ledger {
    /// Writes an exchange; no two of them cost the same.
    pub(crate) fn write(&mut self, spot: Spot, attempt: AttemptId, account: AccountId, main: bool) -> Row {
        let number = self.rows.len() as u64 + 1;
        let usd_nanos = i64::try_from(PRICE_MIN + number * 7_919 % PRICE_MIN).unwrap_or(0);
        let usage = Usage { input: 1_000, output: number, usd_nanos, exchanges: 1, ..Usage::default() };
        let row = LedgerRow { exchange: ExchangeId::new(format!("x{number}")), attempt, account, main, usage };
        let row = Row { spot, row };
        self.rows.push(row.clone());
        row
    }

    /// What a run is billed in all, in billionths of a dollar.
    pub(crate) fn billed(&self, run: usize) -> u64 {
        self.rows.iter().filter(|row| row.spot.run == run).map(Row::cost).sum()
    }

    /// What a new orchestrator has to put on record first.
    pub(crate) fn recount(&self, core: &Core) -> Vec<Command> {
        let after = usize::try_from(core.ledger_row()).unwrap_or(usize::MAX).min(self.rows.len());
        let rows = self.rows[after..].iter().map(|row| row.row.clone()).collect();
        core.recount(rows, self.rows.len() as u64)
    }

    /// Checks that the state bills what the ledger has: never more, and at the end all of it.
    pub(crate) fn judge(&self, scenario: &Scenario, core: &Core, at_the_end: bool) -> Result<(), Violation> {
        for spot in scenario.spots() {
            let Some(run) = core.run(&scenario.runs[spot.run].id) else { continue };
            let (mut usage, mut turns) = (Usage::default(), 0);
            for Row { row, .. } in self.rows.iter().filter(|row| row.spot == spot) {
                usage.add(&row.usage);
                turns += u32::from(row.main);
            }
            let task = &run.tasks[spot.task];
            let (billed, told) = ((task.usage, task.turns), (usage, turns));
            let fits = if at_the_end { billed == told } else { task.usage.exchanges <= usage.exchanges };
            Invariant::BilledOnce.holds(fits, || format!("{spot:?}: on record {billed:?}, in the ledger {told:?}"))?;
        }
        Ok(())
    }
}
