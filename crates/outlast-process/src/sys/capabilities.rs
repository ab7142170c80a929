//! Giving up root's powers: Landlock alone does not stop a root process from reading a neighbour's environment.

#![expect(unsafe_code, reason = "capset and the bounding set have no safe wrapper in nix")]

use nix::errno::Errno;

const VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops every capability of this process, for good: bounding and ambient set first, then the rest.
///
/// Without the power to do so (an ordinary user has none) the bounding set stays, which is harmless: with `no_new_privs`
/// nothing can be gained from it.
pub(crate) fn drop_all() -> nix::Result<()> {
    for capability in 0..64 {
        // SAFETY: integers only.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match Errno::result(result) {
            Ok(_) => {}
            // EINVAL: past the last capability of this kernel.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(errno) => return Err(errno),
        }
    }
    // SAFETY: integers only.
    let cleared = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    Errno::result(cleared)?;
    let header = Header { version: VERSION_3, pid: 0 };
    let nothing = [Data::default(); 2];
    // SAFETY: version 3 reads one header and two data blocks, which live until the call returns.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, nothing.as_ptr()) };
    Errno::result(result).map(drop)
}
