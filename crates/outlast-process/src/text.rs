//! Text and paths as the operating system has them, in JSON: a string where they are UTF-8, else an array of bytes.
//!
//! Never lossy: what is written is read back byte for byte.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One argument or environment value: any bytes but NUL.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OsText(OsString);

impl OsText {
    /// Wraps anything that can be an argument: strings and paths alike.
    pub fn new(text: impl Into<OsString>) -> Self {
        Self(text.into())
    }

    /// This text with every `needle` replaced by `replacement`.
    pub(crate) fn replaced(&self, needle: &str, replacement: &str) -> Self {
        let (needle, bytes) = (needle.as_bytes(), self.0.as_bytes());
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some(at) = rest.windows(needle.len()).position(|window| window == needle) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(replacement.as_bytes());
            rest = &rest[at + needle.len()..];
        }
        out.extend_from_slice(rest);
        Self(OsString::from_vec(out))
    }
}

impl Deref for OsText {
    type Target = OsStr;

    fn deref(&self) -> &OsStr {
        &self.0
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for OsText {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&Path> for OsText {
    fn from(path: &Path) -> Self {
        Self(path.into())
    }
}

impl From<PathBuf> for OsText {
    fn from(path: PathBuf) -> Self {
        Self(path.into())
    }
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(self.0.as_bytes()),
        }
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = OsText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or an array of bytes")
    }

    fn visit_str<E>(self, text: &str) -> Result<OsText, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<OsText, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element::<u8>()? {
            bytes.push(byte);
        }
        Ok(OsText(OsString::from_vec(bytes)))
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A path field: `#[serde(with = "text::path")]`.
pub(crate) mod path {
    use super::{Deserialize, Deserializer, OsText, Path, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        OsText::from(path).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        OsText::deserialize(deserializer).map(|text| PathBuf::from(text.0))
    }
}

/// A field of several paths: `#[serde(with = "text::paths")]`.
pub(crate) mod paths {
    use super::{Deserialize, Deserializer, OsText, PathBuf, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| OsText::from(path.as_path())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let texts = Vec::<OsText>::deserialize(deserializer)?;
        Ok(texts.into_iter().map(|text| PathBuf::from(text.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e22_bytes_outside_utf8_come_back_as_they_were() {
        let text = OsText::new(OsString::from_vec(b"caf\xe9/\xe6\x97\xa5".to_vec()));
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), text);
    }

    #[test]
    fn placeholders_are_replaced_wherever_they_stand() {
        assert_eq!(OsText::from("{port}:{port}/{por").replaced("{port}", "80"), "80:80/{por".into());
    }
}
