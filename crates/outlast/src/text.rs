//! Text for people. Data goes to standard output, everything else to standard error; colour falls away where the reader
//! is no terminal, and no line needs it to be understood.

pub(crate) mod budget;
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
    let mut text = format!("{}: {}\n", styled(style, format!("{word}[{}]", told.code)), shown(&told.what));
    for why in &told.why {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  because: {}", shown(why));
    }
    for (index, fix) in told.fix.iter().enumerate() {
        let lead = if index == 0 { "  do:     " } else { "      or:" };
        let _ = writeln!(text, "{lead} {}", styled(BOLD, fix));
    }
    text
}

/// A text that somebody else wrote, with what would steer a terminal, or show it in another order, made visible.
pub(crate) fn shown(text: &str) -> String {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || BIDI_CONTROLS.contains(&c);
    text.chars().map(|c| if steers(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// Characters that change the order in which a text is shown (Unicode UAX #9): with them a command can look like another.
const BIDI_CONTROLS: [char; 12] = [
    '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}', '\u{2066}',
    '\u{2067}', '\u{2068}', '\u{2069}',
];

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
    fn a_foreign_text_steers_no_terminal() {
        assert_eq!(shown("curl evil # \u{1b}[2K\rtrue\n"), "curl evil # \\u{1b}[2K\\u{d}true\n");
        assert_eq!(shown("说明 é\t\u{202e}x"), "说明 é\t\\u{202e}x");
    }

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!(
            [duration(5), duration(65), duration(7260), duration(90_000)],
            ["5 s", "1 min 5 s", "2 h 1 min", "1 d 1 h"]
        );
        assert_eq!([bytes(999), bytes(1500), bytes(12_345_678)], ["999 B", "1.5 kB", "12.3 MB"]);
        assert_eq!([count(1, "task"), count(2, "task")], ["1 task", "2 tasks"]);
    }
}
