//! Bugs planted in the core are found, each by the seed and the invariant that is named here.
//!
//! `cargo run -p outlast-sim --example mutants` looks for the seeds anew when the simulator has changed.

#![cfg(debug_assertions)]

use outlast_core::mutant::{Bug, plant};
use outlast_sim::Invariant::{self, *};
use outlast_sim::{Profile, run};

const FOUND: &[(Bug, u64, Invariant)] = &[
    (Bug::OneTooMany, 1, ConcurrencyKept),
    (Bug::ScopesIgnored, 2, ScopesKept),
    (Bug::QuotaIgnored, 2, ClosedAccountsRespected),
    (Bug::WorldsFaultCounts, 1, EndState),
    (Bug::StaleNewsTaken, 6, NewsOfTheLivingOnly),
    (Bug::LandsBeforeNeeds, 2, LandsAfterNeeds),
    (Bug::CancelForgotten, 1, InFlightIsDesired),
    (Bug::AppliesUnwritten, 1, LiveEqualsReplay),
    (Bug::BatchBlind, 1, NewsOfTheLivingOnly),
    (Bug::DiscardIgnored, 2, NeedsFirst),
    (Bug::BlocksOnlyTheNext, 2, EndState),
    (Bug::RetryForgotten, 3, WakeInTime),
    (Bug::EmptyBlocks, 27, EndState),
    (Bug::ParkedStay, 1, EndState),
    (Bug::SpendForgotten, 4, BilledOnce),
    (Bug::SpendCountedTwice, 1, BilledOnce),
    (Bug::BudgetIgnored, 7, BudgetKept),
    (Bug::ReachedIgnored, 7, BudgetKept),
    (Bug::RetryKeepsTries, 3, EndState),
    (Bug::RetryFreesNobody, 1, EndState),
    (Bug::StatedIgnored, 23, StatedEndsKept),
    (Bug::ShutIgnored, 4, ClosedAccountsRespected),
    (Bug::EmptyAgain, 124, TriesKept),
    (Bug::EndsUnproven, 1, EndProven),
    (Bug::StaleEndTaken, 166, EndProven),
];

#[test]
fn every_planted_bug_is_found_within_a_thousand_seeds() {
    for bug in Bug::ALL {
        assert!(FOUND.iter().any(|(known, ..)| *known == bug), "{bug:?} has no seed");
    }
    for &(bug, seed, invariant) in FOUND {
        assert!(seed <= 1000, "{bug:?}");
        plant(Some(bug));
        let report = run(seed, &Profile::DEFAULT);
        plant(None);
        assert_eq!(report.violation.map(|violation| violation.invariant), Some(invariant), "{bug:?} by seed {seed}");
        assert_eq!(run(seed, &Profile::DEFAULT).violation, None, "seed {seed} without {bug:?}");
    }
}
