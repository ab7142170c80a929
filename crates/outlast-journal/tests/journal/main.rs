//! The journal and its ledger against real SQLite files, killed processes and full disks.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod append;
mod damage;
mod golden;
mod kill;
mod ledger;
mod snapshot;
mod space;
mod support;
mod wal;
