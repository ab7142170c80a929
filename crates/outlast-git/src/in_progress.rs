//! What git has begun in a task's repository and waits for the agent to end: which files say so, and which commits they
//! name.

use std::collections::BTreeMap;

use gix::ObjectId;
use gix::bstr::ByteSlice;

use crate::agent_repo::AgentRepo;
use crate::agent_state::{InProgress, Operation};
use crate::oid;

/// Files of `.git` that belong to something begun.
const FILES: [&str; 14] = [
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_START",
    "BISECT_TERMS",
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
];
/// Folders of `.git` that do, each with files only.
const FOLDERS: [&str; 3] = ["rebase-apply", "rebase-merge", "sequencer"];
/// Where all stash entries but the newest are named, which need nothing begun.
pub(crate) const STASHES: &str = "logs/refs/stash";
/// Where commits are named that were left while no branch stood there.
pub(crate) const HEAD_LOG: &str = "logs/HEAD";
/// Which files a sparse checkout has on disk.
pub(crate) const SPARSE: &str = "info/sparse-checkout";

/// Largest such file, in bytes, and most of them.
const FILE_LIMIT: u64 = 1 << 20;
const FILES_MAX: usize = 1000;

/// What is under way.
#[derive(Default)]
pub(crate) struct UnderWay {
    /// The operations.
    pub(crate) operations: Vec<InProgress>,
    /// The files that say so, by their path in `.git`.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// The commits that they name.
    pub(crate) heads: Vec<ObjectId>,
}

/// Looks at an agent's repository.
pub(crate) fn read(agent: &AgentRepo) -> UnderWay {
    let mut files = BTreeMap::new();
    let mut take = |path: String| {
        if let Some(bytes) = agent.file(&path, FILE_LIMIT) {
            files.insert(path, bytes);
        }
    };
    FILES.iter().for_each(|name| take((*name).to_owned()));
    for folder in FOLDERS {
        let names = agent.names(folder).into_iter().take(FILES_MAX);
        names.for_each(|name| take(format!("{folder}/{name}")));
    }
    let ids = |name: &str| -> Vec<ObjectId> {
        let words = files.get(name).map(|bytes| bytes.to_str_lossy().into_owned()).unwrap_or_default();
        words.split_whitespace().filter_map(|word| oid::parse_text(word).ok()).collect()
    };
    let has = |prefix: &str| files.keys().any(|name| name.starts_with(prefix));
    let first_word = files.get("sequencer/todo").map(|todo| todo.starts_with(b"revert"));
    // Both keep their patches there; only one of them is ended by `git am --continue`.
    let is_am = has("rebase-apply/applying");
    let begun = [
        (Operation::Merge, has("MERGE_HEAD"), ids("MERGE_HEAD")),
        (Operation::CherryPick, has("CHERRY_PICK_HEAD") || first_word == Some(false), ids("CHERRY_PICK_HEAD")),
        (Operation::Revert, has("REVERT_HEAD") || first_word == Some(true), ids("REVERT_HEAD")),
        (
            Operation::Rebase,
            has("rebase-merge/") || has("rebase-apply/") && !is_am,
            [ids("rebase-merge/onto"), ids("rebase-apply/onto")].concat(),
        ),
        (Operation::Am, is_am, Vec::new()),
        (Operation::Bisect, has("BISECT_LOG") || has("BISECT_START"), ids("BISECT_EXPECTED_REV")),
    ];
    let operations: Vec<InProgress> = begun
        .into_iter()
        .filter(|(_, is_begun, _)| *is_begun)
        .map(|(what, _, heads)| InProgress { what, heads: heads.into_iter().map(oid::of).collect() })
        .collect();
    if operations.is_empty() {
        return UnderWay::default();
    }
    let naming = [
        "BISECT_EXPECTED_REV",
        "CHERRY_PICK_HEAD",
        "MERGE_HEAD",
        "ORIG_HEAD",
        "REBASE_HEAD",
        "REVERT_HEAD",
        "rebase-apply/autostash",
        "rebase-apply/onto",
        "rebase-apply/orig-head",
        "rebase-merge/autostash",
        "rebase-merge/onto",
        "rebase-merge/orig-head",
        "rebase-merge/stopped-sha",
        "sequencer/head",
    ];
    let heads = naming.into_iter().flat_map(ids).collect();
    UnderWay { operations, files, heads }
}

/// Whether a path is one of those that are put back into `.git`.
pub(crate) fn is_known(path: &str) -> bool {
    match path.split_once('/') {
        Some((folder, name)) => {
            [STASHES, HEAD_LOG, SPARSE].contains(&path) || FOLDERS.contains(&folder) && !name.contains('/')
        }
        None => FILES.contains(&path),
    }
}
