//! Damage of our store that an operation has met with: all of the store is looked through then, once for each failure, what can
//! be mended is, and the operation is done again. A sound store is never looked through.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

use outlast_core::Core;
use outlast_git::Error as Git;

use crate::context::Context;
use crate::diagnose::held_lock;
use crate::error::Error;
use crate::repositories::Repositories;
use crate::{emptied_refs, results_again};

/// What the store was looked through for.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    times: u64,
    failures: BTreeSet<String>,
}

impl Repositories {
    /// How often the store was looked through.
    fn times_looked(&self) -> u64 {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).times
    }

    /// Looks the store through for what an operation has failed with that began when it had been looked through `before` times.
    /// Whether that is worth doing again: not, where nothing was found, or the same was looked for already.
    fn look_through_for(&self, core: &Core, failure: String, before: u64) -> Result<bool, Error> {
        // Others that have failed wait, and are done again.
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        if looks.times > before {
            return Ok(true);
        }
        if !looks.failures.insert(failure) {
            return Ok(false);
        }
        looks.times += 1;
        self.look_through(core)
    }

    /// Looks the store through and mends what can be; whether there was anything.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub(crate) fn look_through(&self, core: &Core) -> Result<bool, Error> {
        let found = self.store().look_through(self.user(), &emptied_refs::needed(core))?;
        let journal = self.home().journal();
        let are_refs = emptied_refs::mend_all(self.store(), &journal)?;
        results_again::mend(self, core);
        emptied_refs::forget_lost(self.store(), &journal)?;
        tracing::warn!(store = %self.store().path().display(), found, are_refs, "the store was looked through");
        Ok(found || are_refs)
    }
}

impl Context {
    /// As [`Context::blocking`], over the repositories. What fails for damage of the store is done again once that is mended.
    pub(crate) async fn in_git<T: Send + 'static>(
        &self,
        work: impl Fn(&Repositories) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let git = Arc::clone(&self.git);
        let began = move || {
            let before = git.times_looked();
            Ok((before, work(&git), work))
        };
        let (before, came_of_it, work) = self.blocking(began).await?;
        let Err(error) = came_of_it else { return came_of_it };
        let Some(failure) = damage(&error) else { return Err(error) };
        if self.obstacle().is_some() {
            return Err(error);
        }
        let core = self.engine.look(Core::clone).await?;
        let git = Arc::clone(&self.git);
        let again = move || match git.look_through_for(&core, failure, before) {
            Ok(true) => work(&git),
            Ok(false) => Err(error),
            // It says in many ways that the disk is full.
            Err(full) if full.is_no_space() => Err(full),
            Err(failed) => {
                tracing::warn!(error = %failed, "the store cannot be looked through");
                Err(error)
            }
        };
        let came_of_it = self.blocking(again).await?;
        self.note_mended_store();
        Ok(came_of_it)
    }

    /// Whether something has failed for what our store has lost: it was looked for everywhere by now, and no waiting helps.
    pub(crate) fn is_lost_for_good(&self, error: &Error) -> bool {
        damage(error).is_some() && self.git.store().has_lost()
    }
}

/// What an error that may be damage of the store is about; nothing for one that is not.
fn damage(error: &Error) -> Option<String> {
    match error {
        Error::Git(Git::Object { oid, .. }) => Some(oid.clone()),
        // Git says in many ways that it cannot read an object.
        Error::Git(Git::Git { command, stderr, .. }) if !error.is_no_space() && held_lock(stderr).is_none() => {
            let command = command.split(' ').next().unwrap_or_default();
            Some(format!("{command}: {}", stderr.lines().next().unwrap_or_default()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_full_disk_nor_a_lock_is_damage_and_the_same_object_is_the_same_failure() {
        let git = |stderr: &str| {
            let (command, status) = ("pack-objects /tmp/1".to_owned(), "exit status: 128".to_owned());
            damage(&Error::Git(Git::Git { command, status, stderr: stderr.to_owned() }))
        };
        assert_eq!(git("fatal: write error: No space left on device"), None);
        assert_eq!(git("fatal: Unable to create '/r/.git/index.lock': File exists."), None);
        assert_eq!(git("fatal: bad object 17\nand more"), Some("pack-objects: fatal: bad object 17".to_owned()));
        let object = |why: &str| damage(&Error::Git(Git::Object { oid: "17".to_owned(), why: why.to_owned() }));
        assert_eq!((object("it is missing"), object("garbage")), (Some("17".to_owned()), Some("17".to_owned())));
        assert_eq!(damage(&Error::Stopped), None);
    }
}
