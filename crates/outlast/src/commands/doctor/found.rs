//! One thing that was looked at: what is shown of it, and the exit code that it calls for.

use outlast_api::{Check, ExitCode};

use crate::failure::Failure;

/// A check and what it means for the whole.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) check: Check,
    pub(crate) exit: ExitCode,
}

impl Found {
    /// It is as it should be.
    pub(crate) fn ok(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(name, "ok", detail, ExitCode::Ok)
    }

    /// It works, and a person should know.
    pub(crate) fn warning(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::new(name, "warning", detail, ExitCode::Ok)
    }

    /// A run would fail of it.
    pub(crate) fn error(name: impl Into<String>, exit: ExitCode, detail: impl Into<String>) -> Self {
        Self::new(name, "error", detail, exit)
    }

    /// It was not looked at.
    pub(crate) fn skipped(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(name, "skipped", why, ExitCode::Ok)
    }

    /// What a command would have been told.
    pub(crate) fn failed(name: impl Into<String>, failure: &Failure) -> Self {
        let told = failure.diagnostic();
        let detail = std::iter::once(&told.what).chain(&told.why).map(String::as_str).collect::<Vec<_>>().join(": ");
        let found = Self::error(name, told.exit, detail);
        if told.fix.is_empty() { found } else { found.fix(told.fix.join("; or: ")) }
    }

    /// Says what to do about it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.check.fix = Some(fix.into());
        self
    }

    fn new(name: impl Into<String>, state: &str, detail: impl Into<String>, exit: ExitCode) -> Self {
        let check = Check { name: name.into(), state: state.to_owned(), detail: one_line(&detail.into()), fix: None };
        Self { check, exit }
    }
}

/// Text of programs and providers in one line, without what would steer a terminal.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What there is to mend: errors in the order in which exit codes count, then warnings.
pub(crate) fn by_weight(found: &[Found]) -> Vec<&Found> {
    let mut left: Vec<&Found> = found.iter().filter(|found| found.check.state == "error").collect();
    let mut sorted = Vec::new();
    while !left.is_empty() {
        let worst = ExitCode::worst(left.iter().map(|found| found.exit));
        let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|found| found.exit == worst);
        sorted.extend(now);
        left = later;
    }
    sorted.extend(found.iter().filter(|found| found.check.state == "warning"));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stops_everything_comes_before_what_stops_a_part() {
        let found = [
            Found::warning("w", ""),
            Found::error("provider", ExitCode::Provider, ""),
            Found::ok("o", ""),
            Found::error("host", ExitCode::Host, ""),
            Found::error("repository", ExitCode::Repository, ""),
            Found::error("host two", ExitCode::Host, ""),
        ];
        let names: Vec<&str> = by_weight(&found).iter().map(|found| found.check.name.as_str()).collect();
        assert_eq!(names, ["repository", "host", "host two", "provider", "w"]);
    }

    #[test]
    fn nothing_that_steers_a_terminal_is_passed_on() {
        assert_eq!(Found::ok("n", "a\n\u{1b}[31mb\tc").check.detail, "a [31mb c");
    }
}
