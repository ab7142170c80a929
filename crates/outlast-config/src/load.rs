//! The one place that opens files: finds a plan's files and the user's configuration, and reads them as text.
//!
//! Nothing is parsed here and nothing is written; what a file says is judged by the readers.

use std::path::{Path, PathBuf};
use std::{fs, io};

use outlast_core::TaskId;

use crate::{Batch, PlanFiles, Source, suggest};

/// The project's file, at the root of the repository.
pub const PROJECT_FILE: &str = "outlast.toml";
/// The folder of batches, at the root of the repository.
pub const BATCH_FOLDER: &str = "plans";
/// Largest file that is read: a hundred thousand tasks fit, a file by mistake does not.
const FILE_LEN_MAX: u64 = 64 * 1024 * 1024;

/// Why a plan's files could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is neither a project file nor a batch named.
    #[error("there is no `{PROJECT_FILE}` in `{}`", .root.display())]
    NoPlan {
        /// Where it was looked for.
        root: PathBuf,
    },
    /// No batch of this name.
    #[error(
        "there is no plan `{name}`: neither `{BATCH_FOLDER}/{name}.toml` nor a folder or file of this name ({advice})"
    )]
    NoSuchPlan {
        /// What was asked for.
        name: String,
        /// Which name may be meant.
        advice: String,
    },
    /// A file and a folder of one name.
    #[error("both `{BATCH_FOLDER}/{name}.toml` and the folder `{BATCH_FOLDER}/{name}` are there")]
    TwoPlans {
        /// What was asked for.
        name: String,
    },
    /// A folder without Markdown files.
    #[error("there is no Markdown file in `{}`", .folder.display())]
    EmptyFolder {
        /// The folder.
        folder: PathBuf,
    },
    /// A plan of an unknown form.
    #[error("`{}` is neither a .toml file, a .md file nor a folder", .path.display())]
    UnknownForm {
        /// What was named.
        path: PathBuf,
    },
    /// A file that is no text.
    #[error("`{}` is no UTF-8 text: the byte at offset {offset} fits no character", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The first bad byte.
        offset: usize,
    },
    /// A file too large to be a plan.
    #[error("`{}` is {len} bytes long, more than {FILE_LEN_MAX}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        len: u64,
    },
    /// The system refused.
    #[error("cannot read `{}`", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Finds and reads the files of a plan.
///
/// `root` is the repository's root, `cwd` the folder that a relative path starts from, `which` what the user named: the
/// name of a batch or a path; without it, the project's file is the plan.
///
/// # Errors
/// There is no such plan, or a file cannot be read; see [`Error`].
pub fn load_plan(root: &Path, cwd: &Path, which: Option<&str>) -> Result<PlanFiles, Error> {
    let project_path = root.join(PROJECT_FILE);
    let project = if project_path.exists() { Some(load(&project_path, root)?) } else { None };
    let Some(which) = which else {
        let project = project.ok_or_else(|| Error::NoPlan { root: root.to_owned() })?;
        return Ok(PlanFiles { name: run_name(root), project: Some(project), batch: Batch::None, ignored: Vec::new() });
    };
    let path = find_batch(root, cwd, which)?;
    if is_same(&path, &project_path) {
        return Ok(PlanFiles { name: run_name(root), project, batch: Batch::None, ignored: Vec::new() });
    }
    let (batch, ignored) = load_batch(&path, root)?;
    let stem = if path.is_dir() { path.file_name() } else { path.file_stem() };
    Ok(PlanFiles { name: run_name(Path::new(stem.unwrap_or_default())), project, batch, ignored })
}

/// What names a plan after `outlast run`, by the name that it gave its runs: nothing for the project's file. Nothing at all
/// where no such plan is there, as of one that was named by a path.
pub fn argument(root: &Path, name: &str) -> Option<Option<String>> {
    if name == run_name(root) {
        return Some(None);
    }
    let is_it = |batch: &String| run_name(Path::new(batch)) == name;
    batch_names(&root.join(BATCH_FOLDER)).into_iter().find(is_it).map(Some)
}

/// Reads the user's configuration; `None` where there is no such file.
///
/// # Errors
/// The file is there and cannot be read; see [`Error`].
pub fn load_user(path: &Path) -> Result<Option<Source>, Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => load(path, Path::new("")).map(Some),
    }
}

/// A plan's name as run ids begin with it: lower case, safe in paths and refs.
fn run_name(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    TaskId::new(name).slug()
}

fn find_batch(root: &Path, cwd: &Path, which: &str) -> Result<PathBuf, Error> {
    let folder = root.join(BATCH_FOLDER);
    let is_name = !which.is_empty() && !which.contains('/') && !which.contains(std::path::MAIN_SEPARATOR);
    if is_name && which != "." && which != ".." {
        let (file, tasks) = (folder.join(format!("{which}.toml")), folder.join(which));
        match (file.is_file(), tasks.is_dir()) {
            (true, true) => return Err(Error::TwoPlans { name: which.to_owned() }),
            (true, false) => return Ok(file),
            (false, true) => return Ok(tasks),
            (false, false) => {}
        }
    }
    let path = cwd.join(which);
    if !which.is_empty() && path.exists() {
        return Ok(path);
    }
    let names = batch_names(&folder);
    let advice = suggest::advice(which, names.iter().map(String::as_str));
    Err(Error::NoSuchPlan { name: which.to_owned(), advice })
}

/// Names of the batches there are; none where the folder cannot be read, for this is advice alone.
fn batch_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let batches = entries.filter(|path| path.is_dir() || has_extension(path, "toml"));
    let mut names: Vec<String> = batches
        .filter_map(|path| Some(if path.is_dir() { path.file_name()? } else { path.file_stem()? }.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Reads a batch; the second part names what is in its folder and is not read.
fn load_batch(path: &Path, root: &Path) -> Result<(Batch, Vec<String>), Error> {
    if path.is_dir() {
        return load_folder(path, root);
    }
    if has_extension(path, "toml") {
        return Ok((Batch::File(load(path, root)?), Vec::new()));
    }
    if has_extension(path, "md") {
        return Ok((Batch::Folder(vec![load(path, root)?]), Vec::new()));
    }
    Err(Error::UnknownForm { path: path.to_owned() })
}

/// The Markdown files right in a folder, by name.
fn load_folder(folder: &Path, root: &Path) -> Result<(Batch, Vec<String>), Error> {
    let unreadable = |source| Error::Unreadable { path: folder.to_owned(), source };
    let (mut tasks, mut ignored) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if has_extension(&path, "md") && path.is_file() {
            tasks.push(path);
        } else {
            ignored.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    if tasks.is_empty() {
        return Err(Error::EmptyFolder { folder: folder.to_owned() });
    }
    tasks.sort();
    ignored.sort();
    let sources = tasks.iter().map(|path| load(path, root)).collect::<Result<_, _>>()?;
    Ok((Batch::Folder(sources), ignored))
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Reads a text file; messages name it by its path from `root` where it lies in there.
fn load(path: &Path, root: &Path) -> Result<Source, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let facts = fs::metadata(path).map_err(unreadable)?;
    // Opening a pipe would wait for a writer that never comes.
    if !facts.is_file() {
        return Err(Error::UnknownForm { path: path.to_owned() });
    }
    if facts.len() > FILE_LEN_MAX {
        return Err(Error::TooLarge { path: path.to_owned(), len: facts.len() });
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Error::NotText { path: path.to_owned(), offset: error.utf8_error().valid_up_to() })?;
    let shown = path.strip_prefix(root).unwrap_or(path);
    Ok(Source::new(shown.to_string_lossy(), &text))
}

#[cfg(test)]
mod tests;
