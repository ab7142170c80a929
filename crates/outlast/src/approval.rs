//! A plan's commands run only after a person has approved them, once for what they are.
//!
//! What is approved is kept by the hash of everything executable in the plan; the executor is given the plan that was
//! hashed, and no file is read again.

use std::fs::OpenOptions;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use outlast_api::{Diagnostic, ExitCode};
use outlast_core::Oid;
use outlast_core::plan::{Land, Plan};
use outlast_engine::RepoHome;

use crate::failure::Failure;
use crate::text;
use crate::text::screen::short;
use crate::typed::{Given, Typed, as_given};

/// Makes sure that a person has approved what this plan would run from the commit `base`: it, or the whole that it is a part of.
pub(crate) fn require(
    home: &RepoHome,
    plan: &Plan,
    whole: &Plan,
    base: &Oid,
    typed: Typed<'_>,
    yes: bool,
) -> Result<(), Failure> {
    let hash = outlast_config::approval_hash(plan);
    let file = home.root().join("approved");
    if is_approved(&file, &hash) || is_given(home, whole) {
        return Ok(());
    }
    if !yes && !asked(plan, base)? {
        let what = "this plan's commands have not been approved for this repository";
        return Err(Diagnostic::error("plan/not-approved", ExitCode::Plan, what)
            .because("a plan comes with its repository, and its commands run on your machine")
            .fix(format!("{}    # lists them", typed.check()))
            .fix(format!("{}    # approves and runs them", as_given("--yes", Given::Plain)))
            .into());
    }
    keep(&file, &hash).map_err(|error| {
        Diagnostic::error("host/cannot", ExitCode::Host, format!("{}: {error}", file.display())).into()
    })
}

/// Whether a person has approved what this plan would run.
pub(crate) fn is_given(home: &RepoHome, plan: &Plan) -> bool {
    is_approved(&home.root().join("approved"), &outlast_config::approval_hash(plan))
}

fn is_approved(file: &PathBuf, hash: &str) -> bool {
    std::fs::read_to_string(file).is_ok_and(|approved| approved.lines().any(|line| line == hash))
}

fn keep(file: &PathBuf, hash: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
    writeln!(file, "{hash}")?;
    file.sync_all()
}

/// Asks at a terminal; elsewhere nobody can answer.
fn asked(plan: &Plan, base: &Oid) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let lands = match (&plan.run.target, plan.run.land) {
        (None, Land::Review) => "what passes waits for you, and then lands on a branch of the run's own".to_owned(),
        (None, Land::Auto) => "what passes lands by itself, on a branch of the run's own".to_owned(),
        (Some(target), Land::Review) => format!("what passes waits for you, and then lands on `{target}`"),
        (Some(target), Land::Auto) => format!("what passes lands by itself, on `{target}`"),
    };
    let (tasks, start) = (text::count(plan.tasks.len(), "task"), short(base.as_str()));
    let mut told = format!("{tasks}, from what is committed at {start}; {lands}.\nThis plan runs these commands:\n");
    for command in commands(plan) {
        told.push_str("  ");
        told.push_str(&text::shown(&command));
        told.push('\n');
    }
    told.push_str("Run them? [y/N] ");
    let asked = |error: io::Error| Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()));
    let mut stderr = io::stderr();
    stderr.write_all(told.as_bytes()).and_then(|()| stderr.flush()).map_err(asked)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(asked)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Every command of a plan, each once, in the order in which it would run.
pub(crate) fn commands(plan: &Plan) -> Vec<String> {
    let mut commands: Vec<String> = plan.run.setup.clone();
    commands.extend(plan.agents.values().filter(|agent| !agent.command.is_empty()).map(|agent| {
        let set = agent.env.iter().map(|(name, value)| format!("{name}={value}"));
        set.chain([agent.command.join(" ")]).collect::<Vec<_>>().join(" ")
    }));
    for task in &plan.tasks {
        commands.extend(task.steps.iter().filter_map(|step| step.command.clone()));
        commands.extend(task.verify.iter().cloned());
    }
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|command| seen.insert(command.clone()));
    commands
}
