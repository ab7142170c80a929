//! What a reader has to say about a file: what, where, why it matters, and what to do.

use std::collections::BTreeMap;
use std::fmt;

use outlast_core::TaskId;
use outlast_core::plan::Span;
use serde::{Serialize, Serializer};

use crate::Source;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing runs until it is mended.
    Error,
    /// It runs, and is likely to disappoint.
    Warning,
    /// It runs; this would be better.
    Hint,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $severity:ident, $why:literal;)*) => {
        /// The kind of a finding, stable for scripts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code as scripts see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// How much findings of this kind weigh.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)* }
            }

            /// Why it matters, as one sentence.
            pub fn why(self) -> &'static str {
                match self { $(Self::$variant => $why,)* }
            }
        }
    };
}

codes! {
    /// The file is no TOML, or its front matter no YAML.
    Syntax = "config/syntax", Error, "A file that cannot be read whole is not guessed at.";
    /// A key nobody knows.
    UnknownKey = "config/unknown-key", Error, "A key that is not known would be ignored, and what it asks for would not happen.";
    /// A key that a later release will know.
    NotSupportedYet = "config/not-supported-yet", Error, "The key has a meaning, but this release cannot keep its promise.";
    /// A value of the wrong type.
    WrongType = "config/wrong-type", Error, "The value has another type than the key needs.";
    /// A value that cannot be meant.
    BadValue = "config/bad-value", Error, "The value is outside of what the key can mean.";
    /// A key that has to be there.
    MissingKey = "config/missing-key", Error, "Nothing sensible can stand in for it.";
    /// A credential, a provider's address or a ceiling in a file of the repository.
    UserOnly = "config/user-only", Error, "Files of a repository are untrusted: only your own configuration names accounts, addresses and ceilings.";
    /// A batch without a task.
    NoTasks = "plan/no-tasks", Error, "A plan without tasks runs nothing.";
    /// A project file without a task, which is usual where batches hold them.
    NoTasksYet = "plan/no-tasks-yet", Warning, "The project file alone runs nothing; tasks may stand in it or in a batch.";
    /// An id that selectors, messages or files could not carry.
    BadId = "plan/bad-id", Error, "The id has to work in selectors, messages and file names.";
    /// Two tasks of one id.
    DuplicateTask = "plan/duplicate-task", Error, "The id is how a task is named in needs, in the journal and on the command line.";
    /// A task without a goal.
    EmptyGoal = "plan/empty-goal", Error, "The goal is what the agent is asked to do.";
    /// A need that no task has.
    UnknownNeed = "plan/unknown-need", Error, "The task would wait for ever.";
    /// A task that needs itself.
    NeedsItself = "plan/needs-itself", Error, "The task would wait for ever.";
    /// Needs that go in a circle.
    Cycle = "plan/cycle", Error, "None of these tasks could ever start.";
    /// An agent that no table names.
    UnknownAgent = "plan/unknown-agent", Error, "The task has nobody to do it.";
    /// An account that the user's configuration does not name.
    UnknownAccount = "plan/unknown-account", Error, "The agent's requests would have nowhere to go.";
    /// A path or glob that leaves the repository.
    OutsideRepository = "plan/outside-repository", Error, "A task works on one repository and may touch nothing else.";
    /// A text that is no glob.
    BadGlob = "plan/bad-glob", Error, "A scope that cannot be read cannot be kept.";
    /// A target that git would refuse as a branch.
    BadTarget = "plan/bad-target", Error, "Results land on this branch, so git has to accept its name.";
    /// A word in braces that is no placeholder.
    UnknownPlaceholder = "plan/unknown-placeholder", Error, "Nobody can say what the program would have to be given in its place.";
    /// An agent of the kind `command` without a command, or another kind with one.
    AgentCommand = "plan/agent-command", Error, "An agent is started by its kind's own recipe or, for the kind `command`, by its command.";
    /// The program of an agent is to come from the repository, and is not committed there.
    AgentProgram = "plan/agent-program", Error, "Agents work on what is committed: every try of every task would end before it began.";
    /// The program of a command of the plan is to come from the repository, and is not committed there.
    CommandProgram = "plan/command-program", Error, "The command could not pass: every try of the task would be paid for and used up.";
    /// The program of a command of the plan is not on this host.
    ProgramMissing = "host/program-missing", Error, "The command could not pass: every try of the task would be paid for and used up.";
    /// The program of an agent is not on this host.
    AgentMissing = "host/agent-missing", Error, "The task has nobody to do it here.";
    /// An agent that chooses no model by itself, and is given none.
    NoModel = "plan/no-model", Error, "The agent would start and have nothing to ask.";
    /// An agent that no account of the user's answers.
    NoAccount = "config/no-account", Warning, "The agent's requests would have nowhere to go.";
    /// A model that none of an agent's accounts is for.
    ModelNotAllowed = "plan/model-not-allowed", Error, "The gateway would refuse each request of the agent, and every try of the task would be used up.";
    /// A setting of the plan above the user's ceiling.
    AboveCeiling = "plan/above-ceiling", Warning, "Your own configuration sets the ceiling; a plan cannot raise it.";
    /// `auto` concurrency that the user's ceiling cuts.
    CeilingCutsAuto = "plan/ceiling-cuts-auto", Hint, "Your own configuration sets the ceiling, so that fewer tasks are worked on at once.";
    /// A Markdown file in the folder that is no task.
    NotATask = "plan/not-a-task", Hint, "Only the folder's own Markdown files are read, and of those only the ones whose front matter has a task's key.";
    /// Keys of another tool's task file.
    ForeignKey = "plan/foreign-key", Hint, "They mean nothing to a run: only the order and the files of a task do.";
    /// A task file whose status says that it is over.
    StatusInPlan = "plan/status", Warning, "A plan says what is to be done; what is done is told by what has landed.";
    /// A task without verify.
    NoVerify = "plan/no-verify", Warning, "Without a check, an agent that stopped early looks like one that finished.";
    /// A task without a scope.
    NoScope = "plan/no-scope", Warning, "Without a scope the task may change anything, and what collides with other tasks shows only when it lands.";
    /// A scope that takes in everything.
    WideScope = "plan/wide-scope", Warning, "A scope that matches everything overlaps every other task, so none runs beside it.";
    /// Two tasks that may change the same file without an order between them.
    ScopeOverlap = "plan/scope-overlap", Warning, "Tasks that may change the same file do not run at once; without an order, the earlier one goes first.";
    /// A scope with a file that all tasks share.
    HotFile = "plan/hot-file", Hint, "Tasks that may change a hot file run one after the other.";
    /// A task that reads what another writes, without needing it.
    ReadWithoutNeed = "plan/read-without-need", Hint, "The task may start before the other's result exists, and so read the old state.";
    /// No timeout anywhere.
    DefaultTimeout = "plan/default-timeout", Hint, "The default is 20 minutes of work, 5 of silence and 2 retries; a task of another size wants its own.";
    /// Silence is allowed for longer than the whole attempt.
    IdleAboveTimeout = "plan/idle-above-timeout", Warning, "The idle timeout can never strike, because the attempt ends before.";
    /// Steps of which none can be checked.
    NoStepCheck = "plan/no-step-check", Hint, "A step with a command is skipped when a task is resumed; one without is done again.";
    /// Code in a step that may have been meant as its command.
    StepCommand = "plan/step-command", Hint, "A sentence names code of other kinds too, and what is no command must not be run.";
    /// A ticked box in a plan.
    TickedStep = "plan/ticked-step", Hint, "A plan says what is to be done; whether a step is done is told by its command alone.";
    /// A text that speaks of another task without needing it.
    MentionWithoutNeed = "plan/mention-without-need", Hint, "Only `needs` orders tasks; the text does not.";
    /// An address without encryption.
    PlainHttp = "config/plain-http", Warning, "The key and everything the agents read would cross the network unencrypted.";
    /// The user's configuration names an account that cannot work.
    BadAccount = "config/bad-account", Error, "Without a usable credential no request can be sent for the account.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One thing found in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its kind.
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// The task it is about.
    pub task: Option<TaskId>,
    /// Where it stands.
    pub at: Option<Span>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// What was found, with the names and values.
    pub message: String,
    /// What to do about it.
    pub fix: Option<String>,
}

impl Finding {
    /// A finding with the severity of its code.
    pub fn new(code: Code, at: Option<&Span>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            task: None,
            at: at.cloned(),
            source_line: None,
            message: message.into(),
            fix: None,
        }
    }

    /// The same with advice.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The same, about a task.
    pub fn task(mut self, task: &TaskId) -> Self {
        self.task = Some(task.clone());
        self
    }

    /// Tells whether it stops the plan.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The plain text of a finding: what, where, why and what to do, several lines, without colour.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Hint => "hint",
        };
        writeln!(f, "{severity}[{}]: {}", self.code, self.message)?;
        if let Some(at) = &self.at {
            writeln!(f, "  --> {}:{}:{}", at.file, at.line, at.column)?;
            if let Some(text) = &self.source_line {
                let number = at.line.to_string();
                let blank = " ".repeat(number.len());
                let lead: String = indent_of(text, at.column);
                writeln!(f, "{blank} |\n{number} | {}\n{blank} | {lead}^", text.trim_end())?;
            }
        }
        write!(f, "  why: {}", self.code.why())?;
        if let Some(fix) = &self.fix {
            write!(f, "\n  fix: {fix}")?;
        }
        Ok(())
    }
}

/// White space as wide as what stands before the column, tabs kept.
fn indent_of(text: &str, column: u32) -> String {
    let before = text.chars().take(usize::try_from(column.saturating_sub(1)).unwrap_or(0));
    before.map(|c| if c == '\t' { "\t".to_owned() } else { " ".repeat(width(c)) }).collect()
}

/// Columns a terminal gives to a character: two for the wide East Asian blocks, else one.
fn width(c: char) -> usize {
    if matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}')
    {
        2
    } else {
        1
    }
}

/// Gives each finding the text of its line, and puts errors first, each kind in the order of the files.
pub(crate) fn finish(findings: &mut [Finding], sources: &[&Source]) {
    let positions: BTreeMap<&str, usize> = sources.iter().enumerate().map(|(i, source)| (source.name(), i)).collect();
    for finding in findings.iter_mut() {
        let Some(at) = &finding.at else { continue };
        let source = positions.get(at.file.as_str()).map(|&i| sources[i]);
        let line = source.and_then(|source| source.line(at.line));
        finding.source_line = line.map(|line| without_secret(finding.code, line));
    }
    findings.sort_by_cached_key(|finding| {
        let place = finding.at.as_ref().map(|at| (positions.get(at.file.as_str()).copied(), at.line, at.column));
        (finding.severity, place, finding.code)
    });
}

/// Cuts the value from a line that may hold a credential: messages end up in logs and in front of others.
fn without_secret(code: Code, line: &str) -> String {
    // A number of tokens is no token.
    let words = line.to_ascii_lowercase().replace("tokens", "");
    let suspicious = matches!(code, Code::UserOnly | Code::UnknownKey | Code::BadAccount)
        || ["key", "token", "secret", "password", "@"].iter().any(|word| words.contains(word));
    match line.split_once(['=', ':']) {
        Some((key, _)) if suspicious && !key.trim_start().starts_with('[') => format!("{}= …", &line[..key.len()]),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_say_why() {
        let codes: std::collections::BTreeSet<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), Code::ALL.len());
        assert!(Code::ALL.iter().all(|code| code.why().ends_with('.') && !code.why().starts_with(char::is_lowercase)));
    }

    #[test]
    fn a_credential_is_never_shown() {
        assert_eq!(without_secret(Code::UnknownKey, "key = \"sk-1\""), "key = …");
        assert_eq!(without_secret(Code::Syntax, "  key_env = sk-1"), "  key_env = …");
        assert_eq!(without_secret(Code::BadValue, "base_url = \"https://u:p@h\""), "base_url = …");
        assert_eq!(without_secret(Code::BadAccount, "[account.a]"), "[account.a]");
        assert_eq!(without_secret(Code::BadValue, "hours = \"8\""), "hours = \"8\"");
        assert_eq!(without_secret(Code::BadValue, "budget = { tokens = 0 }"), "budget = { tokens = 0 }");
        assert_eq!(without_secret(Code::BadValue, "token = \"t\""), "token = …");
    }

    #[test]
    fn the_caret_stands_under_wide_characters() {
        assert_eq!(indent_of("\t文x", 4), "\t   ");
    }
}
