//! What its owner has shut to others, kept from every program at once: one layer of the sandbox, made ahead.
//!
//! The kernel's sandbox only ever adds, so that one file is left out of a folder by naming all the others: of `/etc` about
//! two hundred rules, most of what a launch would cost. They are the same for every program, so whoever forks the launches
//! makes them once; each program enters this layer first, and then a small one of its own, and may do what both allow.

use std::fs::Metadata;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landlock::{
    AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr,
};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use crate::error::{Error, Result};
use crate::public::{self, Part};
use crate::sys::landlock_abi;

/// How old a layer may be: what is shut later in a folder that was open is not seen by a running program's sandbox either.
const AGE_MAX: Duration = Duration::from_secs(60);

/// How many programs enter one layer: each leaves a rule of its own there, which the next ones would copy.
const ENTERED_MAX: u32 = 100;

/// The layer, and what it was made of.
#[derive(Debug)]
pub(crate) struct Shut {
    layer: OwnedFd,
    folders: Vec<PathBuf>,
    made: Instant,
    entered: u32,
    /// Of each folder above those: what is in it is in the layer by name.
    above: Vec<(PathBuf, Stamp)>,
}

/// Which folder it was, and when something was last added to it.
type Stamp = (u64, u64, i64, i64);

impl Shut {
    /// Makes the layer that keeps shut what is shut in `folders`, which do not lie in one another.
    ///
    /// # Errors
    /// [`Error::Sandbox`].
    pub(crate) fn make(folders: &[PathBuf]) -> Result<Self> {
        let unseen = |error: io::Error| Error::Sandbox { why: format!("look for what is shut: {error}") };
        let above = stamps(folders).map_err(unseen)?;
        // Moving something between folders is refused by a layer that does not allow it, whatever else that is about.
        let handled = AccessFs::ReadFile | AccessFs::Refer;
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(handled)
            .and_then(Ruleset::create)
            .map_err(refused)?;
        for folder in folders {
            for path in public::beside(folder).map_err(unseen)? {
                // Another of the folders, or what is above it, is named in parts.
                if !folders.iter().any(|other| other.starts_with(&path)) {
                    ruleset = allow(ruleset, &path, handled)?;
                }
            }
            for part in public::parts(folder) {
                if let Part::Whole(path) = part {
                    ruleset = allow(ruleset, &path, AccessFs::ReadFile.into())?;
                }
            }
        }
        let layer = Option::<OwnedFd>::from(ruleset).ok_or_else(|| refused("the kernel made no ruleset"))?;
        Ok(Self { layer, folders: folders.to_vec(), made: Instant::now(), entered: 0, above })
    }

    /// Notes that another program is about to enter it: one more rule.
    pub(crate) const fn expect_one(&mut self) {
        self.entered += 1;
    }

    /// Whether it is still what [`Shut::make`] would make, as far as that can be told cheaply.
    pub(crate) fn is_current(&self) -> bool {
        self.made.elapsed() < AGE_MAX
            && self.entered < ENTERED_MAX
            && stamps(&self.folders).is_ok_and(|now| now == self.above)
    }

    /// Whether it keeps shut what is shut in `folder`.
    pub(crate) fn covers(&self, folder: &Path) -> bool {
        self.folders.iter().any(|covered| covered == folder)
    }

    /// Whether a path lies in one of its folders, or above one.
    pub(crate) fn meets(&self, path: &Path) -> bool {
        self.folders.iter().any(|covered| covered.starts_with(path) || path.starts_with(covered))
    }

    /// Enters it, for ever. The program's namespace has a `/proc` of its own, which no rule made before it can name.
    ///
    /// # Errors
    /// [`Error::Sandbox`]; the program must not run then.
    pub(crate) fn enter(&self) -> Result<()> {
        let flags = OFlag::O_PATH | OFlag::O_CLOEXEC;
        let proc = open("/proc", flags, Mode::empty()).map_err(Error::system("open /proc"))?;
        landlock_abi::allow_reading(self.layer.as_fd(), proc.as_fd()).map_err(refused)?;
        landlock_abi::restrict_self(self.layer.as_fd()).map_err(refused)
    }
}

impl AsFd for Shut {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.layer.as_fd()
    }
}

fn stamps(folders: &[PathBuf]) -> io::Result<Vec<(PathBuf, Stamp)>> {
    let stamp = |found: Metadata| (found.dev(), found.ino(), found.mtime(), found.mtime_nsec());
    let above = folders.iter().flat_map(|folder| folder.ancestors().skip(1));
    above.map(|path| Ok((path.to_owned(), stamp(path.metadata()?)))).collect()
}

/// Allows `access` beneath a path; one that is gone meanwhile needs no leave.
fn allow(ruleset: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated> {
    match PathFd::new(path) {
        Ok(opened) => ruleset.add_rule(PathBeneath::new(opened, access)).map_err(refused),
        Err(_) => Ok(ruleset),
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Sandbox { why: error.to_string() }
}
