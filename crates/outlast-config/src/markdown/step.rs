//! One item of a check list: the step's name, and the command in a code span that shows it is done.
//!
//! People write it in many ways: after a colon, a dash or an arrow, in brackets, in front, or in the middle of a sentence.
//! Code that is no command, as the names in "rename this to that", stays text, and is told where it could be meant as one.

/// What an item says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// What it is called.
    pub(super) name: String,
    /// What shows that it is done.
    pub(super) command: Option<String>,
    /// The code in it that is not taken for a command, and might have been meant as one.
    pub(super) unclear: Option<String>,
}

/// Programs that a sentence names with arguments only to have them run.
const PROGRAMS: [&str; 58] = [
    "!",
    "[",
    "ant",
    "bash",
    "bazel",
    "bun",
    "bundle",
    "cargo",
    "cat",
    "cmake",
    "composer",
    "ctest",
    "curl",
    "deno",
    "diff",
    "dotnet",
    "eslint",
    "find",
    "git",
    "go",
    "gradle",
    "grep",
    "jest",
    "jq",
    "just",
    "ls",
    "make",
    "meson",
    "mix",
    "mvn",
    "mypy",
    "ninja",
    "node",
    "npm",
    "npx",
    "php",
    "phpunit",
    "pnpm",
    "poetry",
    "pre-commit",
    "prettier",
    "pyright",
    "pytest",
    "python",
    "python3",
    "rake",
    "rg",
    "rspec",
    "ruby",
    "ruff",
    "rustc",
    "sbt",
    "sh",
    "swift",
    "test",
    "tox",
    "tsc",
    "uv",
];

/// What may stand between a name and its command. A dash has a space before it: else it is part of a word.
const LEADS: [&str; 12] = [":", "：", " -", " –", " —", "->", "=>", "→", "⇒", " =", "(", "（"];

/// What may follow a command without a meaning of its own.
const TAILS: [char; 10] = [')', '）', '.', ',', ';', '。', '，', '；', '!', '*'];

impl Step {
    /// Reads an item. A command on a line of its own, or in a block of shell, has been found by whoever collected the lines.
    pub(super) fn read(text: &str, below: Option<String>) -> Self {
        let spans = spans(text);
        let last = spans.last().filter(|_| below.is_none());
        let Some(&(open, close)) = last else {
            let name = if below.is_some() { named(text) } else { text.to_owned() };
            return Self { name, command: below, unclear: None };
        };
        let code = code(&text[open..close]);
        let (before, after) = (text[..open].trim_end(), text[close..].trim_matches(TAILS).trim());
        // What stands in brackets behind a command is a remark.
        let after = if after.starts_with(['(', '（']) { "" } else { after };
        let taken = |name: String| Self { name, command: Some(code.to_owned()), unclear: None };
        let has_lead = LEADS.iter().any(|lead| unmarked(before).ends_with(lead));
        let name = named(before);
        if before.is_empty() && after.is_empty() {
            return taken(code.to_owned());
        }
        if has_lead && !name.is_empty() && (after.is_empty() || runs(code)) {
            return taken(name);
        }
        if spans.len() == 1 && runs(code) {
            return taken(named(&format!("{before} {code} {after}")));
        }
        let unclear = (after.is_empty() || code.contains(' ')).then(|| code.to_owned());
        Self { name: text.to_owned(), command: None, unclear }
    }
}

/// Whether code in a sentence is surely something to run: a known program with arguments, or one by its path.
fn runs(code: &str) -> bool {
    let (program, arguments) = code.split_once(' ').unwrap_or((code, ""));
    program.starts_with("./") || !arguments.trim().is_empty() && PROGRAMS.contains(&program)
}

/// A text without emphasis at its end.
fn unmarked(text: &str) -> &str {
    text.trim_end_matches(['*', '_'])
}

/// What stands before a command, as a name: without emphasis and without what leads to the command.
fn named(text: &str) -> String {
    let mut name = text.trim();
    loop {
        let shorter = unmarked(name);
        let shorter = LEADS.iter().find_map(|lead| shorter.strip_suffix(lead)).unwrap_or(shorter).trim_end();
        if shorter.len() == name.len() {
            break;
        }
        name = shorter;
    }
    name.trim_start_matches('*').replace("**", "").trim().to_owned()
}

/// Whether a line is one code span and nothing else, and then the code.
pub(super) fn alone(line: &str) -> Option<&str> {
    match spans(line)[..] {
        [(0, end)] if end == line.len() => Some(code(line)),
        _ => None,
    }
}

/// Where the code spans of a text begin and end: a run of backticks pairs with the next run of the same length.
fn spans(text: &str) -> Vec<(usize, usize)> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        let ticks = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + ticks;
        if let Some(end) = closing(&text[at..], ticks) {
            at += end;
            spans.push((start, at));
        }
    }
    spans
}

/// Where the text goes on after the next run of exactly `ticks` backticks.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        let run = text[start..].len() - text[start..].trim_start_matches('`').len();
        at = start + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

/// The code of a span. It may be padded by one space on both sides, to hold backticks at its ends (CommonMark, "Code
/// spans").
fn code(span: &str) -> &str {
    let inner = span.trim_start_matches('`');
    let ticks = span.len() - inner.len();
    let code = &inner[..inner.len().saturating_sub(ticks)];
    code.strip_prefix(' ')
        .and_then(|code| code.strip_suffix(' '))
        .filter(|code| !code.trim().is_empty())
        .unwrap_or(code)
}
