//! Looking at a whole tree ahead of the walk, on several threads: most of it did not change.
//!
//! Every known folder is listed, and every known file in it looked at. What holds exactly what is known, as it was read, the
//! walk passes over; all that is new, gone, changed or odd is for the walk to tell.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use gix::bstr::{BStr, BString, ByteSlice};

use super::{DEPTH_MAX, storable};
use crate::inside::{Folder, Hint};
use crate::scan::index::Index;
use crate::tree::join;

/// How many files make a thread of its own worth starting.
const FILES_PER_THREAD: usize = 500;
/// Of two threads on a core, one can wait for the disk.
const THREADS_PER_CORE: usize = 2;
const THREADS_MAX: usize = 8;

/// What was seen.
pub(crate) struct Ahead {
    /// Of each entry whether its file certainly is as it was read; `false` only means: look again.
    unchanged: Vec<AtomicBool>,
    /// The folders in which, or beneath which, something may differ.
    differ: HashSet<BString>,
}

impl Ahead {
    /// Looks at the tree, and does something else meanwhile.
    pub(crate) fn look_while<T>(root: &Folder, index: &Index, meanwhile: impl FnOnce() -> T) -> (Self, T) {
        if index.len() < FILES_PER_THREAD {
            return (Self::look(root, index), meanwhile());
        }
        std::thread::scope(|scope| {
            let ahead = scope.spawn(|| Self::look(root, index));
            let done = meanwhile();
            // Where nothing was seen ahead, the walk sees to everything.
            (ahead.join().unwrap_or_else(|_| Self { unchanged: unseen(index), differ: HashSet::new() }), done)
        })
    }

    /// Looks at the tree.
    pub(crate) fn look(root: &Folder, index: &Index) -> Self {
        let unchanged = unseen(index);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (index.len() / FILES_PER_THREAD).min(THREADS_PER_CORE * cores).min(THREADS_MAX);
        let first = Unit { above: None, path: BString::default(), range: 0..index.len(), depth: 0 };
        let work = Work { root, index, unchanged: &unchanged, queue: Queue::new(first) };
        let mut found = Vec::new();
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| work.until_done())).collect();
            found.extend(work.until_done());
            // What a thread that panicked has seen is not known to be whole: all of it is walked.
            found
                .extend(others.into_iter().flat_map(|other| other.join().unwrap_or_else(|_| vec![BString::default()])));
        });
        let mut differ = HashSet::from([BString::default()]);
        for folder in found {
            let mut at = folder.as_bstr();
            while differ.insert(at.to_owned())
                && let Some(slash) = at.rfind_byte(b'/')
            {
                at = at[..slash].as_bstr();
            }
        }
        Self { unchanged, differ }
    }

    /// Whether the file of an entry certainly is as it was read.
    pub(super) fn is_unchanged(&self, at: usize) -> bool {
        self.unchanged[at].load(Ordering::Relaxed)
    }

    /// Whether a folder, whose paths are at `range`, held exactly these, as they were read.
    pub(super) fn is_whole(&self, folder: &BString, range: Range<usize>) -> bool {
        !range.is_empty() && !self.differ.contains(folder) && range.into_iter().all(|at| self.is_unchanged(at))
    }
}

/// Of each entry, that its file was not looked at.
fn unseen(index: &Index) -> Vec<AtomicBool> {
    (0..index.len()).map(|_| AtomicBool::new(false)).collect()
}

/// A folder to be looked at.
struct Unit {
    /// The folder that it is in; the root has none.
    above: Option<Arc<Folder>>,
    path: BString,
    /// Where the index has what lies beneath.
    range: Range<usize>,
    depth: usize,
}

/// A name in a folder, and what the index has of it.
type Named<'a, T> = (&'a BStr, T);

struct Work<'a> {
    root: &'a Folder,
    index: &'a Index,
    unchanged: &'a [AtomicBool],
    queue: Queue,
}

impl Work<'_> {
    /// Looks at folders until there is none left; tells in which something differs.
    fn until_done(&self) -> Vec<BString> {
        let mut differ = Vec::new();
        while let Some((unit, mut busy)) = self.queue.next() {
            if !self.look_at(&unit, &mut busy.more) {
                differ.push(unit.path);
            }
        }
        differ
    }

    /// Looks at one folder, and has those in it looked at; whether it holds exactly what is known.
    fn look_at(&self, unit: &Unit, more: &mut Vec<Unit>) -> bool {
        let opened = match &unit.above {
            None => self.root.descend(BStr::new("")),
            Some(above) => {
                let name = unit.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
                above.folder(unit.path[name..].as_bstr())
            }
        };
        let Ok(folder) = opened.map(Arc::new) else { return false };
        let Ok(names) = folder.names() else { return false };
        let (files, folders) = self.known(unit);
        let (mut files, mut folders) = (files.into_iter().peekable(), folders.into_iter().peekable());
        let mut is_whole = unit.depth < DEPTH_MAX;
        for (name, hint) in &names {
            let name = BStr::new(name.as_encoded_bytes());
            if *hint == Hint::Folder {
                while folders.next_if(|(known, _)| *known < name).is_some() {
                    is_whole = false;
                }
                match folders.next_if(|(known, _)| *known == name) {
                    Some((_, range)) if storable(name) => {
                        let (above, path) = (Some(Arc::clone(&folder)), join(unit.path.as_bstr(), name));
                        more.push(Unit { above, path, range, depth: unit.depth + 1 });
                    }
                    _ => is_whole = false,
                }
                continue;
            }
            while files.next_if(|(known, _)| *known < name).is_some() {
                is_whole = false;
            }
            match files.next_if(|(known, _)| *known == name) {
                Some((_, at)) if folder.stat(name).is_ok_and(|stat| self.index.known(at).is_unchanged(&stat)) => {
                    self.unchanged[at].store(true, Ordering::Relaxed);
                }
                _ => is_whole = false,
            }
        }
        is_whole && files.peek().is_none() && folders.peek().is_none()
    }

    /// The known files in a folder with their places, and the known folders with those of all beneath, by name.
    fn known(&self, unit: &Unit) -> (Vec<Named<'_, usize>>, Vec<Named<'_, Range<usize>>>) {
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        let lead = if unit.path.is_empty() { 0 } else { unit.path.len() + 1 };
        let mut at = unit.range.start;
        while at < unit.range.end {
            let path = self.index.path(at);
            match path[lead..].find_byte(b'/') {
                None => {
                    files.push((path[lead..].as_bstr(), at));
                    at += 1;
                }
                Some(slash) => {
                    let prefix = &path[..=lead + slash];
                    let end = self.end_of(prefix, at..unit.range.end);
                    folders.push((path[lead..lead + slash].as_bstr(), at..end));
                    at = end;
                }
            }
        }
        // A folder stands where its name with a slash does, among others of its kind.
        folders.sort_unstable_by_key(|(name, _)| *name);
        (files, folders)
    }

    /// Where the paths that begin with `prefix` end, of which the first in the range is one.
    fn end_of(&self, prefix: &[u8], range: Range<usize>) -> usize {
        let (mut begins, mut beyond) = (range.start, range.end);
        while beyond - begins > 1 {
            let middle = begins + (beyond - begins) / 2;
            if self.index.path(middle).starts_with(prefix) {
                begins = middle;
            } else {
                beyond = middle;
            }
        }
        beyond
    }
}

/// The folders still to be looked at, for all threads. The newest comes first: so few are open at once.
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    units: Vec<Unit>,
    /// How many threads are at one, and may come with more.
    busy: usize,
    /// How many wait for those.
    waiting: usize,
}

/// A thread that is at a unit.
struct Busy<'a> {
    queue: &'a Queue,
    more: Vec<Unit>,
}

impl Queue {
    /// One with a first unit.
    fn new(first: Unit) -> Self {
        Self { state: Mutex::new(State { units: vec![first], busy: 0, waiting: 0 }), changed: Condvar::new() }
    }

    /// The next unit, waiting for one while there may be more; nothing once all is done.
    fn next(&self) -> Option<(Unit, Busy<'_>)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(unit) = state.units.pop() {
                state.busy += 1;
                return Some((unit, Busy { queue: self, more: Vec::new() }));
            }
            if state.busy == 0 {
                return None;
            }
            state.waiting += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl Drop for Busy<'_> {
    /// Also where the thread panics: nobody waits for what it would have come with.
    fn drop(&mut self) {
        let mut state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy -= 1;
        state.units.append(&mut self.more);
        let is_news = state.waiting > 0 && (state.busy == 0 || !state.units.is_empty());
        drop(state);
        if is_news {
            self.queue.changed.notify_all();
        }
    }
}
