//! `/proc` as bytes: status, parents, environment and open files of processes.
//!
//! Every answer may be outdated when it is returned; callers that act on a pid compare its start time.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// One letter: R, S, D, T, Z, X…
    pub(crate) state: u8,
    pub(crate) parent: i32,
    /// Clock ticks after boot.
    pub(crate) start_time: u64,
}

impl Stat {
    /// Whether only its exit status is left.
    pub(crate) fn is_dead(self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }
}

/// Reads `/proc/PID/stat`.
pub(crate) fn stat(pid: i32) -> io::Result<Stat> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unknown shape of a stat file"))
}

/// The command name, field 2, may hold spaces and brackets: everything is counted from the last `)`.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let after_name = bytes.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&bytes[after_name..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 is the 18th after field 4.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start_time })
}

/// The kernel's name for this boot.
pub(crate) fn boot_id() -> Result<String> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    Ok(std::fs::read_to_string(path).map_err(Error::file("read", path))?.trim_end().to_owned())
}

/// Every process id visible here.
pub(crate) fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) {
            pids.push(pid);
        }
    }
    Ok(pids)
}

/// Descendants of `root` that are not dead, without `root` and without `spared` and its descendants.
pub(crate) fn descendants(root: i32, spared: Option<i32>) -> io::Result<Vec<i32>> {
    let mut children: HashMap<i32, Vec<(i32, Stat)>> = HashMap::new();
    for pid in pids()? {
        // A process that ended meanwhile is no failure.
        if let Ok(stat) = stat(pid) {
            children.entry(stat.parent).or_default().push((pid, stat));
        }
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for (pid, stat) in children.remove(&parent).unwrap_or_default() {
            if Some(pid) == spared {
                continue;
            }
            open.push(pid);
            if !stat.is_dead() {
                found.push(pid);
            }
        }
    }
    Ok(found)
}

/// How many pid namespaces deep a process is, seen from here: 1 for one of our own.
pub(crate) fn namespace_depth(pid: i32) -> io::Result<usize> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    Ok(line.map_or(1, |pids| pids.split_ascii_whitespace().count()))
}

/// Whether the environment a process was started with holds exactly this entry, as `NAME=value`.
pub(crate) fn has_environment_entry(pid: i32, entry: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|each| each == entry))
}

/// The soft limit of file locks; nothing where it has none.
pub(crate) fn file_locks_max(pid: i32) -> Option<u64> {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max file locks"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// The working directory, where it may be read.
pub(crate) fn working_directory(pid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The first open file of `pid` for which `wanted` holds, where they may be read.
pub(crate) fn open_file(pid: i32, wanted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    entries.flatten().find_map(|entry| std::fs::read_link(entry.path()).ok().filter(|target| wanted(target)))
}

/// The program's name as the kernel keeps it (at most 15 bytes).
pub(crate) fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| name.trim_end().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_program_name_does_not_shift_the_fields() {
        let line = b"7 (a) S 1 (b) R 42 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 999 0 0";
        assert_eq!(parse_stat(line), Some(Stat { state: b'R', parent: 42, start_time: 999 }));
    }

    #[test]
    fn this_process_is_its_parents_descendant() {
        let parent = nix::unistd::getppid().as_raw();
        let me = nix::unistd::getpid().as_raw();
        assert!(descendants(parent, None).unwrap().contains(&me));
        assert!(!descendants(parent, Some(me)).unwrap().contains(&me));
    }
}
