//! What the user's repository has: which commits are in a history, which branch is where, what is in no commit.

use std::collections::BTreeSet;

use outlast_core::Oid;

use crate::{Result, UserRepo, oid};

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

    /// The tip of a branch; nothing where there is no such branch.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<Oid>> {
        Ok(self.ref_tip(&format!("refs/heads/{branch}"))?.map(oid::of))
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
