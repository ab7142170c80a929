//! Programs that a plan starts, agents' and its own commands': whether they are where they will be looked for.
//!
//! A workspace holds what is committed and nothing else of a checkout, and a command finds what is on the `PATH` of whoever
//! runs outlast. A program that is in neither would end every try of every task, an agent's before it began and a `verify`'s
//! after its agent was paid.

use std::collections::BTreeSet;
use std::fmt;

use outlast_agent::Kind;
use outlast_config::simple_commands;
use outlast_core::glob::Glob;
use outlast_core::plan::{Plan, Task};
use outlast_core::{AgentName, Oid, TaskId};
use outlast_git::{Kind as Entry, UserRepo, word};

use crate::error::Error;
use crate::toolchain::Toolchain;

/// A program that would not be where it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentProgram {
    /// What is started from it.
    pub starts: Starts,
    /// The first task of the plan that needs it; none where all do.
    pub task: Option<TaskId>,
    /// The file, as the plan names it.
    pub program: String,
    /// The commit that tasks start from.
    pub commit: Oid,
    /// The branch that the plan names for results, where it names one.
    pub target: Option<String>,
    /// What is wrong.
    pub lack: Lack,
}

/// What is started from a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Starts {
    /// An agent.
    Agent(AgentName),
    /// A command of the plan.
    Command {
        /// The key that it stands under: `setup`, `verify` or `steps`.
        key: &'static str,
        /// As it stands there.
        command: String,
    },
}

/// What is wrong with a program of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// It is in the checkout, and in no commit that tasks start from.
    Uncommitted,
    /// As that, and git is told to ignore it.
    Ignored,
    /// It is committed where HEAD is, and not where the run starts.
    Elsewhere,
    /// It is nowhere.
    Missing,
    /// It is committed as a file that may not be executed.
    NotExecutable,
    /// It is a folder.
    Folder,
    /// Its path leads out of the workspace.
    Outside,
    /// It is named without a path, and is not on the `PATH`.
    NotOnPath,
    /// It is named by its whole path, and nothing that can be executed is there.
    NotOnHost,
}

impl Lack {
    /// Whether it is this host that lacks it, and not what the plan starts from.
    pub const fn is_of_the_host(self) -> bool {
        matches!(self, Self::NotOnPath | Self::NotOnHost)
    }
}

/// Programs that read their script from the file that their first argument names.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "bun", "tsx", "ruby", "perl", "php",
    "lua", "Rscript",
];

/// Every program of the plan's tasks that would not be where it is looked for, once for each agent and each command.
///
/// What an earlier task may write or `setup` may make is not found fault with, nor for a command what its own task may.
///
/// # Errors
/// Where the repository cannot be read.
pub fn absent_programs(
    plan: &Plan,
    user: &UserRepo,
    commit: &Oid,
    toolchain: &Toolchain,
) -> Result<Vec<AbsentProgram>, Error> {
    let look = Look { plan, user, commit, toolchain };
    let mut absent: Vec<AbsentProgram> = Vec::new();
    let mut seen = BTreeSet::new();
    for (number, command) in plan.run.setup.iter().enumerate() {
        let maker = if number == 0 { Maker::Nobody } else { Maker::Setup };
        absent.extend(look.command("setup", command, None, maker)?);
    }
    for task in &plan.tasks {
        if let Some(agent) = plan.agent(task).filter(|agent| Kind::from_name(&agent.kind) == Some(Kind::Command))
            && seen.insert(Starts::Agent(task.agent.clone()))
        {
            let starts = Starts::Agent(task.agent.clone());
            absent.extend(look.files(&agent.command, &starts, Some(task), Maker::Needs(task))?);
        }
        let steps = task.steps.iter().filter_map(|step| step.command.as_ref());
        let commands = task.verify.iter().map(|command| ("verify", command)).chain(steps.map(|step| ("steps", step)));
        for (key, command) in commands {
            if !seen.contains(&Starts::Command { key, command: command.clone() }) {
                let found = look.command(key, command, Some(task), Maker::Itself(task))?;
                seen.extend(found.iter().map(|absent| absent.starts.clone()));
                absent.extend(found);
            }
        }
    }
    Ok(absent)
}

/// Who may have made a file of a workspace before it is started.
#[derive(Clone, Copy)]
enum Maker<'a> {
    Nobody,
    /// A `setup` command before it.
    Setup,
    /// As that, or a task that this one needs.
    Needs(&'a Task),
    /// As that, or the task itself.
    Itself(&'a Task),
}

/// What programs are looked for in.
struct Look<'a> {
    plan: &'a Plan,
    user: &'a UserRepo,
    commit: &'a Oid,
    toolchain: &'a Toolchain,
}

impl Look<'_> {
    /// What a command of the plan cannot pass without, and is not there.
    fn command(
        &self,
        key: &'static str,
        command: &str,
        task: Option<&Task>,
        maker: Maker<'_>,
    ) -> Result<Vec<AbsentProgram>, Error> {
        let starts = Starts::Command { key, command: command.to_owned() };
        let mut absent = Vec::new();
        for words in simple_commands(command) {
            let program = words.first().map(String::as_str).unwrap_or_default();
            match self.toolchain.lacks(program) {
                Some(lack) => absent.push(self.absent(&starts, task, program, lack)),
                None => absent.extend(self.files(&words, &starts, task, maker)?),
            }
        }
        Ok(absent)
    }

    /// The files of a workspace that a command is started from, as far as they would not be there.
    fn files(
        &self,
        command: &[String],
        starts: &Starts,
        task: Option<&Task>,
        maker: Maker<'_>,
    ) -> Result<Vec<AbsentProgram>, Error> {
        let mut absent = Vec::new();
        for (program, is_executed) in files(command) {
            let lack = self.lack(program, is_executed, maker)?;
            absent.extend(lack.map(|lack| self.absent(starts, task, program, lack)));
        }
        Ok(absent)
    }

    fn absent(&self, starts: &Starts, task: Option<&Task>, program: &str, lack: Lack) -> AbsentProgram {
        AbsentProgram {
            starts: starts.clone(),
            task: task.map(|task| task.id.clone()),
            program: program.to_owned(),
            commit: self.commit.clone(),
            target: self.plan.run.target.clone(),
            lack,
        }
    }

    fn lack(&self, program: &str, is_executed: bool, maker: Maker<'_>) -> Result<Option<Lack>, Error> {
        let Some(path) = plain(program) else { return Ok(Some(Lack::Outside)) };
        let by_itself = matches!(maker, Maker::Itself(task) if may_write(task, &path));
        match self.user.entry(self.commit, &path)? {
            Some(Entry::File) => Ok((is_executed && !by_itself).then_some(Lack::NotExecutable)),
            Some(_) => Ok(None),
            None if by_itself || self.may_be_written(maker, &path) => Ok(None),
            // Only a target that is there already is another start than HEAD.
            None if self.user.entry(&self.user.head()?.commit, &path)?.is_some() => Ok(Some(Lack::Elsewhere)),
            None => self.not_committed(maker, &path),
        }
    }

    /// What is wrong with a file that the commit does not hold.
    fn not_committed(&self, maker: Maker<'_>, path: &str) -> Result<Option<Lack>, Error> {
        let may_be_made = !matches!(maker, Maker::Nobody) && !self.plan.run.setup.is_empty();
        let here = self.user.root().join(path);
        Ok(if here.is_dir() {
            Some(Lack::Folder)
        } else if !here.exists() {
            (!may_be_made).then_some(Lack::Missing)
        } else if !self.user.is_ignored(path)? {
            Some(Lack::Uncommitted)
        } else {
            (!may_be_made && !self.user.is_brought_along(path)?).then_some(Lack::Ignored)
        })
    }

    /// Whether a task that this one starts from may write the file.
    fn may_be_written(&self, maker: Maker<'_>, path: &str) -> bool {
        let (Maker::Needs(task) | Maker::Itself(task)) = maker else { return false };
        let mut needs: Vec<&TaskId> = task.needs.iter().collect();
        let mut next = 0;
        while let Some(need) = needs.get(next).and_then(|id| self.plan.task(id)) {
            next += 1;
            if may_write(need, path) {
                return true;
            }
            let more: Vec<&TaskId> = need.needs.iter().filter(|id| !needs.contains(id)).collect();
            needs.extend(more);
        }
        false
    }
}

/// Whether a task may write a file of the repository.
pub(crate) fn may_write(task: &Task, path: &str) -> bool {
    let covers = |glob: &String| Glob::parse(glob).is_ok_and(|glob| glob.covers(path.as_bytes()));
    task.writes.is_empty() || task.writes.iter().any(covers)
}

/// The files of a workspace that a command is started from, and whether each is executed itself.
fn files(command: &[String]) -> Vec<(&str, bool)> {
    let Some((program, arguments)) = command.split_first() else { return Vec::new() };
    if program.contains('/') && !program.starts_with('/') {
        return vec![(program, true)];
    }
    let name = program.rsplit('/').next().unwrap_or(program);
    let is_script =
        |argument: &&String| !argument.is_empty() && !argument.starts_with(['-', '/']) && !argument.contains('{');
    match arguments.first().filter(is_script) {
        Some(script) if INTERPRETERS.contains(&name) => vec![(script, false)],
        _ => Vec::new(),
    }
}

/// The files of the repository that a task's agent and the commands of its plan are started from.
pub fn program_files(plan: &Plan, task: &Task) -> BTreeSet<String> {
    let mut commands: Vec<Vec<String>> = plan.agent(task).map(|agent| agent.command.clone()).into_iter().collect();
    let steps = task.steps.iter().filter_map(|step| step.command.as_ref());
    let shell = plan.run.setup.iter().chain(&task.verify).chain(steps);
    commands.extend(shell.flat_map(|command| simple_commands(command)));
    commands.iter().flat_map(|command| files(command)).filter_map(|(file, _)| plain(file)).collect()
}

/// A path without `.` and without detours; nothing where it leads out of the workspace.
pub(crate) fn plain(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            parts.pop()?;
        } else {
            parts.push(part);
        }
    }
    Some(parts.join("/"))
}

impl AbsentProgram {
    /// Why it would not start.
    pub fn why(&self) -> String {
        let commit = self.commit.as_str().get(..10).unwrap_or_default();
        match self.lack {
            Lack::Uncommitted => format!("it is in your checkout, and agents work on what is committed ({commit})"),
            Lack::Ignored => {
                format!("it is in your checkout, where git ignores it, and agents work on what is committed ({commit})")
            }
            Lack::Elsewhere => format!("it is committed, and not on the branch that the run starts from ({commit})"),
            Lack::Missing => format!(
                "there is no such file, neither in the commit that agents start from ({commit}) nor in your checkout"
            ),
            Lack::NotExecutable => {
                format!("the commit that agents start from ({commit}) holds it as a file that is not executable")
            }
            Lack::Folder => "it is a folder".to_owned(),
            Lack::Outside => "its path leads out of the workspace, which holds the repository alone".to_owned(),
            Lack::NotOnPath => "it is not on the PATH, and nothing that a task does can put it there".to_owned(),
            Lack::NotOnHost => "there is no such program on this host".to_owned(),
        }
    }

    /// What to do about it.
    pub fn fix(&self) -> String {
        let program = word(&self.program);
        match self.lack {
            Lack::Uncommitted => format!("git add {program} && git commit"),
            Lack::Ignored => format!("git add --force {program} && git commit, or name it in .worktreeinclude"),
            Lack::NotExecutable => format!("git update-index --chmod=+x {program} && git commit"),
            Lack::Elsewhere => match &self.target {
                Some(target) => format!("merge it into the branch `{target}`, which the run starts from"),
                None => "commit it there".to_owned(),
            },
            Lack::Missing | Lack::Folder => {
                let place = match &self.starts {
                    Starts::Agent(agent) => format!("`command` of [agent.{agent}]"),
                    Starts::Command { key, .. } => format!("`{key}`"),
                };
                format!("name a program that is committed, or one on the PATH, in {place}")
            }
            Lack::Outside => "name it by its whole path, or commit it to the repository".to_owned(),
            Lack::NotOnPath | Lack::NotOnHost => format!("install {program}, or name it as it is called here"),
        }
    }
}

impl fmt::Display for AbsentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.starts {
            Starts::Agent(agent) => {
                write!(f, "agent `{agent}` cannot start: its program `{}` is not there for it", self.program)
            }
            Starts::Command { key, command } => {
                write!(f, "`{command}` of `{key}` cannot run: its program `{}` is not there for it", self.program)
            }
        }
    }
}
