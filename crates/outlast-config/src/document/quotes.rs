//! Where a stray quote turns a TOML file inside out: from there on text is read as keys, and keys as text, and every line of
//! it would be an error of its own.

use super::SyntaxError;

/// The quote that makes nonsense of the rest of a file, whose first error is at `first`: one that opens a text of several
/// lines which runs over what is a table or a key, or to the end of the file. Nothing where each error is one by itself.
pub(super) fn stray(text: &str, first: usize) -> Option<SyntaxError> {
    let mut at = 0;
    while let Some(open) = next_quote(text, at) {
        let quote = &text[open..=open];
        let triple = quote.repeat(3);
        if !text[open..].starts_with(&triple) {
            at = end_of_line_text(text, open);
            continue;
        }
        let begins = open + 3;
        let ends = end_of_long_text(text, begins, &triple);
        let inside = &text[begins..ends.unwrap_or(text.len())];
        let swallows = inside.split_inclusive('\n').skip(1).find(|line| is_structure(line));
        if swallows.is_some() || ends.is_none() {
            // A quote that is missing where a text should begin shows before that.
            let at = open.min(first);
            let message = match (at == open, swallows) {
                (false, _) => {
                    format!("this is no key: a `{triple}` is missing before it, or one is too many behind it")
                }
                (true, Some(line)) => format!("the text that this `{triple}` opens runs on over `{}`", line.trim()),
                (true, None) => format!("nothing ends the text that this `{triple}` opens"),
            };
            return Some(SyntaxError { at, message });
        }
        at = ends? + 3;
    }
    None
}

/// The next quote that is in no comment.
fn next_quote(text: &str, from: usize) -> Option<usize> {
    let mut in_comment = false;
    text[from..].char_indices().find_map(|(at, c)| {
        match c {
            '\n' => in_comment = false,
            '#' => in_comment = true,
            '"' | '\'' if !in_comment => return Some(from + at),
            _ => {}
        }
        None
    })
}

/// Behind a text of one line, or where its line ends without its quote.
fn end_of_line_text(text: &str, open: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != b'\n' {
        match bytes[at] {
            b'\\' if bytes[open] == b'"' => at += 1,
            byte if byte == bytes[open] => return at + 1,
            _ => {}
        }
        at += 1;
    }
    // A character of several bytes may have been stepped into behind a backslash.
    (at.min(text.len())..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Where the quotes are that end a text of several lines.
fn end_of_long_text(text: &str, begins: usize, triple: &str) -> Option<usize> {
    let mut at = begins;
    while let Some(found) = text[at..].find(triple) {
        let end = at + found;
        let backslashes = text[..end].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if !triple.starts_with('"') || backslashes % 2 == 0 {
            return Some(end);
        }
        at = end + 1;
    }
    None
}

/// Whether a line is a table's head, or a key with a value of TOML: no line of prose.
fn is_structure(line: &str) -> bool {
    let line = line.trim();
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"".contains(c));
    let head = line.strip_prefix("[[").and_then(|line| line.strip_suffix("]]"));
    if head.or_else(|| line.strip_prefix('[')?.strip_suffix(']')).is_some_and(is_name) {
        return true;
    }
    let Some((key, value)) = line.split_once(" = ") else { return false };
    is_name(key) && value.starts_with(['"', '\'', '[', '{'])
}
