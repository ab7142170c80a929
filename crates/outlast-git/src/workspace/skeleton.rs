//! The small repository inside a workspace, written by hand in a few files: no template, no hooks, no remote.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;

use crate::settings::Settings;
use crate::workspace::restore::Head;
use crate::{Error, Result, Store, UserRepo, store};

/// A repository to write.
pub(crate) struct Skeleton<'a> {
    /// The root of the working tree.
    pub(crate) path: &'a Path,
    pub(crate) settings: &'a Settings,
    /// Where HEAD stands.
    pub(crate) head: &'a Head,
    /// Other refs of the agent's own.
    pub(crate) refs: &'a BTreeMap<String, ObjectId>,
    /// The branches and tags to show besides, as `packed-refs` has them.
    pub(crate) tips: &'a [u8],
}

impl Skeleton<'_> {
    /// Writes `.git` into the working tree.
    pub(crate) fn write(&self, user: &UserRepo, store: &Store) -> Result<()> {
        let git_dir = self.path.join(".git");
        for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"] {
            let folder = git_dir.join(folder);
            std::fs::create_dir_all(&folder).map_err(Error::io("create", folder))?;
        }
        let put = |name: &str, bytes: &[u8]| {
            let path = git_dir.join(name);
            std::fs::write(&path, bytes).map_err(Error::io("write", path))
        };
        let lender = user.objects_dir();
        put("objects/info/alternates", &store::alternates_text(&[&lender, store.objects_dir()]))?;
        put("config", config(user, self.settings)?.as_bytes())?;
        put("info/exclude", &self.settings.excludes)?;
        put("info/attributes", &attributes(self.settings))?;
        let current = self.head.branch.as_ref().map(|branch| format!("refs/heads/{branch}"));
        let mut own = self.refs.clone();
        own.extend(current.clone().zip(self.head.commit));
        let tips = without(self.tips, &own);
        if let Some((name, id)) = current.as_ref().zip(self.head.commit)
            && write_ref(&git_dir, name, id).is_ok()
        {
            own.remove(name);
        }
        put("packed-refs", &with_own(&tips, &own))?;
        let head = match (current, self.head.commit) {
            (Some(name), _) => format!("ref: {name}\n"),
            (None, commit) => format!("{}\n", commit.unwrap_or(ObjectId::null(gix::hash::Kind::Sha1))),
        };
        put("HEAD", head.as_bytes())
    }
}

/// The attributes of the user's own that are in no tree.
pub(super) fn attributes(settings: &Settings) -> Vec<u8> {
    [&settings.global_attributes[..], b"\n", &settings.info_attributes].concat()
}

/// What a configuration says of a sparse checkout with these patterns.
pub(super) fn sparse(patterns: &[u8]) -> String {
    // Patterns of folders begin like this (git-sparse-checkout, "Internals").
    let is_cone = patterns.starts_with(b"/*\n!/*/\n");
    format!("[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = {is_cone}\n")
}

/// The text of `packed-refs` with the tips and with refs of the agent's own.
pub(super) fn packed_with(tips: &[u8], own: &BTreeMap<String, ObjectId>) -> Vec<u8> {
    with_own(&without(tips, own), own)
}

fn without(tips: &[u8], own: &BTreeMap<String, ObjectId>) -> Vec<u8> {
    own.keys().fold(tips.to_owned(), |tips, name| packed_refs(&tips, name))
}

fn write_ref(git_dir: &Path, name: &str, id: ObjectId) -> std::io::Result<()> {
    let path = git_dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap_or(git_dir))?;
    std::fs::write(path, format!("{id}\n"))
}

/// Gives the agent's repository an index that knows the files on disk; `staged` is the tree that it shows as staged where
/// that is not the files'.
pub(super) fn share_index(store: &Store, path: &Path, index: &Path, staged: Option<ObjectId>) -> Result<()> {
    let own = path.join(".git/index");
    std::fs::copy(index, &own).map_err(Error::io("write", &own))?;
    if let Some(staged) = staged {
        let call = store.call().env("GIT_WORK_TREE", path).env("GIT_INDEX_FILE", &own);
        call.args(["read-tree", "--reset"]).arg(staged.to_string()).ok()?;
    }
    Ok(())
}

/// The agent's git converts files as the user's does, commits in the user's name, and signs nothing.
pub(super) fn config(user: &UserRepo, settings: &Settings) -> Result<String> {
    let identity = user.user_identity()?;
    let mut text =
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
            .to_owned();
    let mut set = |key: &str, value: &str| {
        let (section, name) = key.rsplit_once('.').unwrap_or(("core", key));
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{}\"]", sub.replace('\\', "\\\\").replace('"', "\\\"")),
            None => format!("[{section}]"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{header}\n\t{name} = {}", quoted(value));
    };
    set("user.name", &identity.name);
    set("user.email", &identity.email);
    set("commit.gpgsign", "false");
    set("tag.gpgsign", "false");
    set("gc.auto", "0");
    for (key, value) in &settings.conversion {
        set(key, value);
    }
    Ok(text)
}

/// A configuration value in quotes (git-config, "Values").
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!("\"{escaped}\"")
}

/// The tips with refs of the agent's own. Those are packed too: their names may be longer than a file's, or those of
/// folders that others need.
fn with_own(tips: &[u8], own: &BTreeMap<String, ObjectId>) -> Vec<u8> {
    let mut text = tips.replacen(" sorted", "", 1);
    for (name, id) in own {
        text.extend_from_slice(format!("{id} {name}\n").as_bytes());
    }
    text
}

/// The tips without those that the agent's own branch would collide with.
fn packed_refs(tips: &[u8], branch: &str) -> Vec<u8> {
    let mut kept = Vec::with_capacity(tips.len());
    let mut dropped = false;
    for line in tips.lines_with_terminator() {
        if !line.starts_with(b"^") {
            let name = line.trim_ascii().splitn_str(2, " ").nth(1).unwrap_or_default().to_str_lossy().into_owned();
            let collides =
                |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            dropped = !line.starts_with(b"#") && (collides(&name, branch) || collides(branch, &name));
        }
        if !dropped {
            kept.extend_from_slice(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e23_a_tip_that_collides_with_the_tasks_branch_is_left_out() {
        let tips = b"# pack-refs with: peeled\naa refs/heads/main\nbb refs/heads/outlast\ncc refs/heads/outlast/t/x\ndd refs/tags/v1\n^ee\n";
        let kept = packed_refs(tips, "refs/heads/outlast/t");
        assert_eq!(kept.as_bstr(), "# pack-refs with: peeled\naa refs/heads/main\ndd refs/tags/v1\n^ee\n");
    }
}
