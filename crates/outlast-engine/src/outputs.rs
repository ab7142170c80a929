//! The end of what a program has said: enough to see how it went, however much it was.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// How much of the end of an output is looked at.
const TAIL_BYTES: u64 = 16 * 1024;

/// The last lines of an output that say something, oldest first, without the white space around them; none where the
/// output cannot be read. A line that is longer than all that is looked at lacks its beginning.
pub fn last_lines(path: &Path, most: usize) -> Vec<String> {
    let text = end_of(path).unwrap_or_default();
    let mut lines: Vec<String> =
        text.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(most).map(str::to_owned).collect();
    lines.reverse();
    lines
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_however_much_there_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..50_000).map(|n| format!("line {n}\n\n")).collect();
        std::fs::write(file.path(), text + "  last \n").unwrap();
        assert_eq!(last_lines(file.path(), 2), ["line 49999", "last"]);
        std::fs::write(file.path(), "one").unwrap();
        assert_eq!(last_lines(file.path(), 5), ["one"]);
        assert!(last_lines(Path::new("/nowhere/at/all"), 3).is_empty());
    }
}
