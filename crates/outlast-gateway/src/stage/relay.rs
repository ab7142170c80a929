//! Stages "meter" and "settle" of an answer under way: the provider's bytes to the client, kept and read as they pass.
//!
//! Bytes are never re-framed or held back; frames that are there at the same moment go out in one write. A client that
//! leaves does not end a paid answer: it is read to its end without it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use outlast_journal::Outcome;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep};
use tokio_util::task::TaskTracker;

use super::settle::Exchange;
use super::turn::Turn;
use crate::meter::{Meter, Reading};

/// Most bytes gathered into one write.
const BATCH_BYTES_MAX: usize = 16 << 10;
/// Most bytes of an answer that are read on while it is held back: far more than an answer has.
const AHEAD_BYTES_MAX: usize = 8 << 20;

/// The answer broke off upstream; the client's connection is broken off too, as its own provider's would have been.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off upstream")]
pub(crate) struct Broken;

/// The body of a response that a provider is still sending.
#[derive(Debug)]
pub(crate) struct Relay {
    /// Taken when the answer has ended, one way or another.
    flow: Option<Box<Flow>>,
    tasks: TaskTracker,
}

impl Relay {
    /// Relays `body`; an answer that stays silent for `idle_max` counts as broken.
    pub(crate) fn new(
        body: Incoming,
        exchange: Exchange,
        meter: Meter,
        idle_max: Duration,
        tasks: TaskTracker,
    ) -> Self {
        let idle = Box::pin(tokio::time::sleep(idle_max));
        let end = body.is_end_stream().then_some(End::Whole);
        let flow = Flow {
            body,
            end,
            batch: Batch::default(),
            turn: Turn::default(),
            exchange,
            meter,
            idle,
            idle_max,
            waiting: false,
        };
        Self { flow: Some(Box::new(flow)), tasks }
    }

    /// Reads on while nothing may pass: a provider that is kept waiting breaks a paid answer off. Never ready.
    pub(crate) async fn read_ahead(&mut self) {
        let Some(flow) = &mut self.flow else { return std::future::pending().await };
        std::future::poll_fn(|context| flow.poll_ahead(context)).await;
    }

    /// Settles off the path of the last bytes.
    fn conclude(&mut self) {
        if let Some(flow) = self.flow.take() {
            self.spawn(flow.finish(false));
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // Without a runtime the process is ending: dropped, the exchange settles as what it had come to.
        if Handle::try_current().is_ok() {
            self.tasks.spawn(work);
        }
    }
}

impl Body for Relay {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let relay = self.get_mut();
        let Some(flow) = &mut relay.flow else {
            return Poll::Ready(None);
        };
        let next = ready!(flow.poll_next(context));
        // A break is told only after the bytes before it.
        let over = flow.end == Some(End::Whole) || next.is_none();
        let broken = next.is_none() && flow.end == Some(End::Broken);
        if over {
            relay.conclude();
        }
        Poll::Ready(match next {
            Some(bytes) => Some(Ok(Frame::data(bytes))),
            None if broken => Some(Err(Broken)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.flow.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let Some(flow) = &self.flow else { return SizeHint::with_exact(0) };
        let (rest, gathered) = (flow.body.size_hint(), flow.batch.len() as u64);
        rest.exact().map_or_else(SizeHint::default, |rest| SizeHint::with_exact(rest + gathered))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        if let Some(flow) = self.flow.take() {
            // A body of no bytes is never asked for.
            if flow.end == Some(End::Whole) && flow.batch.is_empty() {
                return self.spawn(flow.finish(false));
            }
            if !flow.meter.ended() {
                flow.exchange.left();
            }
            self.spawn(flow.drain());
        }
    }
}

#[derive(Debug)]
struct Flow {
    body: Incoming,
    end: Option<End>,
    batch: Batch,
    turn: Turn,
    exchange: Exchange,
    meter: Meter,
    idle: Pin<Box<Sleep>>,
    idle_max: Duration,
    /// `idle` runs.
    waiting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Whole,
    Broken,
}

impl Flow {
    /// The next bytes to pass on, kept and metered; `None` at the end, whichever it is.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        while self.end.is_none() && self.batch.len() < BATCH_BYTES_MAX {
            match self.poll_body(context) {
                Poll::Ready(()) => {}
                Poll::Pending if self.batch.is_empty() => {
                    ready!(self.poll_silence(context));
                    self.end = Some(End::Broken);
                }
                Poll::Pending => {
                    // The connection's own task hands over one frame at a time: letting it run fetches what it has
                    // already read, and saves a write for each of those frames.
                    ready!(self.turn.poll(context));
                    break;
                }
            }
        }
        let Some(bytes) = self.batch.take() else {
            if self.end == Some(End::Broken) {
                // A body's error makes hyper drop what it has not written yet: a round lets it write that first.
                ready!(self.turn.poll(context));
            }
            return Poll::Ready(None);
        };
        self.exchange.pass(&bytes);
        self.meter.feed(&bytes);
        Poll::Ready(Some(bytes))
    }

    /// Gathers what is there. Nothing of it has passed: it is kept and metered when it does.
    fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.end.is_none() && self.batch.len() < AHEAD_BYTES_MAX {
            ready!(self.poll_body(context));
        }
        Poll::Pending
    }

    /// Takes the next frame into the batch, or notes the end.
    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.batch.push(data);
                }
                self.waiting = false;
                if self.body.is_end_stream() {
                    self.end = Some(End::Whole);
                }
            }
            Some(Err(_)) => self.end = Some(End::Broken),
            None => self.end = Some(End::Whole),
        }
        Poll::Ready(())
    }

    /// Ready when the provider has been silent for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.waiting, true) {
            self.idle.as_mut().reset(Instant::now() + self.idle_max);
        }
        self.idle.as_mut().poll(context)
    }

    /// Reads the answer to its end without a client.
    async fn drain(mut self: Box<Self>) {
        // Some clients close as soon as they have read the dialect's own end: those did not leave early.
        let left_early = !self.meter.ended();
        while std::future::poll_fn(|context| self.poll_next(context)).await.is_some() {}
        self.finish(left_early).await;
    }

    /// Settles. Nobody waits for its row.
    async fn finish(self: Box<Self>, client_left: bool) {
        let Self { exchange, meter, end, .. } = *self;
        let success = exchange.status().is_some_and(|s| (200..300).contains(&s));
        let ending = Ending { success, end, is_stream: meter.is_stream(), client_left };
        let unwritten = if exchange.grant().attempt.is_some() {
            let reading = meter.finish();
            let usd_nanos = exchange.price(&reading).await;
            exchange.finish(ending.outcome(&reading), reading, usd_nanos)
        } else if ending.is_stream {
            let reading = meter.finish();
            let outcome = ending.outcome(&reading);
            exchange.finish_unread(outcome, move || (outcome, reading))
        } else {
            exchange.finish_unread(ending.outcome(&Reading::default()), move || {
                let reading = meter.finish();
                (ending.outcome(&reading), reading)
            })
        };
        if let Some(unwritten) = unwritten {
            unwritten.until_written();
        }
    }
}

/// How an answer ended, but for what it says itself.
#[derive(Debug, Clone, Copy)]
struct Ending {
    success: bool,
    end: Option<End>,
    is_stream: bool,
    client_left: bool,
}

impl Ending {
    fn outcome(self, reading: &Reading) -> Outcome {
        let whole = self.end == Some(End::Whole) && reading.error.is_none() && (reading.ended || !self.is_stream);
        match (self.success, whole, self.client_left) {
            (false, ..) => Outcome::Refused,
            (true, false, _) => Outcome::Cut,
            (true, true, true) => Outcome::ClientGone,
            (true, true, false) => Outcome::Complete,
        }
    }
}

/// Frames gathered for one write.
#[derive(Debug, Default)]
struct Batch {
    first: Option<Bytes>,
    /// Everything, once there is a second frame.
    joined: BytesMut,
}

impl Batch {
    fn len(&self) -> usize {
        self.joined.len() + self.first.as_ref().map_or(0, Bytes::len)
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn push(&mut self, data: Bytes) {
        if self.is_empty() {
            self.first = Some(data);
            return;
        }
        if let Some(first) = self.first.take() {
            self.joined.reserve(BATCH_BYTES_MAX.min(8 * (first.len() + data.len())));
            self.joined.extend_from_slice(&first);
        }
        self.joined.extend_from_slice(&data);
    }

    fn take(&mut self) -> Option<Bytes> {
        if self.is_empty() {
            return None;
        }
        Some(self.first.take().unwrap_or_else(|| self.joined.split().freeze()))
    }
}
