//! Runs a plan's own commands (setup, verify): verbatim to `sh -c`, under a shim, in the sandbox, without a key.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::plan::Task;
use outlast_core::{AttemptId, Class};
use outlast_process::{ContainmentChoice, ExitReason, ExitRecord, LaunchSpec, OsText, Timeouts, files};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::home::private_dir;
use crate::ops::attempt::brief;
use crate::ops::end;
use crate::ops::follow::until_gone;
use crate::ops::judge::SIGKILL;
use crate::ops::launch::{KILL_GRACE, LINE_LIMIT_BYTES, OUTPUT_LIMIT_BYTES, sandbox, texts};
use crate::outputs::last_lines;
use crate::programs::{may_write, plain};

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

/// How many characters of a command are shown with what it said.
const COMMAND_SHOWN_MAX: usize = 60;

/// A command that did not pass.
pub(crate) struct Unpassed {
    /// As it stands in the plan.
    pub(crate) command: String,
    /// How it ended, and the end of what it said.
    pub(crate) why: String,
    /// The program that the shell could not run, where that is how it ended.
    missing: Option<Missing>,
}

impl Unpassed {
    /// What it says of the work of a task: that it does not pass, or nothing at all, since no agent can put there what it is
    /// to be run with.
    pub(crate) fn class(&self, task: &Task) -> Class {
        let may_be_its_own = |missing: &Missing| missing.is_file && may_make(task, &self.command, &missing.program);
        match &self.missing {
            Some(missing) if !may_be_its_own(missing) => Class::NoProgram,
            _ => Class::Verify,
        }
    }

    /// Why it did not pass, as it stands under `key` in the plan.
    pub(crate) fn told(&self, task: &Task, key: &str) -> (Class, String) {
        // What it said is worth more room than how it reads: the plan has that.
        let command = brief(self.command.lines().next().unwrap_or_default(), COMMAND_SHOWN_MAX);
        match (self.class(task), &self.missing) {
            (Class::NoProgram, Some(missing)) => {
                let program = &missing.program;
                (Class::NoProgram, format!("`{program}` cannot be run here: {key} `{command}`: {}", self.why))
            }
            (class, _) => (class, format!("`{command}`: {}", self.why)),
        }
    }
}

/// A program that a shell could not run.
struct Missing {
    /// As the shell names it.
    program: String,
    /// Whether it is a file at a path: else it was looked for on the `PATH`.
    is_file: bool,
}

/// The exit statuses of a shell that could not run a program (POSIX, "Exit Status for Commands").
const NOT_RUN: [i32; 2] = [126, 127];

impl Missing {
    /// What a command could not be run with, by how its shell ended and the last line that was printed.
    fn of(record: &ExitRecord, last: &str) -> Option<Self> {
        let is_not_run = record.reason == ExitReason::Exited && record.code.is_some_and(|code| NOT_RUN.contains(&code));
        if is_not_run { Self::named_in(last) } else { None }
    }

    /// What a line names that our own `sh` printed: a script in the workspace has another name there, and is an agent's to
    /// mend.
    fn named_in(line: &str) -> Option<Self> {
        let said = line.strip_prefix("sh: ")?;
        // `sh: 1: x: not found`, `sh: line 1: x: command not found`, `sh: x: not found`.
        let said = match said.split_once(": ") {
            Some((line, rest)) if line.trim_start_matches("line ").chars().all(|c| c.is_ascii_digit()) => rest,
            _ => said,
        };
        let (program, why) = said.split_once(": ")?;
        let program = program.strip_prefix("cannot open ").unwrap_or(program);
        let is_file = program.contains('/') || !why.ends_with("not found");
        Some(Self { program: program.to_owned(), is_file })
    }
}

/// Whether a task could have made the file that a command is to be run with.
fn may_make(task: &Task, command: &str, program: &str) -> bool {
    // Where a command moves, its paths are others than ours.
    let has_moved = command.split_whitespace().any(|word| word == "cd");
    match plain(program) {
        _ if program.starts_with('/') => false,
        Some(path) => has_moved || may_write(task, &path),
        None => has_moved,
    }
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
                let fault = fault(command, &dir, &record);
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
        if fault.is_some() {
            return Ok(fault);
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
fn fault(command: &str, dir: &Path, record: &ExitRecord) -> Option<Unpassed> {
    let how = match (record.reason, record.code, record.signal) {
        (ExitReason::Exited, Some(0), _) => return None,
        (ExitReason::Exited, Some(code), _) => format!("exit status {code}"),
        (ExitReason::WallTimeout, ..) => "it ran longer than its timeout".to_owned(),
        (ExitReason::LaunchFailed, ..) => record.detail.clone().unwrap_or_else(|| "it did not start".to_owned()),
        (_, _, Some(signal)) => format!("signal {signal}"),
        _ => "it was ended".to_owned(),
    };
    let last = |name| last_lines(&dir.join(name), 1).pop();
    let error = last(files::STDERR);
    let missing = error.as_deref().and_then(|said| Missing::of(record, said));
    let said = error.or_else(|| last(files::STDOUT));
    let why = said.map_or_else(|| how.clone(), |said| format!("{how}: {said}"));
    Some(Unpassed { command: command.to_owned(), why, missing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(writes: &[&str], command: &str, line: &str) -> Class {
        let mut task = Task::new("t", "g", "a");
        task.writes = writes.iter().map(|glob| (*glob).to_owned()).collect();
        let missing = Missing::named_in(line);
        Unpassed { command: command.to_owned(), why: String::new(), missing }.class(&task)
    }

    #[test]
    fn what_a_command_said_is_told_whole_however_long_it_is_itself() {
        let task = Task::new("t", "g", "a");
        let command = format!("test -e made || {{ echo '{}'; exit 1; }}", "x".repeat(300));
        let unpassed = Unpassed { command, why: "exit status 1: src/lib.rs:14: no".to_owned(), missing: None };
        let (class, told) = unpassed.told(&task, "verify");
        assert_eq!(class, Class::Verify);
        assert!(
            told.starts_with("`test -e made || {") && told.contains("…`: exit status 1: src/lib.rs:14: no"),
            "{told}"
        );
        assert!(told.chars().count() < 120, "{told}");
    }

    #[test]
    fn a_program_that_no_agent_can_put_there_is_told_from_one_that_it_can() {
        for (command, line) in [
            ("nosuch -q", "sh: 1: nosuch: not found"),
            ("nosuch -q", "sh: line 1: nosuch: command not found"),
            ("nosuch -q", "sh: nosuch: not found"),
            ("cd web && nosuch", "sh: 1: nosuch: not found"),
            ("./check.sh", "sh: 1: ./check.sh: Permission denied"),
            ("./check.sh", "sh: 1: ./check.sh: not found"),
            ("sh check.sh", "sh: check.sh: No such file or directory"),
            ("sh check.sh", "sh: 0: cannot open check.sh: No such file"),
            ("/opt/x/check", "sh: 1: /opt/x/check: not found"),
        ] {
            assert_eq!(class(&["src/**"], command, line), Class::NoProgram, "{command}: {line}");
        }
        for (writes, command, line) in [
            (&["src/**", "check.sh"][..], "./check.sh", "sh: 1: ./check.sh: not found"),
            (&[], "sh check.sh", "sh: check.sh: No such file or directory"),
            (&["src/**"], "cd web && ./x", "sh: 1: ./x: not found"),
            // A script's own line, and what an agent's program says.
            (&["src/**"], "sh run.sh", "run.sh: 2: nosuch: not found"),
            (&["src/**"], "make", "make: *** [Makefile:2: test] Error 127"),
        ] {
            assert_eq!(class(writes, command, line), Class::Verify, "{command}: {line}");
        }
    }
}
