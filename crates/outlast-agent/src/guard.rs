//! The guard for CLIs that run in Node and whose settings layers put the repository's over ours.
//!
//! Gemini CLI and Qwen Code have one layer above the repository's, the machine's, and only root may fill it. So the CLI's
//! script is started through Node with a module that keeps the repository's settings from being loaded.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::launch::text;
use crate::{Brief, Error, Inherit, discover};

/// The module's file below the home.
pub(crate) const FILE: &str = "outlast-guard.cjs";

/// The module, for a workspace and the CLI's folder in it (such as `.gemini`).
///
/// # Errors
/// [`Error::PathNotText`].
pub(crate) fn module(brief: &Brief, folder: &str) -> Result<(PathBuf, String), Error> {
    let settings = brief.workspace.join(folder);
    let mut listed: Vec<PathBuf> =
        ["agents", "commands", "extensions", "policies"].map(|name| settings.join(name)).to_vec();
    if !brief.inherit.contains(&Inherit::Skills) {
        listed.extend([settings.join("skills"), brief.workspace.join(".agents/skills")]);
    }
    let listed = listed.iter().map(|path| text(path)).collect::<Result<Vec<_>, _>>()?;
    let settings = text(&settings)?;
    let module = include_str!("guard.cjs");
    let module =
        module.replace("$SETTINGS", &json!(settings).to_string()).replace("$LISTED", &json!(listed).to_string());
    Ok((PathBuf::from(FILE), module))
}

/// The beginning of the argument list: Node, the guard, the CLI's script.
///
/// # Errors
/// [`Error::ProgramMissing`] without a `node` on the path, [`Error::ProgramNotScript`], [`Error::PathNotText`].
pub(crate) fn argv(brief: &Brief) -> Result<Vec<String>, Error> {
    if !is_script(&brief.program) {
        return Err(Error::ProgramNotScript { program: brief.program.clone() });
    }
    let missing = || Error::ProgramMissing { program: "node".to_owned(), path: brief.path.clone() };
    let node = discover::on_path("node", &brief.path).ok_or_else(missing)?;
    Ok(vec![text(&node)?, "--require".to_owned(), text(&brief.home.join(FILE))?, text(&brief.program)?])
}

/// Whether a program is a script for Node: by its name, else by its first line.
fn is_script(program: &Path) -> bool {
    if program.extension().is_some_and(|extension| matches!(extension.to_str(), Some("js" | "mjs" | "cjs"))) {
        return true;
    }
    let mut head = [0_u8; 64];
    let read = File::open(program).and_then(|mut file| file.read(&mut head)).unwrap_or(0);
    let line = head[..read].split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.starts_with(b"#!") && line.windows(4).any(|word| word == b"node")
}
