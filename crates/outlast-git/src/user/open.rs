//! Finding the repository and refusing what outlast does not work on. Everything here only reads.

use std::path::{Path, PathBuf};

use gix::ObjectId;

use crate::git::Git;
use crate::settings::Config;
use crate::source::{Reader, Source};
use crate::tree::Kind;
use crate::{Error, Refusal, Result, UserRepo, durable, oid, tree};

/// Files and folders of a git folder that stand for an unfinished operation, and the command of git that began it.
const IN_PROGRESS: [(&str, &str); 8] = [
    ("rebase-merge", "rebase"),
    // Before the folder that it shares with a rebase: git takes neither's `--abort` for the other.
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
];

/// Extensions that change nothing for a reader of objects and refs (git's repository-version document).
const HARMLESS_EXTENSIONS: [&str; 3] = ["noop", "preciousobjects", "worktreeconfig"];

pub(super) fn open(git: Git, path: &Path) -> Result<UserRepo> {
    let (root, git_dir) = find(path)?;
    let common_dir = common_dir(&git_dir)?;
    check_config(&common_dir)?;
    if durable::read(&common_dir.join("shallow"))?.is_some_and(|s| !s.is_empty()) {
        return Err(Refusal::Shallow(root).into());
    }
    check_with_git(&git, &root)?;
    let config = Config::load(&git, &root)?;
    if let Some((_, what)) = IN_PROGRESS.iter().find(|(name, _)| git_dir.join(name).exists()) {
        return Err(Refusal::InProgress { what, path: root }.into());
    }
    let repo = UserRepo { git, root, git_dir, common_dir, config };
    let head = repo.head()?;
    let reader = Reader(repo.gix()?.objects.into_inner().store().to_cache_arc());
    let tree = reader.tree_of(oid::parse(&head.commit)?)?;
    // The whole tree is walked where it says that it has submodules; the file alone, left over from some, is none.
    if tree::entry(&reader, tree, ".gitmodules")?.is_some() {
        refuse_submodule(&reader, tree)?;
    }
    Ok(repo)
}

/// Refuses a tree that holds a commit of another repository, wherever it lies.
pub(super) fn refuse_submodule(reader: &Reader, tree: ObjectId) -> Result<()> {
    let changes = tree::diff(reader, None, Some(tree))?;
    match changes.iter().find(|change| change.new.as_ref().is_some_and(|entry| entry.kind == Kind::Gitlink)) {
        Some(change) => Err(Refusal::Submodule { path: change.path_lossy() }.into()),
        None => Ok(()),
    }
}

/// The git folder of the repository around `path`, whatever state that is in; nothing where there is none.
pub(super) fn around(path: &Path) -> Result<Option<PathBuf>> {
    match find(path) {
        Ok((_, git_dir)) => common_dir(&git_dir).map(Some),
        Err(Error::Refused(Refusal::Bare(folder))) => Ok(Some(folder)),
        Err(Error::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn common_dir(git_dir: &Path) -> Result<PathBuf> {
    let shared = durable::read(&git_dir.join("commondir"))?;
    Ok(shared.map_or_else(|| git_dir.to_owned(), |bytes| absolute(git_dir, &bytes)))
}

/// Walks up from `path` to the first checkout, and tells its root and git folder.
fn find(path: &Path) -> Result<(PathBuf, PathBuf)> {
    let start = path.canonicalize().map_err(|_| Refusal::NotARepository(path.to_owned()))?;
    for folder in start.ancestors() {
        let dot_git = folder.join(".git");
        if dot_git.is_dir() && dot_git.join("HEAD").exists() {
            return Ok((folder.to_owned(), dot_git));
        }
        if dot_git.is_file() {
            let text = durable::read(&dot_git)?.unwrap_or_default();
            let target = text.strip_prefix(b"gitdir:").ok_or_else(|| Refusal::NotARepository(folder.to_owned()))?;
            return Ok((folder.to_owned(), absolute(folder, target)));
        }
        let is_git_folder = ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists());
        if is_git_folder {
            return Err(Refusal::Bare(folder.to_owned()).into());
        }
    }
    Err(Refusal::NotARepository(path.to_owned()).into())
}

fn absolute(base: &Path, bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let path = base.join(std::ffi::OsStr::from_bytes(bytes.trim_ascii()));
    path.canonicalize().unwrap_or(path)
}

/// Reads the format of the repository without git, because an old git cannot name what it does not know.
fn check_config(common_dir: &Path) -> Result<()> {
    let path = common_dir.join("config");
    let Ok(config) = gix::config::File::from_path_no_includes(path, gix::config::Source::Local) else {
        // What gix cannot read, git is asked about next.
        return Ok(());
    };
    let at = || common_dir.to_owned();
    for section in config.sections_by_name("extensions").into_iter().flatten() {
        for name in section.value_names() {
            let name = name.to_ascii_lowercase();
            let value = section.value(&name).map(|v| v.to_string().to_ascii_lowercase()).unwrap_or_default();
            match (name.as_str(), value.as_str()) {
                ("objectformat", "sha1") | ("refstorage", "files") => {}
                ("objectformat", _) => return Err(Refusal::Sha256(at()).into()),
                ("refstorage", _) => return Err(Refusal::Reftable(at()).into()),
                ("partialclone", _) => return Err(Refusal::PartialClone(at()).into()),
                (name, _) if HARMLESS_EXTENSIONS.contains(&name) => {}
                (name, _) => return Err(Refusal::UnknownExtension { path: at(), name: name.to_owned() }.into()),
            }
        }
    }
    for section in config.sections_by_name("remote").into_iter().flatten() {
        let promises = section.value("promisor").is_some_and(|v| v.to_string().eq_ignore_ascii_case("true"));
        if promises || section.contains_value_name("partialclonefilter") {
            return Err(Refusal::PartialClone(at()).into());
        }
    }
    Ok(())
}

/// Asks git whether it works here at all: it checks the owner and the format.
fn check_with_git(git: &Git, root: &Path) -> Result<()> {
    let answer = git.in_checkout(root).args(["rev-parse", "--is-bare-repository"]).read()?;
    match answer.stdout().trim_ascii() {
        b"false" if answer.code() == Some(0) => Ok(()),
        b"true" if answer.code() == Some(0) => Err(Refusal::Bare(root.to_owned()).into()),
        _ => Err(Refusal::GitRefused { path: root.to_owned(), stderr: answer.stderr() }.into()),
    }
}
