//! Words of commands that people paste into a shell.

/// A text as one word of a shell: as it is where a shell takes it so, quoted else. What a plan or a repository names may hold
/// anything, and is pasted with the command around it.
pub fn word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) { text.to_owned() } else { quoted(text) }
}

/// A text as one word of a shell, whatever is in it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_where_a_shell_would_read_more_into_it() {
        for plain in ["build-it", "src/a.rs", "café_2", "v1.0+x,y@z"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("x;touch$IFS-y"), "'x;touch$IFS-y'");
        assert_eq!(word("it's"), r"'it'\''s'");
        assert_eq!(word(""), "''");
    }
}
