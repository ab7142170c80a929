//! Keeps the allocator from holding more memory than is in use.

/// Lets all threads of this process share a few heaps, and these give back what is free; to be called before there are any
/// threads.
///
/// glibc gives each thread a heap of its own, up to eight for each processor, and what one thread frees there is of no use
/// to the others. It also keeps up to twice the largest block that was ever freed, until it is told a bound. Elsewhere this
/// does nothing.
pub fn share_heaps() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    share();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc's mallopt has no safe wrapper")]
fn share() {
    /// One for the threads that pass bytes on, one for those that write them down.
    const HEAPS: libc::c_int = 2;
    /// What is free at a heap's end before it is given back, in bytes.
    const KEPT: libc::c_int = 512 << 10;
    for (setting, value) in [(libc::M_ARENA_MAX, HEAPS), (libc::M_TRIM_THRESHOLD, KEPT)] {
        // SAFETY: mallopt takes two plain numbers and touches nothing but the allocator's own settings.
        let _taken = unsafe { libc::mallopt(setting, value) };
    }
}

/// Returns what is free inside the heap to the system.
///
/// Decoding the price table frees ten megabytes in pieces between what it keeps, and glibc gives back only what lies at
/// the heap's end by itself. Elsewhere this does nothing.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc's malloc_trim has no safe wrapper")]
fn trim() {
    // SAFETY: malloc_trim takes a plain number, locks the allocator's arenas itself and touches only free memory.
    let _released = unsafe { libc::malloc_trim(0) };
}
