//! Git, the repository around the working directory, and the plan in it.

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::{Finding, UserConfig, load, read_plan};
use outlast_core::plan::Plan;
use outlast_git::{Git, UserRepo};

use super::found::Found;
use crate::failure::Failure;
use crate::places::Places;

/// Git and the repository, and the repository itself where it can be worked on.
pub(crate) fn look(places: &Places) -> (Vec<Found>, Option<UserRepo>) {
    let git = match Git::locate() {
        Ok(git) => git,
        Err(refusal) => {
            let failure = refused(refusal.into());
            return (
                vec![Found::failed("git", &failure), Found::skipped("repository", "there is no git to ask")],
                None,
            );
        }
    };
    let mut found = vec![Found::ok("git", format!("{} ({})", git.version(), git.program().display()))];
    match UserRepo::open_with(git, &places.cwd) {
        Ok(repository) => {
            found.push(state(&repository));
            (found, Some(repository))
        }
        Err(error) => {
            found.push(Found::failed("repository", &refused(error)));
            (found, None)
        }
    }
}

/// A repository that can be worked on, and in whose name.
fn state(repository: &UserRepo) -> Found {
    let known = repository.head().and_then(|head| Ok((head, repository.user_identity()?)));
    match known {
        Ok((head, who)) => {
            let branch = head.branch.unwrap_or_else(|| "a detached HEAD".to_owned());
            let detail = format!("{}, on {branch}; lands as {} <{}>", repository.root().display(), who.name, who.email);
            Found::ok("repository", detail)
        }
        Err(error) => Found::failed("repository", &refused(error)),
    }
}

fn refused(error: outlast_git::Error) -> Failure {
    outlast_engine::Error::from(error).into()
}

/// The project's own plan, as far as there is one; batches are for `outlast check`.
pub(crate) fn plan(
    places: &Places,
    repository: Option<&UserRepo>,
    user: Option<&UserConfig>,
) -> (Option<Found>, Option<Plan>) {
    const NAME: &str = "plan";
    let Some(repository) = repository else { return (None, None) };
    let files = match load::load_plan(repository.root(), &places.cwd, None) {
        Ok(files) => files,
        Err(load::Error::NoPlan { .. }) => {
            let found = Found::skipped(NAME, format!("there is no {}", load::PROJECT_FILE));
            return (Some(found.fix("outlast init    # writes a commented one")), None);
        }
        Err(error) => return (Some(Found::error(NAME, ExitCode::Plan, error.to_string())), None),
    };
    let checked = read_plan(&files, user);
    let found = match (&checked.plan, checked.findings.iter().find(|finding| finding.is_error())) {
        (Some(plan), _) => {
            let agents: Vec<&str> = plan.agents.keys().map(|name| name.as_str()).collect();
            let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
            Found::ok(NAME, format!("{} can be read; its agents: {agents}", load::PROJECT_FILE))
        }
        (None, error) => broken(error),
    };
    (Some(found), checked.plan)
}

fn broken(error: Option<&Finding>) -> Found {
    let what = error.map_or_else(|| "it cannot be read".to_owned(), |finding| finding.message.clone());
    let failure = Diagnostic::error("plan/refused", ExitCode::Plan, format!("{}: {what}", load::PROJECT_FILE));
    Found::failed("plan", &failure.fix("outlast check").into())
}
