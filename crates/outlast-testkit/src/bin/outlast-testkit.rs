//! The testkit as a program of its own, for tests of crates that the `outlast` binary is built from.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let name = args.next().unwrap_or_default();
    let rest: Vec<_> = args.collect();
    match name.to_str() {
        Some("__provider") => outlast_testkit::provider::main(&rest),
        Some("__agent") => outlast_testkit::agent::main(&rest),
        _ => {
            eprintln!("usage: outlast-testkit __provider|__agent [OPTIONS]");
            ExitCode::from(2)
        }
    }
}
