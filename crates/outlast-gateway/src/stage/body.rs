//! The bytes of a request, in memory while it moves and on disk while it is held for long.
//!
//! A long one has pages of its own, which go back to the system when it goes, whoever drops it. Of an allocator's memory, what
//! another thread frees than the one that took it stays with the process until that one happens to want memory again.

use std::io;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use memmap2::MmapMut;
use outlast_journal::{Aside, Error, Ledger};

/// From how many bytes on a body has pages of its own, and is put aside: what is shorter is less than a waiting connection
/// takes anyway.
const LONG: usize = 16 << 10;

/// A request's body.
#[derive(Debug)]
pub(crate) enum Body {
    Here(Bytes),
    Aside(Aside),
}

/// Why there is no body.
pub(super) enum Unread {
    TooLong,
    Gone,
}

impl Body {
    /// Reads it from the client, at most `bytes_max`.
    pub(super) async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Unread> {
        let len = body.size_hint().exact().and_then(|len| usize::try_from(len).ok());
        let mut body = Limited::new(body, bytes_max);
        let Some(mut pages) = len.filter(|len| (LONG..=bytes_max).contains(len)).and_then(|len| pages(len).ok()) else {
            return match body.collect().await {
                Ok(whole) => Ok(whole.to_bytes()),
                Err(error) if error.is::<LengthLimitError>() => Err(Unread::TooLong),
                Err(_) => Err(Unread::Gone),
            };
        };
        let mut at = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Gone)?;
            let Some(data) = frame.data_ref() else { continue };
            let room = pages.get_mut(at..at + data.len()).ok_or(Unread::TooLong)?;
            room.copy_from_slice(data);
            at += data.len();
        }
        if at < pages.len() { Err(Unread::Gone) } else { Ok(Bytes::from_owner(pages)) }
    }

    /// Its bytes.
    ///
    /// # Errors
    /// Where it was put aside and the disk does not give it back.
    pub(super) fn bytes(&self) -> Result<Bytes, Error> {
        match self {
            Self::Here(body) => Ok(body.clone()),
            Self::Aside(aside) => match pages(aside.len()) {
                Ok(mut pages) => aside.read(&mut pages).map(|()| Bytes::from_owner(pages)),
                Err(_) => {
                    let mut body = vec![0; aside.len()];
                    aside.read(&mut body).map(|()| body.into())
                }
            },
        }
    }

    /// Whether it takes memory that it need not take while it waits.
    pub(super) fn fills_memory(&self) -> bool {
        matches!(self, Self::Here(body) if body.len() >= LONG)
    }

    /// Puts it on disk until it is asked for; where there is no room, it stays where it is.
    pub(super) fn put_aside(&mut self, ledger: &Ledger) {
        let Self::Here(body) = &*self else { return };
        match ledger.put_aside(body) {
            Ok(aside) => *self = Self::Aside(aside),
            Err(error) => tracing::debug!(%error, "a request waits in memory"),
        }
    }
}

/// So many bytes in pages of their own.
fn pages(len: usize) -> io::Result<MmapMut> {
    MmapMut::map_anon(len)
}
