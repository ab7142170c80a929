//! Newtypes for every name the system passes around, so that one cannot stand in for another.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// Wraps a name that its reader has already checked.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self(name.to_owned())
            }
        }
    };
}

name!(
    /// One execution of a plan, such as `migrate-7f3a`. Lower case, safe in paths and refs.
    RunId
);
name!(
    /// A task's id as its author wrote it: any script, dots and capitals included. Not safe in paths: see [`TaskId::slug`].
    TaskId
);
name!(
    /// The name of an `[agent.NAME]` table.
    AgentName
);
name!(
    /// The name of an `[account.NAME]` table.
    AccountId
);
name!(
    /// A git object id in hexadecimal, SHA-1 or SHA-256.
    Oid
);
name!(
    /// One request to a provider and its answer, by the name it has in the ledger.
    ExchangeId
);

impl TaskId {
    /// A name for this task that is safe as one component of a path and of a ref, on file systems that fold case too.
    ///
    /// Lower-case ASCII letters, digits, `-` and `_` stay, a dot between two of them stays; anything else, capitals
    /// included, makes the slug carry eight hexadecimal digits of a hash of the whole id, so that two ids never share
    /// a slug by accident of case or script.
    pub fn slug(&self) -> String {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let chars: Vec<char> = self.0.chars().collect();
        let mut slug = String::new();
        let mut changed = chars.len() > SLUG_LEN_MAX;
        for (i, &c) in chars.iter().take(SLUG_LEN_MAX).enumerate() {
            let dot_inside = c == '.' && i > 0 && plain(chars[i - 1]) && chars.get(i + 1).is_some_and(|&n| plain(n));
            if plain(c) && !(c == '-' && slug.is_empty()) || dot_inside {
                slug.push(c);
                continue;
            }
            changed = true;
            if c.is_ascii_uppercase() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.is_empty() && !slug.ends_with('-') {
                slug.push('-');
            }
        }
        let slug = slug.trim_matches(['-', '.']).to_owned();
        // `x.lock` is not a legal ref component (git-check-ref-format).
        if !changed && !slug.is_empty() && !slug.ends_with(".lock") {
            return slug;
        }
        let hash = crate::hash::fnv1a(self.0.as_bytes()) as u32;
        if slug.is_empty() { format!("t-{hash:08x}") } else { format!("{}-{hash:08x}", slug.trim_end_matches(".lock")) }
    }
}

/// Longest part of an id that goes into its slug: a path component may hold 255 bytes, and suffixes follow.
const SLUG_LEN_MAX: usize = 60;

/// One try of a task: `<task>.<n>`, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The run the task belongs to.
    pub run: RunId,
    /// The task that is tried.
    pub task: TaskId,
    /// Which try, counted from 1.
    pub number: u32,
}

impl AttemptId {
    /// A name safe as one path or URL component, unique within the run.
    pub fn slug(&self) -> String {
        format!("{}.{}", self.task.slug(), self.number)
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.number)
    }
}

/// Rises with every change of an attempt's owner; an outcome that carries an older one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    fn slug(id: &str) -> String {
        TaskId::from(id).slug()
    }

    #[test]
    fn a_plain_id_is_its_own_slug() {
        assert_eq!(slug("payment-client"), "payment-client");
        assert_eq!(slug("huz.11"), "huz.11");
    }

    #[test]
    fn k02_k13_ids_that_would_collide_or_vanish_keep_apart() {
        assert_ne!(slug("Foo"), slug("foo"));
        assert_ne!(slug("文档"), slug("说明"));
        assert!(slug("文档").starts_with("t-"));
        for hostile in ["..", ".", "a/b", "a..b", "x.lock", "-rf", "a b", "", "~", "a\u{0}b", "@{", "HEAD^"] {
            let s = slug(hostile);
            assert!(
                !s.is_empty() && !s.contains('/') && !s.contains("..") && !s.starts_with(['-', '.']),
                "{hostile:?} -> {s}"
            );
            assert!(!s.ends_with(".lock") && s.is_ascii());
        }
        assert!(slug(&"x".repeat(400)).len() < 100);
    }
}
