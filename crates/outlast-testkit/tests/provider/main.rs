//! The scripted provider over real sockets: the shapes of its answers in each dialect, its faults, windows and bill.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail as loudly as the test")]

mod answers;
mod client;
mod faults;
mod way;
