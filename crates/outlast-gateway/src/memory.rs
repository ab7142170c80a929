//! Gives memory back to the system that the allocator would keep.

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
