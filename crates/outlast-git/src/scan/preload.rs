//! Looking at every known file once, on several threads, before the walk: most of a tree did not change.

use gix::bstr::{BStr, ByteSlice};

use crate::inside::Folder;
use crate::scan::index::Index;

/// How many files make a thread of its own worth starting.
const FILES_PER_THREAD: usize = 500;
const THREADS_MAX: usize = 8;

/// Tells for each entry of `index` whether its file is certainly as it was read; `false` only means: look again.
pub(crate) fn unchanged(root: &Folder, index: &Index) -> Vec<bool> {
    let mut found = vec![false; index.len()];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (index.len() / FILES_PER_THREAD).min(cores).min(THREADS_MAX);
    if threads < 2 {
        return found;
    }
    let share = index.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (n, part) in found.chunks_mut(share).enumerate() {
            scope.spawn(move || look(root, index, n * share, part));
        }
    });
    found
}

/// Looks at the entries from `first` on; they are in order, so that a folder is opened once.
fn look(root: &Folder, index: &Index, first: usize, found: &mut [bool]) {
    let mut at: &BStr = BStr::new("");
    let mut folder = root.descend(at).ok();
    for (offset, found) in found.iter_mut().enumerate() {
        let path = index.path(first + offset);
        let (above, name) = path.rsplit_once_str("/").unwrap_or((b"", path));
        if above != at {
            at = above.as_bstr();
            folder = root.descend(at).ok();
        }
        let stat = folder.as_ref().and_then(|folder| folder.stat(name.as_bstr()).ok());
        let known = index.get(path, first + offset);
        *found = stat.zip(known).is_some_and(|(stat, (_, known))| known.is_unchanged(&stat));
    }
}
