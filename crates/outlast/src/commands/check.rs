//! `outlast check`: what a plan holds, what is wrong with it, and how its tasks hang together.
//!
//! It runs no command of the plan and changes nothing.

use std::io::{self, IsTerminal as _, Write as _};

use outlast_api::{CheckView, Diagnostic, EdgeView, ExitCode, FindingView, schema};
use outlast_config::{Analysis, Checked, Edge, Finding, Reason, Severity, analyse, approval_hash, nearest, read_plan};
use outlast_core::TaskId;
use outlast_core::plan::Plan;
use serde::Serialize;

use crate::approval;
use crate::args::Check;
use crate::base::{self, Hindrance};
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::text::{self, findings};
use crate::typed::Typed;

pub(crate) fn perform(given: &Given, check: &Check) -> Result<ExitCode, Failure> {
    let repository = given.places.repository()?;
    let user = given.places.user_config()?;
    let files = given.places.plan_files(repository.root(), check.plan.as_deref())?;
    let mut checked = read_plan(&files, Some(&user));
    let mut refused = ExitCode::Plan;
    if let Some(plan) = checked.plan.as_ref().filter(|_| check.prompt.is_none()) {
        let hindrances = base::hindrances(plan, given, &user, &repository)?;
        // What is still to be set up here (an account) keeps a plan from running, and is no fault of it.
        let (errors, warnings): (Vec<Finding>, Vec<Finding>) =
            hindrances.iter().map(hindered).partition(Finding::is_error);
        let is_error = |hindrance: &&Hindrance| hindrance.code.severity() == Severity::Error;
        if let Some(first) = hindrances.iter().find(is_error) {
            refused = first.told.exit;
            checked.plan = None;
        }
        checked.findings = errors.into_iter().chain(warnings).chain(checked.findings).collect();
    }
    match &check.prompt {
        Some(task) => show_prompt(given, &checked, Typed(check.plan.as_deref()), task),
        None => {
            let typed = Typed(check.plan.as_deref());
            let home = given.places.home.repository(repository.common_dir());
            let approved = checked.plan.as_ref().is_some_and(|plan| approval::is_given(&home, plan));
            show_plan(given, &files.name, typed, &checked, approved, refused)
        }
    }
}

/// What could not work here, as a finding.
fn hindered(hindrance: &Hindrance) -> Finding {
    let told = &hindrance.told;
    let message = std::iter::once(&told.what).chain(&told.why).map(String::as_str).collect::<Vec<_>>().join(": ");
    let finding = Finding::new(hindrance.code, None, message).fix(told.fix.join("; or: "));
    match &hindrance.task {
        Some(task) => finding.task(task),
        None => finding,
    }
}

fn show_plan(
    given: &Given,
    name: &str,
    typed: Typed<'_>,
    checked: &Checked,
    approved: bool,
    refused: ExitCode,
) -> Result<ExitCode, Failure> {
    let analysis = checked.plan.as_ref().map(analyse);
    if given.json {
        print_json(&view(name, checked, analysis.unwrap_or_default(), approved))?;
    } else {
        print(&findings::all(&checked.findings))?;
        if let Some(analysis) = &analysis {
            print(&text::plan::analysis(analysis))?;
        }
        if let Some(plan) = &checked.plan {
            print(&text::plan::commands(&approval::commands(plan), typed, approved))?;
        }
        print(&format!("{}\n", summary(checked)))?;
    }
    Ok(if checked.plan.is_some() { ExitCode::Ok } else { refused })
}

/// What was found, in one line.
fn summary(checked: &Checked) -> String {
    let of = |severity: Severity, noun: &str| {
        let n = checked.findings.iter().filter(|finding| finding.severity == severity).count();
        (n > 0).then(|| text::count(n, noun))
    };
    let kinds = [of(Severity::Error, "error"), of(Severity::Warning, "warning"), of(Severity::Hint, "hint")];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    let found = if kinds.is_empty() { "nothing to mend".to_owned() } else { kinds.join(", ") };
    match &checked.plan {
        Some(plan) => format!("{}: {found}", text::count(plan.tasks.len(), "task")),
        None => format!("the plan does not run: {found}"),
    }
}

fn view(name: &str, checked: &Checked, analysis: Analysis, approved: bool) -> CheckView {
    let names = |ids: &[TaskId]| ids.iter().map(TaskId::to_string).collect::<Vec<_>>();
    CheckView {
        schema: schema("check"),
        plan: name.to_owned(),
        runnable: checked.plan.is_some(),
        approval: checked.plan.as_ref().map(approval_hash),
        commands: checked.plan.as_ref().map(approval::commands).unwrap_or_default(),
        approved,
        findings: checked.findings.iter().map(finding_view).collect(),
        waves: analysis.waves.iter().map(|wave| names(wave)).collect(),
        critical_path: names(&analysis.critical_path),
        edges: analysis.edges.into_iter().map(edge_view).collect(),
        estimate: None,
    }
}

fn finding_view(finding: &Finding) -> FindingView {
    let severity = match finding.severity {
        Severity::Error => outlast_api::Severity::Error,
        Severity::Warning => outlast_api::Severity::Warning,
        Severity::Hint => outlast_api::Severity::Hint,
    };
    let at = finding.at.as_ref();
    FindingView {
        code: finding.code.to_string(),
        severity,
        task: finding.task.as_ref().map(TaskId::to_string),
        file: at.map(|at| at.file.clone()),
        line: at.map(|at| at.line),
        column: at.map(|at| at.column),
        message: finding.message.clone(),
        why: finding.code.why().to_owned(),
        fix: finding.fix.clone(),
    }
}

pub(super) fn edge_view(edge: Edge) -> EdgeView {
    let (reason, detail) = match edge.reason {
        Reason::Needs => ("needs", None),
        Reason::Scope { from, to } => ("scope", Some(format!("{from} meets {to}"))),
        Reason::HotFile { file } => ("hot_file", Some(file)),
        Reason::Reads { from, to } => ("reads", Some(format!("{from} meets {to}"))),
    };
    EdgeView { from: edge.from.to_string(), to: edge.to.to_string(), reason: reason.to_owned(), detail }
}

/// What is sent to a task's agent: `outlast/prompt/v1`.
#[derive(Serialize)]
struct PromptView {
    schema: String,
    task: String,
    prompt: String,
    bytes: usize,
    /// A guess: no tokenizer is asked.
    tokens_estimate: usize,
}

/// Bytes of English prose or code that make a token, roughly; no provider states a number.
const BYTES_PER_TOKEN: usize = 4;

fn show_prompt(given: &Given, checked: &Checked, typed: Typed<'_>, task: &str) -> Result<ExitCode, Failure> {
    let Some(plan) = &checked.plan else {
        findings::warn(&checked.findings);
        let told = Diagnostic::error("plan/refused", ExitCode::Plan, "the plan does not run, so nothing would be sent");
        return Err(told.fix("mend what is named above").into());
    };
    let found = plan.task(&TaskId::new(task)).ok_or_else(|| unknown(plan, typed, task))?;
    let prompt = outlast_agent::prompt::prompt(found);
    let tokens = prompt.len().div_ceil(BYTES_PER_TOKEN);
    if given.json {
        let (task, bytes) = (found.id.to_string(), prompt.len());
        print_json(&PromptView { schema: schema("prompt"), task, prompt, bytes, tokens_estimate: tokens })?;
    } else {
        print_exactly(&prompt)?;
        say(&format!("{} bytes, roughly {tokens} tokens", prompt.len()));
    }
    Ok(ExitCode::Ok)
}

/// Prints a prompt byte for byte; at a terminal, characters that would steer it are shown instead of sent.
fn print_exactly(prompt: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout();
    if stdout.is_terminal() {
        return print(&crate::text::shown(prompt));
    }
    match stdout.write_all(prompt.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::error("host/cannot", ExitCode::Host, format!("standard output: {error}")).into())
        }
        _ => Ok(()),
    }
}

fn unknown(plan: &Plan, typed: Typed<'_>, task: &str) -> Failure {
    let told = Diagnostic::error("task/none", ExitCode::NotFound, format!("the plan has no task `{task}`"));
    let ids: Vec<&str> = plan.tasks.iter().map(|task| task.id.as_str()).take(12).collect();
    let near = nearest(task, plan.tasks.iter().map(|task| task.id.as_str()));
    let told = near.into_iter().fold(told, |told, near| told.because(format!("did you mean `{near}`?")));
    let told = if ids.is_empty() { told } else { told.because(format!("its tasks are {}", ids.join(", "))) };
    told.fix(format!("{}    # shows every task", typed.check())).into()
}
