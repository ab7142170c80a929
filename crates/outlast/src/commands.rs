//! The commands, one file each.

mod act;
mod budget;
mod check;
mod clean;
mod completions;
mod demo;
mod diff;
mod doctor;
mod gateway;
mod init;
mod log;
mod progress;
mod resume;
mod run;
mod runs;
pub(crate) mod status;
mod unnamed;
mod usage;

use outlast_api::{Diagnostic, ExitCode};
use outlast_process::Spawner;

use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::logfile;
use crate::places::Places;
use crate::session::Session;

pub(crate) use usage::refuse;

/// What every command is given.
pub(crate) struct Given {
    pub(crate) places: Places,
    pub(crate) json: bool,
    spawner: Result<Spawner, outlast_process::Error>,
}

impl Given {
    /// What a command that needs an engine works with.
    pub(crate) fn session(self) -> Result<Session, Failure> {
        let user = self.places.user_config()?;
        let spawner = self.spawner.map_err(outlast_engine::Error::from)?;
        Ok(Session { places: self.places, spawner, user })
    }
}

/// Does what was typed.
pub(crate) fn dispatch(args: Args, spawner: Result<Spawner, outlast_process::Error>) -> Result<ExitCode, Failure> {
    // Inside an agent's sandbox there is nothing else of ours that may be looked for.
    if let Some(Command::Progress(wish)) = &args.command {
        return progress::perform(args.json, wish);
    }
    let given = Given { places: Places::new(&args)?, json: args.json, spawner };
    if let Some(wrong) = logfile::begin(&given.places.home) {
        say(&wrong);
    }
    match args.command {
        None => runs::perform(&given),
        Some(Command::Demo(demo)) => demo::perform(given, &demo),
        Some(Command::Init(init)) => init::perform(&given, &init),
        Some(Command::Check(check)) => check::perform(&given, &check),
        Some(Command::Run(run)) => run::perform(given, &run),
        Some(Command::Pause(selection)) => act::pause(given, &selection),
        Some(Command::Stop(selection)) => act::stop(given, &selection),
        Some(Command::Resume(resume)) => resume::perform(given, &resume),
        Some(Command::Retry(retry)) => resume::retry(given, &retry),
        Some(Command::Status(selection)) => status::perform(&given, &selection),
        Some(Command::Log(selection)) => log::perform(&given, &selection),
        Some(Command::Diff(diff)) => diff::perform(&given, &diff),
        Some(Command::Budget(budget)) => budget::perform(given, &budget),
        Some(Command::Land(selection)) => act::land(given, &selection),
        Some(Command::Discard(selection)) => act::discard(given, &selection),
        Some(Command::Gateway(gateway)) => gateway::perform(given, &gateway),
        Some(Command::Doctor(doctor)) => doctor::perform(&given, &doctor),
        Some(Command::Clean(clean)) => clean::perform(&given, &clean),
        Some(Command::Completions { shell }) => completions::completions(shell),
        Some(Command::Man) => completions::man(),
        Some(Command::Progress(_) | Command::Provider { .. } | Command::Agent { .. }) => Ok(ExitCode::Ok),
    }
}

/// Prints an object as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| defect(&error.to_string()))?;
    print(&format!("{text}\n"))
}

/// Prints data on standard output. A reader that has gone away has read what it wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    match anstream::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Diagnostic::error("host/cannot", ExitCode::Host, format!("standard output: {error}")).into())
        }
        _ => Ok(()),
    }
}

/// Says something beside the data.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    // Nobody may be listening.
    drop(writeln!(anstream::stderr(), "{text}"));
}

fn defect(why: &str) -> Failure {
    Diagnostic::error("outlast/defect", ExitCode::Defect, why).into()
}
