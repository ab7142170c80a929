//! The incident that outlast answers, measured: a batch of agents, a provider that closes three times, and three ways to
//! run the batch. What the figures mean is in `bench/incident/README.md`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measurement ends at the first surprise")]

#[path = "incident/lab.rs"]
mod lab;

use clap::Parser as _;

fn main() -> std::process::ExitCode {
    let options = lab::Options::parse();
    let told = lab::Report::new(&options);
    let yardstick = lab::Yardstick::measure(&options);
    told.yardstick(&yardstick);
    let figures: Vec<_> = options.runners.iter().map(|runner| lab::measure(&options, *runner, &yardstick)).collect();
    if told.print(&figures) { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}
