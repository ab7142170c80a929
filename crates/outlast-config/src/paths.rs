//! Paths and globs of a plan: inside the repository, with `/`, in one spelling.

use outlast_core::glob::Glob;

use crate::Code;
use crate::document::Table;
use crate::layer::Texts;
use crate::reader::{Located, Reader};

/// What a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meant {
    /// A glob over files.
    Glob,
    /// One file.
    Path,
}

/// Reads a list of paths or globs; those that cannot be kept become findings.
pub(crate) fn read_list(reader: &mut Reader<'_>, table: &Table, key: &str, meant: Meant) -> Option<Texts> {
    let texts = reader.texts(table, key)?;
    let kept = texts.value.into_iter().filter_map(|text| keep(reader, key, text, meant)).collect();
    Some(Located { value: kept, at: texts.at })
}

/// Reads one path or glob.
pub(crate) fn read_one(reader: &mut Reader<'_>, table: &Table, key: &str, meant: Meant) -> Option<Located<String>> {
    let text = reader.text(table, key)?;
    keep(reader, key, text, meant)
}

fn keep(reader: &mut Reader<'_>, key: &str, text: Located<String>, meant: Meant) -> Option<Located<String>> {
    match normal(&text.value, meant) {
        Ok(value) => Some(Located { value, at: text.at }),
        Err((code, fault)) => {
            let message = format!("`{}` in `{key}` {fault}", text.value.escape_debug());
            let fix = match code {
                Code::OutsideRepository => "name files by their path from the repository's root",
                _ => "write a glob such as \"src/payment/**\"",
            };
            reader.note(code, &text.at, message, fix);
            None
        }
    }
}

/// One spelling: no `./`, no doubled or trailing slash (a trailing one means everything beneath).
fn normal(text: &str, meant: Meant) -> Result<String, (Code, String)> {
    let outside = |fault: &str| Err((Code::OutsideRepository, fault.to_owned()));
    let bad = |fault: &str| Err((Code::BadGlob, fault.to_owned()));
    let bytes = text.as_bytes();
    if text.starts_with('/') {
        return outside("is an absolute path");
    }
    if text.starts_with('~') {
        return outside("is in a home folder");
    }
    if bytes.len() > 1 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return outside("names a drive");
    }
    if text.contains('\0') {
        return bad("holds a NUL, which no path can");
    }
    if text.starts_with('!') {
        return bad("is a negation, which a scope cannot express");
    }
    if text.contains('\\') && meant == Meant::Path {
        return bad("holds a backslash; paths are written with `/`");
    }
    if text.split('\\').skip(1).any(|after| after.starts_with(char::is_alphanumeric)) {
        return bad("holds a backslash before a letter; paths are written with `/`");
    }
    if text.split(['/', '{', ',', '}']).any(|part| part == "..") {
        return outside("goes up with `..`");
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let mut path = parts.join("/");
    let folder = text.ends_with('/') || text == "." || text.ends_with("/.");
    match (folder, meant) {
        (true, Meant::Glob) if path.is_empty() => path.push_str("**"),
        (true, Meant::Glob) => path.push_str("/**"),
        (true, Meant::Path) => return bad("is a folder, not a file"),
        _ => {}
    }
    if path.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case(".git")) {
        return outside("is git's own folder");
    }
    if path.is_empty() {
        return bad("names nothing");
    }
    if meant == Meant::Glob {
        Glob::parse(&path).map_err(|error| (Code::BadGlob, format!("is no glob: {error}")))?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_for_one_meaning() {
        let glob = |text| normal(text, Meant::Glob).unwrap();
        assert_eq!(glob("./src//a.rs"), "src/a.rs");
        assert_eq!(glob("src/"), "src/**");
        assert_eq!(glob("."), "**");
        assert_eq!(glob("文 档/*.md"), "文 档/*.md");
        assert_eq!(glob("a/..b/c.."), "a/..b/c..");
        assert_eq!(glob(".github/**"), ".github/**");
        assert_eq!(normal("a[1].md", Meant::Path).unwrap(), "a[1].md");
    }

    #[test]
    fn g08_every_way_out_of_the_repository_is_refused() {
        for way in [
            "/etc/passwd",
            "~/.ssh",
            "~root",
            "C:/x",
            "c:\\x",
            "../x",
            "a/../../x",
            "a/..",
            "..",
            "{..,a}/x",
            "{a,../b}",
            ".git/config",
            "./.git/hooks/x",
            ".GIT/config",
        ] {
            assert_eq!(normal(way, Meant::Glob).unwrap_err().0, Code::OutsideRepository, "{way}");
        }
        for fault in ["", "src\\a.rs", "a[b", "{a", "!src/x", "a\0b"] {
            assert_eq!(normal(fault, Meant::Glob).unwrap_err().0, Code::BadGlob, "{fault}");
        }
        assert_eq!(normal("src\\a.rs", Meant::Path).unwrap_err().0, Code::BadGlob);
        assert_eq!(normal("src/", Meant::Path).unwrap_err().0, Code::BadGlob);
    }
}
