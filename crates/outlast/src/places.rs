//! Where things are: the state, the user's configuration, the repository, the plan.

use std::env;
use std::path::{Path, PathBuf};

use outlast_api::{Diagnostic, ExitCode};
use outlast_config::{PlanFiles, UserConfig, load};
use outlast_engine::{Home, Obstacle, RepoHome, checkout};
use outlast_git::UserRepo;

use crate::args::Args;
use crate::failure::Failure;
use crate::typed::{self, as_given};

/// The places that every command shares.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// Where state is kept.
    pub(crate) home: Home,
    /// The user's configuration file, which need not exist.
    pub(crate) config: PathBuf,
    /// Whether the command names it: then it has to.
    is_named: bool,
    /// Where the command was given.
    pub(crate) cwd: PathBuf,
}

impl Places {
    /// What the arguments and the environment name.
    pub(crate) fn new(args: &Args) -> Result<Self, Failure> {
        let cwd = env::current_dir().map_err(|error| cannot(format!("the working directory is gone: {error}")))?;
        let user = env::home_dir();
        let user = user.ok_or_else(|| cannot("HOME is not set".to_owned()).fix("outlast --home DIR --config FILE …"));
        let home = match &args.home {
            Some(home) => cwd.join(home),
            None => state_folder(user.as_deref().map_err(Clone::clone)?).join("outlast"),
        };
        let config = match &args.config {
            Some(config) => cwd.join(config),
            None => config_folder(user.as_deref().map_err(Clone::clone)?).join("outlast/config.toml"),
        };
        nameable(&home)?;
        // Both come as one argument. What a variable says holds for every command, also before there is such a file.
        let is_named = args.config.is_some() && args.config != env::var_os("OUTLAST_CONFIG").map(PathBuf::from);
        Ok(Self { home: Home::new(home), config, is_named, cwd })
    }

    /// Whether the command names the configuration file.
    pub(crate) const fn is_named(&self) -> bool {
        self.is_named
    }

    /// The repository around the working directory, in which the home must not lie.
    pub(crate) fn repository(&self) -> Result<UserRepo, Failure> {
        let repository = UserRepo::open(&self.cwd).map_err(outlast_engine::Error::from)?;
        self.home.keep_apart(&repository)?;
        Ok(repository)
    }

    /// The repository that a run's journal belongs to: the one around the working directory, or else where it is known to be.
    pub(crate) fn repository_of(&self, home: &RepoHome) -> Result<UserRepo, Failure> {
        match Obstacle::gone(home) {
            Some(gone @ Obstacle::RepositoryGone(_)) => return Err(elsewhere(&gone, self.moved_to(home).as_deref())),
            Some(gone) => return Err(gone.told(None, None).into()),
            None => {}
        }
        let around = UserRepo::around(&self.cwd).map_err(outlast_engine::Error::from)?;
        let is_here = around.is_some_and(|common_dir| self.home.repository(&common_dir).root() == home.root());
        let Some(common_dir) = home.lender().filter(|_| !is_here) else { return self.repository() };
        let checkout = checkout(&common_dir);
        let repository = UserRepo::open(checkout).map_err(|error| {
            let what = format!("the run belongs to the repository `{}`, which cannot be worked on", checkout.display());
            let told = Diagnostic::error("repository/elsewhere", ExitCode::Repository, what).because(error.to_string());
            Failure::from(told.fix("give the command in a checkout of that repository"))
        })?;
        self.home.keep_apart(&repository)?;
        Ok(repository)
    }

    /// Where the repository of a folder in the home is now, where it is gone from where it was and is the one around the
    /// working directory: it holds the pins of a run that was begun there.
    pub(crate) fn moved_to(&self, home: &RepoHome) -> Option<PathBuf> {
        let is_gone = matches!(Obstacle::gone(home), Some(Obstacle::RepositoryGone(_)));
        let here = if is_gone { UserRepo::around(&self.cwd).ok().flatten()? } else { return None };
        outlast_git::pinned_runs(&here).iter().any(|run| home.knows(run)).then_some(here)
    }

    /// The folders in the home of a repository that was here and is gone, or that is here now and is gone from where it was.
    pub(crate) fn of_a_moved_repository(&self) -> Vec<RepoHome> {
        let was_here = |gone: &Path| gone.parent().is_some_and(|checkout| self.cwd.starts_with(checkout));
        let is_it = |home: &RepoHome| match Obstacle::gone(home) {
            Some(Obstacle::RepositoryGone(common_dir)) => was_here(&common_dir) || self.moved_to(home).is_some(),
            _ => false,
        };
        let homes = self.home.repositories().unwrap_or_default().into_iter().map(RepoHome::at);
        homes.filter(is_it).collect()
    }

    /// The user's configuration, and what there is to say about it; no configuration where there is no file.
    pub(crate) fn user_config(&self) -> Result<UserConfig, Failure> {
        let source = load::load_user(&self.config).map_err(|error| unreadable("config/unreadable", &error))?;
        let Some(source) = source else {
            return if self.is_named { Err(self.no_config()) } else { Ok(UserConfig::default()) };
        };
        let checked = outlast_config::read_user(&source);
        crate::text::findings::warn(&checked.findings);
        checked.config.ok_or_else(|| {
            Diagnostic::error("config/refused", ExitCode::Plan, format!("{} is not usable", self.config.display()))
                .fix("mend what is named above")
                .into()
        })
    }

    /// What is said where a command names a configuration that is not there: what it would be without, nobody has asked for.
    fn no_config(&self) -> Failure {
        let what = format!("there is no configuration `{}`", self.config.display());
        let told =
            Diagnostic::error("config/missing", ExitCode::Usage, what).because("the command names it (`--config`)");
        told.fix(as_given("--config", typed::Given::Without)).into()
    }

    /// The files of the plan that `which` names.
    pub(crate) fn plan_files(&self, repository: &Path, which: Option<&str>) -> Result<PlanFiles, Failure> {
        load::load_plan(repository, &self.cwd, which).map_err(|error| {
            let told = unreadable("plan/unreadable", &error);
            match error {
                load::Error::NoPlan { .. } => told.fix("outlast init    # writes a commented outlast.toml"),
                _ => told,
            }
        })
    }
}

/// What is said of a run whose repository is not where it was.
fn elsewhere(gone: &Obstacle, found: Option<&Path>) -> Failure {
    let told = gone.told(None, found);
    let what = match gone {
        Obstacle::RepositoryGone(common_dir) => {
            format!(
                "the run belongs to the repository `{}`, which is not there any more",
                checkout(common_dir).display()
            )
        }
        _ => told.what.clone(),
    };
    Diagnostic { code: "repository/elsewhere".to_owned(), what, ..told }.into()
}

/// Refuses a home that cannot be named everywhere: git's list of borrowed objects has a path a line, and the files that
/// agents and their CLIs are given hold text.
fn nameable(home: &Path) -> Result<(), Failure> {
    let why = match home.to_str() {
        None => "it is no UTF-8, and agents are told of it in text",
        Some(text) if text.contains(['\n', '\r']) => "it contains a line end, and git names one folder a line",
        Some(_) => return Ok(()),
    };
    let what = format!("the home `{}` cannot be used", home.display().to_string().escape_debug());
    let told = Diagnostic::error("host/home-unusable", ExitCode::Host, what).because(why);
    Err(told.fix("set OUTLAST_HOME (or --home) to a folder with a plain name").into())
}

fn cannot(what: String) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, what).into()
}

fn unreadable(code: &str, error: &load::Error) -> Failure {
    let mut told = Diagnostic::error(code, ExitCode::Plan, error.to_string());
    if let Some(source) = std::error::Error::source(error) {
        told = told.because(source.to_string());
    }
    told.into()
}

/// The platform's folder for state: `$XDG_STATE_HOME`, or what stands for it.
fn state_folder(user: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        return user.join("Library/Application Support");
    }
    absolute("XDG_STATE_HOME").unwrap_or_else(|| user.join(".local/state"))
}

/// The platform's folder for configuration.
fn config_folder(user: &Path) -> PathBuf {
    if cfg!(target_os = "macos") {
        return user.join("Library/Application Support");
    }
    absolute("XDG_CONFIG_HOME").unwrap_or_else(|| user.join(".config"))
}

/// A variable that names an absolute path; a relative one is ignored, as the XDG base directory specification asks.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
