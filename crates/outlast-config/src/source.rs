//! The text of one configuration file, and where in it something stands.

use outlast_core::plan::Span;

/// A file that has been read: its name for messages, and its text.
///
/// A byte-order mark is dropped and CRLF becomes LF, so that files written on any system read alike; neither moves a
/// line or a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    /// Where each line begins.
    lines: Vec<usize>,
}

impl Source {
    /// Takes a file's name, as messages are to show it, and its text.
    pub fn new(name: impl Into<String>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, lines }
    }

    /// The file's name as messages show it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text, without byte-order mark and with LF alone.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file's name without folder and extension: `plans/a.b.md` has the stem `a.b`.
    pub fn stem(&self) -> &str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        match file.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => file,
        }
    }

    /// The place of a byte offset; an offset inside a character counts as that character.
    pub(crate) fn span(&self, offset: usize) -> Span {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.lines.partition_point(|&start| start <= offset);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        Span { file: self.name.clone(), line: count(line), column: count(self.text[start..offset].chars().count() + 1) }
    }

    /// The text of a line, counted from 1.
    pub(crate) fn line(&self, line: u32) -> Option<&str> {
        let start = *self.lines.get(usize::try_from(line).ok()?.checked_sub(1)?)?;
        self.text[start..].split('\n').next()
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_whatever_the_line_ends() {
        let source = Source::new("a.toml", "\u{feff}一 = 1\r\nb = 文\r\n");
        assert_eq!(source.text(), "一 = 1\nb = 文\n");
        let at = source.text().find('文').unwrap();
        assert_eq!(source.span(at), Span { file: "a.toml".into(), line: 2, column: 5 });
        assert_eq!(source.span(at + 1).column, 5);
        assert_eq!(source.span(10_000).line, 3);
        assert_eq!(source.line(2), Some("b = 文"));
        assert_eq!(source.line(9), None);
    }

    #[test]
    fn k13_the_stem_keeps_dots_and_capitals() {
        assert_eq!(Source::new("plans/x/Fix-huz.11.md", "").stem(), "Fix-huz.11");
        assert_eq!(Source::new("README", "").stem(), "README");
        assert_eq!(Source::new("a/.md", "").stem(), ".md");
    }
}
