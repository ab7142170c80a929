//! Answers that were paid for and reached nobody are given out of the ledger, and not asked for again.

use outlast_journal::{ExchangeRow, JournalReader, Outcome, Selection};
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};

use crate::world::{Plan, World};

/// One agent whose requests are given up after a short while and sent again, and whose second turn meets a fault once.
fn impatient(fault: Fault) -> World {
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--patience-ms", "800", "--retries", "9"]);
    world.plan(&plan.part("one"));
    world
}

/// Which turns the provider was asked for.
fn asked(world: &World) -> Vec<Option<usize>> {
    world.provider.model_requests().iter().map(|entry| entry.step).collect()
}

/// The rows of the ledger, in order.
fn rows(world: &World) -> Vec<ExchangeRow> {
    let reader = JournalReader::open(world.homes()[0].join("journal.db")).unwrap();
    reader.exchanges(&Selection::default()).unwrap()
}

#[test]
fn a_client_that_loses_patience_gets_the_answer_when_it_asks_again_and_pays_once() {
    let world = impatient(Fault::Hold { seconds: Some(2.5) });
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1);
    assert_eq!(asked(&world), [Some(1), Some(2)], "nobody is asked twice for the same");

    let rows = rows(&world);
    let (free, paid): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.exchange.ends_with("-replay"));
    assert_eq!(paid.iter().map(|row| row.outcome).collect::<Vec<_>>(), [Outcome::Complete, Outcome::ClientGone]);
    let given = free.last().unwrap();
    assert_eq!(
        (given.outcome, given.turn, given.usage.output, given.usd_nanos),
        (Outcome::Complete, 2, Some(0), Some(0))
    );
    assert_eq!((given.request_hash, given.response_hash), (paid[1].request_hash, paid[1].response_hash));
    assert!(
        given.headers.contains(&paid[1].exchange) || free.len() > 1,
        "it names what was paid for: {}",
        given.headers
    );

    let (bill, task) = (world.provider.bill().total.tokens, world.task("one"));
    assert_eq!(task["tokens"]["output"], bill.output, "what is on record is what is billed: {task:#}");
    assert_eq!(task["turns"], 2, "{task:#}");
    let log = world.run(&["log", "one"]).ends(0).stdout;
    assert!(log.contains("had not arrived") && log.contains(&paid[1].exchange), "{log}");
    world.nothing_is_left();
}

#[test]
fn a_client_that_asks_again_while_it_is_held_takes_the_place_of_its_older_request() {
    let world = impatient(Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(3) });
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1);
    assert_eq!(asked(&world), [Some(1), Some(2), Some(2)], "one is refused, and one goes out when the account opens");
    let bill = world.provider.bill().total;
    assert_eq!((bill.refused, bill.answered), (1, 2));
    assert!(
        rows(&world).iter().all(|row| !row.exchange.ends_with("-replay")),
        "no answer was ever on its way to nobody"
    );
    world.nothing_is_left();
}
