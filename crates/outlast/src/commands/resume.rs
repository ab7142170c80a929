//! `outlast resume`: go on with a run, also after a crash, a reset or a reboot.

use outlast_api::{Act, ExitCode};
use outlast_core::RunId;
use outlast_core::run::Mode;
use outlast_engine::perform as act;

use crate::args::Resume;
use crate::commands::{Given, budget, say};
use crate::failure::Failure;
use crate::remote;
use crate::selection::Journalled;
use crate::session::block_on;
use crate::watch::{Stay, Watch};

pub(crate) fn perform(given: Given, resume: &Resume) -> Result<ExitCode, Failure> {
    let id = which(&given, resume.run.as_deref())?;
    let wish = Act::Resume { run: id.to_string() };
    let raise = match resume.budget {
        Some(usd) => Some(budget::change(&given.places.user_config()?, &id, Some(usd), None)?),
        None => None,
    };
    if let Some(holder) = given.places.home.engine() {
        let asked = async {
            if let Some(raise) = &raise {
                remote::act(&holder, raise).await?;
            }
            remote::act(&holder, &wish).await?;
            // Nothing else is to be resumed: whoever says so knows that what it waits for is over.
            remote::act(&holder, &Act::TryNow { run: id.to_string() }).await
        };
        match block_on(asked) {
            Ok(_) => {
                let until = match holder.ends_with.as_deref() {
                    Some(other) if other != id.as_str() => format!(", and is parked again when that ends with {other}"),
                    _ => String::new(),
                };
                let tries = "; what waits for a limit is tried now";
                say(&format!("{id} goes on in the engine that is running (process {}){until}{tries}", holder.pid));
                return Ok(ExitCode::Ok);
            }
            // It was about to leave: this is the next engine, as soon as that one is gone.
            Err(failure) if remote::is_leaving(&failure) => given.places.home.until_free()?,
            Err(failure) => return Err(failure),
        }
    }
    let repository = given.places.repository()?;
    let stay = Stay { no_wait: resume.no_wait, json: given.json };
    let places = given.places.clone();
    let session = given.session()?;
    block_on(async move {
        let engine = session.open(repository, true).await?;
        let watch = Watch::new(&engine)?;
        for wish in raise.into_iter().chain([wish]) {
            act(engine.handle(), wish).await?;
        }
        watch.stay_to_the_end(engine, &places, &id, stay).await
    })
}

/// The run that was named, or the newest that is not finished, or else the newest.
fn which(given: &Given, run: Option<&str>) -> Result<RunId, Failure> {
    let (journalled, newest) = Journalled::find(&given.places, run)?;
    let open = journalled.core.runs.values().filter(|run| !matches!(run.mode, Mode::Finished(_)));
    let open = open.max_by_key(|run| run.started_at).map(|run| run.id.clone());
    Ok(if run.is_some() { newest } else { open.unwrap_or(newest) })
}
