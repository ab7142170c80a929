//! Asking the kernel which Landlock it has.

#![expect(unsafe_code, reason = "the version query has no safe wrapper")]

const CREATE_RULESET_VERSION: u32 = 1;

/// The kernel's Landlock ABI; `None` where it is not built in or switched off.
pub(crate) fn query() -> Option<u32> {
    // SAFETY: with a null attribute of size 0 and the version flag the kernel only answers with a number.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0, CREATE_RULESET_VERSION)
    };
    u32::try_from(answer).ok().filter(|abi| *abi > 0)
}
