//! Advice about a plan that would run: what is likely to disappoint, and what would be better.

use std::collections::{BTreeMap, BTreeSet};

use outlast_core::TaskId;
use outlast_core::glob::Glob;
use outlast_core::plan::{IDLE_TIMEOUT_DEFAULT, Plan, Task};

use crate::analysis::{Edge, Reason, analyse};
use crate::{Code, Finding};

/// A warning per pair beyond this many pairs hides the rest.
const PAIRS_MAX: usize = 50;

/// Looks at a plan; `timed` says that its author has named a timeout somewhere, be it the default.
pub(crate) fn lint(plan: &Plan, timed: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ids: BTreeSet<&str> = plan.tasks.iter().map(|task| task.id.as_str()).filter(|id| is_telling(id)).collect();
    for task in &plan.tasks {
        lint_task(task, &mut findings);
        lint_mentions(task, &ids, &mut findings);
    }
    if !plan.tasks.is_empty() && !timed {
        let message = "no task names a timeout: each has the default ones";
        let fix = "set `timeout` and `idle_timeout` in `[defaults]`, or in the tasks that need others";
        findings.push(Finding::new(Code::DefaultTimeout, None, message).fix(fix));
    }
    lint_pairs(plan, &mut findings);
    findings
}

fn on(task: &Task, code: Code, message: String, fix: &str) -> Finding {
    Finding::new(code, task.source.as_ref(), message).fix(fix).task(&task.id)
}

fn lint_task(task: &Task, findings: &mut Vec<Finding>) {
    let id = &task.id;
    if task.verify.is_empty() {
        let fix = "add `verify = [\"…\"]` to the task or to `[defaults]`";
        findings.push(on(task, Code::NoVerify, format!("task `{id}` has no `verify`"), fix));
    }
    if task.writes.is_empty() {
        let fix = "add `writes = [\"src/…/**\"]`";
        findings.push(on(task, Code::NoScope, format!("task `{id}` has no `writes`"), fix));
    }
    if let Some(wide) = task.writes.iter().find(|glob| matches_everything(glob)) {
        let fix = "name the folders or files that the task is about";
        findings.push(on(task, Code::WideScope, format!("`{wide}` in task `{id}` matches every file"), fix));
    }
    // What nobody asked for is nobody's mistake.
    if task.idle_timeout >= task.timeout && task.idle_timeout != IDLE_TIMEOUT_DEFAULT {
        let message = format!(
            "task `{id}` may be silent for {} s, but runs for {} s at most",
            task.idle_timeout.as_secs(),
            task.timeout.as_secs()
        );
        findings.push(on(task, Code::IdleAboveTimeout, message, "raise `timeout`, or lower `idle_timeout`"));
    }
    if !task.steps.is_empty() && task.steps.iter().all(|step| step.command.is_none()) {
        let fix = "give a step the command that shows it is done";
        findings.push(on(task, Code::NoStepCheck, format!("no step of task `{id}` has a command"), fix));
    }
}

fn matches_everything(glob: &str) -> bool {
    // Two paths that have nothing in common, in no folder and deep in folders.
    let unlikely: [&[u8]; 2] = [b"\x01", b"\x02/\x03/\x04"];
    Glob::parse(glob).is_ok_and(|glob| unlikely.iter().all(|path| glob.covers(path)))
}

/// Whether an id is unlikely to be a word of ordinary text.
fn is_telling(id: &str) -> bool {
    id.chars().count() >= 3 && id.contains(|c: char| c.is_ascii_digit() || matches!(c, '-' | '_' | '.'))
}

/// Notes other tasks that the text speaks of, by id or as `Task 005`, and that are not in `needs`.
fn lint_mentions(task: &Task, ids: &BTreeSet<&str>, findings: &mut Vec<Finding>) {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let mut noted = BTreeSet::new();
    let mut last = "";
    let texts = std::iter::once(&task.goal).chain(task.steps.iter().map(|step| &step.name));
    let words = texts.flat_map(|text| text.split(|c| !inside(c))).map(|word| word.trim_end_matches('.'));
    for word in words.filter(|word| !word.is_empty()) {
        let numbered = last.eq_ignore_ascii_case("task") && word.len() >= 3 && word.bytes().all(|b| b.is_ascii_digit());
        last = word;
        let needed = task.needs.iter().any(|need| need.as_str() == word);
        if !(ids.contains(word) || numbered) || needed || word == task.id.as_str() || !noted.insert(word) {
            continue;
        }
        let message = format!("the text of task `{}` speaks of `{word}`, which is not in its `needs`", task.id);
        let fix = format!("add `{word}` to `needs` if the task starts from its result");
        findings.push(on(task, Code::MentionWithoutNeed, message, &fix));
    }
}

fn lint_pairs(plan: &Plan, findings: &mut Vec<Finding>) {
    let tasks: BTreeMap<&TaskId, &Task> = plan.tasks.iter().map(|task| (&task.id, task)).collect();
    let analysis = analyse(plan);
    let noted: Vec<&Edge> = analysis.edges.iter().filter(|edge| edge.reason != Reason::Needs).collect();
    for edge in noted.iter().take(PAIRS_MAX) {
        let Some(later) = tasks.get(&edge.to) else {
            continue;
        };
        let (from, to) = (&edge.from, &edge.to);
        findings.push(match &edge.reason {
            Reason::Needs => continue,
            Reason::Scope { from: a, to: b } => on(
                later,
                Code::ScopeOverlap,
                format!("tasks `{from}` (`{a}`) and `{to}` (`{b}`) may change the same file"),
                "narrow one of the scopes, or order them with `needs`",
            ),
            Reason::HotFile { file } => on(
                later,
                Code::HotFile,
                format!("tasks `{from}` and `{to}` may both change the hot file `{file}`"),
                "leave it out of the scopes where the task does not need it",
            ),
            Reason::Reads { from: a, to: b } => on(
                later,
                Code::ReadWithoutNeed,
                format!("task `{to}` reads `{b}`, and `{from}` may change `{a}`"),
                "add the other task to `needs` if its result is meant",
            ),
        });
    }
    if noted.len() > PAIRS_MAX || !analysis.complete {
        let most = if analysis.complete { "" } else { "at least " };
        let more = noted.len().saturating_sub(PAIRS_MAX);
        let message = format!("{most}{more} more pairs of tasks meet in their files");
        let fix = "narrow the scopes; `edges` of `outlast check --json` lists the pairs";
        findings.push(Finding::new(Code::ScopeOverlap, None, message).fix(fix));
    }
}
