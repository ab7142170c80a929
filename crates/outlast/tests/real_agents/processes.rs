//! Processes by what `/proc` says of them: who descends from whom, environments and command lines.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Every process there is, with its parent.
pub(crate) fn parents() -> BTreeMap<i32, i32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The parent of a process; nothing when it is gone.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process is below another one, or that one itself.
pub(crate) fn descends(parents: &BTreeMap<i32, i32>, mut pid: i32, from: i32) -> bool {
    loop {
        if pid == from {
            return true;
        }
        match parents.get(&pid) {
            Some(&parent) if parent != pid => pid = parent,
            _ => return false,
        }
    }
}

/// Kills a process and everything below it, the process first: nobody is left to tell how the others ended.
pub(crate) fn kill_tree(root: i32) {
    let parents = parents();
    let below = parents.keys().copied().filter(|&pid| pid != root && descends(&parents, pid, root));
    let below: Vec<i32> = below.collect();
    assert!(!below.is_empty(), "process {root} has a program");
    kill(Pid::from_raw(root), Signal::SIGKILL).unwrap();
    for pid in below {
        // It may have ended with its parent.
        let _gone = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
}
