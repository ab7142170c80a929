//! Cutting texts to a length in bytes without breaking a character.

/// The longest beginning of `text` of at most `max` bytes.
pub fn head(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of `text` of at most `max` bytes.
pub fn tail(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut start = text.len() - max;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Cuts `text` to its beginning.
pub(super) fn keep_head(text: &mut String, max: usize) {
    let len = head(text, max).len();
    text.truncate(len);
}

/// Cuts `text` to its end.
pub(super) fn keep_tail(text: &mut String, max: usize) {
    let cut = text.len() - tail(text, max).len();
    text.drain(..cut);
}
