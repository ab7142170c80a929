//! How large a file may become that this process writes (`ulimit -f`).

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::error::{Error, Result};
use crate::sys::signals;

/// Has a write beyond the limit fail, which can be told, where the system would end the process without a word (SIGXFSZ).
///
/// To be called before the spawner is forked: shims write files too. Programs that they start get the signal's default back.
///
/// # Errors
/// [`Error::System`] when the system refuses.
pub fn fail_beyond_limit() -> Result<()> {
    signals::ignore_file_size().map_err(Error::system("ignore SIGXFSZ"))
}

/// The limit in bytes, where there is one.
pub fn limit() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_FSIZE).ok()?;
    (soft != RLIM_INFINITY).then_some(soft)
}
