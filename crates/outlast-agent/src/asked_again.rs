//! Programs that meet a limit by themselves and ask again and again: how often in a row they say so.
//!
//! One line that says so means nothing, since whoever works on such a client prints the same: only a row of them counts, with
//! nothing else said between. How long a row lasts is for those to know who read it as it comes.

use outlast_core::Class;

use crate::refusal::classify;
use crate::retries::{Told, told};

/// How many in a row are more than chance.
const TIMES_MIN: u32 = 3;

/// The row of retries for a limit that a program's output ends with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedAgain {
    row: u32,
    times: u32,
    /// The last line of the row that names the limit.
    line: String,
    /// A limit was named, and that it is asked for again has not been said yet.
    is_named: bool,
}

impl AskedAgain {
    /// How many rows there were before this one: where it differs, the row is another one.
    pub const fn row(&self) -> u32 {
        self.row
    }

    /// How often in a row the program has said that it asks again since a limit holds.
    pub const fn times(&self) -> u32 {
        self.times
    }

    /// Takes up a line of either output; what it says of a limit and a retry.
    pub(crate) fn note(&mut self, line: &str) -> Told {
        let said = told(line);
        match said {
            Told::Again if self.is_countdown(line) => line.clone_into(&mut self.line),
            Told::Again => {
                line.clone_into(&mut self.line);
                self.counts();
            }
            Told::Limit => {
                line.clone_into(&mut self.line);
                self.is_named = true;
            }
            Told::Retry if self.is_named => self.counts(),
            Told::Retry | Told::Nothing => {}
            Told::Else => self.ends(),
        }
        said
    }

    /// Something else has happened.
    pub(crate) fn ends(&mut self) {
        if self.times > 0 || self.is_named {
            *self = Self { row: self.row.wrapping_add(1), ..Self::default() };
        }
    }

    fn counts(&mut self) {
        self.times = self.times.saturating_add(1);
        self.is_named = false;
    }

    /// What it is refused for, where that was said more often than by chance: the class, and the last line of the row.
    pub(crate) fn report(&self) -> Option<(Class, &str)> {
        let class = Some(classify(None, &self.line)).filter(|class| class.is_limit()).unwrap_or(Class::MinuteLimit);
        (self.times >= TIMES_MIN).then_some((class, self.line.trim()))
    }

    /// Whether a line says the same as the one before with less time left: it is of the same wait.
    fn is_countdown(&self, line: &str) -> bool {
        let ((was, before), (is, now)) = (numbers(&self.line), numbers(line));
        was == is && before != now && before.iter().zip(&now).all(|(before, now)| now <= before)
    }
}

/// A line without its numbers, and those.
fn numbers(line: &str) -> (String, Vec<f64>) {
    let mut words = String::new();
    let mut numbers = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        words.push_str(&rest[..at]);
        let number = &rest[at..];
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        numbers.push(number[..end].trim_end_matches('.').parse().unwrap_or_default());
        rest = &number[end..];
    }
    words.push_str(rest);
    (words, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a row of lines comes to.
    fn times(lines: &[&str]) -> u32 {
        let mut again = AskedAgain::default();
        lines.iter().for_each(|line| _ = again.note(line));
        again.times()
    }

    #[test]
    fn a13_what_is_said_in_two_lines_counts_once() {
        for pair in [
            ["Rate limited.", "Waiting 4 s before the next try"],
            ["429 Too Many Requests", "Retrying in 3s (attempt 4)"],
            [
                "INFO:httpx:HTTP Request: POST https://api.example/v1/chat/completions \"HTTP/1.1 429 Too Many Requests\"",
                "INFO:openai._base_client:Retrying request to /chat/completions in 3.25 seconds",
            ],
            ["ERROR request to the model failed: 429", "retry 4"],
        ] {
            assert_eq!((told(pair[0]), told(pair[1])), (Told::Limit, Told::Retry), "{pair:?}");
            assert_eq!(times(&pair.repeat(40)), 40, "{pair:?}");
            assert_eq!(times(&[pair[0]; 40]), 0, "that it asks again was never said: {pair:?}");
            assert_eq!(times(&[pair[1]; 40]), 0, "no limit was named: {pair:?}");
        }
        let body = ["Retry 3/10 after error: 429 {", "  \"error\": {\"message\": \"slow down\"}", "}"];
        assert_eq!(times(&body.repeat(5)), 5);
    }

    #[test]
    fn a13_a_countdown_is_one_wait() {
        let ticks: Vec<String> = (0..60).rev().map(|left| format!("Rate limited. Retrying in {left}s")).collect();
        let mut again = AskedAgain::default();
        ticks.iter().for_each(|tick| _ = again.note(tick));
        assert_eq!(again.times(), 1);
        ticks.iter().for_each(|tick| _ = again.note(tick));
        assert_eq!(again.times(), 2);
        let tries: Vec<String> = (1..40).map(|number| format!("attempt {number}: 429, retrying in 3s")).collect();
        assert_eq!(times(&tries.iter().map(String::as_str).collect::<Vec<_>>()), 39);
    }

    #[test]
    fn a13_something_else_between_ends_the_row() {
        let line = "attempt 7: 429 Too Many Requests, retrying in 3s";
        for other in ["reading a.py", "200 OK", "I wait for the limit.", "Retried: it works", "$ cargo build"] {
            let mut again = AskedAgain::default();
            for said in [line, line, other, line] {
                again.note(said);
            }
            assert_eq!((again.times(), again.row(), again.report()), (1, 1, None), "{other}");
        }
        assert_eq!(times(&[line, "", "  ", "─────", "retrying", line]), 2);
    }

    #[test]
    fn a13_the_last_line_of_a_row_says_what_it_is_refused_for() {
        let of = |line: &str| {
            let mut again = AskedAgain::default();
            (0..3).for_each(|_| _ = again.note(line));
            again.report().map(|(class, line)| (class, line.to_owned()))
        };
        let minute = "attempt 7: 429 Too Many Requests, retrying in 3s";
        assert_eq!(of(minute), Some((Class::MinuteLimit, minute.to_owned())));
        let window = "Retrying in 5 s: You've hit your session limit · resets 5pm (UTC)";
        assert_eq!(of(window), Some((Class::WindowQuota, window.to_owned())));
        assert_eq!(of("working"), None);
    }
}
