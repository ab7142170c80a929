//! What a plan would make this machine run, and the hash that a person's approval is bound to.

use outlast_core::plan::Plan;
use outlast_core::plan::canonical::Executable;
use sha2::{Digest as _, Sha256};

/// Gives the SHA-256, in hexadecimal, of everything executable in a plan: setup, verify, steps and agents.
///
/// Goals, scopes, limits and the places of tasks are no part of it: changing them runs no other command.
pub fn approval_hash(plan: &Plan) -> String {
    hex(&Executable::of(plan).canonical())
}

/// Gives the SHA-256, in hexadecimal, of everything a plan says.
pub fn content_hash(plan: &Plan) -> String {
    hex(&outlast_core::plan::canonical::content(plan))
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
