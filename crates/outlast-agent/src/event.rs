//! What an agent's output says, in one vocabulary for all of them, and the running summary of it.

use std::collections::VecDeque;

use outlast_core::reset::{self, End, Said};
use outlast_core::{Class, Timestamp, Usage};

use crate::asked_again::AskedAgain;
use crate::opening::{Opening, Unbegun};
use crate::preface::is_trace;
use crate::report::{is_about_to_retry, last_line, reported};
use crate::retries::Told;
use crate::{broken, refusal};

/// One thing an agent's output said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The CLI named its session: what a resume needs.
    SessionSeen(String),
    /// An answer of the model began.
    Turn,
    /// A tool was called.
    ToolStarted {
        /// The tool's name in the CLI.
        name: String,
        /// Its first argument's first line, shortened.
        summary: String,
    },
    /// A tool call ended.
    ToolEnded,
    /// The model said something to people, or a program printed a line.
    Text(String),
    /// All that a program has printed, or the end of it, once nothing more can come.
    Printed(String),
    /// The CLI waits to send a request again.
    Retry {
        /// The provider's status, where one came.
        status: Option<u16>,
        /// What the CLI said about it.
        text: String,
    },
    /// The CLI gave up on a request.
    ProviderError {
        /// The provider's status, where one came.
        status: Option<u16>,
        /// What the CLI said about it.
        text: String,
    },
    /// A window of its account is used up, as a structured event says.
    Rejected {
        /// When the window begins anew, where the event says so.
        resets_at: Option<Timestamp>,
    },
    /// What the CLI counts as used so far in this process.
    Usage(Usage),
    /// The CLI's last word.
    Result {
        /// Whether the CLI takes it for a success.
        ok: bool,
        /// The answer, or what went wrong.
        text: String,
    },
    /// A line of its error output.
    Complaint(String),
    /// A line of its standard output that is none of its format.
    Stray(String),
    /// A line too long to be read was skipped.
    Skipped,
}

fn is_limit(class: Option<Class>) -> bool {
    class.is_some_and(Class::is_limit)
}

/// How many of the last lines of error output a summary keeps: the cause of a failed start is among the last few.
const COMPLAINTS_MAX: usize = 8;

/// An agent's output so far, as far as a verdict and a status line need it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The CLI's session.
    pub session: Option<String>,
    /// Answers of the model seen.
    pub turns: u32,
    /// Tool calls seen.
    pub tools: u32,
    /// The last tool called, as `name summary`.
    pub last_tool: Option<String>,
    /// The last text of the model.
    pub last_text: Option<String>,
    /// The last word, if it was said: whether the CLI takes it for a success, and its text.
    pub result: Option<(bool, String)>,
    /// The request the CLI gave up on, unless a turn followed: status and text.
    pub provider_error: Option<(Option<u16>, String)>,
    /// A window that is used up, unless a turn followed: when it begins anew, where that was said.
    pub rejected: Option<Option<Timestamp>>,
    /// Requests sent again.
    pub retries: u32,
    /// What the request was refused for that it waits to send again, unless an answer or a tool followed: status and text.
    pub retried_for: Option<(Option<u16>, String)>,
    /// How often in a row it said that its provider refuses it, and nothing else between.
    pub refusals: u32,
    /// The lines in which it says that it asks again since a limit holds, as far as nothing else came between.
    pub asked_again: AskedAgain,
    /// What the CLI counts as used.
    pub usage: Option<Usage>,
    /// The last lines of error output.
    pub complaints: VecDeque<String>,
    /// What it has said as far as that tells whether it has begun.
    pub opening: Opening,
}

impl Summary {
    /// Takes up one event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::SessionSeen(id) => self.session = Some(id.clone()),
            Event::Turn => {
                self.turns += 1;
                self.provider_error = None;
                self.rejected = None;
                self.asked_again.ends();
                self.goes_on();
            }
            Event::ToolStarted { name, summary } => {
                self.tools += 1;
                self.asked_again.ends();
                self.goes_on();
                self.last_tool = Some(format!("{name} {summary}").trim_end().to_owned());
            }
            Event::Text(text) => {
                match text.contains('\n') {
                    true => self.asked_again.ends(),
                    false => _ = self.asked_again.note(text),
                }
                self.says(text);
            }
            Event::Printed(text) => self.says(text),
            Event::Retry { status, text } => {
                self.retries += 1;
                self.retried_for = Some((*status, text.clone()));
                let is_refusal = is_limit(Some(refusal::classify(*status, text)));
                self.refusals = self.refusals.saturating_add(u32::from(is_refusal));
            }
            Event::ProviderError { status, text } => self.provider_error = Some((*status, text.clone())),
            Event::Rejected { resets_at } => self.rejected = Some(*resets_at),
            Event::Usage(usage) => self.usage = Some(*usage),
            Event::Result { ok, text } => self.result = Some((*ok, text.clone())),
            Event::Complaint(line) => {
                self.opening.complains(line);
                let said = self.asked_again.note(line);
                if is_limit(reported(line)) {
                    self.refusals = self.refusals.saturating_add(1);
                } else if said == Told::Else && !is_about_to_retry(line) && !is_trace(line) {
                    // Many programs log their work where others complain.
                    self.refusals = 0;
                }
                self.complains(line);
            }
            Event::Stray(line) => {
                self.opening.says(line);
                self.asked_again.note(line);
                if reported(line).is_some() || broken::is_unreadable(line) {
                    self.complains(line);
                }
            }
            Event::ToolEnded | Event::Skipped => {}
        }
    }

    /// Keeps the last lines of error output. Of where an error came from, two lines are enough: the error stands before them.
    fn complains(&mut self, line: &str) {
        let traced = self.complaints.iter().rev().take_while(|line| is_trace(line)).count();
        if is_trace(line) && traced > 1 {
            self.complaints.pop_back();
        } else if self.complaints.len() == COMPLAINTS_MAX {
            self.complaints.pop_front();
        }
        self.complaints.push_back(line.to_owned());
    }

    /// Takes up a text for people.
    fn says(&mut self, text: &str) {
        self.opening.says(text);
        let line = last_line(text).unwrap_or_default();
        if is_limit(reported(line)) {
            self.refusals = self.refusals.saturating_add(1);
        } else if !is_about_to_retry(line) {
            self.goes_on();
        }
        self.last_text = Some(text.to_owned());
    }

    /// An answer or a tool followed: what was refused before is not what it ends by.
    fn goes_on(&mut self) {
        self.refusals = 0;
        self.retried_for = None;
    }

    /// When the limit ends that it was ended by: a structured event says so best, else the very report that the verdict was
    /// drawn from. A time that stands elsewhere in its output is another limit's, or none.
    pub fn limit_ends(&self, report: &str, said: Said<'_>) -> Option<End> {
        // The longest window that has such events is a week.
        let event = self.rejected.flatten().and_then(|at| reset::within(at, said.at));
        let event = event.map(|at| reset::bounded(at, said.at, "week"));
        let is_as_stated = |end: &End| matches!(end, End::Stated(_));
        event.filter(is_as_stated).or_else(|| reset::reported(report, said)).or(event)
    }

    /// Whether anything stands in its error output.
    pub fn has_complained(&self) -> bool {
        !self.complaints.is_empty()
    }

    /// Whether all it has done is to say that it waits for its standard input, which is at its end: it never begins.
    pub const fn waits_for_input(&self) -> bool {
        self.opening.waits_for_input() && !self.has_begun()
    }

    /// Why it has not begun, where it stands still now; nothing where it has done anything, or said anything else.
    pub fn unbegun(&self) -> Option<Unbegun<'_>> {
        if self.has_begun() || self.session.is_some() { None } else { self.opening.unbegun() }
    }

    /// What it says of a file that it cannot read since it is no JSON, before it has done anything.
    pub fn unreadable(&self) -> Option<&str> {
        let result = self.result.as_ref().map(|(_, text)| text.as_str());
        let said = [result, self.last_text.as_deref()].into_iter().flatten().flat_map(str::lines);
        let lines = self.complaints.iter().map(String::as_str).chain(said);
        let has_done = self.turns > 0 || self.tools > 0;
        lines.filter(|_| !has_done).find(|line| broken::is_unreadable(line)).map(str::trim)
    }

    const fn has_begun(&self) -> bool {
        self.turns > 0 || self.tools > 0 || self.result.is_some()
    }

    /// Whether the CLI has said its last word, so that it should end by itself soon.
    pub const fn is_over(&self) -> bool {
        self.result.is_some()
    }
}
