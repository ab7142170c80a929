//! From a task and its attempt to what a shim is told: the adapter's recipe, the sandbox, the gateway's socket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_agent::launch::PORT;
use outlast_agent::prompt::{Resumption, STEPS_FILE, handover_prompt, prompt, resume_prompt};
use outlast_agent::{Adapter, Brief, Inherit, Key, Kind, Launch, Session, adapter, discover, session_uuid};
use outlast_core::record::Rung;
use outlast_core::{AttemptId, Class, Epoch, plan};
use outlast_git::write_inside;
use outlast_process::{
    ContainmentChoice, FileRules, HoldProfile, LaunchSpec, Listener, OsText, TemplateFile, Timeouts,
};

use crate::context::Context;
use crate::error::Error;
use crate::home::private_dir;
use crate::ops::attempt::Fault;

/// Kept of each of an agent's outputs: a long session's events are a few megabytes.
pub(crate) const OUTPUT_LIMIT_BYTES: u64 = 256 * 1024 * 1024;
/// Kept of one line: a whole test log in one event is a few megabytes.
pub(crate) const LINE_LIMIT_BYTES: u64 = 16 * 1024 * 1024;
/// Between asking a tree to end and ending it: enough to write a session's last line.
pub(crate) const KILL_GRACE: Duration = Duration::from_secs(3);
/// No output and no request by then: the agent hangs at its start. The slowest real one takes 9 s on a busy machine.
pub(crate) const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Files in an agent's home: what it is to do, what has been done, and where it notes its steps.
const GOAL: &str = "goal.md";
const HANDOVER: &str = "handover.md";
pub(crate) const PROGRESS: &str = "progress";

/// How long an agent may take to begin, by its task's timeout.
pub(crate) fn start_timeout(timeout: Duration) -> Duration {
    START_TIMEOUT.min(timeout)
}

/// A launch that is ready, and how its output is read.
pub(crate) struct Ready {
    pub(crate) spec: LaunchSpec,
    pub(crate) adapter: &'static dyn Adapter,
}

/// Everything about an attempt that its launch depends on.
pub(crate) struct Ask<'a> {
    pub(crate) id: &'a AttemptId,
    pub(crate) epoch: Epoch,
    pub(crate) rung: &'a Rung,
    pub(crate) plan: &'a plan::Plan,
    pub(crate) task: &'a plan::Task,
    pub(crate) workspace: &'a Path,
    /// What the agent is told beside its task, where it goes on.
    pub(crate) resumption: Resumption,
}

/// The adapter of a task's agent.
pub(crate) fn adapter_of(plan: &plan::Plan, task: &plan::Task) -> Result<(Kind, &'static dyn Adapter), Fault> {
    let spec = plan.agent(task).ok_or_else(|| Fault::new(Class::Startup, format!("no agent `{}`", task.agent)))?;
    let kind = Kind::from_name(&spec.kind)
        .ok_or_else(|| Fault::new(Class::Startup, format!("no adapter for agents of kind `{}`", spec.kind)))?;
    Ok((kind, adapter(kind)))
}

/// Whether a later attempt can continue the session of this one. A command can where it has a place for its name.
pub(crate) fn can_resume(plan: &plan::Plan, task: &plan::Task, adapter: &dyn Adapter) -> bool {
    match (adapter.kind(), plan.agent(task)) {
        (Kind::Command, Some(agent)) => {
            agent.command.iter().chain(agent.env.values()).any(|text| text.contains("{resume}"))
        }
        _ => adapter.capabilities().resume,
    }
}

/// Builds the launch of an attempt and the folders that it needs.
pub(crate) fn build(context: &Context, ask: &Ask<'_>) -> Result<Ready, Fault> {
    let (kind, adapter) = adapter_of(ask.plan, ask.task)?;
    let brief = brief(context, ask, kind)?;
    leave(&brief.home, GOAL, &brief.prompt)?;
    let steps: String = ask.task.steps.iter().map(|step| format!("{}\n", step.name)).collect();
    leave(&brief.home, STEPS_FILE, &steps)?;
    let launch = adapter.launch(&brief).map_err(|error| match &error {
        outlast_agent::Error::ProgramMissing { .. } => absent(&error.to_string()),
        _ => Fault::new(Class::Startup, error.to_string()),
    })?;
    let spec = spec(context, ask, kind, &brief, launch)?;
    Ok(Ready { spec, adapter })
}

fn brief(context: &Context, ask: &Ask<'_>, kind: Kind) -> Result<Brief, Fault> {
    let id = ask.id;
    let agent = ask.plan.agent(ask.task).ok_or_else(|| Fault::new(Class::Startup, "no such agent"))?;
    let home = context.home.agent_home(&id.run, &id.task, ask.task.agent.as_str());
    let temp = context.home.temp(&id.run, &id.task);
    private_dir(&home)?;
    private_dir(&temp)?;
    let told = match ask.rung {
        Rung::Fresh => prompt(ask.task),
        Rung::Session(_) => resume_prompt(&ask.resumption),
        Rung::HandOver => handover_prompt(ask.task, &ask.resumption),
    };
    let handover_file = match ask.rung {
        Rung::Fresh => None,
        Rung::Session(_) | Rung::HandOver => {
            leave(&home, HANDOVER, &resume_prompt(&ask.resumption))?;
            Some(home.join(HANDOVER))
        }
    };
    Ok(Brief {
        program: program(context, kind)?,
        gateway_url: format!("http://127.0.0.1:{PORT}"),
        key: Key::new(context.secret(&id.run)?.key(id, ask.epoch)),
        key_shape: context.key_shape(agent, kind),
        model: ask.plan.model(ask.task).map(str::to_owned),
        prompt: told,
        goal: ask.task.goal.clone(),
        goal_file: home.join(GOAL),
        session: session(ask),
        attempt: marker(context, id),
        run: id.run.clone(),
        task: id.task.clone(),
        inherit: agent
            .inherit
            .iter()
            .map(|entry| Inherit::parse(entry))
            .collect::<Result<_, _>>()
            .map_err(|e| Fault::new(Class::Startup, e.to_string()))?,
        extra_env: context.toolchain.env.clone(),
        path: context.toolchain.path.clone(),
        progress_file: home.join(PROGRESS),
        handover_file,
        command: agent.command.clone(),
        command_env: agent.env.clone(),
        user_home: std::env::home_dir(),
        workspace: ask.workspace.to_owned(),
        home,
        temp,
    })
}

/// Leaves a file in an agent's home. The home is the agent's to write, so no link in it is followed.
///
/// What is in the way there was put there by the task's own agent, so it counts as a failed attempt: free attempts
/// would meet it for ever.
fn leave(home: &Path, name: &str, text: &str) -> Result<(), Fault> {
    let written = write_inside(home, name.into(), text.as_bytes(), 0o600);
    written.map_err(|source| Fault::new(Class::Startup, Error::at(&home.join(name), source).to_string()))
}

fn session(ask: &Ask<'_>) -> Session {
    match ask.rung {
        Rung::Session(id) => Session::Resume { id: id.clone() },
        Rung::Fresh | Rung::HandOver => {
            Session::Fresh { id: session_uuid(format!("{}/{}", ask.id.run, ask.id).as_bytes()) }
        }
    }
}

/// What every process of an attempt has in its environment: unique on this host for all time.
pub(crate) fn marker(context: &Context, id: &AttemptId) -> String {
    format!("{}:{}/{}", context.home.root().display(), id.run, id.slug())
}

/// The agent's real program; none for a command, which names its own.
fn program(context: &Context, kind: Kind) -> Result<PathBuf, Fault> {
    let Some(name) = kind.program() else { return Ok(PathBuf::new()) };
    let entry = context.toolchain.find(name).ok_or_else(|| absent(&format!("`{name}` is not on the PATH")))?;
    Ok(discover::real_program(kind, &entry))
}

/// An agent whose program was there when the run began: its installer is replacing it, or somebody is about to. No task is at
/// fault, and all of them would fail within a second.
fn absent(why: &str) -> Fault {
    Fault::new(Class::Vanished, format!("no try is used, and it is looked for again: {why}"))
}

fn spec(context: &Context, ask: &Ask<'_>, kind: Kind, brief: &Brief, launch: Launch) -> Result<LaunchSpec, Fault> {
    let attempt_dir = context.home.attempt(ask.id);
    private_dir(&attempt_dir)?;
    let mut sandbox = sandbox(context, &[ask.workspace, &brief.home, &brief.temp]);
    sandbox.read.extend(launch.read_paths);
    sandbox.execute.extend(launch.execute_paths);
    Ok(LaunchSpec {
        argv: launch.argv.into_iter().map(OsText::new).collect(),
        env: texts(launch.env),
        cwd: ask.workspace.to_owned(),
        marker: brief.attempt.clone(),
        sandbox,
        connect_ports: Some(Vec::new()),
        containment: ContainmentChoice::Auto,
        timeouts: Timeouts {
            wall: Some(ask.task.timeout),
            idle: Some(ask.task.idle_timeout),
            start: Some(start_timeout(ask.task.timeout)),
            // Any program may tell of its progress there; the known CLIs have begun when they speak or ask a model.
            stderr_is_a_start: kind == Kind::Command,
        },
        kill_grace: KILL_GRACE,
        output_limit_bytes: OUTPUT_LIMIT_BYTES,
        line_limit_bytes: LINE_LIMIT_BYTES,
        files: launch
            .files
            .into_iter()
            .map(|(path, text)| TemplateFile { root: brief.home.clone(), path, text })
            .collect(),
        listener: Some(Listener {
            upstream_socket: context.home.gateway_socket(),
            path_prefix: format!("/t/{}/{}", ask.id.run, ask.id.slug()),
            hold: hold_profile(&launch.hold),
        }),
        attempt_dir,
    })
}

fn hold_profile(hold: &outlast_agent::Hold) -> HoldProfile {
    HoldProfile {
        headers_wait: hold.headers_wait,
        preamble: hold.preamble.clone(),
        keep_alive: hold.keep_alive.clone(),
        period: hold.period,
        stream_marks: hold.stream_marks.clone(),
        buffer_whole: hold.buffer_whole,
    }
}

/// The files that something of a task may touch: its own folders, the tools, and the objects that its repository borrows.
pub(crate) fn sandbox(context: &Context, write: &[&Path]) -> FileRules {
    let mut rules = FileRules::system();
    rules.write = write.iter().map(|&path| path.to_owned()).collect();
    rules.execute.extend(context.toolchain.execute.iter().cloned());
    rules.read.extend(context.git.borrowed_objects());
    rules
}

/// Environment values as the shim takes them.
pub(crate) fn texts(env: BTreeMap<String, String>) -> BTreeMap<String, OsText> {
    env.into_iter().map(|(name, value)| (name, OsText::new(value))).collect()
}

impl From<Error> for Fault {
    /// A failure of ours, and not the task's fault: worth another attempt, but where no waiting mends it.
    fn from(error: Error) -> Self {
        use outlast_git::Error as Git;
        let class = match &error {
            Error::Git(
                Git::Occupied(_)
                | Git::Unpinned { .. }
                | Git::State { .. }
                | Git::StoreOfOther { .. }
                // One that is lost was looked for everywhere by now.
                | Git::Object { .. },
            )
            // The plan of an older run may hold what no program can be given, such as a NUL: it would be tried for ever.
            | Error::Process(outlast_process::Error::Spec { .. }) => Class::Startup,
            _ => Class::Vanished,
        };
        let why = match &error {
            Error::Git(Git::Object { .. }) => format!("{error}; `outlast doctor` says what helps"),
            _ => error.to_string(),
        };
        Self::new(class, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_program_can_be_given_uses_up_tries_and_a_killed_spawner_none() {
        let spec = outlast_process::Error::Spec { marker: "m".into(), why: "a NUL byte in an argument".into() };
        assert_eq!(Fault::from(Error::from(spec)).class, Class::Startup);
        assert_eq!(Fault::from(Error::from(outlast_process::Error::SpawnerGone)).class, Class::Vanished);
    }
}
