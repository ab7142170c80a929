//! Measures what the gateway adds to a request, beside nginx, in one run on one machine.
//!
//! `run FOLDER OUTLAST` starts a small fast upstream (this program, `upstream`), nginx and `outlast gateway`, sends the same
//! requests to the upstream directly and through both, in turns, and prints the ratios. OUTLAST is the built binary, or
//! several with commas between them, to see what a change does. Not a test: it asserts nothing.

mod load;
mod processes;
mod report;
mod shapes;
mod upstream;

use std::path::Path;
use std::time::Duration;

use processes::Placement;

/// What goes wrong ends the measurement.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["upstream"] => upstream::main(),
        ["run", folder, outlast, rest @ ..] => run(Path::new(folder), outlast, rest),
        _ => Err("usage: gateway_bench run FOLDER OUTLAST[,OUTLAST...] [SECONDS ROUNDS] | upstream".into()),
    }
}

fn run(folder: &Path, outlast: &str, rest: &[&str]) -> Outcome<()> {
    let (slice, rounds) = match rest {
        [] => (Duration::from_secs(1), 5),
        [seconds, rounds] => (Duration::from_secs_f64(seconds.parse()?), rounds.parse()?),
        _ => return Err("give SECONDS and ROUNDS, or neither".into()),
    };
    let builds: Vec<&Path> = outlast.split(',').map(Path::new).collect();
    // Asked once: a thread that has been put on one core is told of that one alone.
    let cores = std::thread::available_parallelism()?.get();
    let targets = processes::start(folder, &builds)?;
    for shape in shapes::ALL {
        let request = shape.request();
        let mut table = report::Table::new(shape, &targets);
        for _ in 0..rounds {
            for placement in [Placement::Apart, Placement::Together] {
                processes::place(&targets, placement, cores)?;
                for (index, target) in targets.iter().enumerate() {
                    table.alone(index, placement, &load::alone(target.addr, &request, slice)?);
                }
            }
            processes::place(&targets, Placement::Free, cores)?;
            for (index, target) in targets.iter().enumerate() {
                let before = target.cpu();
                let many = load::many(target.addr, &request, slice, report::CONNECTIONS)?;
                table.many(index, &many, target.cpu() - before, target.resident_kb());
            }
        }
        table.print();
    }
    Ok(())
}
