//! Globs over paths of a repository: does a path match, and can two globs ever name the same path?
//!
//! One reading serves both questions, so that a scope check and a schedule cannot disagree. A glob is compiled into a
//! small automaton; two globs overlap when their automata can walk one path together. The walk visits each pair of
//! states once, so no input makes it explode, and no file is ever looked at: a path that does not exist yet counts.
//!
//! Syntax: `*` and `?` stay within a segment, `**` as a whole segment is any number of directories (at the end:
//! everything beneath), `[a-z]` and `[!a-z]` are one character, `{a,b}` is a choice, `\` takes the next character
//! literally, a trailing `/` means everything beneath. Paths are bytes; a byte that is no UTF-8 counts as a character.

mod nfa;
mod parse;
mod set;

use nfa::Nfa;

/// Longest glob that is read, in bytes: it bounds the cost of comparing two of them to well under a second.
pub const LEN_MAX: usize = 1024;

/// Why a text is no glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to match.
    #[error("the glob is empty")]
    Empty,
    /// The text is longer than [`LEN_MAX`].
    #[error("the glob is {0} bytes long, more than {LEN_MAX}")]
    TooLong(usize),
    /// A `[` is never closed.
    #[error("`[` has no matching `]`")]
    UnclosedClass,
    /// A range such as `z-a`.
    #[error("the range `{0}-{1}` runs backwards")]
    BackwardRange(char, char),
    /// A `{` is never closed, or a `}` was never opened.
    #[error("`{{` and `}}` do not pair up")]
    UnpairedBrace,
    /// Braces are nested deeper than anyone writes.
    #[error("braces are nested more than {} deep", parse::DEPTH_MAX)]
    TooDeep,
    /// A `**` ends a choice, but the glob goes on after the braces.
    #[error("`**` at the end of a choice in braces must end the whole glob")]
    DirectoriesInChoice,
    /// The text ends in a `\`.
    #[error("the glob ends in `\\`, which escapes nothing")]
    DanglingEscape,
}

/// A compiled glob.
#[derive(Debug, Clone)]
pub struct Glob {
    nfa: Nfa,
}

impl Glob {
    /// Reads a glob.
    ///
    /// # Errors
    /// The text is no glob; the variants of [`Error`] say why.
    pub fn parse(glob: &str) -> Result<Self, Error> {
        if glob.len() > LEN_MAX {
            return Err(Error::TooLong(glob.len()));
        }
        Ok(Self { nfa: Nfa::of(&parse::parse(glob)?) })
    }

    /// Tells whether the glob names exactly this path, relative to the root and with `/`.
    pub fn matches(&self, path: &[u8]) -> bool {
        self.nfa.accepts(path, false)
    }

    /// Tells whether the glob names this path or a directory above it.
    pub fn covers(&self, path: &[u8]) -> bool {
        self.nfa.accepts(path, true)
    }

    /// Tells whether some path is covered by both globs: one file, or a file and something beneath it.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.nfa.meets(&other.nfa)
    }
}

/// Tells whether two globs can name the same path, or one a path beneath a path of the other.
///
/// A text that is no glob overlaps everything, because nothing is known about it.
pub fn overlap(a: &str, b: &str) -> bool {
    if plainly_apart(a, b) {
        return false;
    }
    match (Glob::parse(a), Glob::parse(b)) {
        (Ok(a), Ok(b)) => a.overlaps(&b),
        _ => true,
    }
}

/// Tells two globs apart by how they begin, where that is enough: a schedule compares many that have nothing in common.
pub(crate) fn plainly_apart(a: &str, b: &str) -> bool {
    // Of any other text it is not known without a full reading whether it is a glob at all.
    let simple = |glob: &str| !glob.is_empty() && glob.len() <= LEN_MAX && !glob.contains(['[', '{', '}', '\\']);
    let fixed = |glob: &str| glob.find(['*', '?']).unwrap_or(glob.len());
    let common = fixed(a).min(fixed(b));
    a.as_bytes()[..common] != b.as_bytes()[..common] && simple(a) && simple(b)
}

#[cfg(test)]
mod tests;
