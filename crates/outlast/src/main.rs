//! The `outlast` binary: arguments in, exit code out.

mod approval;
mod args;
mod base;
mod commands;
mod detach;
mod failure;
mod landed;
mod live;
mod logfile;
mod meant;
mod off_target;
mod places;
mod plan_since;
mod remote;
mod selection;
mod session;
mod signals;
mod text;
mod troubles;
mod typed;
mod unanswered;
mod unfinished;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;
use outlast_process::Spawner;

use crate::args::Command;

/// A request through the gateway allocates a hundred times: this one takes a third of the instructions that the system's does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    outlast_gateway::keep_little();
    // Where this is refused, too large a file ends the process: nothing is worse than before.
    outlast_process::file_size::fail_beyond_limit().unwrap_or_default();
    // Before anything else exists in this process: shims are forked from what it is now, small and without a thread.
    let spawner = Spawner::fork_early();
    outlast_process::open_files::raise_limit();
    let args = match args::Args::try_parse() {
        Ok(args) => args,
        Err(error) => commands::refuse(&error),
    };
    match &args.command {
        Some(Command::Provider { args }) => return outlast_testkit::provider::main(args),
        Some(Command::Agent { args }) => return outlast_testkit::agent::main(args),
        _ => {}
    }
    let json = args.json;
    match commands::dispatch(args, spawner) {
        Ok(code) => ExitCode::from(code.number()),
        Err(failure) => failure.report(json),
    }
}
