//! Programs of agents that are to come from the repository: whether the commit that tasks start from holds them.
//!
//! A workspace holds what is committed and nothing else of a checkout. A program that is not there would end every try of
//! every task before it began.

use std::collections::BTreeSet;
use std::fmt;

use outlast_agent::Kind;
use outlast_core::glob::Glob;
use outlast_core::plan::{Plan, Task};
use outlast_core::{AgentName, Oid, TaskId};
use outlast_git::{Kind as Entry, UserRepo, word};

use crate::error::Error;

/// A file that an agent is started from and that its workspaces would not hold as it has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentProgram {
    /// The agent.
    pub agent: AgentName,
    /// The first task of the plan that is given to it.
    pub task: TaskId,
    /// The file, as the plan names it.
    pub program: String,
    /// The commit that tasks start from.
    pub commit: Oid,
    /// The branch that the plan names for results, where it names one.
    pub target: Option<String>,
    /// What is wrong.
    pub lack: Lack,
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
}

/// Programs that read their script from the file that their first argument names.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "bun", "tsx", "ruby", "perl", "php",
    "lua", "Rscript",
];

/// Every program of the plan's tasks that would not be where it is looked for, once per agent.
///
/// What an earlier task may write or `setup` may make is not found fault with.
///
/// # Errors
/// Where the repository cannot be read.
pub fn absent_programs(plan: &Plan, user: &UserRepo, commit: &Oid) -> Result<Vec<AbsentProgram>, Error> {
    let mut absent: Vec<AbsentProgram> = Vec::new();
    let mut seen = BTreeSet::new();
    for task in &plan.tasks {
        let Some(agent) = plan.agent(task).filter(|agent| Kind::from_name(&agent.kind) == Some(Kind::Command)) else {
            continue;
        };
        for (program, is_executed) in files(&agent.command) {
            if !seen.insert((&task.agent, program)) {
                continue;
            }
            let Some(lack) = lack(plan, task, user, commit, program, is_executed)? else { continue };
            let (agent, task, program) = (task.agent.clone(), task.id.clone(), program.to_owned());
            absent.push(AbsentProgram {
                agent,
                task,
                program,
                commit: commit.clone(),
                target: plan.run.target.clone(),
                lack,
            });
        }
    }
    Ok(absent)
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

fn lack(
    plan: &Plan,
    task: &Task,
    user: &UserRepo,
    commit: &Oid,
    program: &str,
    is_executed: bool,
) -> Result<Option<Lack>, Error> {
    let Some(path) = plain(program) else { return Ok(Some(Lack::Outside)) };
    match user.entry(commit, &path)? {
        Some(Entry::File) => Ok(is_executed.then_some(Lack::NotExecutable)),
        Some(_) => Ok(None),
        None if may_be_written(plan, task, &path) => Ok(None),
        // Only a target that is there already is another start than HEAD.
        None if user.entry(&user.head()?.commit, &path)?.is_some() => Ok(Some(Lack::Elsewhere)),
        None => absent(plan, user, &path),
    }
}

/// What is wrong with a file that the commit does not hold.
fn absent(plan: &Plan, user: &UserRepo, path: &str) -> Result<Option<Lack>, Error> {
    let may_be_made = !plan.run.setup.is_empty();
    let here = user.root().join(path);
    Ok(if here.is_dir() {
        Some(Lack::Folder)
    } else if !here.exists() {
        (!may_be_made).then_some(Lack::Missing)
    } else if !user.is_ignored(path)? {
        Some(Lack::Uncommitted)
    } else {
        (!may_be_made && !user.is_brought_along(path)?).then_some(Lack::Ignored)
    })
}

/// A path without `.` and without detours; nothing where it leads out of the workspace.
fn plain(path: &str) -> Option<String> {
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

/// Whether a task that this one starts from may write the file.
fn may_be_written(plan: &Plan, task: &Task, path: &str) -> bool {
    let mut needs: Vec<&TaskId> = task.needs.iter().collect();
    let mut next = 0;
    while let Some(need) = needs.get(next).and_then(|id| plan.task(id)) {
        next += 1;
        let covers = |glob: &String| Glob::parse(glob).is_ok_and(|glob| glob.covers(path.as_bytes()));
        if need.writes.is_empty() || need.writes.iter().any(covers) {
            return true;
        }
        let more: Vec<&TaskId> = need.needs.iter().filter(|id| !needs.contains(id)).collect();
        needs.extend(more);
    }
    false
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
                format!("name a program that is committed, or one on the PATH, in `command` of [agent.{}]", self.agent)
            }
            Lack::Outside => "name it by its whole path, or commit it to the repository".to_owned(),
        }
    }
}

impl fmt::Display for AbsentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "agent `{}` cannot start: its program `{}` is not there for it", self.agent, self.program)
    }
}
