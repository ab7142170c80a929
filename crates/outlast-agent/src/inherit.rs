//! Reads what a plan's `inherit` names, from the repository and from the person's home.
//!
//! Whoever launches is outside every sandbox, and the workspace may have been written by an agent: a link in it must
//! never make us read what the agent itself could not. So every path is resolved first and must lie below its root.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Error;

/// Largest settings, memory or skill file read, in bytes: such files are prose and lists.
const FILE_MAX: u64 = 1024 * 1024;
/// Largest folder of skills copied, in bytes: it is written again at every launch.
const FOLDER_MAX: u64 = 4 * 1024 * 1024;

/// The text of `root/relative`; `None` when there is no such file.
///
/// # Errors
/// [`Error::InheritRead`] for a file that is no text, not readable or outside `root`; [`Error::InheritTooLarge`].
pub(crate) fn read_text(root: &Path, relative: &str) -> Result<Option<String>, Error> {
    let file = root.join(relative);
    if file.symlink_metadata().is_err() {
        return Ok(None);
    }
    let unreadable = |cause: String| Error::InheritRead { file: file.clone(), cause };
    let real = below(root, &file)?;
    let meta = real.metadata().map_err(|error| unreadable(error.to_string()))?;
    if !meta.is_file() {
        return Err(unreadable("it is no regular file".to_owned()));
    }
    if meta.len() > FILE_MAX {
        return Err(Error::InheritTooLarge { path: file, limit: FILE_MAX });
    }
    fs::read_to_string(&real).map(Some).map_err(|error| unreadable(error.to_string()))
}

/// The JSON of `root/relative`; `None` when there is no such file.
///
/// # Errors
/// As [`read_text`], and for a file that is no JSON.
pub(crate) fn read_json(root: &Path, relative: &str) -> Result<Option<Value>, Error> {
    let Some(text) = read_text(root, relative)? else {
        return Ok(None);
    };
    let json = serde_json::from_str(&text);
    json.map(Some).map_err(|error| Error::InheritRead { file: root.join(relative), cause: error.to_string() })
}

/// The repository's MCP server `name`, from the table at `pointer` of its settings file.
///
/// # Errors
/// As [`read_json`], and [`Error::McpServerUnknown`].
pub(crate) fn mcp_server(workspace: &Path, file: &str, pointer: &str, name: &str) -> Result<Value, Error> {
    let settings = read_json(workspace, file)?;
    let server = settings.as_ref().and_then(|settings| settings.pointer(pointer)).and_then(|servers| servers.get(name));
    server.cloned().ok_or_else(|| Error::McpServerUnknown { server: name.to_owned(), file: workspace.join(file) })
}

/// Every file below `root/relative`, as paths below that folder and texts, in the order of their paths.
///
/// # Errors
/// As [`read_text`]; [`Error::InheritTooLarge`] for the whole folder.
pub(crate) fn read_folder(root: &Path, relative: &str) -> Result<Vec<(PathBuf, String)>, Error> {
    let folder = root.join(relative);
    let mut files = Vec::new();
    let mut left = vec![PathBuf::new()];
    let mut bytes = 0_u64;
    while let Some(inner) = left.pop() {
        let Ok(entries) = below(root, &folder.join(&inner)).and_then(|real| list(&real)) else {
            continue;
        };
        for (name, is_folder) in entries {
            let path = inner.join(name);
            if is_folder {
                left.push(path);
                continue;
            }
            let Some(relative) = Path::new(relative).join(&path).to_str().map(str::to_owned) else {
                continue;
            };
            let Some(text) = read_text(root, &relative)? else {
                continue;
            };
            bytes += text.len() as u64;
            if bytes > FOLDER_MAX {
                return Err(Error::InheritTooLarge { path: folder, limit: FOLDER_MAX });
            }
            files.push((path, text));
        }
    }
    files.sort();
    Ok(files)
}

fn list(folder: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, Error> {
    let failed = |error: std::io::Error| Error::InheritRead { file: folder.to_owned(), cause: error.to_string() };
    let mut entries = Vec::new();
    for entry in folder.read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // A link to a folder is not followed: it may lead in a circle.
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        entries.push((entry.file_name(), is_folder));
    }
    Ok(entries)
}

fn below(root: &Path, path: &Path) -> Result<PathBuf, Error> {
    let unreadable = |cause: String| Error::InheritRead { file: path.to_owned(), cause };
    let root = root.canonicalize().map_err(|error| unreadable(error.to_string()))?;
    let real = path.canonicalize().map_err(|error| unreadable(error.to_string()))?;
    if real.starts_with(&root) { Ok(real) } else { Err(unreadable("it leads outside".to_owned())) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_out_of_the_workspace_is_refused_and_nothing_of_it_read() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("ws");
        fs::create_dir_all(workspace.join(".claude/skills")).unwrap();
        fs::write(dir.path().join("secret"), "{\"hooks\":\"canary\"}").unwrap();
        symlink("../secret", workspace.join("CLAUDE.md")).unwrap();
        symlink("../../../secret", workspace.join(".claude/skills/s")).unwrap();
        for refused in
            [read_text(&workspace, "CLAUDE.md").map(drop), read_folder(&workspace, ".claude/skills").map(drop)]
        {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::InheritRead { .. }) && !error.to_string().contains("canary"), "{error}");
        }
    }

    #[test]
    fn what_is_not_there_is_nothing_and_what_is_broken_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_json(dir.path(), "none.json").unwrap(), None);
        fs::write(dir.path().join("broken.json"), "{").unwrap();
        assert!(read_json(dir.path(), "broken.json").is_err());
        fs::write(dir.path().join("large"), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert!(matches!(read_text(dir.path(), "large"), Err(Error::InheritTooLarge { .. })));
    }
}
