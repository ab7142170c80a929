//! How many files this process may have open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises this process's limit of open files as far as the system lets it.
///
/// A request that is passed on takes three of them, and the usual limit is 1,024. To be called after the spawner was forked:
/// agents keep the limit that they were given, since programs exist that break where it is high (`select`).
pub fn raise_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Where even this is refused, what the user gave is what there is.
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_becomes_what_the_system_lets_it_be() {
        let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, hard - 1, hard).unwrap();
        raise_limit();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    }
}
