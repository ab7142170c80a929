//! What was typed is not understood: told as text, or with `--json` as every other error is.

use std::process::exit;

use clap::Parser as _;
use clap::error::ErrorKind;
use outlast_api::{Diagnostic, ExitCode};
use outlast_git::word;

use crate::args::Args;
use crate::commands::{say, unnamed};
use crate::failure::Failure;
use crate::typed::verb;

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
        _ if error.kind() == ErrorKind::UnknownArgument => of_the_run(typed()),
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
    let meant = meant.into_iter().flat_map(str::lines).map(str::trim);
    let told = meant.chain(lines).fold(told, |told, line| {
        let advice = ["tip:", "do:", "or:"].into_iter().find_map(|mark| line.strip_prefix(mark));
        match advice {
            Some(advice) => told.fix(advice.trim()),
            None if line.starts_with("For more information") => told,
            None => told.because(line),
        }
    });
    let command = verb().map_or_else(|| "outlast".to_owned(), |verb| format!("outlast {verb}"));
    told.fix(format!("{command} --help"))
}

/// The command for the run that was named as only commands about tasks take one; nothing for any other mistake.
fn of_the_run(words: impl Iterator<Item = std::ffi::OsString>) -> Option<String> {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let kept = words.iter().filter(|word| *word != "--run").map(|word| word.strip_prefix("--run=").unwrap_or(word));
    let kept: Vec<&str> = kept.collect();
    let is_one = kept.iter().ne(words.iter()) && Args::try_parse_from(&kept).is_ok();
    let kept = kept.into_iter().skip(1).map(word).collect::<Vec<_>>().join(" ");
    is_one.then(|| format!("this command takes the run itself\n  do:      outlast {kept}"))
}
