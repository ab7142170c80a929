//! How a plan's tasks hang together, as people read it: waves, the longest chain, who waits for whom and why.

use std::fmt::Write as _;

use outlast_config::{Analysis, Edge, Reason};
use outlast_core::TaskId;

use crate::text::{BOLD, DIM, count, shown, styled};
use crate::typed::Typed;

/// How many tasks of a wave are named before the rest is summed up.
const NAMED_MAX: usize = 12;
/// How many pairs are shown: a screen holds about forty lines; `--json` has them all.
const EDGES_MAX: usize = 20;

/// Waves, the longest chain and the pairs of tasks with an order.
pub(crate) fn analysis(analysis: &Analysis) -> String {
    let mut text = String::new();
    for (number, wave) in analysis.waves.iter().enumerate() {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(text, "{} {}", styled(BOLD, format!("wave {}:", number + 1)), names(wave));
    }
    if analysis.critical_path.len() > 1 {
        let chain: Vec<&str> = analysis.critical_path.iter().map(TaskId::as_str).collect();
        let _ = writeln!(text, "{} {}", styled(BOLD, "longest chain:"), chain.join(" ▸ "));
    }
    for edge in analysis.edges.iter().take(EDGES_MAX) {
        let _ = writeln!(text, "  {} ▸ {}  {}", edge.from, edge.to, styled(DIM, why(edge)));
    }
    if analysis.edges.len() > EDGES_MAX {
        let more = count(analysis.edges.len() - EDGES_MAX, "more pair");
        let _ = writeln!(text, "  {}", styled(DIM, format!("and {more}; --json lists them")));
    }
    if !analysis.complete {
        let _ = writeln!(text, "{}", styled(DIM, "too many scopes meet to compare every pair: there may be more"));
    }
    text
}

/// What a plan would have this machine run.
pub(crate) fn commands(commands: &[String], typed: Typed<'_>, approved: bool) -> String {
    if commands.is_empty() {
        return String::new();
    }
    let state = match approved {
        true => "approved already".to_owned(),
        false => format!("`{}` asks for your approval first", typed.run("")),
    };
    let mut text = format!("{} {}\n", styled(BOLD, "runs these commands:"), styled(DIM, format!("({state})")));
    for command in commands {
        let _ = writeln!(text, "  {}", shown(command));
    }
    text
}

fn names(wave: &[TaskId]) -> String {
    let shown: Vec<&str> = wave.iter().take(NAMED_MAX).map(TaskId::as_str).collect();
    let more = wave.len().saturating_sub(NAMED_MAX);
    if more == 0 { shown.join(", ") } else { format!("{}, and {more} more", shown.join(", ")) }
}

/// Why the one goes before the other.
fn why(edge: &Edge) -> String {
    match &edge.reason {
        Reason::Needs => "by its needs".to_owned(),
        Reason::Scope { from, to } if from == to => format!("both may change {from}"),
        Reason::Scope { from, to } => format!("both may change what {from} and {to} have in common"),
        Reason::HotFile { file } => format!("both may change the hot file {file}"),
        Reason::Reads { from, to } => format!("reads {to}; the earlier one may change {from}; told, not enforced"),
    }
}
