//! `outlast status`: a run on one screen, with or without an engine.

use outlast_api::{ExitCode, Status};
use outlast_core::{RunId, Timestamp};

use crate::args::RunSelection;
use crate::commands::{Given, print, print_json};
use crate::failure::Failure;
use crate::off_target::Off;
use crate::places::Places;
use crate::selection::Journalled;
use crate::text::screen;

pub(crate) fn perform(given: &Given, selection: &RunSelection) -> Result<ExitCode, Failure> {
    let (journalled, newest) = Journalled::find(&given.places, selection.run.as_deref())?;
    // Who names none means what is not over, also where a newer one is.
    let id = selection.run.is_none().then(|| journalled.going_on()).flatten().unwrap_or(newest);
    let now = now();
    let status = view(&given.places, &journalled, &id, now)?;
    if given.json {
        print_json(&status)?;
    } else {
        print(&screen::status(&status, now))?;
    }
    Ok(ExitCode::Ok)
}

/// The view of a run that a journal tells of.
pub(crate) fn view(places: &Places, journalled: &Journalled, id: &RunId, now: Timestamp) -> Result<Status, Failure> {
    let run = journalled.core.run(id).ok_or_else(|| outlast_engine::Error::Internal(format!("no run `{id}`")))?;
    let engine = places.home.engine_of(&journalled.home).map(|holder| holder.pid);
    let found = places.moved_to(&journalled.home);
    let at = journalled.told_at(places, now)?;
    let mut status = outlast_engine::status(&journalled.core, run, &journalled.home, engine, found.as_deref(), at);
    if let Some(off) = Off::of(places, &journalled.home, run) {
        off.note(&mut status, &journalled.core, run, &journalled.home);
    }
    Ok(status)
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(jiff::Timestamp::now().as_millisecond())
}
