//! A workspace as it is on disk, whole, and a checkpoint of it as the store has it: for comparing the two byte by byte.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use outlast_testkit::fixture::Repo;

use crate::bench::Bench;

/// A shell command that leaves one of each kind of thing that a tree can hold. It needs the files of [`commit`].
pub(crate) const OF_ALL_KINDS: &str = r"mkdir -p deep/er hollow/inner && printf 'one\r\ntwo\r\n' > crlf.txt && printf '\000\377' > deep/er/bytes && printf 'true\n' > deep/er/tool && chmod +x deep/er/tool && ln -s ../crlf.txt deep/link && ln -s nowhere dangling && printf 'x\n' > 'Grüße 日本.md' && rm gone.md && rm was-link && mkdir was-link && touch was-link/empty && chmod -x was-tool";

/// What [`OF_ALL_KINDS`] leaves, apart from what is gone.
const KINDS: [(&str, Entry<&[u8]>); 10] = [
    ("Grüße 日本.md", Entry::File { bytes: b"x\n", executable: false }),
    ("crlf.txt", Entry::File { bytes: b"one\r\ntwo\r\n", executable: false }),
    ("dangling", Entry::Link(b"nowhere")),
    ("deep/er/bytes", Entry::File { bytes: b"\x00\xff", executable: false }),
    ("deep/er/tool", Entry::File { bytes: b"true\n", executable: true }),
    ("deep/link", Entry::Link(b"../crlf.txt")),
    ("hollow/inner", Entry::EmptyFolder),
    ("untouched/far/down", Entry::File { bytes: b"down\n", executable: false }),
    ("was-link/empty", Entry::File { bytes: b"", executable: false }),
    ("was-tool", Entry::File { bytes: b"true\n", executable: false }),
];

/// One thing in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry<B = Vec<u8>> {
    File { bytes: B, executable: bool },
    Link(B),
    EmptyFolder,
}

/// A file with this text.
pub(crate) fn file(text: &str) -> Entry {
    Entry::File { bytes: text.into(), executable: false }
}

/// Everything in a tree, by its path from the top.
pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// Commits what [`OF_ALL_KINDS`] takes away and changes, and something that it leaves alone.
pub(crate) fn commit(repo: &Repo) {
    repo.write("gone.md", "Gone soon.\n").unwrap();
    repo.write("untouched/far/down", "down\n").unwrap();
    repo.write("was-tool", "true\n").unwrap();
    fs::set_permissions(repo.dir().join("was-tool"), fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("gone.md", repo.dir().join("was-link")).unwrap();
    repo.commit("Of all kinds").unwrap();
}

/// A workspace as it is now, but for its repository.
pub(crate) fn on_disk(workspace: &Path) -> Tree {
    let mut found = Tree::new();
    collect(workspace, Path::new(""), &mut found);
    found
}

/// Checks that a tree holds what [`OF_ALL_KINDS`] leaves, and not what it takes away.
#[track_caller]
pub(crate) fn has_all_kinds(tree: &Tree) {
    for (path, expected) in KINDS {
        let expected = match expected {
            Entry::File { bytes, executable } => Entry::File { bytes: bytes.to_vec(), executable },
            Entry::Link(target) => Entry::Link(target.to_vec()),
            Entry::EmptyFolder => Entry::EmptyFolder,
        };
        assert_eq!(tree.get(Path::new(path)), Some(&expected), "{path}");
    }
    assert!(!tree.contains_key(Path::new("gone.md")), "{tree:#?}");
}

fn collect(top: &Path, folder: &Path, found: &mut Tree) {
    for entry in fs::read_dir(top.join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if path == Path::new(".git") {
            continue;
        }
        let place = top.join(&path);
        let metadata = fs::symlink_metadata(&place).unwrap();
        let entry = if metadata.is_dir() {
            let others = found.len();
            collect(top, &path, found);
            if found.len() > others {
                continue;
            }
            Entry::EmptyFolder
        } else if metadata.is_symlink() {
            Entry::Link(fs::read_link(&place).unwrap().into_os_string().into_vec())
        } else {
            assert!(metadata.is_file(), "{} is of no kind that git knows", place.display());
            Entry::File { bytes: fs::read(&place).unwrap(), executable: metadata.permissions().mode() & 0o100 != 0 }
        };
        found.insert(path, entry);
    }
}

/// The tree that is kept of the end of an attempt.
pub(crate) fn kept_at_the_end(bench: &Bench, task: &str, attempt: u64) -> Tree {
    let log = bench.json(&["log", "--json", task]);
    let kept = log.iter().rfind(|line| line["event"] == "checkpointed" && line["data"]["number"] == attempt);
    let commit = kept.expect("its end is kept")["data"]["commit"].as_str().unwrap();
    in_store(&Repo::at(bench.state().join("store.git")), commit)
}

/// A checkpoint as the store has it, the list of empty folders that is kept beside it included.
fn in_store(store: &Repo, checkpoint: &str) -> Tree {
    let mut found = Tree::new();
    let listed = store.git(&["ls-tree", "-r", "-z", checkpoint]).unwrap();
    for line in listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let tab = line.iter().position(|byte| *byte == b'\t').unwrap();
        let (head, path) = (std::str::from_utf8(&line[..tab]).unwrap(), &line[tab + 1..]);
        let [mode, "blob", id] = head.split(' ').collect::<Vec<_>>()[..] else { panic!("{head}") };
        let bytes = store.git(&["cat-file", "blob", id]).unwrap();
        let entry = match mode {
            "100644" => Entry::File { bytes, executable: false },
            "100755" => Entry::File { bytes, executable: true },
            "120000" => Entry::Link(bytes),
            other => panic!("{other} of {id}"),
        };
        found.insert(path_of(path), entry);
    }
    let format = "--format=%(trailers:key=Outlast-Beside,valueonly)";
    let beside = store.text(&["log", "-1", format, checkpoint]).unwrap();
    if let Some(beside) = beside.lines().find(|line| !line.is_empty())
        && let Ok(folders) = store.git(&["cat-file", "blob", &format!("{beside}:folders")])
    {
        let folders = folders.split(|byte| *byte == 0).filter(|folder| !folder.is_empty());
        found.extend(folders.map(|folder| (path_of(folder), Entry::EmptyFolder)));
    }
    found
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}
