//! Runs a plan's own commands (setup, verify): verbatim to `sh -c`, under a shim, in the sandbox, without a key.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::AttemptId;
use outlast_core::plan::Task;
use outlast_process::{ContainmentChoice, ExitReason, ExitRecord, LaunchSpec, OsText, Timeouts, files};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::home::private_dir;
use crate::ops::end;
use crate::ops::follow::until_gone;
use crate::ops::judge::SIGKILL;
use crate::ops::launch::{KILL_GRACE, LINE_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, sandbox, texts};
use crate::outputs::last_lines;

/// A `setup` command's time: installing every dependency of a large project from nothing.
pub(crate) const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// How often in a row a command may show nothing, before it is said that it does.
const UNSHOWN_MAX: u32 = 4;

/// Where commands run and what they may write.
pub(crate) struct Place {
    /// The working directory, which they may write.
    pub(crate) cwd: PathBuf,
    /// Their home.
    pub(crate) home: PathBuf,
    /// Their temporary files.
    pub(crate) temp: PathBuf,
    /// Where their outputs are kept, one folder a command.
    pub(crate) outputs: PathBuf,
    /// What tells their processes from all others.
    pub(crate) attempt: AttemptId,
    /// Each command's time.
    pub(crate) timeout: Duration,
    /// Says when nobody waits for them any more.
    pub(crate) token: CancellationToken,
    /// Whether they may reach the network: only where nothing of the tree is an agent's.
    pub(crate) may_connect: bool,
}

impl Place {
    /// The workspace of an attempt that is over or has not begun: with the agent's own home, where caches are warm.
    pub(crate) fn workspace(context: &Context, id: &AttemptId, task: &Task, token: &CancellationToken) -> Self {
        let home = &context.home;
        Self {
            cwd: home.workspace(&id.run, &id.task),
            home: home.agent_home(&id.run, &id.task, task.agent.as_str()),
            temp: home.temp(&id.run, &id.task),
            outputs: home.attempt(id),
            attempt: id.clone(),
            timeout: task.timeout,
            token: token.clone(),
            may_connect: false,
        }
    }
}

/// A command that did not pass.
pub(crate) struct Unpassed {
    /// As it stands in the plan.
    pub(crate) command: String,
    /// How it ended, and the end of what it said.
    pub(crate) why: String,
}

/// How often in a row commands have shown nothing, by the folder of their outputs. Kept beyond one operation: one that uses
/// up the room that it finds, which is then made again, would be run for ever.
#[derive(Debug, Default)]
pub(crate) struct Unshown(Mutex<BTreeMap<PathBuf, u32>>);

impl Unshown {
    /// Counts one more; whether that is too often. Then the count begins anew.
    fn is_too_often(&self, dir: &Path) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = all.entry(dir.to_owned()).or_default();
        *times += 1;
        let is_too_often = *times >= UNSHOWN_MAX;
        if is_too_often {
            all.remove(dir);
        }
        is_too_often
    }

    fn forget(&self, dir: &Path) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(dir);
    }
}

/// Runs commands in order until one does not pass. One that was lost with the process that looks after it, or that did not
/// pass for want of room, has shown nothing: it runs again, where there is room.
///
/// # Errors
/// [`Error::Unshown`] where one has shown nothing too often in a row; [`Error::NoRoom`] where there is no room to run it;
/// [`Error::Ended`] where nobody waits for it any more; where a command could not be run at all.
pub(crate) async fn run(
    context: &Arc<Context>,
    place: &Place,
    purpose: &str,
    commands: &[String],
) -> Result<Option<Unpassed>, Error> {
    for (number, command) in commands.iter().enumerate() {
        let dir = place.outputs.join(format!("{purpose}-{}", number + 1));
        let purpose = format!("{purpose}-{}", number + 1);
        let fault = loop {
            context.room()?;
            let record = run_one(context, place, &purpose, &dir, command).await?;
            if let Some(record) = record.filter(|record| !is_lost(record)) {
                let fault = fault(&dir, &record);
                let had_room = || record.capture_error.is_none() && context.room().is_ok();
                if fault.is_none() || had_room() {
                    context.unshown.forget(&dir);
                    break fault;
                }
            }
            if context.unshown.is_too_often(&dir) {
                return Err(Error::Unshown { command: command.clone(), times: UNSHOWN_MAX });
            }
        };
        if let Some(why) = fault {
            return Ok(Some(Unpassed { command: command.clone(), why }));
        }
    }
    Ok(None)
}

/// Runs a command once, and says how it ended, where that is on record.
async fn run_one(
    context: &Arc<Context>,
    place: &Place,
    purpose: &str,
    dir: &Path,
    command: &str,
) -> Result<Option<ExitRecord>, Error> {
    for dir in [dir, &place.home, &place.temp] {
        private_dir(dir)?;
    }
    let marker = format!("{}:{}/{}/{purpose}", context.home.root().display(), place.attempt.run, place.attempt.slug());
    // What a crash left of the same command: its outcome is unknown, so it runs again, and never beside itself.
    end::kill_all(context, dir, &marker, "it is run again").await?;
    match fs::remove_file(dir.join(files::LAUNCH)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Error::at(dir, error)),
        _ => {}
    }
    let spec = LaunchSpec {
        argv: ["sh", "-c", command].map(OsText::new).into(),
        env: texts(environment(context, place)),
        cwd: place.cwd.clone(),
        attempt_dir: dir.to_owned(),
        marker: marker.clone(),
        sandbox: sandbox(context, &[&place.cwd, &place.home, &place.temp]),
        connect_ports: (!place.may_connect).then(Vec::new),
        containment: ContainmentChoice::Auto,
        timeouts: Timeouts { wall: Some(place.timeout), idle: None, start: None, stderr_is_a_start: false },
        kill_grace: KILL_GRACE,
        output_limit_bytes: OUTPUT_LIMIT_BYTES,
        line_limit_bytes: LINE_LIMIT_BYTES,
        files: Vec::new(),
        listener: None,
    };
    let at_work = context.engine.at_work();
    let running = at_work.begin(&place.attempt.run).filter(|_| !place.token.is_cancelled()).ok_or(Error::Ended)?;
    let shim = context.spawner.spawn_async(&spec).await?;
    tokio::select! {
        record = until_gone(dir, &shim) => return record,
        () = place.token.cancelled() => {}
        () = at_work.leaving() => {}
    }
    end::kill_all(context, dir, &marker, "nobody waits for it any more").await?;
    drop(running);
    Err(Error::Ended)
}

fn environment(context: &Context, place: &Place) -> BTreeMap<String, String> {
    let mut env = context.toolchain.env.clone();
    let mut set = |name: &str, value: String| drop(env.insert(name.to_owned(), value));
    set("PATH", context.toolchain.path.clone());
    set("HOME", place.home.display().to_string());
    set("TMPDIR", place.temp.display().to_string());
    set("TERM", "dumb".to_owned());
    set("LANG", "C.UTF-8".to_owned());
    set("OUTLAST_RUN", place.attempt.run.to_string());
    set("OUTLAST_TASK", place.attempt.task.to_string());
    env
}

/// Whether somebody ended what looks after a command, and the command with it, or the command itself by a signal that nothing
/// survives: a person, or a host that is out of memory.
fn is_lost(record: &ExitRecord) -> bool {
    let is_killed = record.reason == ExitReason::Exited && record.signal == Some(SIGKILL);
    is_killed || matches!(record.reason, ExitReason::ShimTerminated | ExitReason::Killed)
}

/// Why a command did not pass; nothing where it did.
fn fault(dir: &Path, record: &ExitRecord) -> Option<String> {
    let how = match (record.reason, record.code, record.signal) {
        (ExitReason::Exited, Some(0), _) => return None,
        (ExitReason::Exited, Some(code), _) => format!("exit status {code}"),
        (ExitReason::WallTimeout, ..) => "it ran longer than its timeout".to_owned(),
        (ExitReason::LaunchFailed, ..) => record.detail.clone().unwrap_or_else(|| "it did not start".to_owned()),
        (_, _, Some(signal)) => format!("signal {signal}"),
        _ => "it was ended".to_owned(),
    };
    let last = |name| last_lines(&dir.join(name), 1).pop();
    let said = last(files::STDERR).or_else(|| last(files::STDOUT));
    Some(said.map_or_else(|| how.clone(), |said| format!("{how}: {said}")))
}
