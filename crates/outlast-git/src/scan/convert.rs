//! Turning a file's bytes into what git would store: line ends, `ident` and encodings, as attributes and configuration say.
//!
//! No program is ever started: a filter driver may come from a file an agent wrote. A path that has one is stored as
//! its bytes are, and reported.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::attrs::search::Outcome;
use gix::bstr::BStr;
use gix::filter::plumbing::Pipeline;
use gix::filter::plumbing::driver::apply::Delay;
use gix::filter::plumbing::eol::{AutoCrlf, Configuration, Mode};
use gix::filter::plumbing::pipeline::convert::to_worktree::{self, UnknownEncoding};
use gix::filter::plumbing::pipeline::convert::{ToGitOutcome, ToWorktreeOutcome};
use gix::filter::plumbing::pipeline::{CrlfRoundTripCheck, Options};
use gix::glob::pattern::Case;

use crate::attributes::{Attribute, Attributes};
use crate::inside::Folder;
use crate::settings::Settings;
use crate::source::Source;
use crate::{Error, Result};

/// Converts files of one working tree.
pub(crate) struct Converter<'a> {
    attributes: Attributes<'a>,
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
        Self { attributes: Attributes::of_folder(root, settings), pipeline }
    }

    /// The filter driver that attributes name for a path.
    pub(crate) fn filter(&mut self, path: &BStr) -> Option<String> {
        match self.attributes.get(path, "filter") {
            Attribute::Value(driver) => Some(driver),
            _ => None,
        }
    }

    /// Converts `data`, the bytes of the file at `path`; `before` is the path's entry so far. Nothing where it stays as it is.
    pub(crate) fn convert(
        &mut self,
        path: &BStr,
        data: &[u8],
        before: Option<gix::ObjectId>,
        source: &dyn Source,
    ) -> Result<Option<Vec<u8>>> {
        let Some((search, collection)) = self.attributes.search(path) else { return Ok(None) };
        let mut attributes = |path: &BStr, out: &mut Outcome| {
            out.initialize(collection);
            search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), out);
        };
        let mut index_object = |buf: &mut Vec<u8>| -> gix::Result<Option<()>> {
            let Some(id) = before else { return Ok(None) };
            Ok(source.read(id, buf).ok().flatten().map(|_| ()))
        };
        let as_path = Path::new(OsStr::from_bytes(path));
        let outcome = self.pipeline.convert_to_git(data, as_path, &mut attributes, &mut index_object);
        Ok(match outcome {
            Ok(ToGitOutcome::Buffer(bytes)) => Some(bytes.to_owned()),
            Ok(ToGitOutcome::Process(_)) => return Err(Error::object(path, "a filter was started")),
            // Err: an encoding that cannot be read. Git would refuse to add the file, a checkpoint keeps its bytes.
            Ok(ToGitOutcome::Unchanged(_)) | Err(_) => None,
        })
    }

    /// Whether a checkout would write the file at `path`, which is stored as it is, as it is; not where that is not known.
    pub(crate) fn comes_back(&mut self, path: &BStr, data: &[u8]) -> bool {
        let Some((search, collection)) = self.attributes.search(path) else { return true };
        let mut attributes = |path: &BStr, out: &mut Outcome| {
            out.initialize(collection);
            search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), out);
        };
        let options = to_worktree::Options { can_delay: Delay::Forbid, unknown_encoding: UnknownEncoding::Fail };
        let outcome = self.pipeline.convert_to_worktree(data, path, &mut attributes, options);
        matches!(outcome, Ok(ToWorktreeOutcome::Unchanged(_)))
    }
}
