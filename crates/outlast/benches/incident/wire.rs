//! What was in flight when the provider closed, by the ledger of whoever had sent it.
//!
//! The provider itself sees only what has reached it: on a busy machine a request waits in a socket while the closing
//! begins. Nobody can hold back what is already sent, so what counts is what an account had sent before its own first
//! refusal came back.

use outlast_journal::{ExchangeRow, JournalReader, Selection};
use outlast_testkit::provider::ClosingTally;

use super::world::World;

/// What outlast had sent, in the order of sending.
pub(crate) struct Sent(Vec<ExchangeRow>);

impl Sent {
    /// Reads the ledgers of a world.
    pub(crate) fn of(world: &World) -> Self {
        let homes = std::fs::read_dir(world.env.outlast_home()).unwrap().map(|entry| entry.unwrap().path());
        let journals = homes.map(|home| home.join("journal.db")).filter(|journal| journal.is_file());
        let rows = journals
            .flat_map(|journal| JournalReader::open(journal).unwrap().exchanges(&Selection::default()).unwrap());
        // What was given out of the ledger went nowhere.
        Self(rows.filter(|row| !row.exchange.ends_with("-replay")).collect())
    }

    /// How many requests were on their way to an answer when `closing` began, or went out before their account could
    /// know of it.
    pub(crate) fn in_flight(&self, closing: &ClosingTally) -> u64 {
        let (began, ends) = (closing.began_at_ms, closing.ends_at_ms);
        let ms = |at: outlast_core::Timestamp| u64::try_from(at.as_millis()).unwrap();
        let told = |account: &ExchangeRow| {
            let of_account = self.0.iter().filter(|row| row.account == account.account);
            let refused = of_account.filter(|row| row.status.is_some_and(|status| status >= 400));
            let told = refused.filter_map(|row| row.first_byte_at.map(ms)).filter(|at| (began..=ends).contains(at));
            told.min().unwrap_or(began)
        };
        let counts =
            |row: &&ExchangeRow| ms(row.started_at) <= told(row) && row.ended_at.is_none_or(|at| ms(at) >= began);
        self.0.iter().filter(counts).count() as u64
    }
}
