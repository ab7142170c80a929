//! The rules of the house that a compiler does not know: floors, file sizes, module docs.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest source file: beyond it, a file holds more than one idea.
const LINES_MAX: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The floors table of ARCHITECTURE.md: crate to floor, `None` for side crates.
fn floors() -> BTreeMap<String, Option<u32>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
        name.starts_with("outlast").then(|| (name.to_owned(), cells[0].parse().ok()))
    });
    rows.collect()
}

/// Our crates that a manifest names in `[dependencies]`.
fn imports(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section.ends_with("dependencies]") && !section.contains("dev-dependencies") {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if name.starts_with("outlast-") {
                found.push(name.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_crate_is_on_its_floor_and_imports_lower_floors_only() {
    let floors = floors();
    let mut crates = 0;
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        let floor =
            floors.get(&name).unwrap_or_else(|| panic!("ARCHITECTURE.md does not say which floor {name} is on"));
        crates += 1;
        for import in imports(&fs::read_to_string(dir.join("Cargo.toml")).unwrap()) {
            let below = floors[&import];
            let allowed = match (floor, below) {
                (Some(floor), Some(below)) => below < *floor,
                // A side crate is for the binary alone, and stands on anything.
                (Some(_), None) => name == "outlast",
                (None, _) => true,
            };
            assert!(allowed, "{name} (floor {floor:?}) imports {import} (floor {below:?})");
        }
    }
    assert_eq!(crates, floors.len(), "ARCHITECTURE.md names crates that do not exist");
    assert!(crates >= 10, "the table was not read");
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_file_is_small_and_says_what_it_is_for() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    assert!(files.len() > 50, "the sources were not found");
    let mut faults = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > LINES_MAX {
            faults.push(format!("{} has {lines} lines", path.display()));
        }
        if !text.starts_with("//!") {
            faults.push(format!("{} does not begin with a module doc", path.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn only_named_fault_points_exist_and_nothing_is_left_for_later() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["unimplemented", "!"].concat()];
    for path in files.iter().filter(|path| !path.ends_with("tidy.rs")) {
        let text = fs::read_to_string(path).unwrap();
        for (number, line) in text.lines().enumerate() {
            let marked = marks.iter().any(|mark| line.contains(mark.as_str()));
            assert!(!marked, "{}:{}: {line}", path.display(), number + 1);
        }
    }
}

/// Words that mean something of their own here, as the readme uses them.
const WORDS: [&str; 15] = [
    "agent",
    "plan",
    "task",
    "workspace",
    "gateway",
    "provider",
    "verify",
    "land",
    "journal",
    "account",
    "engine",
    "turn",
    "session",
    "ledger",
    "attempt",
];

#[test]
fn the_readme_explains_a_word_where_it_first_stands() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().take(8).any(|line| line.contains("Linux only")), "the top says where it runs");
    // Commands and files are not prose; a word is explained where it is set in italics.
    let prose: String = readme.split("```").step_by(2).collect();
    let prose: String = prose.split('`').step_by(2).collect();
    let prose = prose.to_lowercase();
    let is_letter = |c: char| c.is_alphanumeric();
    for word in WORDS {
        // With its endings: `verifies`, `lands`.
        let stem = word.trim_end_matches('y');
        let starts = prose.match_indices(stem).map(|(at, _)| at);
        let ends = ["", "s", "y", "ies"];
        let mut uses = starts.filter(|&at| {
            let whole = prose[at + stem.len()..].split(|c| !is_letter(c)).next().unwrap_or_default();
            !prose[..at].ends_with(is_letter) && ends.contains(&whole)
        });
        let first = uses.next().unwrap_or_else(|| panic!("`{word}` is not used any more"));
        let around: String = prose[first..].chars().take(60).collect();
        assert!(
            prose[..first].ends_with('*') && !prose[..first].ends_with("**"),
            "`{word}` is first used before it is explained: {around}"
        );
    }
}
