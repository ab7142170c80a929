//! The simulator as a program: `cargo run --release -p outlast-sim --example sim -- --seeds 10000`.

use std::process::ExitCode;

fn main() -> ExitCode {
    outlast_sim::main(std::env::args().skip(1))
}
