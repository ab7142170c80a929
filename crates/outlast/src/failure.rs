//! A command that could not do what was asked: a diagnostic, told as text or as JSON, and its exit code. Of several, people are
//! shown each, and scripts the first, with the others as evidence.

use std::io::Write as _;
use std::process::ExitCode;

use outlast_api::Diagnostic;

use crate::{logfile, text};

/// What the system says where this process may open no more files.
const OUT_OF_FILES: &str = "Too many open files";

/// What helps with what the system says, by its words, where nothing nearer to it is known.
const HELPS: [(&[&str], &str); 7] = [
    // Room or inodes: the system has one word for both.
    (
        &["No space left on device", "Disk quota exceeded"],
        "df -h; df -i    # which disk has no room, or no inodes, left; free some, then: the same again",
    ),
    (&["File too large"], "ulimit -f unlimited    # in the shell that starts it, then: the same again"),
    (
        &[OUT_OF_FILES, "unable to open database file"],
        "ulimit -n 1024    # in the shell that starts it, where that is lower; then: the same again",
    ),
    (
        &["Read-only file system", "Permission denied", "readonly database", "Operation not permitted"],
        "make it writable for you, or keep state elsewhere: export OUTLAST_HOME=DIR; then: the same again",
    ),
    (&["Is a directory"], "move the folder away that is where a file belongs, then: the same again"),
    (&["Not a directory"], "move the file away that is where a folder belongs, then: the same again"),
    (
        &["Resource temporarily unavailable", "Cannot allocate memory"],
        "end other programs, or raise `ulimit -u` and `ulimit -v`; then: the same again",
    ),
];

/// What helps with a diagnostic that names no help.
fn help(told: &Diagnostic) -> Option<&'static str> {
    let says = |word: &&str| texts(told).any(|text| text.contains(*word));
    let help = HELPS.iter().find(|(words, _)| words.iter().any(&says)).map(|(_, help)| *help);
    help.or_else(|| {
        (told.exit == outlast_api::ExitCode::Host).then_some("outlast doctor    # looks at all that it depends on")
    })
}

/// All that a diagnostic tells, but for its advice.
fn texts(told: &Diagnostic) -> impl Iterator<Item = &String> {
    std::iter::once(&told.what).chain(&told.why)
}

/// Why a command could not do what was asked.
#[derive(Debug, Clone)]
pub(crate) struct Failure(Box<Diagnostic>, Vec<Diagnostic>);

impl Failure {
    /// Tells it on standard error (or as JSON on standard output) and says how the process ends.
    pub(crate) fn report(mut self, json: bool) -> ExitCode {
        if self.0.exit == outlast_api::ExitCode::Defect {
            tracing::error!(code = %self.0.code, why = ?self.0.why, "{}", self.0.what);
            if let Some(log) = logfile::place().filter(|log| log.exists()) {
                self = self.fix(format!("report it, with `outlast doctor --json` and the end of {}", log.display()));
            }
        }
        let code = ExitCode::from(self.0.exit.number());
        // What cannot be started for want of files is not missing.
        if texts(&self.0).any(|text| text.contains(OUT_OF_FILES)) {
            self.0.fix.clear();
        }
        if self.0.fix.is_empty()
            && let Some(help) = help(&self.0)
        {
            self = self.fix(help);
        }
        // A closed pipe must not turn one failure into another.
        let told = if json {
            match serde_json::to_string(&self.folded().into_failure()) {
                Ok(text) => writeln!(std::io::stdout(), "{text}"),
                Err(_) => Ok(()),
            }
        } else {
            let all: String = std::iter::once(&*self.0).chain(&self.1).map(text::diagnostic).collect();
            write!(anstream::stderr(), "{all}")
        };
        drop(told);
        code
    }

    /// The first of several is the reason that the exit code tells.
    pub(crate) fn of_several(first: Diagnostic, others: Vec<Diagnostic>) -> Self {
        Self(Box::new(first), others)
    }

    /// All of it as one.
    fn folded(self) -> Diagnostic {
        self.1.into_iter().fold(*self.0, |told, other| {
            let why: Vec<String> = std::iter::once(other.what).chain(other.why).collect();
            let told = told.because(why.join(": "));
            let fixes: Vec<String> = other.fix.into_iter().filter(|fix| !told.fix.contains(fix)).collect();
            fixes.into_iter().fold(told, Diagnostic::fix)
        })
    }

    /// Adds evidence.
    pub(crate) fn because(self, why: impl Into<String>) -> Self {
        Self(Box::new(self.0.because(why)), self.1)
    }

    /// Adds advice.
    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        Self(Box::new(self.0.fix(fix)), self.1)
    }

    /// What there is to tell.
    pub(crate) const fn diagnostic(&self) -> &Diagnostic {
        &self.0
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self(Box::new(diagnostic), Vec::new())
    }
}

impl From<outlast_engine::Error> for Failure {
    fn from(error: outlast_engine::Error) -> Self {
        outlast_engine::diagnostic(&error).into()
    }
}
