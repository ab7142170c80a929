//! Requests that wait: their bodies lie in one file without a name until they go on, so that whoever waits takes no memory.
//!
//! Nothing of it is a record: who waits asks the next process anew, and the file goes with this one. It is one file for all,
//! since a process may open few.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, fault};

/// Its name, for the moment in which it has one.
const NAME: &str = "aside";

/// The file, and who lies where in it.
#[derive(Debug)]
pub(super) struct Shelf {
    path: PathBuf,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// There while anything lies in it.
    file: Option<Arc<File>>,
    /// Where each one begins and ends, by its begin.
    taken: BTreeMap<u64, u64>,
}

/// A body that was put aside; dropped, its place is another's.
#[derive(Debug)]
pub struct Aside {
    shelf: Arc<Shelf>,
    file: Arc<File>,
    at: u64,
    len: usize,
}

impl Shelf {
    /// One in the folder of the spool, which is this process's own.
    pub(super) fn new(folder: &std::path::Path) -> Self {
        Self { path: folder.join(NAME), places: Mutex::default() }
    }

    /// Puts a body aside.
    pub(super) fn put(self: &Arc<Self>, body: &[u8]) -> Result<Aside, Error> {
        // Of nothing, the place is nobody else's either.
        let (file, at) = self.reserve(body.len().max(1) as u64)?;
        let aside = Aside { shelf: Arc::clone(self), file, at, len: body.len() };
        aside.file.write_all_at(body, at).map_err(|error| fault::io(&self.path, "write", error))?;
        Ok(aside)
    }

    /// The first place that is large enough.
    fn reserve(&self, len: u64) -> Result<(Arc<File>, u64), Error> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &places.file {
            Some(file) => Arc::clone(file),
            None => {
                let opened = File::options().read(true).write(true).create(true).truncate(true).open(&self.path);
                let file = opened.map_err(|error| fault::io(&self.path, "create", error))?;
                fs::remove_file(&self.path).map_err(|error| fault::io(&self.path, "remove", error))?;
                Arc::clone(places.file.insert(Arc::new(file)))
            }
        };
        let mut at = 0;
        for (begins, ends) in &places.taken {
            if begins - at >= len {
                break;
            }
            at = *ends;
        }
        places.taken.insert(at, at + len);
        Ok((file, at))
    }

    fn free(&self, at: u64) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.taken.remove(&at);
        match places.taken.last_key_value() {
            // Its room on the disk is given back with it.
            None => places.file = None,
            Some((_, ends)) => {
                let ends = *ends;
                if let Some(file) = &places.file
                    && ends <= at
                    && let Err(error) = file.set_len(ends)
                {
                    tracing::debug!(%error, "the room of what was put aside is given back later");
                }
            }
        }
    }
}

impl Aside {
    /// How long the body is, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Reads the body into a room of its length.
    ///
    /// # Errors
    /// [`Error::Io`] where the disk does not give it back.
    pub fn read(&self, body: &mut [u8]) -> Result<(), Error> {
        self.file.read_exact_at(body, self.at).map_err(|error| fault::io(&self.shelf.path, "read", error))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.shelf.free(self.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len_of(shelf: &Shelf) -> Option<u64> {
        let places = shelf.places.lock().unwrap();
        places.file.as_ref().map(|file| file.metadata().unwrap().len())
    }

    #[test]
    fn each_body_comes_back_as_it_was_and_its_place_is_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Shelf::new(folder.path()));
        let body = |byte: u8, len: usize| vec![byte; len];
        let (first, second) = (shelf.put(&body(1, 5000)).unwrap(), shelf.put(&body(2, 3000)).unwrap());
        let third = shelf.put(&body(3, 100)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
        drop(first);
        let (fourth, none) = (shelf.put(&body(4, 4000)).unwrap(), shelf.put(b"").unwrap());
        let fifth = shelf.put(&body(5, 1001)).unwrap();
        let read = |aside: &Aside| {
            let mut body = vec![0; aside.len()];
            aside.read(&mut body).unwrap();
            body
        };
        for (aside, expected) in [(&second, body(2, 3000)), (&third, body(3, 100)), (&fourth, body(4, 4000))] {
            assert_eq!(read(aside), expected);
        }
        assert!(none.is_empty());
        assert_eq!((read(&none), read(&fifth)), (vec![], body(5, 1001)));
        assert_eq!(len_of(&shelf), Some(8100 + 1001));
        drop((fifth, third));
        assert_eq!(len_of(&shelf), Some(8000), "the end is given back");
        drop((second, fourth, none));
        assert_eq!(len_of(&shelf), None);
    }
}
