//! Keys that agents are given in place of real ones: derived, so that a restarted engine knows them again.
//!
//! A key is an HMAC of the attempt and its epoch under a secret of the run. It is worth something only at our own
//! gateway, only while that attempt lives, and it is never written down.

use std::path::Path;

use hmac::{Hmac, Mac as _};
use outlast_core::{AttemptId, Epoch};
use sha2::Sha256;

use crate::error::Error;
use crate::home::{hex, read_if_there, write_file};

/// What a run's keys are derived from.
#[derive(Clone)]
pub(crate) struct RunSecret([u8; 32]);

impl std::fmt::Debug for RunSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunSecret(..)")
    }
}

impl RunSecret {
    /// The secret at `path`, made there if there is none. What a crash has left of one is set aside as `*.damaged`: keys that
    /// were derived from it are void, as those of a run whose secret is gone.
    ///
    /// # Errors
    /// Where it can be neither read nor made.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self, Error> {
        if let Some(bytes) = read_if_there(path)? {
            let bytes = match <[u8; 32]>::try_from(bytes) {
                Ok(bytes) => return Ok(Self(bytes)),
                Err(bytes) => bytes,
            };
            tracing::warn!(path = %path.display(), len = bytes.len(), "a run's secret is damaged and made anew");
            let aside = path.with_extension("damaged");
            std::fs::rename(path, &aside).map_err(|source| Error::at(path, source))?;
        }
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|e| Error::Internal(format!("no random bytes: {e}")))?;
        write_file(path, &bytes)?;
        Ok(Self(bytes))
    }

    /// The key of one attempt.
    pub(crate) fn key(&self, attempt: &AttemptId, epoch: Epoch) -> String {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length is a key");
        mac.update(format!("{}/{}/{}/{}", attempt.run, attempt.task, attempt.number, epoch.0).as_bytes());
        format!("sk-outlast-{}", &hex(&mac.finalize().into_bytes())[..40])
    }
}

/// Compares two keys without telling by the time it takes where they differ.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
