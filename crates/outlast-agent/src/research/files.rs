//! What is known of each file: its text as the agent last saw it, followed through the agent's own edits.

use std::collections::BTreeMap;

use outlast_core::research::{EditKind, EditMade, FileRead};
use sha2::{Digest, Sha256};

use super::patch::Hunk;
use super::{Change, Shown};

/// The hash of a file's text as research states hold it: SHA-256 in hexadecimal.
///
/// A byte order mark, carriage returns at line ends and line breaks at the end do not count, as not every CLI shows them
/// to its agent. Equal hashes mean that the agent knows the text.
pub fn text_hash(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    let mut hasher = Sha256::new();
    for (at, line) in bytes[..end].split(|byte| *byte == b'\n').enumerate() {
        if at > 0 {
            hasher.update(b"\n");
        }
        hasher.update(line.strip_suffix(b"\r").unwrap_or(line));
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    text: String,
    first: u64,
    whole: bool,
    /// The file was changed in a way that could not be followed.
    outdated: bool,
}

impl Known {
    /// Replaces a text; one that cannot be found was in a part that is not known.
    fn replace(&mut self, old: &str, new: &str, all: bool) {
        if old.is_empty() || !self.text.contains(old) {
            self.outdated = true;
        } else if all {
            self.text = self.text.replace(old, new);
        } else {
            self.text = self.text.replacen(old, new, 1);
        }
    }
}

#[derive(Debug, Default)]
struct File {
    read_at: Option<u64>,
    edited_at: Option<(u64, EditKind)>,
    edits: u32,
    known: Option<Known>,
}

impl File {
    fn edit(&mut self, now: u64, kind: EditKind) {
        self.edited_at = Some((now, kind));
        self.edits += 1;
    }
}

/// All files that were read or edited.
#[derive(Debug, Default)]
pub(super) struct Files {
    files: BTreeMap<String, File>,
    /// Counts what happens, for the order.
    clock: u64,
}

impl Files {
    fn entry(&mut self, path: &str) -> (&mut File, u64) {
        self.clock += 1;
        (self.files.entry(path.to_owned()).or_default(), self.clock)
    }

    /// A file was read; without `shown`, nothing new was learned about its text.
    pub(super) fn read(&mut self, path: &str, shown: Option<Shown>) {
        let (file, now) = self.entry(path);
        file.read_at = Some(now);
        let Some(mut shown) = shown else { return };
        if !shown.whole && !shown.text.ends_with('\n') {
            shown.text.push('\n');
        }
        match &mut file.known {
            Some(known) if known.whole && !known.outdated && !shown.whole => {}
            // The next part of what is known already.
            Some(known)
                if !known.outdated
                    && !shown.whole
                    && known.text.ends_with('\n')
                    && known.first + known.text.lines().count() as u64 == shown.first =>
            {
                known.text.push_str(&shown.text);
            }
            known => {
                *known = Some(Known { text: shown.text, first: shown.first, whole: shown.whole, outdated: false });
            }
        }
    }

    /// A file was created or replaced.
    pub(super) fn written(&mut self, path: &str, text: &str) {
        let (file, now) = self.entry(path);
        file.edit(now, EditKind::Written);
        file.known = Some(Known { text: text.to_owned(), first: 1, whole: true, outdated: false });
    }

    /// A file got more at its end, or was created with it.
    pub(super) fn appended(&mut self, path: &str, text: &str) {
        let (file, now) = self.entry(path);
        file.edit(now, EditKind::Changed);
        match &mut file.known {
            Some(known) if known.whole && !known.outdated => known.text.push_str(text),
            Some(known) => known.outdated = true,
            None => {}
        }
    }

    /// Texts in a file were replaced.
    pub(super) fn edited(&mut self, path: &str, changes: &[Change]) {
        // An edit without an old text writes the whole file.
        if let [Change { old, new, .. }] = changes
            && old.is_empty()
        {
            return self.written(path, new);
        }
        let (file, now) = self.entry(path);
        file.edit(now, EditKind::Changed);
        if let Some(known) = &mut file.known {
            changes.iter().for_each(|change| known.replace(&change.old, &change.new, change.all));
        }
    }

    /// A file was changed by a patch, and moved where `to` says so.
    pub(super) fn patched(&mut self, path: &str, hunks: &[Hunk], to: Option<&str>) {
        let (file, now) = self.entry(path);
        file.edit(now, EditKind::Changed);
        if let Some(known) = &mut file.known {
            hunks.iter().for_each(|hunk| known.replace(&hunk.old, &hunk.new, false));
        }
        let Some(to) = to else { return };
        let known = file.known.take();
        file.edited_at = Some((now, EditKind::Deleted));
        let (target, now) = self.entry(to);
        target.edit(now, EditKind::Written);
        target.known = known;
    }

    /// A file was deleted.
    pub(super) fn deleted(&mut self, path: &str) {
        let (file, now) = self.entry(path);
        file.edit(now, EditKind::Deleted);
        file.known = None;
    }

    /// What was read and what was edited, each in the order of the last time.
    pub(super) fn finish(self) -> (Vec<FileRead>, Vec<EditMade>) {
        let (mut read, mut edits) = (Vec::new(), Vec::new());
        for (path, file) in self.files {
            let known = file.known.as_ref();
            let hash =
                known.filter(|known| known.whole && !known.outdated).map(|known| text_hash(known.text.as_bytes()));
            let text = known.map(|known| known.text.clone());
            if let Some(at) = file.read_at {
                read.push((
                    at,
                    FileRead {
                        path: path.clone(),
                        hash: hash.clone(),
                        first_line: known.map(|known| known.first).filter(|first| *first > 1),
                        text: text.clone(),
                        cut: false,
                        outdated: known.map_or(file.edited_at.is_some(), |known| known.outdated),
                        by: None,
                    },
                ));
            }
            if let Some((at, kind)) = file.edited_at {
                let text = text.filter(|_| file.read_at.is_none() && known.is_some_and(|known| known.whole));
                edits.push((at, EditMade { path, kind, times: file.edits, hash, text, cut: false, by: None }));
            }
        }
        read.sort_by_key(|(at, _)| *at);
        edits.sort_by_key(|(at, _)| *at);
        let read = read.into_iter().map(|(_, file)| file).collect();
        (read, edits.into_iter().map(|(_, edit)| edit).collect())
    }
}
