//! Real launches through the real spawner: every test starts processes, and ends what it starts.
//!
//! The harness is our own because the spawner must be forked before the test harness has threads.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop there")]

mod engine;
mod listener;
mod output;
mod processes;
mod sandbox;
mod spawner;
mod start;
mod support;
mod upstream;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use outlast_process::Spawner;

fn main() -> ExitCode {
    support::leak_a_descriptor();
    // As the binary does: what it ignores must not reach a program.
    outlast_process::file_size::fail_beyond_limit().expect("a signal can be ignored");
    let spawner: &'static Spawner = Box::leak(Box::new(Spawner::fork_early().expect("the spawner is forked first")));
    if let Some(attempt) = std::env::var_os(engine::ENGINE_VARIABLE) {
        engine::play_engine(spawner, attempt.as_ref());
    }
    let arguments = Arguments::from_args();
    let groups =
        [start::TESTS, processes::TESTS, output::TESTS, sandbox::TESTS, listener::TESTS, engine::TESTS, spawner::TESTS];
    let trials = groups.concat().into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            test(spawner);
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
