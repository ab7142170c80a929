//! What is known of a task's work so far: read from each turn's request as it passes, kept beside the attempt for people
//! and for whoever takes over, and completed from the ledger with what the last answer asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use outlast_agent::prompt::{Changed, How, Noted, noted};
use outlast_agent::{Adapter, Kind, adapter};
use outlast_core::plan::NO_PROGRESS_DEFAULT;
use outlast_core::research::{Conversation, Progress, ResearchState};
use outlast_core::{AgentName, AttemptId, Class, Oid, plan};
use outlast_gateway::{Dialect, answer_items, conversation};
use outlast_git::{Change, read_inside};
use outlast_journal::{ExchangeRow, JournalReader, Outcome, Selection};

use crate::context::Context;
use crate::error::Error;
use crate::fill::Near;
use crate::home::{RepoHome, read_if_there, reopen, write_file};
use crate::ops::launch::{PROGRESS, adapter_of};
use crate::turns::Turn;

/// What is kept for programs, and for whoever takes over.
const PROGRESS_JSON: &str = "progress.json";
/// The same for people.
const PROGRESS_MD: &str = "progress.md";
/// Longest note of steps that is read, in bytes: thousands of steps.
const STEPS_LEN_MAX: u64 = 1 << 20;

/// Keeps what a turn's request says, beside the attempt, durably; why the attempt is to end, where it gets nowhere or is near
/// its model's window.
///
/// # Errors
/// Where it cannot be written.
pub(crate) async fn keep(
    context: &Arc<Context>,
    turn: &Turn,
    dialect: Dialect,
    body: Bytes,
    commit: &Oid,
    near: Option<Near>,
) -> Result<Option<(Class, String)>, Error> {
    let plan = context.plan(&turn.id.run).await?;
    let Some(task) = context.task(&plan, &turn.id.run, &turn.id.task).await? else { return Ok(None) };
    let Ok((kind, _)) = adapter_of(&plan, &task) else { return Ok(None) };
    let turns_max = task.no_progress.unwrap_or(if kind == Kind::Command { 0 } else { NO_PROGRESS_DEFAULT });
    // How a program of the user's own goes on in another session is not known.
    let near = near.filter(|_| kind != Kind::Command);
    let engine = Arc::clone(context);
    let known = context.task_facts(&turn.id.run, &turn.id.task).await?;
    let (home, turn, commit) = (context.home.clone(), turn.clone(), commit.clone());
    let git = Arc::clone(&context.git);
    // Not to be done twice: a turn counts.
    context
        .blocking(move || {
            // A client of another kind may talk to the gateway too: then there is nothing to be learnt.
            let Some(conversation) = conversation(dialect, &body) else { return Ok(None) };
            let same = engine.loops.turn(&turn, &commit, &conversation);
            let earlier = kept(&home, &turn.id).map(|progress| progress.research).unwrap_or_default();
            let research = read(adapter(kind), &conversation, &home, &turn.id).after(&earlier);
            let changes = known.base.map(|base| git.store().diff(&base, &commit)).transpose()?.unwrap_or_default();
            let changed = changes.iter().map(Change::path_lossy).collect();
            let noted = noted_by(&home, &turn.id, &task)?;
            let AttemptId { run, task: id, number } = turn.id.clone();
            let mut progress = Progress::new(run, id, "running", &task.steps, &noted.done, changed, research);
            progress.notes = noted.notes;
            progress.agent = Some(task.agent.to_string());
            progress.attempt = Some(number);
            progress.turns = Some(turn.number);
            progress.checkpoint = Some(commit);
            write(&home, &turn.id, progress)?;
            let stuck = || format!("its last {same} turns repeat earlier ones and change nothing");
            if turns_max > 0 && same >= turns_max {
                return Ok(Some((Class::NoProgress, stuck())));
            }
            Ok(near.map(|near| (Class::ContextNearFull, near.ends())))
        })
        .await
}

/// Keeps what a request of an agent says that the attempt's agent has started: under its name, beside what is known.
///
/// # Errors
/// Where it cannot be written.
pub(crate) async fn keep_part(
    context: &Arc<Context>,
    turn: &Turn,
    sub_agent: String,
    dialect: Dialect,
    body: Bytes,
) -> Result<(), Error> {
    let plan = context.plan(&turn.id.run).await?;
    let Some(task) = context.task(&plan, &turn.id.run, &turn.id.task).await? else { return Ok(()) };
    let Ok((kind, _)) = adapter_of(&plan, &task) else { return Ok(()) };
    let (home, id) = (context.home.clone(), turn.id.clone());
    context
        .blocking(move || {
            let Some(conversation) = conversation(dialect, &body) else { return Ok(()) };
            // Whoever starts another has had a turn before, and its note is there; where it could not be kept, nor can this.
            let text = read_text(&home.attempt(&id).join(PROGRESS_JSON))?;
            let Some(mut progress) = text.and_then(|text| Progress::from_json(&text)) else { return Ok(()) };
            progress.research.absorb(&sub_agent, &read(adapter(kind), &conversation, &home, &id));
            write(&home, &id, progress)
        })
        .await
}

/// Writes what is known beside the attempt, durably.
fn write(home: &RepoHome, id: &AttemptId, mut progress: Progress) -> Result<(), Error> {
    progress.updated_at = Some(outlast_api::rfc3339(crate::state_loop::now()));
    let folder = home.attempt(id);
    write_file(&folder.join(PROGRESS_JSON), progress.to_json().as_bytes())?;
    write_file(&folder.join(PROGRESS_MD), progress.to_markdown().as_bytes())
}

/// Everything that is known of a task before its next attempt begins, the last answer included: what that asked for may
/// have been done, in part or not at all.
///
/// # Errors
/// Where the journal or a note cannot be read.
pub(crate) fn of_task(home: &RepoHome, id: &AttemptId, adapter: &dyn Adapter) -> Result<ResearchState, Error> {
    let kept = kept(home, id);
    let turns = kept.as_ref().and_then(|progress| progress.turns).unwrap_or_default();
    let earlier = kept.map(|progress| progress.research).unwrap_or_default();
    let reader = JournalReader::open(home.journal())?;
    let rows = reader.exchanges(&Selection::task(id.run.clone(), id.task.clone()))?;
    // A turn whose answer never came is not in the ledger, and what was kept of it is newer than what is.
    let last = rows.iter().rfind(|row| row.turn > 0 && row.request_hash.is_some()).filter(|row| row.turn >= turns);
    let Some(last) = last else { return Ok(earlier) };
    let Some(conversation) = conversation_of(&reader, last)? else { return Ok(earlier) };
    Ok(read(adapter, &conversation, home, id).after(&earlier))
}

/// Which agent had the task's last turn that was kept, by its name in the plan; nothing where none was.
pub(crate) fn last_agent(home: &RepoHome, id: &AttemptId) -> Option<AgentName> {
    kept(home, id)?.agent.map(AgentName::new)
}

/// The tree as it was at the task's last turn, before that turn's tools: nothing where no turn was kept.
pub(crate) fn last_turn(home: &RepoHome, id: &AttemptId) -> Option<Oid> {
    kept(home, id)?.checkpoint
}

/// What the agent has noted: steps that are done, and what else.
///
/// # Errors
/// Where its home cannot be opened.
pub(crate) fn noted_by(home: &RepoHome, id: &AttemptId, task: &plan::Task) -> Result<Noted, Error> {
    let agents = home.agent_home(&id.run, &id.task, task.agent.as_str());
    reopen(&agents)?;
    // The home is the agent's to write: a link, a pipe or a flood there is no note of its steps.
    let text = read_inside(&agents, PROGRESS.into(), STEPS_LEN_MAX).ok().flatten().unwrap_or_default();
    Ok(noted(task, &String::from_utf8_lossy(&text)))
}

/// A change as a hand-over note names it.
pub(crate) fn named(change: &Change) -> Changed {
    let how = match (&change.old, &change.new) {
        (None, _) => How::Added,
        (_, None) => How::Deleted,
        _ => How::Changed,
    };
    Changed { path: change.path_lossy(), how }
}

/// What an agent knows, its files named as the repository names them.
fn read(adapter: &dyn Adapter, conversation: &Conversation, home: &RepoHome, id: &AttemptId) -> ResearchState {
    let mut state = adapter.research(conversation);
    state.relative_to(&home.workspace(&id.run, &id.task).to_string_lossy());
    state
}

/// What was kept at the last turn of this attempt, or of the newest one before it that had a turn.
fn kept(home: &RepoHome, id: &AttemptId) -> Option<Progress> {
    for number in (1..=id.number).rev() {
        let folder: PathBuf = home.attempt(&AttemptId { number, ..id.clone() });
        match read_text(&folder.join(PROGRESS_JSON)) {
            Ok(None) => {}
            Ok(Some(text)) => return Progress::from_json(&text),
            // The checkpoint and the ledger know what was done; no note of it is worth a task that cannot go on.
            Err(error) => tracing::warn!(attempt = %id, %error, "what was known at the last turn cannot be read"),
        }
    }
    None
}

fn read_text(path: &Path) -> Result<Option<String>, Error> {
    Ok(read_if_there(path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// A request with what was answered to it; nothing where it cannot be read.
fn conversation_of(reader: &JournalReader, row: &ExchangeRow) -> Result<Option<Conversation>, Error> {
    let Some(dialect) = Dialect::ALL.into_iter().find(|dialect| dialect.as_str() == row.dialect) else {
        return Ok(None);
    };
    let Some(request) = row.request_hash.as_ref().map(|hash| reader.body(hash)).transpose()?.flatten() else {
        return Ok(None);
    };
    let Some(mut conversation) = conversation(dialect, &request) else { return Ok(None) };
    // What an answer that broke off asked for was never begun: the agent asks again instead.
    if row.outcome == Outcome::Complete
        && let Some(answer) = row.response_hash.as_ref().map(|hash| reader.body(hash)).transpose()?.flatten()
    {
        conversation.items.extend(answer_items(dialect, &answer));
    }
    Ok(Some(conversation))
}
