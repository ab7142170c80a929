//! A mark that whatever an attempt starts inherits, and keeps where it clears its environment: its limit of file locks.
//!
//! Linux has counted no file locks since 2.4.25 and looks at this limit nowhere, but hands it on to every child and shows it to
//! everybody in `/proc`. Only the soft limit is set, so that an outlast inside of an agent can mark its own. On a host that
//! limits what nobody uses the mark may not fit: there the environment alone tells.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::{Error, Result};
use crate::sys::procfs;

/// The mark of everything with this marker: no number that anybody would set as a limit.
pub(crate) fn of(marker: &str) -> u64 {
    // What was started by an older version of this program must be found by a newer one. Infinity is the largest number, and
    // files show none beyond an `i64`.
    outlast_core::hash::fnv1a(marker.as_bytes()) >> 2 | 1 << 61
}

/// Marks this process and all that it will start.
///
/// # Errors
/// [`Error::System`] where the limit cannot be read or set.
pub(crate) fn bear(mark: u64) -> Result<()> {
    let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS).map_err(Error::system("read the limit of file locks"))?;
    if mark <= hard {
        setrlimit(Resource::RLIMIT_LOCKS, mark, hard).map_err(Error::system("mark the program"))?;
    }
    Ok(())
}

/// Whether a process bears a mark.
pub(crate) fn is_on(pid: i32, mark: u64) -> bool {
    procfs::file_locks_max(pid) == Some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_marker_has_a_mark_of_its_own_which_stays_what_it_is() {
        assert_eq!(of("/home/me/.outlast/shop:r/t.1"), of("/home/me/.outlast/shop:r/t.1"));
        assert_ne!(of("/home/me/.outlast/shop:r/t.1"), of("/home/me/.outlast/shop:r/t.2"));
        assert_eq!(of(""), 0xcbf2_9ce4_8422_2325 >> 2 | 1 << 61);
    }
}
