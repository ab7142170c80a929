//! Findings as people read them: where, what, the line itself, why, what to do.

use std::fmt::Write as _;
use std::io::Write as _;

use outlast_config::{Finding, Severity};

use crate::text::{BOLD, DIM, RED, YELLOW, shown, styled};

/// Tells findings on standard error.
pub(crate) fn warn(findings: &[Finding]) {
    let text: String = findings.iter().map(finding).collect();
    // Nobody may be listening.
    drop(anstream::stderr().write_all(text.as_bytes()));
}

/// One finding.
pub(crate) fn finding(finding: &Finding) -> String {
    let (style, word) = match finding.severity {
        Severity::Error => (RED, "error"),
        Severity::Warning => (YELLOW, "warning"),
        Severity::Hint => (BOLD, "hint"),
    };
    let mut text = format!("{}: {}\n", styled(style, format!("{word}[{}]", finding.code)), shown(&finding.message));
    // Writing to a string cannot fail.
    if let Some(at) = &finding.at {
        let _ = writeln!(text, "  {} {}:{}:{}", styled(DIM, "at"), at.file, at.line, at.column);
        if let Some(line) = &finding.source_line {
            let number = at.line.to_string();
            let column = usize::try_from(at.column).unwrap_or(1).saturating_sub(1);
            let _ = writeln!(text, "  {} {}", styled(DIM, format!("{number} |")), shown(line));
            let _ = writeln!(text, "  {} | {}{}", " ".repeat(number.len()), " ".repeat(column), styled(style, "^"));
        }
    }
    let _ = writeln!(text, "  because: {}", finding.code.why());
    if let Some(fix) = &finding.fix {
        let _ = writeln!(text, "  do:      {}", styled(BOLD, fix));
    }
    text
}
