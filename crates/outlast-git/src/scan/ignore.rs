//! Which untracked paths git would ignore: the user's own patterns, then each folder's `.gitignore`, deepest last.

use std::path::{Path, PathBuf};

use gix::bstr::{BStr, ByteSlice};
use gix::glob::pattern::Case;
use gix::ignore::Search;

use crate::inside::Folder;

/// Largest `.gitignore` that is read, in bytes.
const FILE_LIMIT: u64 = 4 << 20;

/// A made-up root: patterns carry the folder they were written in relative to it.
const ROOT: &str = "/w";

/// The patterns that hold at the place a walk has come to.
pub(crate) struct Ignores {
    search: Search,
}

impl Ignores {
    /// Starts with the patterns that hold everywhere.
    pub(crate) fn new(excludes: &[u8]) -> Self {
        let mut ignores = Self { search: Search::default() };
        ignores.add(excludes, PathBuf::from("excludes"), None);
        ignores
    }

    fn add(&mut self, bytes: &[u8], source: PathBuf, root: Option<&Path>) {
        // Parsing bytes in memory cannot fail: the signature is that of the file-reading variant.
        let parse = gix::ignore::search::Ignore { support_precious: false };
        self.search.add_patterns_buffer(bytes, source, root, parse).ok();
    }

    /// Enters a folder that has a `.gitignore`, which counts until [`Ignores::leave`].
    pub(crate) fn enter(&mut self, folder: &Folder, path: &BStr) {
        let bytes = folder.read(b".gitignore".as_bstr(), FILE_LIMIT).unwrap_or_default();
        let source = Path::new(ROOT).join(path.to_path_lossy()).join(".gitignore");
        self.add(&bytes, source, Some(Path::new(ROOT)));
    }

    pub(crate) fn leave(&mut self) {
        self.search.patterns.pop();
    }

    /// Tells whether git would ignore `path` if it were untracked; folders above it have been asked before.
    pub(crate) fn matches(&self, path: &BStr, is_folder: bool) -> bool {
        let found = self.search.pattern_matching_relative_path(path, Some(is_folder), Case::Sensitive);
        found.is_some_and(|m| !m.pattern.is_negative())
    }
}
