//! What `.gitattributes` say of a path: the user's own file, each folder's from the root down, and `info/attributes`.
//!
//! They are data: of a driver that they name nothing is run, here or anywhere.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::glob::pattern::Case;
use gix::objs::Kind as ObjectKind;

use crate::inside::Folder;
use crate::settings::Settings;
use crate::source::{Reader, Source};
use crate::{Kind, tree};

/// Largest `.gitattributes` that is read, in bytes (git's own limit is 100 MB).
const FILE_LIMIT: u64 = 4 << 20;
const ROOT: &str = "/w";

/// What an attribute is for a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attribute {
    /// Nothing names it.
    Unspecified,
    /// `name`
    Set,
    /// `-name`
    Unset,
    /// `name=value`
    Value(String),
}

/// The `.gitattributes` of a folder; empty where there is none.
type Read<'a> = Box<dyn Fn(&BStr) -> Vec<u8> + 'a>;

/// The attributes of one tree, on disk or in a repository.
pub(crate) struct Attributes<'a> {
    read: Read<'a>,
    settings: &'a Settings,
    collection: MetadataCollection,
    /// The `.gitattributes` of each folder looked into, empty where there is none.
    files: HashMap<BString, Vec<u8>>,
    searches: HashMap<BString, Search>,
}

impl<'a> Attributes<'a> {
    /// Those of a working tree.
    pub(crate) fn of_folder(root: &'a Folder, settings: &'a Settings) -> Self {
        let file = b".gitattributes".as_bstr();
        Self::new(
            settings,
            Box::new(move |at| root.descend(at).and_then(|f| f.read(file, FILE_LIMIT)).unwrap_or_default()),
        )
    }

    /// Those of a tree object. A file that cannot be read says nothing, as git has it.
    pub(crate) fn of_tree(reader: &'a Reader, tree: ObjectId, settings: &'a Settings) -> Self {
        let read = move |at: &BStr| {
            let path = tree::join(at, b".gitattributes".as_bstr());
            let found = tree::lookup(reader, tree, path.as_bstr()).ok().flatten();
            let mut text = Vec::new();
            // Git follows no link there either.
            match found.filter(|leaf| matches!(leaf.kind, Kind::File | Kind::Executable)) {
                Some(leaf) if reader.need(leaf.id, ObjectKind::Blob, &mut text).is_ok() => text,
                _ => Vec::new(),
            }
        };
        Self::new(settings, Box::new(read))
    }

    fn new(settings: &'a Settings, read: Read<'a>) -> Self {
        let (collection, files, searches) = (MetadataCollection::default(), HashMap::new(), HashMap::new());
        Self { read, settings, collection, files, searches }
    }

    /// What holds for the paths in the folder of `path`, lowest first.
    pub(crate) fn search(&mut self, path: &BStr) -> Option<(&Search, &MetadataCollection)> {
        let folder = path.rsplit_once_str("/").map_or(BStr::new(""), |(folder, _)| folder.as_bstr());
        if !self.searches.contains_key(folder) {
            let mut search = Search::default();
            self.add(&mut search, b"[attr]binary -diff -merge -text", None);
            self.add(&mut search, &self.settings.global_attributes, None);
            let mut at = BString::default();
            self.add_file(&mut search, at.as_bstr());
            for part in folder.split_str("/").filter(|p| !p.is_empty()) {
                at = tree::join(at.as_bstr(), part.as_bstr());
                self.add_file(&mut search, at.as_bstr());
            }
            self.add(&mut search, &self.settings.info_attributes, None);
            self.searches.insert(folder.to_owned(), search);
        }
        Some((self.searches.get(folder)?, &self.collection))
    }

    fn add_file(&mut self, search: &mut Search, folder: &BStr) {
        let read = &self.read;
        let bytes = self.files.entry(folder.to_owned()).or_insert_with(|| read(folder)).clone();
        if !bytes.is_empty() {
            self.add(search, &bytes, Some(folder));
        }
    }

    fn add(&mut self, search: &mut Search, bytes: &[u8], folder: Option<&BStr>) {
        let source = match folder {
            Some(folder) => Path::new(ROOT).join(OsStr::from_bytes(folder)).join(".gitattributes"),
            None => PathBuf::from("attributes"),
        };
        let root = folder.map(|_| Path::new(ROOT));
        let macros = folder.is_none_or(|f| f.is_empty());
        // Parsing bytes in memory cannot fail: the signature is that of the file-reading variant.
        search.add_patterns_buffer(bytes, source, root, &mut self.collection, macros).ok();
    }

    /// What the attribute `name` is for a path.
    pub(crate) fn get(&mut self, path: &BStr, name: &str) -> Attribute {
        let Some((search, collection)) = self.search(path) else { return Attribute::Unspecified };
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(collection, [name]);
        search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), &mut outcome);
        let found = outcome.iter_selected().next().map(|found| match found.assignment.state {
            StateRef::Set => Attribute::Set,
            StateRef::Unset => Attribute::Unset,
            StateRef::Value(value) => Attribute::Value(value.as_bstr().to_string()),
            StateRef::Unspecified => Attribute::Unspecified,
        });
        found.unwrap_or(Attribute::Unspecified)
    }
}
