//! Shell commands that only show a file or search: for the agents that have nothing but a shell to read with.
//!
//! Only the plainest forms are taken for that, word by word. Anything with a substitution, a redirection or a second
//! program that could change what is shown is a command like any other.

use super::unnumbered;

/// What a command does, where it does nothing else.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// Shows one file.
    Read { path: String, from: Option<u64>, part: bool, numbered: bool },
    /// Searches or lists.
    Look,
}

/// The command that a wrapper such as `bash -lc '…'` runs.
pub(super) fn unwrapped(command: &str) -> String {
    let words = words(command);
    match words.as_deref() {
        Some([shell, flag, inner]) if is_shell(shell) && flag.starts_with('-') && flag.ends_with('c') => inner.clone(),
        _ => command.to_owned(),
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("sh" | "bash" | "zsh" | "dash"))
}

/// What a command does if it is plain, its path joined to the folder it changes to.
pub(super) fn plain(command: &str) -> Option<Plain> {
    let mut rest = command.trim();
    let mut folder = None;
    if let Some((first, then)) = rest.split_once("&&")
        && let Some([cd, to]) = words(first).as_deref()
        && cd == "cd"
    {
        folder = Some(to.clone());
        rest = then.trim();
    }
    let mut plain = match (words(rest), rest.split_once('|')) {
        (Some(words), _) => single(&words)?,
        (None, Some((first, second))) => piped(&words(first)?, &words(second)?)?,
        (None, None) => return None,
    };
    if let (Plain::Read { path, .. }, Some(folder)) = (&mut plain, folder)
        && !path.starts_with('/')
    {
        *path = format!("{}/{path}", folder.trim_end_matches('/'));
    }
    Some(plain)
}

fn single(words: &[String]) -> Option<Plain> {
    let (program, arguments) = words.split_first()?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let whole = |path: &str, numbered| Plain::Read { path: path.to_owned(), from: Some(1), part: false, numbered };
    let part = |path: &str, from| Plain::Read { path: path.to_owned(), from, part: true, numbered: false };
    match (program.as_str(), arguments.as_slice()) {
        ("cat", [path] | ["--", path]) if is_path(path) => Some(whole(path, false)),
        ("cat", ["-n", path]) | ("nl", ["-ba", path]) if is_path(path) => Some(whole(path, true)),
        ("sed", ["-n", range, path]) if is_path(path) => Some(part(path, Some(first_line(range)?))),
        ("head", [path] | ["-n", _, path]) if is_path(path) => Some(part(path, Some(1))),
        ("head", [count, path]) if is_count(count) && is_path(path) => Some(part(path, Some(1))),
        ("tail", [path] | ["-n", _, path]) if is_path(path) => Some(part(path, None)),
        ("tail", [count, path]) if is_count(count) && is_path(path) => Some(part(path, None)),
        ("rg" | "grep" | "ls" | "find" | "tree" | "fd" | "pwd" | "wc", arguments) if only_looks(arguments) => {
            Some(Plain::Look)
        }
        ("git", ["grep" | "ls-files", ..]) => Some(Plain::Look),
        _ => None,
    }
}

/// Two programs, the second of which shows a part of what the first one shows.
fn piped(first: &[String], second: &[String]) -> Option<Plain> {
    let shows = single(first)?;
    let second: Vec<&str> = second.iter().map(String::as_str).collect();
    let (lines, from) = match second.as_slice() {
        ["sed", "-n", range] => (true, Some(first_line(range)?)),
        ["head"] | ["head", "-n", _] => (true, Some(1)),
        ["head", count] if is_count(count) => (true, Some(1)),
        ["sort" | "wc", ..] => (false, None),
        _ => return None,
    };
    match shows {
        Plain::Read { path, from: Some(1), part: false, numbered } if lines => {
            Some(Plain::Read { path, from, part: true, numbered })
        }
        Plain::Look => Some(Plain::Look),
        Plain::Read { .. } => None,
    }
}

fn is_path(word: &str) -> bool {
    !word.is_empty() && !word.starts_with('-')
}

/// `-20`
fn is_count(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|count| !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The first line of `3,9p` or `3p`.
fn first_line(range: &str) -> Option<u64> {
    let lines = range.strip_suffix('p')?;
    let (first, last) = lines.split_once(',').unwrap_or((lines, lines));
    let number = |text: &str| text.parse::<u64>().ok();
    let first = number(first)?;
    (last == "$" || number(last).is_some()).then_some(first)
}

/// Whether a search changes nothing: `find` can run programs and delete.
fn only_looks(arguments: &[&str]) -> bool {
    let acts = ["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fls", "--pre", "-x", "-X"];
    !arguments.iter().any(|word| acts.contains(word))
}

/// The words of a simple command; `None` where the shell would do more than run a program with these words.
pub(super) fn words(command: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let into = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c => into.push(c),
                    }
                }
            }
            '"' => {
                let into = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        '\\' => match chars.next()? {
                            c @ ('"' | '\\' | '$' | '`') => into.push(c),
                            '\n' => {}
                            c => into.extend(['\\', c]),
                        },
                        c => into.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next()?),
            '$' | '`' | '|' | '&' | ';' | '<' | '>' | '(' | ')' | '{' | '}' | '*' | '?' | '[' | '\n' | '#' | '!'
            | '~' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (!words.is_empty()).then_some(words)
}

/// The text of a file in the output of a plain reading command; the number of its first line where it is known.
pub(super) fn output(text: &str, from: Option<u64>, numbered: bool) -> Option<(String, u64)> {
    if numbered {
        return unnumbered(text, "\t");
    }
    Some((text.to_owned(), from?))
}
