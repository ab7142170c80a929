//! Keeps the allocators from holding more memory than is in use.
//!
//! Rust's own allocations are mimalloc's (see the binary's `main`), those of SQLite and zstd the system's.

/// Makes both allocators give back what is free, and lets all threads of this process share a few of the system's heaps; to
/// be called before there are any threads.
///
/// mimalloc keeps free pages for a while, in case they are wanted again: answers come minutes apart. glibc gives each thread a
/// heap of its own, up to eight for each processor, and what one thread frees there is of no use to the others; it
/// also keeps up to twice the largest block that was ever freed, until it is told a bound.
#[expect(unsafe_code, reason = "the settings of allocators have no safe wrapper")]
pub fn keep_little() {
    /// `mi_option_purge_delay` of `mimalloc.h`, in milliseconds; the crate does not name it.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: takes two plain numbers and touches nothing but the allocator's own settings.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, 0) };
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    share_heaps();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc's mallopt has no safe wrapper")]
fn share_heaps() {
    /// One for the threads that pass bytes on, one for those that write them down.
    const HEAPS: libc::c_int = 2;
    /// What is free at a heap's end before it is given back, in bytes.
    const KEPT: libc::c_int = 512 << 10;
    for (setting, value) in [(libc::M_ARENA_MAX, HEAPS), (libc::M_TRIM_THRESHOLD, KEPT)] {
        // SAFETY: mallopt takes two plain numbers and touches nothing but the allocator's own settings.
        let _taken = unsafe { libc::mallopt(setting, value) };
    }
}

/// Returns what is free inside this thread's heap to the system.
///
/// Decoding the price table frees ten megabytes in pieces between what it keeps.
#[expect(unsafe_code, reason = "mimalloc's mi_collect has no safe wrapper")]
pub(crate) fn give_back() {
    // SAFETY: takes a plain flag and touches only free memory of the calling thread's heap, and what threads that have
    // ended have left.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
