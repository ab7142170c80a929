//! Refusals that no waiting mends, and that were therefore handed on to the agent: a key that is not taken, an account
//! that is not paid for.
//!
//! An agent dies of one in its own way, and what it prints need not say why: what the provider said does. Its CLI may ask
//! again as often as it likes: it is told the same, and the provider is not asked.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use outlast_core::{AccountId, AttemptId, Class};
use outlast_gateway::{Denied, Refusal, Repeated};

/// What was refused for good.
#[derive(Debug, Default)]
pub(crate) struct PassedRefusals(Mutex<Passed>);

#[derive(Debug, Default)]
struct Passed {
    /// What each account last said.
    said: BTreeMap<AccountId, (Class, Repeated)>,
    /// The last refusal that was handed to each attempt, unless it was answered since.
    handed: BTreeMap<AttemptId, (Class, String)>,
}

impl PassedRefusals {
    /// Takes note of what an account says to everybody from here on.
    pub(crate) fn note(&self, class: Class, refusal: Refusal) {
        let Refusal { account, status, excerpt, .. } = refusal;
        let repeated = Repeated { account: account.clone(), status, body: excerpt.into() };
        self.with(|passed| passed.said.insert(account, (class, repeated)));
    }

    /// What an account says to a request of this attempt.
    pub(crate) fn hand(&self, account: &AccountId, attempt: Option<AttemptId>) -> Denied {
        self.with(|passed| {
            let Some((class, repeated)) = passed.said.get(account).cloned() else {
                return Denied::NoAccount { reason: format!("account {account} waits for a person") };
            };
            let why = String::from_utf8_lossy(&repeated.body).into_owned();
            passed.handed.extend(attempt.map(|attempt| (attempt, (class, why))));
            Denied::Refused(Box::new(repeated))
        })
    }

    /// Takes note of a refusal that an attempt alone is handed.
    pub(crate) fn handed(&self, attempt: Option<AttemptId>, class: Class, why: String) {
        self.with(|passed| passed.handed.extend(attempt.map(|attempt| (attempt, (class, why)))));
    }

    /// Takes note that an attempt was answered: what it was refused before is not what it ends by.
    pub(crate) fn answered(&self, attempt: &AttemptId) {
        self.with(|passed| passed.handed.remove(attempt));
    }

    /// What the attempt was handed, once its end is judged.
    pub(crate) fn take(&self, attempt: &AttemptId) -> Option<(Class, String)> {
        self.with(|passed| passed.handed.remove(attempt))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Passed) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
