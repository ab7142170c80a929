//! Findings as people read them: where, what, the line itself, why, what to do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use outlast_config::{Finding, Severity};

use crate::text::{BOLD, DIM, RED, YELLOW, shown, styled};

/// Tells findings on standard error.
pub(crate) fn warn(findings: &[Finding]) {
    let text = all(findings);
    // Nobody may be listening.
    drop(anstream::stderr().write_all(text.as_bytes()));
}

/// How many findings of one kind are told one by one: what a plan of fifty tasks has fifty times is one thing to know.
const TOLD_MAX: usize = 3;
/// How many of the others' tasks are named.
const NAMED_MAX: usize = 8;

/// Findings in their order. Of many warnings or hints of one kind the first is told, and which other tasks it is said of.
pub(crate) fn all(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut told = BTreeSet::new();
    for one in findings {
        let is_same = |other: &&Finding| other.code == one.code && other.task.is_some();
        let same: Vec<&Finding> = findings.iter().filter(is_same).collect();
        if one.is_error() || one.task.is_none() || same.len() <= TOLD_MAX {
            text.push_str(&finding(one));
        } else if told.insert(one.code.to_string()) {
            let others = same.iter().skip(1).filter_map(|other| other.task.as_ref());
            let named: Vec<String> = others.take(NAMED_MAX).map(|task| format!("`{task}`")).collect();
            let more = match same.len() - 1 - named.len() {
                0 => String::new(),
                more => format!(" and {more} more (--json names all)"),
            };
            let _ = writeln!(text, "{}  of:      also {}{more}", finding(one), named.join(", "));
        }
    }
    text
}

/// One finding.
fn finding(finding: &Finding) -> String {
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
