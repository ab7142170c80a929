//! Words of commands that people paste into a shell.

/// A text as one word of a shell, whatever is in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
