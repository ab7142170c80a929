//! Git repositories of every shape, and a hermetic environment to run programs in. All of it is real: made with git, on
//! disk, and gone when dropped.

mod environment;
mod odd;
mod program;
#[cfg(target_os = "linux")]
mod reap;
mod repo;
#[cfg(test)]
mod tests;

pub use environment::TestEnv;
pub use odd::Odd;
pub use program::testkit_program;
pub use repo::{Repo, git_environment};
