//! Landing: the candidate's objects into the user's repository, then the target forward, by compare-and-swap.
//!
//! A target that somebody has checked out is moved only by git in that checkout, where git refuses what is unsafe:
//! moving it underneath would make that person's next commit undo the landing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::Kind;
use outlast_core::{Oid, RunId, TaskId};

use crate::candidate::{Candidate, run_trailer, task_trailer};
use crate::copy::Sink as _;
use crate::in_the_way::without_its_worktree;
use crate::kept_pack::{self, KeptPack};
use crate::lock::Lock;
use crate::shell::{quoted, word};
use crate::source::Source;
use crate::user::FOLDER_GONE;
use crate::{Error, Result, Store, UserRepo, Worktree, copy, durable, oid};

/// Most commits between the old tip and the present one that are searched for a trailer.
const SEARCH_MAX: usize = 10_000;

/// A step of a target from one commit to the next.
#[derive(Debug, Clone)]
pub struct Move {
    /// The run.
    pub run: RunId,
    /// The task that lands.
    pub task: TaskId,
    /// The branch, such as `main`.
    pub target: String,
    /// Where it must be now; `None` when it must not exist.
    pub old: Option<Oid>,
    /// The published candidate.
    pub new: Oid,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MoveOutcome {
    /// The target is at the new commit.
    Moved,
    /// The target was not where it had to be; nothing changed.
    NotAtOld {
        /// Where it is.
        found: Option<Oid>,
    },
    /// A checkout holds the target and git would not move it there: nothing changed. Or it was ended while it did: the
    /// command finishes it.
    CheckedOut {
        /// The checkout.
        path: PathBuf,
        /// The command that lands it once the checkout allows.
        command: String,
        /// What git said, or that it was ended in the midst.
        why: String,
    },
}

/// Where a target stands after a crash in the middle of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetState {
    /// Where it was: the step can be done again.
    AtOld,
    /// The landing is in it.
    Landed,
    /// Elsewhere: a person must look.
    Moved {
        /// Its tip; `None` when it is gone.
        tip: Option<Oid>,
    },
}

impl UserRepo {
    /// Copies the candidate's objects physically and durably into the user's repository, where nobody's garbage collection
    /// takes them, however long ago it began. No branch moves.
    ///
    /// # Errors
    /// An object cannot be read or written; [`Error::Git`] when git finds fault with the copy.
    pub fn publish(&self, store: &Store, run: &RunId, task: &TaskId, candidate: &Candidate) -> Result<()> {
        let reader = store.reader();
        let (commit, parent) = (oid::parse(&candidate.commit)?, oid::parse(&candidate.parent)?);
        let mut pack = KeptPack::new(store)?;
        copy::copy_tree(&reader, &mut pack, reader.tree_of(commit)?, Some(reader.tree_of(parent)?))?;
        let mut buf = Vec::new();
        reader.need(commit, Kind::Commit, &mut buf)?;
        pack.put(Kind::Commit, &buf)?;
        pack.finish(self.git(), self.root(), &landing_mark(run, task))
    }

    /// Moves the target from `old` to `new`, which must be published, or tells why not.
    ///
    /// # Errors
    /// Git fails in a way that says nothing about the target.
    pub fn move_target(&self, store: &Store, step: &Move) -> Result<MoveOutcome> {
        let lock = store.lock()?;
        let full = format!("refs/heads/{}", step.target);
        let found = self.ref_tip(&full)?.map(oid::of);
        if found.as_ref() == Some(&step.new) {
            self.let_go(&step.run, &step.task)?;
            return Ok(MoveOutcome::Moved);
        }
        if found != step.old {
            return Ok(MoveOutcome::NotAtOld { found });
        }
        let outcome = match self.holders(&step.target)?.as_slice() {
            [] => self.swap(&full, step, &lock)?,
            [Worktree { path, busy: None, .. }] => self.fast_forward(path.clone(), step, &lock)?,
            [first, ..] => {
                let why =
                    first.busy.map_or("several checkouts hold it".to_owned(), |what| format!("a {what} holds it"));
                let command = match first.busy {
                    Some(FOLDER_GONE) => {
                        without_its_worktree(self.root(), &first.path, first.is_locked, &command(step))
                    }
                    _ => command(step),
                };
                MoveOutcome::CheckedOut { path: first.path.clone(), command, why }
            }
        };
        if outcome == MoveOutcome::Moved {
            self.let_go(&step.run, &step.task)?;
        }
        Ok(outcome)
    }

    /// Leaves what a task has published to the user's garbage collection: its target names it, or it is not to land any more.
    ///
    /// # Errors
    /// The repository cannot be written.
    pub fn let_go(&self, run: &RunId, task: &TaskId) -> Result<()> {
        kept_pack::release(&self.objects_dir(), &landing_mark(run, task))
    }

    fn swap(&self, full: &str, step: &Move, lock: &Lock) -> Result<MoveOutcome> {
        let old = step.old.as_ref().map_or_else(|| "0".repeat(40), |old| old.as_str().to_owned());
        let left = self.common_dir().join(format!("{full}.lock"));
        let was_locked = self.is_locked_for(&left, step, false)?;
        let answer = self
            .git()
            .in_checkout(self.root())
            .durably()
            .args(["update-ref", "--create-reflog", "-m"])
            .arg(format!("outlast: land {}", step.task))
            .args([full, step.new.as_str(), &old])
            .holding(lock)?
            .run()?;
        if answer.code() == Some(0) {
            return Ok(MoveOutcome::Moved);
        }
        if answer.code().is_none() && !was_locked {
            self.is_locked_for(&left, step, true)?;
        }
        let found = self.ref_tip(full)?.map(oid::of);
        if found == step.old { Err(answer.into_error()) } else { Ok(MoveOutcome::NotAtOld { found }) }
    }

    /// Whether the target is locked, once a lock is gone that a git of ours has left which was killed: nobody else would
    /// write this commit there, and none of ours runs while we hold the store. `or_empty` where it was made just now.
    fn is_locked_for(&self, left: &Path, step: &Move, or_empty: bool) -> Result<bool> {
        let Some(bytes) = durable::read(left)? else { return Ok(false) };
        let is_ours = bytes.trim() == step.new.as_str().as_bytes() || or_empty && bytes.is_empty();
        if is_ours {
            durable::remove(left)?;
        }
        Ok(!is_ours)
    }

    fn fast_forward(&self, path: PathBuf, step: &Move, lock: &Lock) -> Result<MoveOutcome> {
        let orig_head = self.git_path(&path, "ORIG_HEAD")?;
        let before = durable::read(&orig_head)?;
        let index_lock = self.git_path(&path, "index.lock")?;
        let was_locked = index_lock.exists();
        let was_staged = self.has_staged(&path, step)?;
        let answer = self
            .git()
            .in_checkout(&path)
            .durably()
            .config("merge.verifySignatures", "false")
            .config("submodule.recurse", "false")
            .env("GIT_REFLOG_ACTION", format!("outlast: land {}", step.task))
            .args(["merge", "--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-stat", "--quiet"])
            .arg(step.new.as_str())
            .holding(lock)?
            .run()?;
        let now = self.ref_tip(&format!("refs/heads/{}", step.target))?.map(oid::of);
        if now.as_ref() == Some(&step.new) {
            return Ok(MoveOutcome::Moved);
        }
        // Git notes the tip there before it looks whether it can go on; a refusal must leave no trace.
        match before {
            Some(bytes) if durable::read(&orig_head)?.as_ref() != Some(&bytes) => {
                durable::write(&orig_head, &bytes, 0o644)?;
            }
            Some(_) => {}
            None => durable::remove(&orig_head)?,
        }
        if answer.code().is_some() {
            // A branch or HEAD that is locked: git finds out when all is written, and leaves it so.
            let is_left = !was_staged && self.has_staged(&path, step)?;
            if is_left && !self.take_back(&path, step, lock)? {
                let lock = (!was_locked && index_lock.exists()).then_some(index_lock);
                let command = self.finishing_command(&path, step, lock.as_deref())?;
                let why = format!(
                    "{}; what it had written is still there, and the command puts it into the stash first",
                    first_line(&answer.stderr())
                );
                return Ok(MoveOutcome::CheckedOut { path, command, why });
            }
            let command = self.finishing_command(&path, step, None)?;
            return Ok(MoveOutcome::CheckedOut { path, command, why: answer.stderr() });
        }
        let lock = (!was_locked && index_lock.exists()).then_some(index_lock);
        let command = self.finishing_command(&path, step, lock.as_deref())?;
        let why =
            "git was ended from outside while it moved that checkout, and left it in between; the command puts what \
                   it had written into the stash, with whatever you have changed in the same files since, and lands"
                .to_owned();
        Ok(MoveOutcome::CheckedOut { path, command, why })
    }

    /// Whether the index of a checkout holds what a landing changes as it is after it.
    fn has_staged(&self, checkout: &Path, step: &Move) -> Result<bool> {
        let Some(old) = &step.old else { return Ok(false) };
        let git = || self.git().in_checkout(checkout);
        let names = ["--cached", "-z", "--no-renames", "--name-only"];
        let to_come = git().args(["diff-index"]).args(names).arg(step.new.as_str()).ok()?;
        let to_come: BTreeSet<&[u8]> = to_come.split(|&byte| byte == 0).filter(|path| !path.is_empty()).collect();
        let changed = git()
            .args(["diff-tree", "-r", "-z", "--no-renames", "--name-only", old.as_str(), step.new.as_str()])
            .ok()?;
        let mut changed = changed.split(|&byte| byte == 0).filter(|path| !path.is_empty()).peekable();
        Ok(changed.peek().is_some() && changed.all(|path| !to_come.contains(path)))
    }

    /// Takes back what git has written into a checkout whose branch it could then not move; whether that is done. Git looks
    /// again that each file is as it wrote it: nothing that a person has done since is touched, and then nothing else is, either.
    fn take_back(&self, checkout: &Path, step: &Move, lock: &Lock) -> Result<bool> {
        let Some(old) = &step.old else { return Ok(false) };
        let answer = self
            .git()
            .in_checkout(checkout)
            .durably()
            .config("submodule.recurse", "false")
            .args(["read-tree", "-m", "-u", step.new.as_str(), old.as_str()])
            .holding(lock)?
            .run()?;
        Ok(answer.code() == Some(0))
    }

    /// The command that lands where something is in the way in a checkout: what a person has there, or what a git had written
    /// that was ended in the midst (it looks that all is as in the commit before it writes any). A person may have edited that
    /// since, and so nothing is removed: it is stashed, and all else they have stays where it is.
    fn finishing_command(&self, checkout: &Path, step: &Move, lock: Option<&Path>) -> Result<String> {
        let mut commands = Vec::new();
        if let Some(lock) = lock {
            commands.push(format!("rm -f {}", quoted(&lock.display().to_string())));
        }
        let (away, back) = self.in_the_way(checkout, step)?.commands(checkout);
        commands.extend(away);
        commands.push(command(step));
        let back = back.map(|back| format!("    # what was yours there, as it was: {back}"));
        Ok(commands.join(" && ") + &back.unwrap_or_default())
    }

    /// Tells where a target stands after a crash during `step`.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn target_state(&self, step: &Move) -> Result<TargetState> {
        let full = format!("refs/heads/{}", step.target);
        let tip = self.ref_tip(&full)?;
        let public = tip.map(oid::of);
        if public == step.old {
            return Ok(TargetState::AtOld);
        }
        let new = oid::parse(&step.new)?;
        let landed = match tip {
            Some(tip) if tip == new => true,
            Some(tip) => {
                let since = step.old.as_ref().map(oid::parse).transpose()?;
                self.find_landing(tip, since, Some(new), &step.run, &step.task)?.is_some()
                    || self.reflog_has(&full, &step.new)?
            }
            None => false,
        };
        Ok(if landed { TargetState::Landed } else { TargetState::Moved { tip: public } })
    }

    /// The commit with the trailers of a task's landing among those of `target` since `since`, if there is one.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn landed_commit(&self, run: &RunId, task: &TaskId, target: &str, since: &Oid) -> Result<Option<Oid>> {
        let Some(tip) = self.ref_tip(&format!("refs/heads/{target}"))? else { return Ok(None) };
        Ok(self.find_landing(tip, Some(oid::parse(since)?), None, run, task)?.map(oid::of))
    }

    /// The tasks of a run that the trailers of commits on `target` name, among those since `since`: what was rebased, amended
    /// or picked still says what it is.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn tasks_landed(&self, run: &RunId, target: &str, since: &Oid) -> Result<BTreeSet<TaskId>> {
        let Some(tip) = self.ref_tip(&format!("refs/heads/{target}"))? else { return Ok(BTreeSet::new()) };
        let repo = self.gix()?;
        let failed = |e: gix::Error| Error::object(tip, e);
        let (ours, lead) = (run_trailer(run), task_trailer(&TaskId::new("")));
        let mut found = BTreeSet::new();
        for info in repo.rev_walk([tip]).with_hidden([oid::parse(since)?]).all().map_err(failed)?.take(SEARCH_MAX) {
            let commit = repo.find_commit(info.map_err(failed)?.id).map_err(failed)?;
            let message = String::from_utf8_lossy(commit.message_raw().map_err(failed)?).into_owned();
            if message.lines().any(|line| line == ours) {
                found.extend(
                    message
                        .lines()
                        .filter_map(|line| line.strip_prefix(lead.trim_end()))
                        .map(|id| TaskId::new(id.trim())),
                );
            }
        }
        Ok(found)
    }

    /// The first of `new` and the commits with the landing's trailers among the commits since the old tip.
    fn find_landing(
        &self,
        tip: ObjectId,
        since: Option<ObjectId>,
        new: Option<ObjectId>,
        run: &RunId,
        task: &TaskId,
    ) -> Result<Option<ObjectId>> {
        let repo = self.gix()?;
        let failed = |e: gix::Error| Error::object(tip, e);
        let walk = repo.rev_walk([tip]).with_hidden(since).all().map_err(failed)?;
        let lines = [run_trailer(run), task_trailer(task)];
        for info in walk.take(SEARCH_MAX) {
            let id = info.map_err(failed)?.id;
            let commit = repo.find_commit(id).map_err(failed)?;
            let message = String::from_utf8_lossy(commit.message_raw().map_err(failed)?).into_owned();
            if Some(id) == new || lines.iter().all(|line| message.lines().any(|l| l == line)) {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    fn reflog_has(&self, full: &str, new: &Oid) -> Result<bool> {
        let log = durable::read(&self.common_dir().join("logs").join(full))?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&log).lines().any(|line| line.split(' ').nth(1) == Some(new.as_str())))
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end_matches('.')
}

/// What the `.keep` of a landing says.
fn landing_mark(run: &RunId, task: &TaskId) -> String {
    format!("outlast landing {run} {}", task.slug())
}

/// The command that lands it, once nothing is in the way. What a person has done since is in the target then, and so not this
/// very commit is: it is made anew.
fn command(step: &Move) -> String {
    format!("outlast land --run {} {}", word(step.run.as_str()), word(step.task.as_str()))
}
