//! What an agent has said before it began: that it waits for its input, or a question to a person, and nothing after that.
//!
//! An agent has nobody at its side: whatever asks whether a folder is to be trusted, or for a login, waits until its time is
//! over. It says so in words for people, which no format has, so they are read on both outputs of every program.

use crate::report::{plain, waits_for_input};
use crate::stream::shorten;

/// Longest line that asks a person something.
const LENGTH_MAX: usize = 400;

/// What was said on both outputs, as far as it tells whether its agent has begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opening {
    has_waited: bool,
    has_spoken: bool,
    stdout: Voice,
    stderr: Voice,
}

/// One of the outputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Voice {
    /// The question that nothing but its answers, or how to give them, has followed.
    asked: Option<String>,
}

/// Why an agent that stands still has not begun, by what it said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbegun<'a> {
    /// It asks a person something.
    Asks(&'a str),
    /// It has said nothing at all.
    Silent,
}

impl Opening {
    /// Takes up what was said on standard output.
    pub(crate) fn says(&mut self, text: &str) {
        self.note(text);
        self.stdout.note(text);
    }

    /// Takes up what was said on standard error.
    pub(crate) fn complains(&mut self, text: &str) {
        self.note(text);
        self.stderr.note(text);
    }

    fn note(&mut self, text: &str) {
        for line in text.lines().filter(|line| !bare(line).is_empty()) {
            let waits = waits_for_input(line);
            self.has_waited |= waits;
            self.has_spoken |= !waits;
        }
    }

    /// Whether all it has said is that it waits for its standard input.
    pub(crate) const fn waits_for_input(&self) -> bool {
        self.has_waited && !self.has_spoken
    }

    /// What it stands still with; nothing where its last words are no question.
    pub(crate) fn unbegun(&self) -> Option<Unbegun<'_>> {
        let asked = self.stdout.asked.as_deref().or(self.stderr.asked.as_deref());
        let is_silent = !self.has_waited && !self.has_spoken;
        asked.map(Unbegun::Asks).or_else(|| is_silent.then_some(Unbegun::Silent))
    }
}

impl Voice {
    fn note(&mut self, text: &str) {
        for line in text.lines() {
            let line = bare(line);
            if asks(&line) {
                self.asked = Some(shorten(&line));
            } else if !belongs_to_a_question(&line) {
                self.asked = None;
            }
        }
    }
}

/// A line without colours and the frame that is drawn around it.
fn bare(line: &str) -> String {
    let is_frame = |c: char| c.is_whitespace() || c.is_control() || ('\u{2500}'..='\u{259f}').contains(&c) || c == '|';
    plain(line).trim_matches(is_frame).to_owned()
}

/// Answers that a question offers.
const CHOICES: &[&str] =
    &["(y/n", "[y/n", "y/n)", "y/n]", "(yes/no", "[yes/no", "yes/no)", "yes/no]", "(y)es", "[y]es"];
/// What people are told to do.
const TOLD: &[&str] = &[
    "press enter",
    "press return",
    "press any key",
    "hit enter",
    "please log in",
    "please login",
    "please sign in",
    "log in to continue",
    "sign in to continue",
    "login to continue",
    "select login method",
    "how would you like to authenticate",
    "waiting for authentication",
    "waiting for login",
    "waiting for you to",
    "complete the login",
    "open the following",
    "open this url",
    "open this link",
    "visit this url",
    "in your browser",
    "paste code",
    "paste the code",
    "enter the code",
    "enter this code",
    "one-time code",
];
/// What stands last before what is to be typed …
const FIELDS: &[&str] = &[
    "password",
    "passphrase",
    "username",
    "user name",
    "user",
    "login",
    "email",
    "e-mail",
    "key",
    "token",
    "code",
    "choice",
    "selection",
    "option",
    "answer",
    "name",
];
/// … and what such a line begins with.
const BIDS: &[&str] = &[
    "enter ",
    "please enter",
    "please type",
    "choose ",
    "select ",
    "please select",
    "pick ",
    "username for ",
    "password for ",
    "passphrase for ",
];

/// Whether a line asks a person something, or tells them to do something before it goes on.
fn asks(line: &str) -> bool {
    if line.is_empty() || line.len() > LENGTH_MAX {
        return false;
    }
    let lower = line.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    // `Ok to proceed? (y)`, `Where to? [.]`: what stands behind the question are its answers.
    let question = match lower.rfind(['(', '[']) {
        Some(at) if lower.ends_with([')', ']']) => lower[..at].trim_end(),
        _ => &lower,
    };
    if question.ends_with('?') || says(CHOICES) || says(TOLD) {
        return true;
    }
    // `Password:`, `root@host's password:`, `Enter your API key:`, `Select an option >`: whatever follows is to be typed.
    let Some(field) = lower.strip_suffix([':', '>', '›', '❯']).map(str::trim_end) else { return false };
    let is_short = field.split_whitespace().count() <= 6;
    is_short && (FIELDS.iter().any(|name| field.ends_with(name)) || BIDS.iter().any(|bid| field.starts_with(bid)))
}

/// Whether a line is one of a question's answers, or says how to give them: it is nothing that is said after it.
fn belongs_to_a_question(line: &str) -> bool {
    const MARKS: &[char] = &['❯', '›', '>', '●', '○', '◉', '◯', '•', '*', '-', '['];
    const WAYS: &[&str] = &["enter to ", "esc to ", "esc)", "arrow keys", "ctrl", "http://", "https://"];
    let lower = line.to_lowercase();
    let rest = lower.trim_start_matches(char::is_numeric);
    let is_numbered = rest.len() < lower.len() && rest.starts_with(['.', ')', ':']);
    line.len() <= LENGTH_MAX
        && (!line.contains(char::is_alphanumeric)
            || is_numbered
            || line.starts_with(['/', '~']) && !line.contains(' ')
            || line.starts_with(MARKS)
            || WAYS.iter().any(|way| lower.contains(way)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stdout: &str, stderr: &str) -> Opening {
        let mut opening = Opening::default();
        opening.says(stdout);
        opening.complains(stderr);
        opening
    }

    #[test]
    fn d05_what_asks_a_person_and_nothing_after_it_has_not_begun() {
        for text in [
            "Do you trust the files in this folder? (y/n)",
            "\u{1b}[1mDo you trust the files in this folder?\u{1b}[0m\n\n/home/me/repo\n",
            "╭────────────────────╮\n│ Do you trust this folder? │\n│ ❯ 1. Yes, proceed │\n│   2. No, exit │\n╰─────╯\n   Enter to confirm · Esc to exit",
            "Welcome to Agent v2\n\nSelect login method:\n ❯ 1. Account with a subscription\n   2. Console account",
            "Password: ",
            "Enter your API key:",
            "Username for 'https://example.org':",
            "Paste code here if prompted >",
            "To sign in, open this URL in your browser:\n\n  https://example.org/device\n",
            "A new version is there. Update now [Y/n] ",
            "Ok to proceed? (y) ",
            "? What would you like to do? (Use arrow keys)\n❯ Log in\n  ",
        ] {
            for opening in [said(text, ""), said("", text), said(text, "warning: 3 deprecated calls\n")] {
                assert!(matches!(opening.unbegun(), Some(Unbegun::Asks(_))), "{text:?}: {opening:?}");
            }
        }
        assert_eq!(said("\n \n\u{1b}[2K\n", "").unbegun(), Some(Unbegun::Silent));
        assert_eq!(said("", "").unbegun(), Some(Unbegun::Silent));
        let asked = said("Trust it? (y/n)", "");
        assert_eq!(asked.unbegun(), Some(Unbegun::Asks("Trust it? (y/n)")), "in its own words");
    }

    #[test]
    fn what_says_something_else_or_goes_on_does_not_ask() {
        for text in [
            "working",
            "What does main do?\nReading main.rs.",
            "Trust it? (y/n)\ny\nThank you.",
            "error: the password is wrong",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "Compiling token v1.0.0",
            "the tests ask for a name: alice",
            "running 3 tests of the module that reads the name of the user:",
        ] {
            assert_eq!(said(text, "").unbegun(), None, "{text:?}");
        }
    }
}
