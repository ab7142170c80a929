//! Any other program: arguments and variables with placeholders, and an exit code that decides.

use std::path::{Path, PathBuf};

use outlast_core::Class;
use outlast_core::placeholder::{self, Part};
use outlast_core::plan::EXIT_TRY_LATER;
use outlast_core::research::{Conversation, ResearchState};

use crate::event::Summary;
use crate::launch::{self, Hold, text};
use crate::reader::Reader;
use crate::report::{BEHIND_A_CUT_MAX, Behind, reported};
use crate::stream::plain::Plain;
use crate::verdict::{self, Exit, ExitStatus, Verdict};
use crate::{Adapter, Brief, Capabilities, Dialect, Error, Kind, Launch, Session, discover, refusal, research};

/// The adapter of any program.
pub(crate) struct Command;

impl Adapter for Command {
    fn kind(&self) -> Kind {
        Kind::Command
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            observed: "any",
            dialects: &[Dialect::Messages, Dialect::Responses, Dialect::Chat, Dialect::Gemini],
            resume: true,
            session_id_fixed: false,
            login_shape: false,
            reports_usage: false,
            inherit: "nothing",
            strongest_layer: "`OUTLAST_GATEWAY_URL` and `OUTLAST_KEY`; the program must use them",
            exit_trap: "0 done, 75 try later, anything else failed",
            resume_trap: "the program gets the session it printed through `{resume}` and must know what to do with it",
        }
    }

    fn hold(&self) -> Hold {
        Hold::silent()
    }

    fn launch(&self, brief: &Brief) -> Result<Launch, Error> {
        let (program, arguments) = brief.command.split_first().ok_or(Error::CommandMissing)?;
        let (program, execute_paths) = resolve(program, &brief.path)?;
        let mut argv = vec![program];
        for argument in arguments {
            argv.push(fill(argument, brief)?);
        }
        let mut env = launch::base_env(brief)?;
        for (name, value) in &brief.command_env {
            launch::refuse_own(name)?;
            env.insert(name.clone(), fill(value, brief)?);
        }
        Ok(Launch {
            argv,
            env,
            files: Vec::new(),
            read_paths: Vec::new(),
            execute_paths,
            dialect: None,
            hold: self.hold(),
        })
    }

    fn reader(&self) -> Reader {
        Reader::new(Plain::default())
    }

    /// Nobody knows its tools; most programs that talk to a model name them as one of the known CLIs does.
    fn research(&self, conversation: &Conversation) -> ResearchState {
        let known = [&research::CLAUDE, &research::CODEX, &research::OPENCODE, &research::GEMINI, &research::QWEN];
        let states = known.map(|vocabulary| research::collect(conversation, vocabulary));
        let facts =
            |state: &ResearchState| state.read.len() + state.commands.len() + state.edits.len() + state.todo.len();
        let best = states.into_iter().rev().max_by_key(facts);
        best.unwrap_or_default()
    }

    fn judge(&self, exit: &Exit, summary: &Summary) -> Verdict {
        let result = summary.result.as_ref();
        let said = result.map(|(_, text)| text.as_str()).or(summary.last_text.as_deref()).unwrap_or_default();
        match exit.status {
            ExitStatus::Code(0) => verdict::finished(said),
            ExitStatus::Code(EXIT_TRY_LATER) => Verdict::TryLater,
            _ if exit.lingered && result.is_some_and(|(ok, _)| *ok) => verdict::finished(said),
            status => {
                // What only a provider says of an account or a conversation is the cause, whoever repeats it.
                let cause = verdict::named_by(summary, names_a_cause);
                if let Some((class, at)) = cause.filter(|cause| !is_behind(summary, *cause)) {
                    return verdict::by_report(class, &verdict::report_at(summary, at, class));
                }
                if let Some((_, text)) = result.filter(|(_, text)| refusal::is_limit_alone(text)) {
                    return verdict::by_report(refusal::classify(None, text), text);
                }
                if summary.rejected.is_some() {
                    return verdict::ended_badly(status, summary);
                }
                if let Some(verdict) = verdict::word_before(summary, Behind::Little) {
                    return verdict;
                }
                let last = summary.complaints.back().map(|line| format!(": {line}")).unwrap_or_default();
                verdict::failed(Class::Crash, format!("it ended with {}{last}", verdict::named(status)))
            }
        }
    }
}

/// What a line of a program's error output says, where only a provider says so of an account or a conversation, or where the
/// line is nothing but the report of a failed request: that is the cause, whoever repeats it.
fn names_a_cause(line: &str) -> Option<Class> {
    match refusal::classify(None, line) {
        class @ (Class::WindowQuota | Class::Billing | Class::ContextOverflow | Class::CorruptSession) => Some(class),
        _ => reported(line),
    }
}

/// Whether a connection that was cut off was followed by more than its closing words: then it was tried again, and is not the cause.
fn is_behind(summary: &Summary, (class, at): (Class, usize)) -> bool {
    class == Class::Network && verdict::said_after(summary, at) > BEHIND_A_CUT_MAX
}

/// The program to start and the folders it needs: one without a slash is looked for on the `PATH`, one with a relative
/// path is left to the working directory.
fn resolve(program: &str, path: &str) -> Result<(String, Vec<PathBuf>), Error> {
    if program.contains('/') {
        let folder = Path::new(program).canonicalize().ok().filter(|_| program.starts_with('/'));
        return Ok((program.to_owned(), folder.iter().map(|file| discover::install_root(file)).collect()));
    }
    let missing = || Error::ProgramMissing { program: program.to_owned(), path: path.to_owned() };
    let file = discover::on_path(program, path).ok_or_else(missing)?;
    // Some programs look at the name they were called by, so the entry on the PATH is started and not what it links to.
    let entry = discover::entry_on_path(program, path).ok_or_else(missing)?;
    Ok((text(&entry)?, vec![discover::install_root(&file), discover::install_root(&entry)]))
}

/// Replaces the placeholders of one argument or value.
fn fill(template: &str, brief: &Brief) -> Result<String, Error> {
    let filled = placeholder::parts(template).into_iter().map(|part| match part {
        Part::Text(text) => Ok(text.to_owned()),
        Part::Placeholder(name) | Part::Unknown(name) => value(name, template, brief),
    });
    filled.collect()
}

fn value(name: &str, template: &str, brief: &Brief) -> Result<String, Error> {
    match name {
        "task" => Ok(brief.task.to_string()),
        "goal" => Ok(brief.goal.clone()),
        "goal_file" => text(&brief.goal_file),
        "workspace" => text(&brief.workspace),
        "model" => Ok(brief.model.clone().unwrap_or_default()),
        "attempt" => Ok(brief.attempt.clone()),
        "resume" => Ok(match &brief.session {
            Session::Fresh { .. } => String::new(),
            Session::Resume { id } => id.clone(),
        }),
        _ => Err(Error::PlaceholderUnknown {
            name: name.to_owned(),
            text: template.to_owned(),
            known: placeholder::NAMES.map(|name| format!("{{{name}}}")).join(" "),
        }),
    }
}
