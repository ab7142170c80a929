//! Files whose filter was not run: `git-crypt`, Git LFS and their like turn what is in a tree into what git keeps, by a
//! program that is never started on an agent's word.
//!
//! A checkpoint keeps such a file as its bytes are. On a branch it would be what the filter is there to prevent: a
//! plain secret, or a huge file, in the history for ever.

use gix::bstr::{BString, ByteSlice};
use gix::objs::Kind as ObjectKind;
use outlast_core::Oid;

use crate::attributes::{Attribute, Attributes};
use crate::scope::tree_like;
use crate::source::Source;
use crate::{Kind, Result, Store, UserRepo, oid, tree};

/// A file that its filter should have converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfiltered {
    /// The path.
    pub path: BString,
    /// The driver that attributes name for it.
    pub driver: String,
}

impl UserRepo {
    /// The files that differ between `old` and `new` (commits or trees), whose attributes on either side name a filter of the
    /// user's, and that are not what such a filter makes.
    ///
    /// Either side: an agent may have changed the attributes as well.
    ///
    /// # Errors
    /// An object or the user's settings cannot be read.
    pub fn unfiltered(&self, store: &Store, old: &Oid, new: &Oid) -> Result<Vec<Unfiltered>> {
        let reader = store.reader();
        let (old, new) = (tree_like(&reader, old)?, tree_like(&reader, new)?);
        let settings = self.settings()?;
        let mut sides = [old, new].map(|tree| Attributes::of_tree(&reader, tree, &settings));
        let mut found = Vec::new();
        for change in tree::diff(&reader, Some(old), Some(new))? {
            let Some(entry) = change.new.filter(|e| matches!(e.kind, Kind::File | Kind::Executable)) else { continue };
            let named = sides.iter_mut().find_map(|side| match side.get(change.path.as_bstr(), "filter") {
                Attribute::Value(driver) if self.filters_with(&driver) => Some(driver),
                _ => None,
            });
            let Some(driver) = named else { continue };
            let mut data = Vec::new();
            reader.need(oid::parse(&entry.oid)?, ObjectKind::Blob, &mut data)?;
            if !is_made_by(&driver, &data) {
                found.push(Unfiltered { path: change.path, driver });
            }
        }
        Ok(found)
    }

    /// Whether the driver would change what is added here. The two known ones count even where they are not set up yet: git
    /// itself would then take the file as it is, and nobody wants that.
    fn filters_with(&self, driver: &str) -> bool {
        let set =
            |key: &str| self.config_value(&format!("filter.{driver}.{key}")).is_some_and(|value| !value.is_empty());
        is_lfs(driver) || is_crypt(driver) || set("clean") || set("process")
    }
}

fn is_lfs(driver: &str) -> bool {
    driver == "lfs"
}

/// Every key of git-crypt but the first has a driver of its own: `git-crypt-NAME`.
fn is_crypt(driver: &str) -> bool {
    driver == "git-crypt" || driver.starts_with("git-crypt-")
}

/// Whether the content is what the driver's filter makes, as far as that can be told.
fn is_made_by(driver: &str, data: &[u8]) -> bool {
    // Both leave an empty file as it is.
    (is_lfs(driver) && (data.is_empty() || data.starts_with(b"version https://git-lfs.github.com/spec/")))
        || (is_crypt(driver) && (data.is_empty() || data.starts_with(b"\0GITCRYPT\0")))
}
