//! Text that must never be seen: it is not printed, not serialised, and wiped from memory when it is no longer used.

use std::fmt;

use http::HeaderValue;
use memchr::memmem;
use zeroize::Zeroize;

/// A credential's text.
pub struct Secret(String);

impl Secret {
    /// Takes hold of a credential.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that puts it on the wire.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// A header value of `prefix` and this secret, marked sensitive; `None` when it cannot stand in a header.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let mut text = [prefix, self.expose()].concat();
        let value = HeaderValue::from_str(&text).ok();
        text.zeroize();
        let mut value = value?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `bytes` with every occurrence of this secret struck out; `None` when there is none.
    pub(crate) fn struck_from(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            return None;
        }
        let mut found = memmem::find(bytes, self.0.as_bytes())?;
        let mut clean = bytes.to_vec();
        loop {
            clean[found..found + self.0.len()].fill(b'*');
            match memmem::find(&clean, self.0.as_bytes()) {
                Some(next) => found = next,
                None => return Some(clean),
            }
        }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_printed_and_is_struck_out_everywhere() {
        let secret = Secret::new("sk-canary");
        assert!(!format!("{secret:?}").contains("canary"));
        assert!(!format!("{:?}", secret.header("Bearer ").unwrap()).contains("canary"));
        assert_eq!(secret.struck_from(b"bad key sk-canary, sk-canary!").unwrap(), b"bad key *********, *********!");
        assert_eq!(secret.struck_from(b"fine"), None);
    }
}
