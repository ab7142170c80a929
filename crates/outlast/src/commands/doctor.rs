//! `outlast doctor`: looks at everything a run depends on, and says what to mend first.
//!
//! It changes nothing and starts no agent. Credentials are looked for, never shown.

mod accounts;
mod agents;
mod bypass;
mod damage;
mod found;
mod host;
pub(crate) mod logins;
mod proxies;
mod repository;
mod settings;
mod trip;

use outlast_api::{Check, Doctor, ExitCode, schema};

use crate::args;
use crate::commands::{Given, print, print_json};
use crate::failure::Failure;
use crate::session::block_on;
use crate::text;
use found::Found;

pub(crate) fn perform(given: &Given, doctor: &args::Doctor) -> Result<ExitCode, Failure> {
    // First, while this process has one thread: a namespace is entered by a fork.
    let sandbox = host::sandbox();
    let places = &given.places;
    let (mut found, repository) = repository::look(places);
    let (configured, user) = accounts::configuration(places);
    let (planned, plan) = repository::plan(places, repository.as_ref(), user.as_ref());
    found.extend(planned);
    found.extend(host::state(places, repository.as_ref()));
    found.extend(sandbox);
    found.extend(configured);
    let user = user.unwrap_or_default();
    found.extend(accounts::look(&user, plan.as_ref()));
    let (agents, trips, proxies) = block_on(async {
        let agents = agents::look(plan.as_ref(), places.home.root());
        let trips = async { if doctor.offline { trip::skipped(&user) } else { trip::all(&user, plan.as_ref()).await } };
        Ok(tokio::join!(agents, trips, proxies::look(doctor.offline)))
    })?;
    found.extend(agents);
    found.extend(repository.iter().flat_map(|repository| bypass::look(repository.root(), plan.as_ref())));
    found.extend(proxies);
    found.extend(trips);
    tell(given.json, found)
}

/// Prints what was found; the exit code is that of the worst.
fn tell(json: bool, found: Vec<Found>) -> Result<ExitCode, Failure> {
    let worst = ExitCode::worst(found.iter().map(|found| found.exit));
    let first: Vec<&Check> = found::by_weight(&found).into_iter().map(|found| &found.check).collect();
    if json {
        let checks = found.into_iter().map(|found| found.check).collect();
        print_json(&Doctor { schema: schema("doctor"), checks })?;
    } else {
        let checks: Vec<Check> = found.iter().map(|found| found.check.clone()).collect();
        print(&text::doctor::report(&checks, &first))?;
    }
    Ok(worst)
}
