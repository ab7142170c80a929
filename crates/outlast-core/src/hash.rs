//! A small stable hash for jitter, slugs and session ids: never for security.

/// FNV-1a, 64 bit: the same on every machine and in every release, which `std`'s hasher does not promise.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
