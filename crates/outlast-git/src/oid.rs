//! Conversion between object ids as the whole system names them and as gix holds them.

use gix::ObjectId;
use outlast_core::Oid;

use crate::{Error, Result};

/// Reads an id of 40 hexadecimal digits.
pub(crate) fn parse(oid: &Oid) -> Result<ObjectId> {
    parse_text(oid.as_str())
}

/// Reads an id of 40 hexadecimal digits.
pub(crate) fn parse_text(text: &str) -> Result<ObjectId> {
    ObjectId::from_hex(text.as_bytes())
        .ok()
        .filter(|id| id.kind() == gix::hash::Kind::Sha1)
        .ok_or_else(|| Error::BadOid(text.to_owned()))
}

/// The id as the rest of the system names it.
pub(crate) fn of(id: ObjectId) -> Oid {
    Oid::new(id.to_hex().to_string())
}

/// The id of the tree without entries.
pub(crate) fn empty_tree() -> ObjectId {
    ObjectId::empty_tree(gix::hash::Kind::Sha1)
}
