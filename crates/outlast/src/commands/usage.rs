//! What was typed is not understood: told as text, or with `--json` as every other error is.

use std::process::exit;

use clap::Parser as _;
use clap::error::ErrorKind;
use outlast_api::{Diagnostic, ExitCode};

use crate::args::Args;
use crate::commands::{say, unnamed};
use crate::failure::Failure;

/// Tells of words that are not understood, and where tasks were to be named, which there are.
pub(crate) fn refuse(error: &clap::Error) -> ! {
    // Help and version were asked for, and are no error.
    if !error.use_stderr() {
        error.exit()
    }
    let typed = || std::env::args_os();
    let may_lack_tasks = error.kind() == ErrorKind::MissingRequiredArgument;
    let meant = match Args::try_parse_from(typed().chain(["--all".into()])) {
        Ok(args) if may_lack_tasks => unnamed::tasks(&args),
        _ => None,
    };
    if typed().take_while(|word| word != "--").any(|word| word == "--json") {
        Failure::from(diagnostic(error, meant.as_deref())).report(true);
    } else {
        // A closed pipe must not turn one failure into another.
        drop(error.print());
        if let Some(told) = meant {
            say(&told);
        }
    }
    exit(i32::from(ExitCode::Usage.number()))
}

/// The parser's words, line by line: what is wrong, how it is used, and its tips.
fn diagnostic(error: &clap::Error, meant: Option<&str>) -> Diagnostic {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut what = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    // It only announces what stands on the next.
    if what.ends_with(':') {
        what = format!("{what} {}", lines.next().unwrap_or_default());
    }
    let told = Diagnostic::error("usage", ExitCode::Usage, what);
    let told = lines.chain(meant.into_iter().flat_map(str::lines).map(str::trim)).fold(told, |told, line| {
        let advice = ["tip:", "do:", "or:"].into_iter().find_map(|mark| line.strip_prefix(mark));
        match advice {
            Some(advice) => told.fix(advice.trim()),
            None if line.starts_with("For more information") => told,
            None => told.because(line),
        }
    });
    told.fix(format!("{} --help", command()))
}

/// The command that was meant, as far as that is known.
fn command() -> String {
    use clap::CommandFactory as _;
    let known = Args::command();
    let named = std::env::args().skip(1).find(|word| known.find_subcommand(word).is_some());
    named.map_or_else(|| "outlast".to_owned(), |named| format!("outlast {named}"))
}
