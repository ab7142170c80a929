//! What `outlast doctor` found, as people read it: a line for each thing, and what to mend first at the end, where the
//! eye is.

use std::fmt::Write as _;

use anstyle::Style;
use outlast_api::Check;

use crate::text::{BOLD, DIM, GREEN, RED, YELLOW, count, styled};

/// Everything that was looked at, in order; then errors and warnings again with what to do, errors first.
pub(crate) fn report(checks: &[Check], first: &[&Check]) -> String {
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for check in checks {
        let state = styled(style(&check.state), format!("{:<8}", check.state));
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{state} {:<width$}  {}", check.name, check.detail);
    }
    if first.is_empty() {
        let _ = writeln!(text, "\n{}", styled(GREEN, "nothing to mend"));
        return text;
    }
    let of = |state: &str| first.iter().filter(|check| check.state == state).count();
    let (errors, warnings) = (of("error"), of("warning"));
    let _ = writeln!(text, "\n{}, {}", count(errors, "error"), count(warnings, "warning"));
    for (number, check) in first.iter().enumerate() {
        let name = styled(style(&check.state), &check.name);
        let _ = writeln!(text, "{:>2}. {name}: {}", number + 1, check.detail);
        if let Some(fix) = &check.fix {
            let _ = writeln!(text, "    do: {}", styled(BOLD, fix));
        }
    }
    text
}

fn style(state: &str) -> Style {
    match state {
        "ok" => GREEN,
        "warning" => YELLOW,
        "error" => RED,
        _ => DIM,
    }
}
