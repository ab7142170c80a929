//! Durable records, replay, snapshots, and the exchange ledger.
