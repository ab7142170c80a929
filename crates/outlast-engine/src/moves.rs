//! Requests that move from an account that is closed to the next: one first, then two, then four.
//!
//! The next account is open, and nobody knows how much it takes. It is tried as one that was closed is
//! (`docs/design/0011-probing-an-account.md`): each request that it begins to answer lets one more go there untried.

use std::collections::BTreeMap;

use outlast_core::{AccountId, Core, Window};

/// How many requests must have moved before all may: more than agents are at work.
const TAKEN_UNTIL_ALL: u32 = 63;

/// How many requests each account has taken in another's place since that closed.
#[derive(Debug, Default)]
pub(crate) struct Moves(BTreeMap<(AccountId, AccountId), u32>);

impl Moves {
    /// How many requests may be on their way to an account in another's place without an answer having begun; nothing where
    /// it is not limited.
    pub(crate) fn on_trial_max(&self, from: &AccountId, to: &AccountId) -> Option<u32> {
        let taken = self.0.get(&(from.clone(), to.clone())).copied().unwrap_or(0);
        (taken < TAKEN_UNTIL_ALL).then_some(taken + 1)
    }

    /// Takes note that an account has begun to answer a request in another's place.
    pub(crate) fn took_one(&mut self, from: &AccountId, to: &AccountId) {
        *self.0.entry((from.clone(), to.clone())).or_default() += 1;
    }

    /// Forgets what has moved from accounts that take requests again, and to such as take none any more.
    pub(crate) fn forget_what_is_over(&mut self, core: &Core) {
        let is_open = |account: &AccountId| core.window(account) == Window::Open;
        self.0.retain(|(from, to), _| !is_open(from) && is_open(to));
    }
}
