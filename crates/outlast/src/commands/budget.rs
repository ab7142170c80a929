//! `outlast budget`: what a run may spend, changed or shown.

use outlast_api::{Act, BudgetView, Diagnostic, ExitCode, schema};
use outlast_config::UserConfig;
use outlast_core::RunId;
use outlast_core::run::Mode;
use serde::Serialize;

use crate::args::Budget;
use crate::commands::act::act;
use crate::commands::status::{now, view};
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::selection::Journalled;
use crate::text::budget::{in_words, usd_text};

/// A run's budget: `outlast/budget/v1`.
#[derive(Debug, Serialize)]
struct View {
    schema: String,
    run: String,
    budget: BudgetView,
}

pub(crate) fn perform(given: Given, wish: &Budget) -> Result<ExitCode, Failure> {
    let (journalled, id) = Journalled::find(&given.places, wish.run.as_deref())?;
    let (json, places) = (given.json, given.places.clone());
    if wish.usd.is_none() && wish.tokens.is_none() {
        let status = view(&places, &journalled, &id, now())?;
        return show(json, &id, status.budget);
    }
    if journalled.core.run(&id).is_some_and(|run| matches!(run.mode, Mode::Finished(_))) {
        let told = Diagnostic::error("run/finished", ExitCode::Usage, format!("run `{id}` is over"));
        return Err(told.because("nothing more is spent in it").fix("outlast run --budget USD").into());
    }
    let change = change(&places.user_config()?, &id, wish.usd, wish.tokens)?;
    act(given, &journalled.home, &id, change)?;
    let journalled = Journalled::load(journalled.home)?;
    let journalled = journalled.ok_or_else(|| outlast_engine::Error::Internal("the journal is gone".to_owned()))?;
    let status = view(&places, &journalled, &id, now())?;
    let goes_on = status.engine.is_some();
    show(json, &id, status.budget)?;
    if !goes_on {
        say(&format!("go on with: outlast resume {id}"));
    }
    Ok(ExitCode::Ok)
}

/// The wish to change a budget, where the user's own ceiling allows it.
pub(crate) fn change(
    user: &UserConfig,
    run: &RunId,
    usd_micros: Option<u64>,
    tokens: Option<u64>,
) -> Result<Act, Failure> {
    let ceiling = user.ceiling.budget;
    let above = |wanted: Option<u64>, most: Option<u64>| wanted.zip(most).filter(|(wanted, most)| wanted > most);
    let over = above(usd_micros, ceiling.usd_micros).map(|(_, most)| format!("{} USD", usd_text(most)));
    let over = over.or_else(|| above(tokens, ceiling.tokens).map(|(_, most)| format!("{most} tokens")));
    if let Some(most) = over {
        let told = Diagnostic::error("config/above-ceiling", ExitCode::Plan, format!("your ceiling is {most}"));
        return Err(told.fix("raise `budget` of `[ceiling]` in your config.toml, or ask for less").into());
    }
    let usd_nanos = usd_micros.map(|micros| micros.saturating_mul(1000));
    Ok(Act::Budget { run: run.to_string(), usd_nanos, tokens })
}

fn show(json: bool, id: &RunId, budget: BudgetView) -> Result<ExitCode, Failure> {
    if json {
        print_json(&View { schema: schema("budget"), run: id.to_string(), budget })?;
    } else {
        print(&format!("{id}  {}\n", in_words(&budget)))?;
    }
    Ok(ExitCode::Ok)
}
