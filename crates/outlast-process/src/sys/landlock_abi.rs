//! Asking the kernel which Landlock it has, and entering a ruleset made ahead.

#![expect(unsafe_code, reason = "neither the version query nor a ruleset from another process has a safe wrapper")]

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const ACCESS_READ_FILE: u64 = 1 << 2;

/// The kernel's Landlock ABI; `None` where it is not built in or switched off.
pub(crate) fn query() -> Option<u32> {
    // SAFETY: with a null attribute of size 0 and the version flag the kernel only answers with a number.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0, CREATE_RULESET_VERSION)
    };
    u32::try_from(answer).ok().filter(|abi| *abi > 0)
}

/// As `landlock_path_beneath_attr` of the kernel.
#[repr(C, packed)]
struct PathBeneath {
    allowed_access: u64,
    parent_fd: i32,
}

/// Allows reading files beneath `folder` in a ruleset that handles that.
pub(crate) fn allow_reading(ruleset: BorrowedFd<'_>, folder: BorrowedFd<'_>) -> nix::Result<()> {
    let rule = PathBeneath { allowed_access: ACCESS_READ_FILE, parent_fd: folder.as_raw_fd() };
    // SAFETY: the attribute has the kernel's layout and outlives the call, which keeps no pointer to it.
    let result = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), RULE_PATH_BENEATH, &raw const rule, 0)
    };
    Errno::result(result).map(drop)
}

/// Restricts the calling process, which has given up new privileges, by a ruleset that was made ahead.
pub(crate) fn restrict_self(ruleset: BorrowedFd<'_>) -> nix::Result<()> {
    // SAFETY: takes a descriptor and no pointers; the kernel refuses what is no ruleset.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    Errno::result(result).map(drop)
}
