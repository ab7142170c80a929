//! What a crash kept from being put on record is counted, what is on record is not counted again.

use super::*;
use crate::testing::{core, run, show};

fn row(exchange: &str, output: u64) -> LedgerRow {
    LedgerRow {
        exchange: exchange.into(),
        attempt: AttemptId { run: run(), task: "a".into(), number: 1 },
        account: "max".into(),
        main: true,
        usage: Usage { output, exchanges: 1, ..Usage::default() },
    }
}

/// Admits and applies, as a step does.
fn tell(core: &mut Core, commands: Vec<Command>) -> Vec<String> {
    let mut said = Vec::new();
    for command in commands {
        let records = core.admit(Timestamp::EPOCH, command).unwrap();
        records.iter().for_each(|record| core.apply(record));
        said.extend(show(&records));
    }
    said
}

fn spent(core: &Core) -> (u32, u64, u32) {
    let task = &core.runs[&run()].tasks[0];
    (task.turns, task.usage.output, task.usage.exchanges)
}

fn exchanged(exchange: Option<&str>) -> Record {
    let LedgerRow { account, main, usage, .. } = row("", 5);
    let fact =
        Fact::Exchanged { number: 1, account, main, usage, reserved: None, exchange: exchange.map(ExchangeId::from) };
    Record { at: Timestamp::EPOCH, stream: Stream::Task(run(), "a".into()), fact }
}

#[test]
fn what_the_ledger_knows_and_the_records_do_not_is_counted_once() {
    let mut core = core("run\n task a\n a start 1");
    core.apply(&exchanged(Some("x1")));
    let commands = core.recount(vec![row("x1", 5), row("x2", 7)], 2);
    assert_eq!(tell(&mut core, commands), ["a exchanged 1", "ledger counted 2"]);
    assert_eq!(spent(&core), (2, 12, 2));
    assert_eq!(core.ledger_row(), 2);
    // A start that finds nothing new writes nothing.
    let commands = core.recount(Vec::new(), 2);
    assert_eq!(tell(&mut core, commands), [""; 0]);
}

#[test]
fn a_crash_between_the_records_of_a_recount_counts_nothing_twice() {
    let mut core = core("run\n task a\n a start 1");
    let rows = vec![row("x1", 5), row("x2", 7)];
    let first = core.recount(rows.clone(), 2).into_iter().take(1).collect();
    assert_eq!(tell(&mut core, first), ["a exchanged 1"]);
    let again = core.recount(rows, 2);
    assert_eq!(tell(&mut core, again), ["a exchanged 1", "ledger counted 2"]);
    assert_eq!(spent(&core), (2, 12, 2));
}

#[test]
fn an_exchange_that_comes_again_takes_no_effect() {
    let mut core = core("run\n task a\n a start 1");
    let twice = [row("x1", 5), row("x1", 5)].map(|row| core.recount(vec![row], 1).remove(0)).to_vec();
    assert_eq!(tell(&mut core, twice), ["a exchanged 1"]);
    // Not even where it was written twice, as when both came in one batch.
    core.apply(&exchanged(Some("x1")));
    assert_eq!(spent(&core), (1, 5, 1));
}

#[test]
fn a_journal_whose_exchanges_have_no_name_is_counted_as_it_stands() {
    let mut core = core("run\n task a\n a start 1");
    core.apply(&exchanged(None));
    let commands = core.recount(vec![row("x1", 5), row("x2", 7)], 2);
    assert_eq!(tell(&mut core, commands), ["ledger counted 2"]);
    assert_eq!(spent(&core), (1, 5, 1));
    // From there on every exchange has one.
    let commands = core.recount(vec![row("x3", 7)], 3);
    assert_eq!(tell(&mut core, commands), ["a exchanged 1", "ledger counted 3"]);
    assert_eq!(spent(&core), (2, 12, 2));
}
