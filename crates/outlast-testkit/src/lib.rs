//! Real programs over real sockets for tests and for `outlast demo`: a scripted provider that speaks the wire
//! formats of the model providers, a scripted agent that talks to it, and git fixtures in a hermetic environment.
//!
//! Never a mock: nothing here is called in place of the real thing; everything is reached the way the real thing is
//! (a socket, a process, a repository on disk). It imports no other crate of the project.

pub mod agent;
pub mod error;
pub mod fixture;
pub mod provider;
pub mod script;
pub mod wire;

pub use error::{Error, Result};

/// Prints what clap says about the command line; help and version are no errors.
fn usage(error: &clap::Error) -> std::process::ExitCode {
    // Nobody to tell when neither stdout nor stderr can be written.
    drop(error.print());
    if error.use_stderr() { std::process::ExitCode::from(2) } else { std::process::ExitCode::SUCCESS }
}

/// The first 32 hex digits of a SHA-256.
fn digest(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
