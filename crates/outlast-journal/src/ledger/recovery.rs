//! What an earlier process left in the spool: found at the start, written into the ledger, never thrown away.

use std::fs;
use std::path::{Path, PathBuf};

use super::Ledger;
use super::frames::{self, Contents, Parsed};
use super::keeper::{Finished, Message};
use super::row::{Reckoning, Unfinished};
use super::slot::{EXTENSION, Slot, Slots};
use crate::pending;
use crate::{Error, fault};

/// What the start of the ledger found in the spool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Exchanges that are in the ledger now because of it, by their ids.
    pub kept: Vec<String>,
    /// Files that this release cannot read, as they are called now.
    pub unreadable: Vec<PathBuf>,
}

/// How many files are read at a time, and how many empty ones are kept open from then on: a process may open few, and what
/// was left may be very many.
const OPEN_MAX: usize = 32;

/// Finds what lies in `folder`, in the order of its names, so that the same folder always enters the ledger in the same order.
pub(super) fn collect(folder: &Path) -> Result<(Slots, Vec<PathBuf>), Error> {
    let mut next = 0;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| fault::io(folder, "list", error))? {
        let path = entry.map_err(|error| fault::io(folder, "list", error))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            next = number.map_or(next, |number| next.max(number + 1));
            found.push(path);
        }
    }
    found.sort();
    Ok((Slots::new(folder, next), found))
}

/// Writes what was left into the ledger; the files of exchanges that never began are free at once.
pub(super) fn keep(
    left: &[PathBuf],
    ledger: &Ledger,
    reckon: impl Fn(&Unfinished<'_>) -> Reckoning,
) -> Result<Recovery, Error> {
    let mut recovery = Recovery::default();
    for some in left.chunks(OPEN_MAX) {
        keep_some(some, ledger, &reckon, &mut recovery)?;
        // Each is used again, and stays open until then.
        ledger.shared.slots.keep_free(OPEN_MAX);
    }
    Ok(recovery)
}

fn keep_some(
    left: &[PathBuf],
    ledger: &Ledger,
    reckon: impl Fn(&Unfinished<'_>) -> Reckoning,
    recovery: &mut Recovery,
) -> Result<(), Error> {
    let mut under_way = Vec::new();
    let mut file = Vec::new();
    for path in left {
        let slot = Slot::open(path.clone())?;
        slot.read(&mut file)?;
        match frames::parse(&mut file) {
            Parsed::Exchange(contents) => {
                let is_told = contents.end().is_some_and(|end| !end.unread);
                let Contents { opening, head, answer, .. } = *contents;
                let unfinished = Unfinished { opening: &opening, head: head.as_ref(), answer };
                let reckoning = (!is_told).then(|| reckon(&unfinished));
                let (promise, pending) = pending::pair(slot.path());
                // Refused only when the keeper has panicked; the promise in the message says so.
                let finished = Finished { slot, end: None, later: None, reckoning, promise: Some(promise) };
                drop(ledger.shared.sender.send(Message::Finished(Box::new(finished))));
                under_way.push((opening.exchange, pending));
            }
            Parsed::NeverBegan => ledger.shared.slots.put_back(slot),
            Parsed::Unreadable => recovery.unreadable.push(slot.set_aside()?),
        }
    }
    for (exchange, pending) in under_way {
        match pending.wait() {
            Ok(()) => recovery.kept.push(exchange),
            // The earlier process had written it and ended before it emptied the file.
            Err(Error::DuplicateExchange { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
