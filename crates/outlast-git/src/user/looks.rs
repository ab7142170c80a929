//! What the user's repository has: which commits are in a history, which branch is where, what is in no commit.

use std::collections::BTreeSet;
use std::path::Path;

use gix::objs::tree::EntryKind;
use outlast_core::{Oid, RunId, TaskId};

use crate::candidate::{run_trailer, task_trailer};
use crate::{Kind, Result, UserRepo, oid, workspace};

impl UserRepo {
    /// Those of these commits that are not in the history of `tip`, or are not in the repository at all.
    ///
    /// # Errors
    /// The repository cannot be read, or has no such tip.
    pub fn not_in_history(&self, tip: &Oid, commits: &[Oid]) -> Result<BTreeSet<Oid>> {
        let repo = self.gix()?;
        let mut absent = BTreeSet::new();
        let mut asked = String::new();
        for commit in commits {
            if oid::parse(commit).is_ok_and(|id| repo.has_object(id)) {
                asked.push_str(&format!("{commit}\n"));
            } else {
                absent.insert(commit.clone());
            }
        }
        if asked.is_empty() {
            return Ok(absent);
        }
        asked.push_str(&format!("^{tip}\n"));
        let said = self.git.in_checkout(&self.root).args(["rev-list", "--stdin"]).stdin(asked).ok()?;
        let outside: BTreeSet<&[u8]> = said.split(|&byte| byte == b'\n').collect();
        absent.extend(commits.iter().filter(|commit| outside.contains(commit.as_str().as_bytes())).cloned());
        Ok(absent)
    }

    /// Those of these commits, each on top of another, whose paths are in `tip` as the newest of them left them: what a
    /// squashed merge or a rebase has taken over is there, although its commits are not.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn taken_over(&self, tip: &Oid, commits: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>> {
        let repo = self.gix()?;
        let there = |commit: &&Oid| oid::parse(commit).is_ok_and(|id| repo.has_object(id));
        let asked: String = commits.iter().filter(there).map(|commit| format!("{commit}\n")).collect();
        let git = || self.git.in_checkout(&self.root);
        let is_asked = |line: &str| commits.iter().any(|commit| commit.as_str() == line);
        let order = git().args(["rev-list", "--topo-order", "--stdin", &format!("^{tip}")]).stdin(asked.clone());
        let order = if asked.is_empty() { Vec::new() } else { order.ok()? };
        let order = String::from_utf8_lossy(&order).into_owned();
        let Some(newest) = order.lines().find(|line| is_asked(line)) else { return Ok(BTreeSet::new()) };
        // Odd names are quoted by both in the same way.
        let differs = git().args(["diff", "--name-only", "--no-renames", newest, tip.as_str()]).ok()?;
        let differs: BTreeSet<&[u8]> = differs.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
        let changes = git().args(["diff-tree", "--stdin", "-r", "--root", "--name-only", "--no-renames"]).stdin(asked);
        let changes = changes.ok()?;
        let (mut taken, mut of) = (BTreeSet::new(), None);
        for line in changes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if let Some(commit) = std::str::from_utf8(line).ok().filter(|line| is_asked(line)) {
                of = Some(Oid::new(commit));
                taken.extend(of.clone());
            } else if let Some(commit) = of.as_ref().filter(|_| differs.contains(line)) {
                taken.remove(commit);
            }
        }
        Ok(taken)
    }

    /// The newest commit in the history of `tip` since `since` that has changed one of these paths.
    ///
    /// # Errors
    /// The repository cannot be read, or lacks one of them.
    pub fn last_change<'a>(
        &self,
        tip: &Oid,
        since: &Oid,
        paths: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Oid>> {
        let mut asked = b"--\n".to_vec();
        // No line holds a name with a line end in it.
        for path in paths.into_iter().filter(|path| !path.contains(&b'\n')) {
            asked.extend([path, b"\n"].concat());
        }
        let call = self.git.in_checkout(&self.root).args(["--literal-pathspecs", "rev-list", "-1", "--stdin"]);
        let said = call.arg(tip.as_str()).arg(format!("^{since}")).stdin(asked).ok()?;
        let found = String::from_utf8_lossy(&said).trim().to_owned();
        Ok((!found.is_empty()).then(|| Oid::new(found)))
    }

    /// The newest of these commits, none of which is in the history of `since`; nothing where none of them is here any more.
    ///
    /// # Errors
    /// The repository cannot be read, or lacks `since`.
    pub fn newest(&self, commits: &[Oid], since: &Oid) -> Result<Option<Oid>> {
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let list = ["rev-list", "--topo-order", "--ignore-missing", "-1", "--stdin"];
        let said =
            self.git.in_checkout(&self.root).args(list).arg(format!("^{since}")).stdin(asked.into_bytes()).ok()?;
        let found = String::from_utf8_lossy(&said).trim().to_owned();
        Ok((!found.is_empty()).then(|| Oid::new(found)))
    }

    /// Whether a commit in the history of a branch has been reverted there since, as git writes it, and that has not been
    /// reverted again.
    ///
    /// # Errors
    /// The repository cannot be read, or lacks one of them.
    pub fn is_reverted(&self, commit: &Oid, branch: &str) -> Result<bool> {
        let since = format!("{commit}..refs/heads/{branch}");
        let says = format!("--grep=This reverts commit {commit}");
        let log = ["log", "--no-show-signature", "--format=%H", "--fixed-strings", &says, &since, "--"];
        let said = self.git.in_checkout(&self.root).args(log).ok()?;
        for revert in String::from_utf8_lossy(&said).lines() {
            if !self.is_reverted(&Oid::new(revert), branch)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The tasks of a run that the trailers of commits in the history of `tip` name, among those since `since`.
    ///
    /// # Errors
    /// The repository cannot be read, or lacks one of them.
    pub fn tasks_in_history(&self, run: &RunId, tip: &Oid, since: &Oid) -> Result<BTreeSet<TaskId>> {
        let log = ["log", "-z", "--no-show-signature", "--format=%B", tip.as_str(), "--not", since.as_str()];
        let said = self.git.in_checkout(&self.root).args(log).ok()?;
        let (ours, lead) = (run_trailer(run), task_trailer(&TaskId::new("")));
        let of = |message: &str| {
            let is_of_it = message.lines().any(|line| line == ours);
            let tasks = message.lines().filter(|_| is_of_it).filter_map(|line| line.strip_prefix(lead.trim_end()));
            tasks.map(|id| TaskId::new(id.trim())).collect::<Vec<_>>()
        };
        Ok(String::from_utf8_lossy(&said).split('\0').flat_map(of).collect())
    }

    /// Whether the message of a commit names a task of a run, as that of a landing does; nothing where there is no such commit.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn names_task(&self, commit: &Oid, run: &RunId, task: &TaskId) -> Result<Option<bool>> {
        let (repo, id) = (self.gix()?, oid::parse(commit)?);
        if !repo.has_object(id) {
            return Ok(None);
        }
        let commit = repo.find_commit(id).map_err(|e| self.refused(e))?;
        let message = String::from_utf8_lossy(commit.message_raw().map_err(|e| self.refused(e))?).into_owned();
        let names = |wanted: &str| message.lines().any(|line| line == wanted);
        Ok(Some(names(&run_trailer(run)) && names(&task_trailer(task))))
    }

    /// The tip of a branch; nothing where there is no such branch.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<Oid>> {
        Ok(self.ref_tip(&format!("refs/heads/{branch}"))?.map(oid::of))
    }

    /// Whether the repository holds an object.
    pub fn holds(&self, object: &Oid) -> bool {
        let there = |id| self.gix().map(|repo| repo.has_object(id));
        oid::parse(object).and_then(there).unwrap_or(false)
    }

    /// What a path is in a commit; nothing where there is no file of that name.
    ///
    /// # Errors
    /// The repository cannot be read, or has no such commit.
    pub fn entry(&self, commit: &Oid, path: &str) -> Result<Option<Kind>> {
        let repo = self.gix()?;
        let commit = repo.find_commit(oid::parse(commit)?).map_err(|e| self.refused(e))?;
        let tree = commit.tree().map_err(|e| self.refused(e))?;
        let found = tree.lookup_entry_by_path(path).map_err(|e| self.refused(e))?;
        Ok(found.and_then(|entry| match entry.mode().kind() {
            EntryKind::Tree => None,
            EntryKind::Blob => Some(Kind::File),
            EntryKind::BlobExecutable => Some(Kind::Executable),
            EntryKind::Link => Some(Kind::Link),
            EntryKind::Commit => Some(Kind::Gitlink),
        }))
    }

    /// Whether a path is not the same in two commits.
    ///
    /// # Errors
    /// The repository cannot be read, or lacks one of them.
    pub fn differs(&self, before: &Oid, now: &Oid, path: &str) -> Result<bool> {
        let repo = self.gix()?;
        let entry = |commit: &Oid| {
            let tree = repo.find_commit(oid::parse(commit)?).map_err(|e| self.refused(e))?.tree();
            let found = tree.map_err(|e| self.refused(e))?.lookup_entry_by_path(path).map_err(|e| self.refused(e))?;
            Ok::<_, crate::Error>(found.map(|entry| (entry.mode(), entry.object_id())))
        };
        Ok(entry(before)? != entry(now)?)
    }

    /// Whether git ignores a path of the checkout that is in no index.
    ///
    /// # Errors
    /// Git refuses, or cannot be started.
    pub fn is_ignored(&self, path: &str) -> Result<bool> {
        let answer = self.git.in_checkout(&self.root).args(["check-ignore", "--quiet", "--", path]).read()?;
        match answer.code() {
            Some(0) => Ok(true),
            // 1: it is not (git-check-ignore).
            Some(1) => Ok(false),
            _ => Err(answer.into_error()),
        }
    }

    /// Whether `.worktreeinclude` brings an ignored file of the checkout into each workspace.
    ///
    /// # Errors
    /// Git refuses, or cannot be started.
    pub fn is_brought_along(&self, path: &str) -> Result<bool> {
        let named = workspace::include::named(self)?;
        Ok(named.iter().any(|named| named == path.as_bytes()))
    }

    /// What of the user's checkout is in no commit: paths that are changed, new or gone, as `git status` names them
    /// (ignored ones are not, and a new folder is one path).
    ///
    /// # Errors
    /// Git refuses, or cannot be started.
    pub fn uncommitted(&self) -> Result<Vec<String>> {
        let said = self.git.in_checkout(&self.root).args(["status", "--porcelain=v1", "-z", "--no-renames"]).ok()?;
        let lines = said.split(|&byte| byte == 0).filter(|line| line.len() > 3);
        Ok(lines.map(|line| String::from_utf8_lossy(&line[3..]).into_owned()).collect())
    }
}

/// Whether the repository with this git folder, whatever state it is in, holds an object; nothing where it cannot be read.
pub fn has_object(common_dir: &Path, object: &Oid) -> Option<bool> {
    let options = gix::open::Options::isolated().with(gix::sec::Trust::Full).open_path_as_is(true);
    let repo = gix::open_opts(common_dir, options).ok()?;
    Some(repo.has_object(oid::parse(object).ok()?))
}
