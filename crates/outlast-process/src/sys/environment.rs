//! Forgetting the environment a process was started with.

#![expect(unsafe_code, reason = "the block is reached through the C library's own pointer")]

use std::ffi::c_char;

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Overwrites every entry of this process's environment and forgets it.
///
/// A fork keeps the block of the program it was forked from, keys that a user has exported included, and
/// `/proc/PID/environ` shows it for as long as the process lives. The caller has one thread.
pub(crate) fn wipe() {
    // SAFETY: with a single thread nobody else reads or changes the environment. The pointer is null or leads to an array
    // of writable, NUL-terminated strings that ends with a null pointer; each is overwritten within its own length, and the
    // array is not used again once the C library has been told to forget it.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            std::ptr::write_bytes(*entry, 0, libc::strlen(*entry));
            entry = entry.add(1);
        }
        environ = std::ptr::null_mut();
    }
}
