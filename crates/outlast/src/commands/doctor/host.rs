//! What this machine offers: room for the state, a sandbox, and whether an engine is at work already.

use std::path::Path;

use nix::sys::statvfs::{Statvfs, statvfs};
use nix::unistd::{AccessFlags, access};
use outlast_api::ExitCode;
use outlast_git::UserRepo;
use outlast_process::Containment;

use super::damage;
use super::found::Found;
use crate::places::Places;
use crate::selection::Journalled;
use crate::text::{bytes, count};

/// Below this, a run stops at its first commits.
const FREE_BYTES_MIN: u64 = 200_000_000;
/// Below this, a dozen workspaces of a middling repository with its build folders do not fit.
const FREE_BYTES_GOOD: u64 = 5_000_000_000;
/// Landlock's first ABI that can keep a program from connecting elsewhere (Linux 6.7, landlock(7)).
const ABI_TCP: u32 = 4;
/// Landlock's first ABI that keeps signals and abstract sockets inside (Linux 6.12, landlock(7)).
const ABI_SCOPES: u32 = 6;

/// The level of containment and sandbox reached, and what stays open. Needs a process with one thread.
pub(crate) fn sandbox() -> Vec<Found> {
    match Containment::probe() {
        Ok(reached) => vec![files(reached.landlock_abi), processes(reached.pid_ns)],
        Err(error) => vec![Found::error("sandbox", ExitCode::Defect, error.to_string())],
    }
}

fn files(abi: Option<u32>) -> Found {
    const NAME: &str = "sandbox: files";
    let Some(abi) = abi else {
        let what = "this kernel has no Landlock: an agent could write whatever you can write";
        return Found::error(NAME, ExitCode::Host, what)
            .fix("use Linux 5.13 or newer with landlock among the modules of /sys/kernel/security/lsm");
    };
    let mut open = vec!["names, sizes and modes of files outside", "UDP", "Unix sockets by path"];
    if abi < ABI_TCP {
        open.push("TCP to any port");
    }
    if abi < ABI_SCOPES {
        open.push("signals to your other processes");
    }
    let detail =
        format!("Landlock ABI {abi}: an agent writes only its workspace, home and temp; open: {}", open.join(", "));
    if abi < ABI_SCOPES {
        return Found::warning(NAME, detail).fix("Linux 6.12 or newer closes more of it");
    }
    Found::ok(NAME, detail)
}

fn processes(pid_ns: bool) -> Found {
    const NAME: &str = "sandbox: processes";
    if pid_ns {
        return Found::ok(NAME, "a pid namespace per attempt: nothing of it outlives its shim");
    }
    let what = "no pid namespace can be entered here: should a shim itself be killed, what its agent has detached lives on \
                until the next engine finds it, and an agent can see the command lines of other processes";
    Found::warning(NAME, what)
        .fix("allow user namespaces: sysctl user.max_user_namespaces, apparmor_restrict_unprivileged_userns")
}

/// The state folder, the journal of this repository, and the engine.
pub(crate) fn state(places: &Places, repository: Option<&UserRepo>) -> Vec<Found> {
    let mut found = vec![disk(places.home.root()), log(places)];
    found.extend(repository.iter().flat_map(|repository| journal(places, repository)));
    if let Some(holder) = places.home.engine() {
        let detail = format!("process {} is at work on {}", holder.pid, holder.repository.display());
        found.push(Found::ok("engine", detail));
    }
    found
}

/// Where what went wrong inside is noted.
fn log(places: &Places) -> Found {
    let path = crate::logfile::path(&places.home);
    let length = match path.metadata() {
        Ok(facts) => bytes(facts.len()),
        Err(_) => "nothing was noted yet".to_owned(),
    };
    Found::ok("log", format!("{} ({length}); OUTLAST_LOG=debug notes more", path.display()))
}

/// The journal, and what it tells of that is damaged.
fn journal(places: &Places, repository: &UserRepo) -> Vec<Found> {
    match Journalled::load(places.home.repository(repository.common_dir())) {
        Ok(None) => Vec::new(),
        Ok(Some(journalled)) => {
            let mut found = vec![Found::ok("journal", format!("sound, {}", count(journalled.core.runs.len(), "run")))];
            found.extend(damage::look(&journalled));
            found
        }
        Err(failure) => vec![Found::failed("journal", &failure)],
    }
}

/// Room for, and leave to write, the state folder; where it is not there yet, what is above it.
fn disk(root: &Path) -> Found {
    const NAME: &str = "disk";
    let Some(there) = root.ancestors().find(|folder| folder.exists()) else {
        return Found::error(NAME, ExitCode::Host, format!("{} cannot be made", root.display()));
    };
    let shown = root.display();
    if !there.is_dir() || access(there, AccessFlags::W_OK | AccessFlags::X_OK).is_err() {
        return Found::error(NAME, ExitCode::Host, format!("{shown}: {} cannot be written", there.display()))
            .fix("outlast --home DIR …    # or mend its permissions");
    }
    let facts = match statvfs(there) {
        Ok(facts) => facts,
        Err(errno) => return Found::warning(NAME, format!("{shown}: how much is free is unknown: {errno}")),
    };
    let free = free_bytes(&facts);
    let detail = format!("{} free for {shown}", bytes(free));
    if free < FREE_BYTES_MIN {
        return Found::error(NAME, ExitCode::Host, detail).fix("free some space; outlast clean lists what can go");
    }
    if free < FREE_BYTES_GOOD {
        return Found::warning(NAME, detail).fix("outlast clean    # lists what can go");
    }
    Found::ok(NAME, detail)
}

/// What an ordinary user may still write.
fn free_bytes(facts: &Statvfs) -> u64 {
    facts.blocks_available().saturating_mul(facts.fragment_size())
}
