//! The file and TCP sandbox of a program: Landlock, applied by the program's own process just before it is executed.
//!
//! Best effort by what the kernel's ABI offers, and never weaker than asked for without the launch's file saying which ABI it was.
//! Not covered (see the mission's later issues): stat and chmod outside, UDP, path-name Unix sockets.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, PathFdError,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::public::{self, Part};
use crate::shut::Shut;
use crate::spec::FileRules;

/// The newest ABI this code was measured against; older kernels get what they have.
const NEWEST: ABI = ABI::V7;

/// Devices without state, and the terminal a program may ask for.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Restricts the calling process and all its descendants for ever; `connect` lists the only TCP ports it may reach, `shut` is
/// entered as well.
///
/// # Errors
/// [`Error::Sandbox`] when a rule cannot be made; the caller must not run the program then.
pub(crate) fn restrict(rules: &FileRules, connect: Option<&[u16]>, shut: Option<&Shut>) -> Result<()> {
    // What is named in so many words may be used, shut or not: then each launch names the rest by itself.
    let named = || rules.write.iter().chain(&rules.read).chain(&rules.execute);
    let shut = shut.filter(|shut| !named().any(|path| shut.meets(path)));
    if let Some(shut) = shut {
        shut.enter()?;
    }
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .map_err(refused)?
        .scope(Scope::from_all(NEWEST))
        .map_err(refused)?;
    if connect.is_some() {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp).map_err(refused)?;
    }
    let mut ruleset = ruleset.create().map_err(refused)?;
    ruleset = allow_files(ruleset, rules, shut)?;
    for port in connect.unwrap_or_default() {
        ruleset = ruleset.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(refused)?;
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err(refused("the kernel has Landlock and did not enforce it"));
    }
    Ok(())
}

fn allow_files(mut ruleset: RulesetCreated, rules: &FileRules, shut: Option<&Shut>) -> Result<RulesetCreated> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let required = rules.write.iter().map(|path| (path.as_path(), write, true));
    let optional = rules.read.iter().map(|path| (path.as_path(), read, false));
    let optional = optional.chain(rules.execute.iter().map(|path| (path.as_path(), read | AccessFs::Execute, false)));
    let devices = DEVICES.iter().map(|path| (Path::new(path), device, false));
    for (path, access) in rules.public.iter().flat_map(|folder| public_parts(folder, shut)) {
        ruleset = allow(ruleset, &path, access, false)?;
    }
    for (path, access, required) in required.chain(optional).chain(devices) {
        ruleset = allow(ruleset, path, access, required)?;
    }
    Ok(ruleset)
}

/// What may be read of a folder in which something may be shut. Only root needs it taken apart, where `shut` does not do
/// that: to anybody else the file system shuts what is not theirs.
fn public_parts(folder: &Path, shut: Option<&Shut>) -> Vec<(PathBuf, BitFlags<AccessFs>)> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    if !nix::unistd::Uid::effective().is_root() || shut.is_some_and(|shut| shut.covers(folder)) {
        return vec![(folder.to_owned(), read)];
    }
    let access = |part| match part {
        Part::Whole(path) => (path, read),
        Part::Names(path) => (path, AccessFs::ReadDir.into()),
    };
    public::parts(folder).into_iter().map(access).collect()
}

fn allow(ruleset: RulesetCreated, path: &Path, access: BitFlags<AccessFs>, required: bool) -> Result<RulesetCreated> {
    match PathFd::new(path) {
        Ok(opened) => ruleset.add_rule(PathBeneath::new(opened, access)).map_err(refused),
        Err(PathFdError::OpenCall { .. }) if !required => Ok(ruleset),
        Err(error) => Err(Error::Sandbox { why: format!("{}: {error}", path.display()) }),
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Sandbox { why: error.to_string() }
}
