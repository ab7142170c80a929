//! `outlast`: every run on this machine, one line each.

use std::collections::BTreeSet;

use outlast_api::{ExitCode, RunLine, Runs, schema};
use outlast_engine::run_line;

use crate::commands::status::now;
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::selection::Journalled;
use crate::text::screen::state_style;
use crate::text::{self, DIM, styled};

pub(crate) fn perform(given: &Given) -> Result<ExitCode, Failure> {
    let mut lines: Vec<RunLine> = Vec::new();
    let mut idle = BTreeSet::new();
    let (all, unread) = Journalled::load_all(&given.places)?;
    for journalled in all {
        let name = journalled.home.root().file_name().map(|name| name.to_string_lossy().into_owned());
        let at = journalled.told_at(&given.places, now())?;
        let line = |run| run_line(&journalled.core, run, &journalled.home, name.clone(), at);
        lines.extend(journalled.core.runs.values().map(line));
        if given.places.home.engine_of(&journalled.home).is_none() {
            idle.extend(journalled.core.runs.keys().map(ToString::to_string));
        }
    }
    lines.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    let code = match unread {
        Some(failure) if lines.is_empty() => return Err(failure),
        Some(failure) => {
            say(text::diagnostic(failure.diagnostic()).trim_end());
            failure.diagnostic().exit
        }
        None => ExitCode::Ok,
    };
    if given.json {
        print_json(&Runs { schema: schema("runs"), runs: lines })?;
        return Ok(code);
    }
    if lines.is_empty() {
        say("no run yet: `outlast init` writes a plan to start from, `outlast demo` shows the main job");
    }
    for line in &lines {
        let counts: Vec<String> = line.counts.iter().map(|(state, n)| format!("{n} {state}")).collect();
        let state = styled(state_style(&line.state), format!("{:<9}", line.state));
        let goes_on = line.reset_at.as_deref().filter(|_| line.state == "parked");
        let is_past = |at: &str| at.parse::<jiff::Timestamp>().is_ok_and(|at| at <= jiff::Timestamp::now());
        let goes_on = goes_on.map(|at| match (idle.contains(&line.run), is_past(at)) {
            (true, true) => ", due as soon as it is resumed".to_owned(),
            (true, false) => format!(", goes on at {at}, once it is resumed"),
            (false, _) => format!(", goes on at {at}"),
        });
        let goes_on = goes_on.unwrap_or_default();
        let place = line.repository.as_deref().unwrap_or_default();
        print(&format!(
            "{:<24} {state} {}{goes_on}  {}\n",
            line.run,
            counts.join(", "),
            styled(DIM, format!("{place} · {}", line.started_at))
        ))?;
    }
    Ok(code)
}
