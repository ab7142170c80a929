//! What of a checkout is in the way of a landing, and the command that puts it away without losing a byte of it.

use std::collections::BTreeSet;
use std::path::Path;

use gix::bstr::ByteSlice;

use crate::landing::Move;
use crate::shell::{quoted, word};
use crate::{Result, UserRepo, oid};

/// How many paths one command line is given.
const PATHS_MAX: usize = 500;

/// What is in the way.
#[derive(Debug, Default)]
pub(crate) struct InTheWay {
    /// Files that are not as they were before the landing, files and folders where it brings something, and files where it
    /// brings a folder.
    paths: BTreeSet<String>,
    /// Those of them that git was told to leave alone (`skip-worktree`), and those that it takes for unchanged: it stashes
    /// neither.
    skipped: Vec<String>,
    assumed: Vec<String>,
}

impl InTheWay {
    /// The commands that put it away, and what is to be done once it has landed.
    pub(crate) fn commands(&self, checkout: &Path) -> (Vec<String>, Option<String>) {
        if self.paths.is_empty() {
            return (Vec::new(), None);
        }
        let git = format!("git -C {}", quoted(&checkout.display().to_string()));
        let list = |paths: &mut dyn Iterator<Item = &String>| paths.map(|p| quoted(p)).collect::<Vec<_>>().join(" ");
        let marks = [(&self.skipped, "skip-worktree"), (&self.assumed, "assume-unchanged")];
        let marks = marks.into_iter().filter(|(paths, _)| !paths.is_empty());
        let (mut first, mut then) = (Vec::new(), Vec::new());
        for (paths, mark) in marks {
            let paths = list(&mut paths.iter());
            first.push(format!("{git} update-index --no-{mark} -- {paths}"));
            then.push(format!("{git} update-index --{mark} -- {paths}"));
        }
        let paths = list(&mut self.paths.iter());
        first.push(format!("{git} --literal-pathspecs stash push --all -- {paths}"));
        let back = (!then.is_empty()).then(|| format!("{git} stash pop && {}", then.join(" && ")));
        (first, back)
    }
}

impl UserRepo {
    /// What in a checkout keeps git from moving it.
    pub(crate) fn in_the_way(&self, checkout: &Path, step: &Move) -> Result<InTheWay> {
        let git = || self.git().in_checkout(checkout);
        let nothing = oid::of(oid::empty_tree());
        let old = step.old.as_ref().unwrap_or(&nothing);
        let names = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", old.as_str(), step.new.as_str()];
        let said = texts(&git().args(names).ok()?);
        let changed: Vec<(&str, &String)> = said.chunks_exact(2).map(|pair| (pair[0].as_str(), &pair[1])).collect();
        let mut found = InTheWay::default();
        for chunk in changed.chunks(PATHS_MAX) {
            let paths: BTreeSet<&str> = chunk.iter().map(|(_, path)| path.as_str()).collect();
            let call = || git().args(["--no-optional-locks", "--literal-pathspecs"]);
            let status = ["status", "--porcelain", "-z", "--no-renames", "-uno", "--"];
            let said = texts(&call().args(status).args(&paths).ok()?);
            // Two letters and a space before each.
            let changed = said.iter().filter_map(|line| line.get(3..)).filter(|path| paths.contains(path));
            found.paths.extend(changed.map(str::to_owned));
            let said = texts(&call().args(["ls-files", "-z", "--others", "--"]).args(&paths).ok()?);
            found.paths.extend(said.iter().filter_map(|file| brought(&paths, file)).map(str::to_owned));
            let said = texts(&call().args(["ls-files", "-z", "-v", "--"]).args(&paths).ok()?);
            for (tag, path) in said.iter().filter_map(|line| line.split_at_checked(2)) {
                let is_there = paths.contains(path) && checkout.join(path).symlink_metadata().is_ok();
                // Of those that it is told to leave alone it never says that they differ (git-ls-files, `-v`).
                if is_there && tag.starts_with(['S', 's']) {
                    found.skipped.push(path.to_owned());
                }
                if is_there && tag.starts_with(|letter: char| letter.is_ascii_lowercase()) {
                    found.assumed.push(path.to_owned());
                }
            }
        }
        let differs = |path: &String| self.differs_from_index(checkout, path).unwrap_or(true);
        found.skipped.retain(differs);
        found.assumed.retain(differs);
        found.paths.extend(found.skipped.iter().chain(&found.assumed).cloned());
        let added = changed.iter().filter(|(how, _)| *how != "D").map(|(_, path)| path.as_str());
        let tracked: BTreeSet<&str> = changed.iter().map(|(_, path)| path.as_str()).collect();
        found.paths.extend(files_for_folders(checkout, added, &tracked));
        Ok(found)
    }

    /// Whether a file that git is told to leave alone is another one than its index has.
    fn differs_from_index(&self, checkout: &Path, path: &str) -> Result<bool> {
        let git = || self.git().in_checkout(checkout).args(["--literal-pathspecs"]);
        let staged = git().args(["ls-files", "-z", "--stage", "--", path]).ok()?;
        if checkout.join(path).symlink_metadata().is_ok_and(|found| found.is_symlink()) {
            return Ok(true);
        }
        let id = git().args(["hash-object", "--", path]).ok()?;
        Ok(!staged.split_str(" ").any(|word| word == id.trim()))
    }
}

/// What a landing brings that a file lies at or beneath.
fn brought<'a>(paths: &BTreeSet<&'a str>, file: &str) -> Option<&'a str> {
    let mut at = file.trim_end_matches('/');
    loop {
        if let Some(path) = paths.get(at) {
            return Some(path);
        }
        at = at.rsplit_once('/')?.0;
    }
}

/// Files of the checkout where a landing brings folders; not those that it takes away itself.
fn files_for_folders<'a>(
    checkout: &Path,
    added: impl Iterator<Item = &'a str>,
    tracked: &BTreeSet<&str>,
) -> BTreeSet<String> {
    let mut folders = BTreeSet::new();
    for mut path in added {
        while let Some((folder, _)) = path.rsplit_once('/') {
            // Whoever has looked at it has looked at those above it.
            if !folders.insert(folder) {
                break;
            }
            path = folder;
        }
    }
    let is_file = |folder: &&&str| checkout.join(folder).symlink_metadata().is_ok_and(|found| !found.is_dir());
    folders.iter().filter(is_file).filter(|folder| !tracked.contains(**folder)).map(ToString::to_string).collect()
}

/// The command by which a landing is tried again where git has let go of the worktree that holds its target: `root` is a
/// checkout that is there.
pub(crate) fn without_its_worktree(root: &Path, gone: &Path, is_locked: bool, land: &str) -> String {
    let git = format!("git -C {}", quoted(&root.display().to_string()));
    let unlock = match is_locked {
        true => format!("{git} worktree unlock {} && ", word(&gone.display().to_string())),
        false => String::new(),
    };
    format!("{unlock}{git} worktree prune && {land}")
}

fn texts(said: &[u8]) -> Vec<String> {
    said.split(|&byte| byte == 0).filter(|part| !part.is_empty()).map(|part| part.to_str_lossy().into()).collect()
}
