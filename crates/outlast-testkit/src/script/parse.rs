//! Reads the lines of a script into steps. An unknown step is an error, never skipped.

use super::line::Line;
use super::scenario::{Step, UsageOverride};
use super::{Action, LocalStep};
use crate::provider::InlineFault;
use crate::{Error, Result};

/// Parses a script, one step per line; empty lines and lines starting with `#` are ignored.
///
/// # Errors
/// [`Error::Script`] with the first line that is not a step.
pub fn parse_steps(script: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = script.lines().enumerate();
    while let Some((index, text)) = lines.next() {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let refused = |why: String| Error::Script { line: index + 1, text: trimmed.to_owned(), why };
        let mut line = Line::new(trimmed);
        let name = line.word("the step").map_err(refused)?;
        let step = if matches!(name.as_str(), "write" | "append") {
            let path = line.word("the path").map_err(refused)?;
            let text = match line.block_mark() {
                Some(mark) => {
                    block(&mut lines, mark).ok_or_else(|| refused(format!("the block has no `{mark}` line")))?
                }
                None => line.word("the text").map_err(refused)?,
            };
            Step::Act(if name == "write" { Action::Write { path, text } } else { Action::Append { path, text } })
        } else {
            parse_step(&name, &mut line).map_err(refused)?
        };
        line.end().map_err(refused)?;
        steps.push(step);
    }
    Ok(steps)
}

/// Takes the lines up to the end mark; `None` when the mark never comes.
fn block<'a>(lines: &mut impl Iterator<Item = (usize, &'a str)>, mark: &str) -> Option<String> {
    let mut text = String::new();
    for (_, line) in lines {
        if line.trim() == mark {
            return Some(text);
        }
        text.push_str(line);
        text.push('\n');
    }
    None
}

fn parse_step(name: &str, line: &mut Line<'_>) -> Result<Step, String> {
    let step = match name {
        "edit" => Step::Act(Action::Edit {
            path: line.word("the path")?,
            old: line.word("the old text")?,
            new: line.word("the new text")?,
        }),
        "read" => Step::Act(Action::Read { path: line.word("the path")? }),
        "run" => Step::Act(Action::Run { command: line.text("the command")? }),
        "say" => Step::Say(line.text("the text")?),
        "think" => Step::Think(line.text("the text")?),
        "ask" => Step::Ask(line.text("the question")?),
        "usage" => Step::Usage(parse_usage(line)?),
        "fault" => {
            Step::Fault(InlineFault { times: line.leading_count()?.unwrap_or(1), fault: line.json("the fault")? })
        }
        _ => Step::Act(Action::Local(parse_local(name, line)?)),
    };
    Ok(step)
}

fn parse_local(name: &str, line: &mut Line<'_>) -> Result<LocalStep, String> {
    let step = match name {
        "die" => LocalStep::Die(line.number("the exit code")?),
        "exit" => LocalStep::Exit(line.number("the exit code")?),
        "hang" => LocalStep::Hang,
        "spin" => LocalStep::Spin,
        "fork-detached" => LocalStep::ForkDetached(line.text("the command")?),
        "ignore-term" => LocalStep::IgnoreTerm,
        "linger" => LocalStep::Linger,
        "flood" => LocalStep::Flood(line.number("the number of bytes")?),
        "read-stdin" => LocalStep::ReadStdin,
        "sleep" => LocalStep::Sleep(parse_seconds(line)?),
        "fail-first" => LocalStep::FailFirst {
            attempts: line.number("the number of attempts")?,
            command: line.text("the command")?,
        },
        "from-attempt" => {
            LocalStep::FromAttempt { attempt: line.number("the attempt")?, command: line.text("the command")? }
        }
        _ => return Err(format!("there is no step named `{name}`")),
    };
    Ok(step)
}

fn parse_seconds(line: &mut Line<'_>) -> Result<f64, String> {
    let seconds: f64 = line.number("the seconds")?;
    if std::time::Duration::try_from_secs_f64(seconds).is_err() {
        return Err(format!("the seconds must be zero or more, not {seconds}"));
    }
    Ok(seconds)
}

fn parse_usage(line: &mut Line<'_>) -> Result<UsageOverride, String> {
    let mut usage = UsageOverride::default();
    while !line.is_empty() {
        let pair = line.word("a count")?;
        let (name, value) = pair.split_once('=').ok_or_else(|| format!("`{pair}` must be name=tokens"))?;
        let tokens: u64 = value.parse().map_err(|_| format!("`{value}` must be a number of tokens"))?;
        let slot = match name {
            "in" => &mut usage.input,
            "out" => &mut usage.output,
            "cache_read" => &mut usage.cache_read,
            "cache_write" => &mut usage.cache_write,
            "reasoning" => &mut usage.reasoning,
            _ => return Err(format!("`{name}` must be in, out, cache_read, cache_write or reasoning")),
        };
        *slot = Some(tokens);
    }
    Ok(usage)
}
