//! Plays an answer onto the wire, beat by beat, spoiled by its fault. It decides nothing and books how the exchange ended.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame as BodyFrame;

use super::arrival::Settlement;
use super::fault::Fault;
use super::keeper::Keeper;
use super::log::Ended;
use crate::wire::{Dialect, Frame, Usage};

#[cfg(test)]
mod tests;

/// The body of every response of the provider.
pub(super) type Body = BoxBody<Bytes, io::Error>;

/// One thing that happens while an answer is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Beat {
    Send(Frame),
    Wait(Duration),
    /// Nothing more ever comes.
    Silence,
    /// The connection breaks.
    Break,
}

/// Lays out an answer with its fault.
pub(super) fn beats(frames: Vec<Frame>, fault: Option<&Fault>, dialect: Dialect, delay: Duration) -> VecDeque<Beat> {
    let mut pause = delay;
    let mut frames = frames;
    let mut end = VecDeque::new();
    match fault {
        Some(Fault::Slow { per_frame_ms }) => pause = Duration::from_millis(*per_frame_ms),
        Some(Fault::Cut { after_frames, and_bytes }) => {
            cut(&mut frames, *after_frames, *and_bytes);
            end.push_back(Beat::Break);
        }
        Some(Fault::ErrorEvent { after_frames }) => {
            frames.truncate(*after_frames);
            let bytes = dialect.error_frame("Overloaded");
            end.push_back(Beat::Send(Frame { bytes, declares: None }));
        }
        Some(Fault::Malformed { after_frames }) => {
            frames.truncate(*after_frames);
            let bytes = Bytes::from_static(b"data: {\"type\": \"mess\n\n");
            end.push_back(Beat::Send(Frame { bytes, declares: None }));
        }
        _ => {}
    }
    let mut beats = VecDeque::new();
    let hang_at = match fault {
        Some(Fault::Hang { after_frames, seconds }) => Some((*after_frames, *seconds)),
        _ => None,
    };
    for (index, frame) in frames.into_iter().enumerate() {
        if let Some((_, seconds)) = hang_at.filter(|(at, _)| *at == index) {
            beats.push_back(seconds.map_or(Beat::Silence, |seconds| Beat::Wait(Duration::from_secs_f64(seconds))));
        }
        if !pause.is_zero() {
            beats.push_back(Beat::Wait(pause));
        }
        beats.push_back(Beat::Send(frame));
    }
    beats.append(&mut end);
    beats
}

/// Keeps `whole` frames and `bytes` more; always less than everything, so that a cut is one.
fn cut(frames: &mut Vec<Frame>, whole: usize, bytes: usize) {
    let Some(last) = frames.last().map(|frame| frame.bytes.len()) else { return };
    let total: usize = frames.iter().map(|frame| frame.bytes.len()).sum();
    let head: usize = frames.iter().take(whole).map(|frame| frame.bytes.len()).sum();
    let mut left = head.saturating_add(bytes);
    if left >= total {
        left = total - last.div_ceil(2);
    }
    frames.retain_mut(|frame| {
        let kept = left.min(frame.bytes.len());
        left -= kept;
        if kept < frame.bytes.len() {
            // Part of an event declares nothing.
            *frame = Frame { bytes: frame.bytes.slice(..kept), declares: None };
        }
        kept > 0
    });
}

/// An exchange in flight; books its end when it is played out or dropped.
pub(super) struct Exchange {
    pub keeper: Keeper,
    pub number: u64,
    pub status: u16,
    /// The whole price, which a client that leaves early pays too.
    pub full: Usage,
    declared: Option<Usage>,
    begun: bool,
    settled: bool,
}

impl Exchange {
    pub(super) fn new(keeper: Keeper, number: u64, full: Usage) -> Self {
        Self { keeper, number, status: 0, full, declared: None, begun: false, settled: false }
    }

    /// Notes that the model is at work: who leaves from here on pays.
    pub(super) fn think(&mut self) {
        self.begun = true;
    }

    /// Notes that the headers go out now.
    pub(super) fn begin(&mut self, status: u16) {
        self.status = status;
        self.begun = true;
    }

    /// Books the end, once.
    pub(super) fn settle(&mut self, ended: Ended) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let billed = match ended {
            Ended::Complete | Ended::Cut => self.declared,
            Ended::ClientGone => self.begun.then_some(self.full),
            Ended::Open | Ended::Refused => None,
        };
        self.keeper.settle(Settlement { number: self.number, status: self.status, ended, billed });
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.settle(Ended::ClientGone);
    }
}

/// Turns the beats into a response body.
pub(super) fn play(exchange: Exchange, beats: VecDeque<Beat>) -> Body {
    let frames = stream::unfold((exchange, beats), |(mut exchange, mut beats)| async move {
        loop {
            match beats.pop_front() {
                None => {
                    exchange.settle(Ended::Complete);
                    return None;
                }
                Some(Beat::Wait(time)) => tokio::time::sleep(time).await,
                Some(Beat::Silence) => std::future::pending().await,
                Some(Beat::Break) => {
                    exchange.settle(Ended::Cut);
                    beats.clear();
                    let broken = io::Error::new(io::ErrorKind::ConnectionAborted, "cut by the script");
                    return Some((Err(broken), (exchange, beats)));
                }
                Some(Beat::Send(frame)) => {
                    exchange.declared = frame.declares.or(exchange.declared);
                    if beats.is_empty() {
                        // Before the last byte leaves: who has read it finds the bill complete.
                        exchange.settle(Ended::Complete);
                    }
                    return Some((Ok(BodyFrame::data(frame.bytes)), (exchange, beats)));
                }
            }
        }
    });
    BodyExt::boxed(StreamBody::new(frames))
}
