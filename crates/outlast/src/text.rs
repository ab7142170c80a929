//! Text for people. Data goes to standard output, everything else to standard error; colour falls away where the reader
//! is no terminal, and no line needs it to be understood.

pub(crate) mod doctor;
pub(crate) mod findings;
pub(crate) mod plan;
pub(crate) mod screen;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use outlast_api::{Diagnostic, Severity};

/// What is wrong.
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
/// What a person should look at.
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
/// What is well.
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
/// What can be left out.
pub(crate) const DIM: Style = Style::new().dimmed();
/// What to read first.
pub(crate) const BOLD: Style = Style::new().bold();

/// A text in a style.
pub(crate) fn styled(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// What happened, why, what to do.
pub(crate) fn diagnostic(told: &Diagnostic) -> String {
    let (style, word) = match told.severity {
        Severity::Error => (RED, "error"),
        Severity::Warning => (YELLOW, "warning"),
        Severity::Hint => (BOLD, "hint"),
    };
    let mut text = format!("{}: {}\n", styled(style, format!("{word}[{}]", told.code)), told.what);
    for why in &told.why {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  because: {why}");
    }
    for (index, fix) in told.fix.iter().enumerate() {
        let lead = if index == 0 { "  do:     " } else { "      or:" };
        let _ = writeln!(text, "{lead} {}", styled(BOLD, fix));
    }
    text
}

/// A duration as people say it: the two largest units.
pub(crate) fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds % 86_400 / 3600, seconds % 3600 / 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A count with its noun.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// A size as people say it.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut unit = 0;
    let mut tenths = n / 100;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!([duration(5), duration(65), duration(7260), duration(90_000)], ["5 s", "1 min 5 s", "2 h 1 min", "1 d 1 h"]);
        assert_eq!([bytes(999), bytes(1500), bytes(12_345_678)], ["999 B", "1.5 kB", "12.3 MB"]);
        assert_eq!([count(1, "task"), count(2, "task")], ["1 task", "2 tasks"]);
    }
}
