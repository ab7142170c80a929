//! What an earlier process left in the spool: found at the start, written into the ledger, never thrown away.

use std::fs;
use std::path::{Path, PathBuf};

use super::Ledger;
use super::frames::{Contents, Parsed};
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

/// What lies in a spool folder.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// What is to be said of those that nobody ended is known already.
    exchanges: Vec<(String, Slot, Option<Reckoning>)>,
    unreadable: Vec<PathBuf>,
}

/// Sorts what lies in `folder`; the files of exchanges that never began are free at once.
pub(super) fn collect(folder: &Path, reckon: impl Fn(&Unfinished<'_>) -> Reckoning) -> Result<(Slots, Left), Error> {
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
    // By name, so that the same folder always enters the ledger in the same order.
    found.sort();
    let slots = Slots::new(folder, next);
    let mut left = Left::default();
    for path in found {
        let slot = Slot::open(path)?;
        match slot.read()? {
            Parsed::Exchange(contents) => {
                let Contents { opening, head, answer, end, .. } = *contents;
                let unfinished = Unfinished { opening: &opening, head: head.as_ref(), answer: &answer };
                let reckoning = end.is_none().then(|| reckon(&unfinished));
                left.exchanges.push((opening.exchange, slot, reckoning));
            }
            Parsed::NeverBegan => slots.put_back(slot),
            Parsed::Unreadable => left.unreadable.push(slot.set_aside()?),
        }
    }
    Ok((slots, left))
}

/// Writes what was left into the ledger.
pub(super) fn keep(left: Left, ledger: &Ledger) -> Result<Recovery, Error> {
    let mut under_way = Vec::new();
    for (exchange, slot, reckoning) in left.exchanges {
        let (promise, pending) = pending::pair(slot.path());
        // Refused only when the keeper has panicked; the promise in the message says so.
        let finished = Finished { slot, end: None, reckoning, promise: Some(promise) };
        drop(ledger.shared.sender.send(Message::Finished(finished)));
        under_way.push((exchange, pending));
    }
    let mut recovery = Recovery { kept: Vec::new(), unreadable: left.unreadable };
    for (exchange, pending) in under_way {
        match pending.wait() {
            Ok(()) => recovery.kept.push(exchange),
            // The earlier process had written it and ended before it emptied the file.
            Err(Error::DuplicateExchange { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(recovery)
}
