//! A pack being written: many new objects in one file, which one sync makes durable (git's pack format, version 2).

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use gix::objs::Kind;
use tempfile::NamedTempFile;

use crate::{Error, Result};

/// Where the header says how many objects follow.
const COUNT_AT: u64 = 8;

/// Objects on their way into a pack, whole ones without deltas.
pub(crate) struct PackWriter {
    out: std::io::BufWriter<NamedTempFile>,
    count: u32,
}

impl PackWriter {
    /// Starts a pack in the object folder `objects`, under a name that `git prune` clears after a crash.
    pub(crate) fn new(objects: &Path) -> Result<Self> {
        let folder = objects.join("pack");
        let file = tempfile::Builder::new().prefix("tmp_pack_").tempfile_in(&folder);
        let mut out = std::io::BufWriter::new(file.map_err(Error::io("write in", &folder))?);
        out.write_all(b"PACK\0\0\0\x02\0\0\0\0").map_err(Error::io("write in", &folder))?;
        Ok(Self { out, count: 0 })
    }

    /// Adds an object.
    pub(crate) fn add(&mut self, kind: Kind, data: &[u8]) -> Result<()> {
        self.count += 1;
        self.out.write_all(&header(kind, data.len())).map_err(Error::io("write", "pack"))?;
        let mut entry = gix::zlib::stream::deflate::Write::new(&mut self.out, gix::zlib::Compression::BEST_SPEED);
        entry.write_all(data).and_then(|()| entry.flush()).map_err(Error::io("write", "pack"))
    }

    /// Ends the pack and opens it for the indexer; the name goes when the returned file's owner is done with it.
    pub(crate) fn end(self) -> Result<(NamedTempFile, File)> {
        let failed = || Error::io("write", "pack");
        let mut temp = self.out.into_inner().map_err(|e| failed()(e.into_error()))?;
        temp.seek(SeekFrom::Start(COUNT_AT)).map_err(failed())?;
        temp.write_all(&self.count.to_be_bytes()).map_err(failed())?;
        let length = temp.seek(SeekFrom::End(0)).map_err(failed())?;
        temp.rewind().map_err(failed())?;
        let mut progress = gix::progress::Discard;
        let stop = std::sync::atomic::AtomicBool::new(false);
        let sum = gix::hash::bytes(temp.as_file_mut(), length, gix::hash::Kind::Sha1, &mut progress, &stop)
            .map_err(|e| Error::object("pack", e))?;
        temp.seek(SeekFrom::End(0)).map_err(failed())?;
        temp.write_all(sum.as_slice()).map_err(failed())?;
        let read = temp.reopen().map_err(failed())?;
        Ok((temp, read))
    }
}

/// Type and size of an entry: four bits of size beside the type, then seven per byte.
fn header(kind: Kind, size: usize) -> Vec<u8> {
    let number: u8 = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let low = |value: usize, mask: usize| u8::try_from(value & mask).unwrap_or(0);
    let mut rest = size >> 4;
    let mut bytes = vec![number << 4 | low(size, 0x0f)];
    while rest > 0 {
        if let Some(last) = bytes.last_mut() {
            *last |= 0x80;
        }
        bytes.push(low(rest, 0x7f));
        rest >>= 7;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_spread_over_bytes_as_git_reads_them() {
        assert_eq!(header(Kind::Blob, 0), [0x30]);
        assert_eq!(header(Kind::Blob, 15), [0x3f]);
        assert_eq!(header(Kind::Commit, 16), [0x90, 0x01]);
        assert_eq!(header(Kind::Tree, 0x0f | 0x7f << 4 | 1 << 11), [0xaf, 0xff, 0x01]);
    }
}
