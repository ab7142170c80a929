//! The binary as scripts and people meet it: arguments and environment in, exit code, output and files out.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

#[path = "cli/advised.rs"]
mod advised;
#[path = "cli/again.rs"]
mod again;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/check.rs"]
mod check;
#[path = "cli/clean.rs"]
mod clean;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/empty.rs"]
mod empty;
#[path = "cli/host.rs"]
mod host;
#[path = "cli/init.rs"]
mod init;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/mended.rs"]
mod mended;
#[path = "cli/off_target.rs"]
mod off_target;
#[path = "cli/people.rs"]
mod people;
#[path = "cli/plan.rs"]
mod plan;
#[path = "cli/programs.rs"]
mod programs;
#[path = "cli/provider.rs"]
mod provider;
#[path = "cli/put_away.rs"]
mod put_away;
#[path = "cli/reference.rs"]
mod reference;
#[path = "cli/repository.rs"]
mod repository;
#[path = "cli/selection.rs"]
mod selection;
#[path = "cli/worktrees.rs"]
mod worktrees;
