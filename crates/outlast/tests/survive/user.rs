//! What of a repository is the user's, byte for byte: their files, index, HEAD, config, stash, refs and reflogs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_testkit::fixture::Repo;

/// Everything of a repository that only its user may change, with what is in it.
pub(crate) struct Snapshot {
    root: PathBuf,
    /// Besides `refs/outlast/`, what may change: the branch that results land on.
    target: Option<String>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Snapshot {
    /// Makes the checkout as lived-in as people's are, and remembers all of it. `target` is a branch that a landing may
    /// move; a name that ends in `/` stands for all branches below it.
    pub(crate) fn of_lived_in(repo: &Repo, target: &str) -> Self {
        repo.write("stashed.txt", "put away\n").unwrap();
        repo.git(&["stash", "push", "--quiet", "--include-untracked"]).unwrap();
        repo.git(&["branch", "feature"]).unwrap();
        repo.write("README.md", "# Parts\nchanged, not staged\n").unwrap();
        repo.write("staged.txt", "staged\n").unwrap();
        repo.git(&["add", "staged.txt"]).unwrap();
        repo.write("untracked.txt", "untracked\n").unwrap();
        Self::of(repo, Some(target))
    }

    /// Remembers what there is.
    pub(crate) fn of(repo: &Repo, target: Option<&str>) -> Self {
        let mut snapshot =
            Self { root: repo.dir().to_owned(), target: target.map(str::to_owned), files: BTreeMap::new() };
        snapshot.files = snapshot.read();
        snapshot
    }

    /// Checks that every byte is as it was, nothing is gone and nothing is new.
    #[track_caller]
    pub(crate) fn is_untouched(&self, when: &str) {
        let now = self.read();
        let paths = self.files.keys().chain(now.keys());
        let mut changed: Vec<&PathBuf> = paths.filter(|path| self.files.get(*path) != now.get(*path)).collect();
        changed.sort();
        changed.dedup();
        assert!(changed.is_empty(), "{when}: these are not as they were: {changed:#?}");
    }

    fn read(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        self.collect(&self.root, &mut files);
        files
    }

    fn collect(&self, folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&self.root).unwrap().to_owned();
            if self.may_change(&name) {
                continue;
            }
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                self.collect(&path, files);
            } else if kind.is_symlink() {
                files.insert(name, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
            } else {
                files.insert(name, fs::read(&path).unwrap());
            }
        }
    }

    /// Objects only ever come in addition; pins and the target are what outlast writes.
    fn may_change(&self, path: &Path) -> bool {
        let fixed = [".git/objects", ".git/refs/outlast", ".git/logs/refs/outlast"];
        let of_target = |target: &String| {
            let name = target.trim_end_matches('/');
            [format!(".git/refs/heads/{name}"), format!(".git/logs/refs/heads/{name}")]
        };
        let targets = self.target.iter().flat_map(of_target);
        fixed.map(str::to_owned).into_iter().chain(targets).any(|may| path.starts_with(may))
    }
}
