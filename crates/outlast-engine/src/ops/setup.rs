//! `setup`: run once per base tree in the integration worktree, its results kept and copied into each new workspace.
//!
//! What it leaves is whatever is not tracked in the base: dependency folders, generated files. The copy that is kept
//! was made right after the commands, before any verify could touch it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::{Class, Oid, plan};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::home::{hex, private_dir};
use crate::ops::attempt::{Attempt, Fault, one_line};
use crate::ops::commands::{self, Place};

/// Brings the results of `setup` for `base` into a new workspace.
pub(crate) async fn bring(
    context: &Arc<Context>,
    attempt: &Attempt,
    plan: &plan::Plan,
    run_base: &Oid,
    base: &Oid,
    workspace: &Path,
    token: &CancellationToken,
) -> Result<(), Fault> {
    let kept = ensure(context, attempt, plan, run_base, base, token).await?;
    let workspace = workspace.to_owned();
    context.blocking(move || copy(&kept, &workspace)).await?;
    Ok(())
}

/// The folder that holds the results of `setup` for `base`, made where there is none.
async fn ensure(
    context: &Arc<Context>,
    attempt: &Attempt,
    plan: &plan::Plan,
    run_base: &Oid,
    base: &Oid,
    token: &CancellationToken,
) -> Result<PathBuf, Fault> {
    let _alone = context.integration.lock().await;
    let tree = {
        let base = base.clone();
        context.in_git(move |git| Ok(git.store().tree(&base)?)).await?
    };
    let kept = context.home.setup(&key(&tree, &plan.run.setup));
    if kept.is_dir() {
        return Ok(kept);
    }
    let (trusted, commit) = (run_base.clone(), base.clone());
    let cwd = context.in_git(move |git| git.integrate(&trusted, &commit)).await?;
    let place = Place {
        home: context.home.verify_home(&attempt.id.run),
        temp: context.home.verify_temp(&attempt.id.run),
        outputs: context.home.attempt(&attempt.id),
        attempt: attempt.id.clone(),
        timeout: commands::SETUP_TIMEOUT,
        token: token.clone(),
        cwd: cwd.clone(),
        // What the user has committed may fetch what it needs; a tree with agents' results in it may send it anywhere.
        may_connect: base == run_base,
    };
    if let Some(failed) = commands::run(context, &place, "setup", &plan.run.setup).await? {
        return Err(Fault::new(Class::Setup, one_line(&format!("`{}`: {}", failed.command, failed.why))));
    }
    let whole = kept.clone();
    context
        .in_git(move |git| {
            let empty = Oid::new(EMPTY_TREE);
            let tracked = git.store().diff(&empty, &tree)?.into_iter().map(|change| change.path.to_vec()).collect();
            keep(&cwd, &tracked, &whole)
        })
        .await?;
    Ok(kept)
}

/// The tree without an entry, which every repository knows.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

fn key(tree: &Oid, commands: &[String]) -> String {
    let mut hash = Sha256::new();
    hash.update(tree.as_str());
    for command in commands {
        hash.update([0]);
        hash.update(command);
    }
    hex(&hash.finalize())[..32].to_owned()
}

/// Copies everything that is not tracked, and gives the copy its name only once it is whole.
fn keep(from: &Path, tracked: &BTreeSet<Vec<u8>>, whole: &Path) -> Result<(), Error> {
    let partial = whole.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(|e| Error::at(&partial, e))?;
    }
    private_dir(&partial)?;
    copy_beneath(from, &partial, Path::new(""), tracked)?;
    fs::rename(&partial, whole).map_err(|e| Error::at(whole, e))
}

/// Copies a kept folder into a workspace that no agent has seen yet.
fn copy(kept: &Path, workspace: &Path) -> Result<(), Error> {
    copy_beneath(kept, workspace, Path::new(""), &BTreeSet::new())
}

fn copy_beneath(from: &Path, to: &Path, folder: &Path, tracked: &BTreeSet<Vec<u8>>) -> Result<(), Error> {
    let here = from.join(folder);
    let at = |error| Error::at(&here, error);
    for entry in fs::read_dir(&here).map_err(at)? {
        let entry = entry.map_err(at)?;
        let path = folder.join(entry.file_name());
        let (source, target) = (from.join(&path), to.join(&path));
        let kind = entry.file_type().map_err(at)?;
        let failed = |error| Error::at(&source, error);
        if path == Path::new(".git") || tracked.contains(path.as_os_str().as_bytes()) {
            continue;
        }
        if kind.is_dir() {
            match fs::create_dir(&target) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            }
            copy_beneath(from, to, &path, tracked)?;
            let mode = fs::metadata(&source).map_err(failed)?.permissions();
            fs::set_permissions(&target, mode).map_err(failed)?;
        } else if kind.is_symlink() {
            let link = fs::read_link(&source).map_err(failed)?;
            match std::os::unix::fs::symlink(&link, &target) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(error)),
                _ => {}
            }
        } else if kind.is_file() {
            fs::copy(&source, &target).map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_setup_left_is_kept_whole_and_copied_as_it_is() {
        let (made, kept, workspace) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(made.path().join("node_modules/.bin")).unwrap();
        fs::write(made.path().join("node_modules/tool.js"), "x").unwrap();
        fs::write(made.path().join("package.json"), "{}").unwrap();
        std::os::unix::fs::symlink("../tool.js", made.path().join("node_modules/.bin/tool")).unwrap();
        let whole = kept.path().join("k");
        keep(made.path(), &BTreeSet::from([b"package.json".to_vec()]), &whole).unwrap();
        copy(&whole, workspace.path()).unwrap();
        copy(&whole, workspace.path()).unwrap();
        assert_eq!(fs::read(workspace.path().join("node_modules/.bin/tool")).unwrap(), b"x");
        assert!(!workspace.path().join("package.json").exists());
    }
}
