//! Figures of speed that only the whole program shows: how soon a killed run works again, and what a held agent costs.
//! What they mean is in `bench/resume/README.md` and `bench/held/README.md`.

#![expect(clippy::unwrap_used, reason = "a measurement ends at the first surprise")]

#[path = "speed/held.rs"]
mod held;
#[path = "speed/place.rs"]
mod place;
#[path = "speed/resume.rs"]
mod resume;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let reached = match arguments.as_slice() {
        ["resume", numbers @ ..] => resume::measure(&mut numbers.iter().map(|number| number.parse().unwrap())),
        ["held", numbers @ ..] => held::measure(&mut numbers.iter().map(|number| number.parse().unwrap())),
        // What the plans of the second start as their agents.
        [held::AGENT, bytes, gate] => return held::agent(bytes.parse().unwrap(), gate.as_ref()),
        _ => {
            eprintln!("usage: speed resume [TASKS DONE ROUNDS] | speed held [AGENTS FEW]");
            return ExitCode::from(2);
        }
    };
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
