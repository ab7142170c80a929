//! Turning a file's bytes into what git would store: line ends, `ident` and encodings, as attributes and configuration say.
//!
//! No program is ever started: a filter driver may come from a file an agent wrote. A path that has one is stored as
//! its bytes are, and reported.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gix::attrs::StateRef;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::filter::plumbing::Pipeline;
use gix::filter::plumbing::eol::{AutoCrlf, Configuration, Mode};
use gix::filter::plumbing::pipeline::{CrlfRoundTripCheck, Options, convert::ToGitOutcome};
use gix::glob::pattern::Case;

use crate::inside::Folder;
use crate::settings::Settings;
use crate::source::Source;
use crate::{Error, Result};

/// Largest `.gitattributes` that is read, in bytes (git's own limit is 100 MB).
const FILE_LIMIT: u64 = 4 << 20;
const ROOT: &str = "/w";

/// Converts files of one working tree.
pub(crate) struct Converter<'a> {
    root: &'a Folder,
    settings: &'a Settings,
    collection: MetadataCollection,
    /// The `.gitattributes` of each folder looked into, empty where there is none.
    files: HashMap<BString, Vec<u8>>,
    searches: HashMap<BString, gix::attrs::Search>,
    pipeline: Pipeline,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(root: &'a Folder, settings: &'a Settings) -> Self {
        let auto_crlf = match settings.get("core.autocrlf").map(str::to_ascii_lowercase).as_deref() {
            Some("input") => AutoCrlf::Input,
            Some("true" | "yes" | "on" | "1") => AutoCrlf::Enabled,
            _ => AutoCrlf::Disabled,
        };
        let eol = match settings.get("core.eol").map(str::to_ascii_lowercase).as_deref() {
            Some("lf") => Some(Mode::Lf),
            Some("crlf") => Some(Mode::CrLf),
            _ => None,
        };
        let options = Options {
            drivers: Vec::new(),
            eol_config: Configuration { auto_crlf, eol },
            crlf_roundtrip_check: CrlfRoundTripCheck::Skip,
            encodings_with_roundtrip_check: Vec::new(),
        };
        let context = gix::command::Context::default();
        let pipeline = Pipeline::new(context, gix::hash::Kind::Sha1, options);
        Self {
            root,
            settings,
            collection: MetadataCollection::default(),
            files: HashMap::new(),
            searches: HashMap::new(),
            pipeline,
        }
    }

    /// The attribute files that hold for a folder, lowest first: the user's, each folder's from the root, `info/`.
    fn prepare(&mut self, folder: &BStr) {
        if !self.searches.contains_key(folder) {
            let mut search = gix::attrs::Search::default();
            self.add(&mut search, b"[attr]binary -diff -merge -text", None);
            self.add(&mut search, &self.settings.global_attributes, None);
            let mut at = BString::default();
            self.add_file(&mut search, at.as_bstr());
            for part in folder.split_str("/").filter(|p| !p.is_empty()) {
                at = crate::tree::join(at.as_bstr(), part.as_bstr());
                self.add_file(&mut search, at.as_bstr());
            }
            self.add(&mut search, &self.settings.info_attributes, None);
            self.searches.insert(folder.to_owned(), search);
        }
    }

    fn add_file(&mut self, search: &mut gix::attrs::Search, folder: &BStr) {
        let root = self.root;
        let read =
            || root.descend(folder).and_then(|f| f.read(b".gitattributes".as_bstr(), FILE_LIMIT)).unwrap_or_default();
        let bytes = self.files.entry(folder.to_owned()).or_insert_with(read).clone();
        if !bytes.is_empty() {
            self.add(search, &bytes, Some(folder));
        }
    }

    fn add(&mut self, search: &mut gix::attrs::Search, bytes: &[u8], folder: Option<&BStr>) {
        let source = match folder {
            Some(folder) => Path::new(ROOT).join(OsStr::from_bytes(folder)).join(".gitattributes"),
            None => PathBuf::from("attributes"),
        };
        let root = folder.map(|_| Path::new(ROOT));
        let macros = folder.is_none_or(|f| f.is_empty());
        // Parsing bytes in memory cannot fail: the signature is that of the file-reading variant.
        search.add_patterns_buffer(bytes, source, root, &mut self.collection, macros).ok();
    }

    /// The filter driver that attributes name for a path.
    pub(crate) fn filter(&mut self, path: &BStr) -> Option<String> {
        let folder = path.rsplit_once_str("/").map_or(BStr::new(""), |(folder, _)| folder.as_bstr());
        self.prepare(folder);
        let search = self.searches.get(folder)?;
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(&self.collection, ["filter"]);
        search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), &mut outcome);
        outcome.iter_selected().find_map(|m| match m.assignment.state {
            StateRef::Value(name) => Some(name.as_bstr().to_string()),
            _ => None,
        })
    }

    /// Converts `data`, the bytes of the file at `path`; `before` is the path's entry so far.
    pub(crate) fn convert(
        &mut self,
        path: &BStr,
        data: Vec<u8>,
        before: Option<gix::ObjectId>,
        source: &dyn Source,
    ) -> Result<Vec<u8>> {
        let folder = path.rsplit_once_str("/").map_or(BStr::new(""), |(folder, _)| folder.as_bstr());
        self.prepare(folder);
        let Some(search) = self.searches.get(folder) else { return Ok(data) };
        let collection = &self.collection;
        let mut attributes = |path: &BStr, out: &mut Outcome| {
            out.initialize(collection);
            search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), out);
        };
        let mut index_object = |buf: &mut Vec<u8>| -> gix::Result<Option<()>> {
            let Some(id) = before else { return Ok(None) };
            Ok(source.read(id, buf).ok().flatten().map(|_| ()))
        };
        let as_path = Path::new(OsStr::from_bytes(path));
        let outcome = self.pipeline.convert_to_git(data.as_slice(), as_path, &mut attributes, &mut index_object);
        let converted = match outcome {
            Ok(ToGitOutcome::Buffer(bytes)) => Some(bytes.to_owned()),
            Ok(ToGitOutcome::Process(_)) => return Err(Error::object(path, "a filter was started")),
            // Err: an encoding that cannot be read. Git would refuse to add the file, a checkpoint keeps its bytes.
            Ok(ToGitOutcome::Unchanged(_)) | Err(_) => None,
        };
        Ok(converted.unwrap_or(data))
    }
}
