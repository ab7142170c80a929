//! The agent's loop: ask the model, do what it says, tell it what came of it, until it only speaks.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use super::hands::{self, Done, Wish};
use super::local::{Local, Next};
use super::options::Options;
use super::report::Report;
use super::session::{self, Session};
use super::speak::{Heard, Speaker};
use super::{attempt, talk};
use crate::error::Attempt;
use crate::script::{Action, Scenario, Step, inline_script, parse_steps};
use crate::wire::{Call, Item, Usage};
use crate::{Error, Result};

/// Runs the agent to its end; the exit code.
pub(super) fn run(options: &Options, own_args: usize) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.attempting(|| "starting the runtime".to_owned())?;
    runtime.block_on(async {
        let home = session::home()?;
        let opening = options.opening()?;
        let mut session = match &options.resume {
            Some(id) => Session::load(&home, id)?,
            None => Session::new(options.session_id.clone(), &options.model),
        };
        let local = Local::new(own_args, attempt::number(&options.goal()?, &home)?);
        let report = Report::start(&session.id, &options.model);
        session.push(&home, [Item::User { text: opening.clone() }])?;
        let mut agent = Agent { home, session, report, local };
        let outcome = match agent.before(&options.before).await {
            Ok(None) if options.no_llm => agent.follow(&opening).await,
            Ok(None) => agent.converse(options).await,
            Ok(Some(end)) => Ok(end),
            Err(error) => Err(error),
        };
        Ok(agent.end(outcome).await)
    })
}

/// How a run ends when nothing failed.
struct End {
    text: String,
    code: u8,
}

struct Agent {
    home: PathBuf,
    session: Session,
    report: Report,
    local: Local,
}

impl Agent {
    /// Performs the steps of `--before`; an end, if one of them says so.
    async fn before(&mut self, lines: &[String]) -> Result<Option<End>> {
        for line in lines {
            for step in parse_steps(line)? {
                let Step::Act(action) = step else {
                    return Err(Error::Usage(format!("--before `{line}`: only steps that do something")));
                };
                if let ControlFlow::Break(end) = self.act(&action).await? {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }

    /// Works with the model behind the gateway.
    async fn converse(&mut self, options: &Options) -> Result<End> {
        let speaker = Speaker::new(options)?;
        loop {
            let heard = self.ask(&speaker, options).await?;
            self.report.heard(&heard);
            let said = (!heard.text.is_empty()).then(|| Item::Assistant { text: heard.text.clone() });
            let Some(call) = heard.call else {
                self.session.push(&self.home, said)?;
                return Ok(End { text: heard.text, code: 0 });
            };
            self.session.push(&self.home, said.into_iter().chain([Item::Call(call.clone())]))?;
            let done = match self.obey(&call).await? {
                ControlFlow::Continue(done) => done,
                ControlFlow::Break(end) => return Ok(end),
            };
            self.report.done(&call.id, &done);
            self.session.push(&self.home, [Item::Result { id: call.id, name: call.name, text: done.text }])?;
        }
    }

    async fn ask(&self, speaker: &Speaker, options: &Options) -> Result<Heard> {
        let patience = options.patience_ms.map_or(Duration::MAX, Duration::from_millis);
        let mut tried = 0;
        loop {
            let answer = tokio::time::timeout(patience, talk::ask(speaker, &self.session.items)).await;
            let given_up = || Error::Connection { address: speaker.authority.clone(), why: "no answer".to_owned() };
            let error = match answer.unwrap_or_else(|_| Err(given_up())) {
                Ok(heard) => return Ok(heard),
                Err(error) if tried >= options.retries => return Err(error),
                Err(error) => error,
            };
            tried += 1;
            self.report.retry(tried, &error.to_string());
            let seconds = match &error {
                Error::Refused { retry_after: Some(seconds), .. } => *seconds,
                _ => 1,
            };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
        }
    }

    async fn obey(&mut self, call: &Call) -> Result<ControlFlow<End, Done>> {
        match hands::read_call(call) {
            Ok(Wish::Act(action)) => self.act(&action).await,
            Ok(Wish::Local(line)) => match parse_steps(&line)?.first() {
                Some(Step::Act(action)) => self.act(action).await,
                _ => Ok(ControlFlow::Continue(Done {
                    text: format!("`{line}` is no step that does something"),
                    failed: true,
                })),
            },
            Err(why) => Ok(ControlFlow::Continue(Done { text: why, failed: true })),
        }
    }

    /// Follows the script in the goal, turn by turn, asking nobody.
    async fn follow(&mut self, goal: &str) -> Result<End> {
        let script = inline_script(goal).ok_or_else(|| {
            Error::Usage("without a model the goal needs a block fenced with ```outlast-script".to_owned())
        })?;
        let scenario = Scenario::parse("inline", &script)?;
        for (index, turn) in scenario.turns().iter().enumerate() {
            let closing = turn.action.is_none();
            let text =
                turn.say.clone().unwrap_or_else(|| if closing { scenario.closing_account() } else { String::new() });
            let call = turn.action.as_ref().map(|action| hands::write_call(format!("call_{index}"), action));
            self.report.heard(&Heard { text: text.clone(), call: call.clone(), usage: Usage::default() });
            let (Some(action), Some(call)) = (&turn.action, call) else {
                return Ok(End { text, code: 0 });
            };
            match self.act(action).await? {
                ControlFlow::Continue(done) => self.report.done(&call.id, &done),
                ControlFlow::Break(end) => return Ok(end),
            }
        }
        Ok(End { text: scenario.closing_account(), code: 0 })
    }

    /// Performs an action; a break when the agent ends with it.
    async fn act(&mut self, action: &Action) -> Result<ControlFlow<End, Done>> {
        let Action::Local(step) = action else { return Ok(ControlFlow::Continue(hands::perform(action))) };
        Ok(match self.local.perform(step).await? {
            Next::Go(done) => ControlFlow::Continue(done),
            Next::End(code) => ControlFlow::Break(End { text: format!("ended by `{step}`"), code }),
        })
    }

    /// Prints the result; never returns when a script says `linger`.
    async fn end(self, outcome: Result<End>) -> u8 {
        let code = match outcome {
            Ok(End { text, code }) => {
                self.report.result(&text, false, None);
                code
            }
            Err(error) => {
                let status = match &error {
                    Error::Refused { status, .. } => Some(*status),
                    _ => None,
                };
                self.report.result(&error.to_string(), true, status);
                eprintln!("agent: {error}");
                if matches!(error, Error::Usage(_)) { 2 } else { 1 }
            }
        };
        if self.local.lingers {
            std::future::pending::<()>().await;
        }
        code
    }
}
