//! The incident in small: what `bench/incident/run` measures, with the promises that do not depend on the machine.

use clap::Parser as _;

use crate::lab::{Figures, Options, Report, Yardstick, measure};
use crate::long;

/// Forty tasks of eight turns, ten at once, and three closings of one or two seconds.
const SMALL: [&str; 8] = [
    "--tasks=40",
    "--at-once=10",
    "--latency-ms=100",
    "--quota-seconds=2",
    "--limit-seconds=1",
    "--storm-seconds=2",
    "--away-seconds=0",
    "--look-seconds=2.5",
];

/// Measures, and prints what would be printed: a test that fails shows it.
fn measured(arguments: &[&str]) -> (Vec<Figures>, Report) {
    let given = ["incident"].iter().chain(&SMALL).chain(arguments);
    let options = Options::parse_from(given);
    let told = Report::new(&options);
    let yardstick = Yardstick::measure(&options);
    told.yardstick(&yardstick);
    let figures: Vec<Figures> = options.runners.iter().map(|runner| measure(&options, *runner, &yardstick)).collect();
    told.print(&figures);
    (figures, told)
}

#[test]
fn of_forty_agents_and_three_closings_none_begins_anew_and_nothing_is_paid_twice() {
    let (figures, told) = measured(&["--runners=outlast"]);
    let [ours] = figures.as_slice() else { panic!("one runner") };
    assert_eq!((ours.done, ours.from_scratch, ours.resumed, ours.untouched), (40, 0, 0, 40));
    assert_eq!(ours.closings.len(), 3, "the provider closed three times");
    assert_eq!(ours.billed_again, 0);
    assert!(ours.tokens_ratio() <= 1.02, "{}", ours.tokens_ratio());
    assert!(ours.refused as f64 <= told.refusals_max(ours), "{} of {}", ours.refused, told.refusals_max(ours));
    assert_eq!((ours.left, ours.redone), (0, 0));
}

#[test]
fn with_kills_of_agents_and_of_outlast_none_begins_anew_and_no_finished_task_is_redone() {
    let (figures, _) = measured(&["--runners=outlast", "--kill-agents=4", "--kill-orchestrator=3"]);
    let [ours] = figures.as_slice() else { panic!("one runner") };
    assert_eq!((ours.done, ours.from_scratch), (40, 0));
    assert_eq!((ours.agents_killed, ours.orchestrator_killed), (4, 3));
    assert!(ours.tokens_ratio() <= 1.05, "{}", ours.tokens_ratio());
    assert_eq!((ours.left, ours.redone), (0, 0));
}

#[test]
fn what_people_do_by_hand_pays_twice_or_needs_them_to_be_there() {
    // It shows that the bench measures, not that outlast works.
    if !long("the two who do by hand what outlast does") {
        return;
    }
    let (figures, _) = measured(&["--runners=naive,savvy"]);
    let [naive, savvy] = figures.as_slice() else { panic!("two runners") };
    assert_eq!((naive.done, savvy.done), (40, 40));
    // Up to ten are in the middle of their work at each of the closings; fewer where starting them takes long.
    assert!((2..=30).contains(&naive.from_scratch), "{}", naive.from_scratch);
    assert!(naive.tokens_ratio() > 1.02, "{}", naive.tokens_ratio());
    assert!(naive.refused > savvy.refused, "the one who is not there sends everything into the wall");
    assert_eq!((savvy.from_scratch, savvy.redone), (0, 0));
    assert!(savvy.resumed >= 2, "{}", savvy.resumed);
    assert!(savvy.tokens_ratio() < naive.tokens_ratio(), "{}", savvy.tokens_ratio());
    assert_eq!((naive.left, savvy.left), (0, 0));
}
