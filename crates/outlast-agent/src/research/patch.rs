//! The patches of codex's `apply_patch`, which other CLIs have taken over.

/// What a patch does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FilePatch {
    /// Creates or replaces it.
    Add { path: String, text: String },
    /// Changes parts of it, and moves it where `to` says so.
    Update { path: String, hunks: Vec<Hunk>, to: Option<String> },
    /// Deletes it.
    Delete { path: String },
}

/// One change of a file: what stood there, with its surroundings, and what stands there now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Hunk {
    pub(crate) old: String,
    pub(crate) new: String,
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";

/// Reads the patch that a text holds, be it alone or within a shell command; nothing where there is none.
pub(super) fn parse(text: &str) -> Vec<FilePatch> {
    let Some((_, patch)) = text.split_once(BEGIN) else { return Vec::new() };
    let mut files: Vec<FilePatch> = Vec::new();
    for line in patch.lines().skip(1) {
        if line.trim_end() == END {
            break;
        }
        if let Some(header) = line.strip_prefix("*** ") {
            read_header(header.trim_end(), &mut files);
            continue;
        }
        match files.last_mut() {
            Some(FilePatch::Add { text, .. }) => {
                if let Some(line) = line.strip_prefix('+') {
                    push(text, line);
                }
            }
            Some(FilePatch::Update { hunks, .. }) => read_change(line, hunks),
            _ => {}
        }
    }
    files
}

fn read_header(header: &str, files: &mut Vec<FilePatch>) {
    let Some((word, path)) = header.split_once(": ") else { return };
    let path = path.to_owned();
    match word {
        "Add File" => files.push(FilePatch::Add { path, text: String::new() }),
        "Update File" => files.push(FilePatch::Update { path, hunks: Vec::new(), to: None }),
        "Delete File" => files.push(FilePatch::Delete { path }),
        "Move to" => {
            if let Some(FilePatch::Update { to, .. }) = files.last_mut() {
                *to = Some(path);
            }
        }
        _ => {}
    }
}

fn read_change(line: &str, hunks: &mut Vec<Hunk>) {
    if line.starts_with("@@") {
        hunks.push(Hunk::default());
        return;
    }
    if hunks.is_empty() {
        hunks.push(Hunk::default());
    }
    let Some(hunk) = hunks.last_mut() else { return };
    match (line.get(..1), line.get(1..)) {
        (Some("+"), Some(rest)) => push(&mut hunk.new, rest),
        (Some("-"), Some(rest)) => push(&mut hunk.old, rest),
        (Some(" "), Some(rest)) => {
            push(&mut hunk.old, rest);
            push(&mut hunk.new, rest);
        }
        (None, _) => {
            hunk.old.push('\n');
            hunk.new.push('\n');
        }
        _ => {}
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}
