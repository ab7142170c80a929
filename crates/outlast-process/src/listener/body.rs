//! The bodies of answers: passing as it comes, whole, or held with keep-alives until the real one is there.
//!
//! Each carries the exchange's guard, so that the shim learns when an answer is over or the program hung up.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::hold::HoldProfile;

use super::report::OpenExchange;

/// An answer whose status was spent on a preamble, or whose upstream broke off: the connection is cut.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cut {
    #[error("the answer broke off: {0}")]
    Upstream(#[from] hyper::Error),
    #[error("the answer is a {0}, which can no longer be said")]
    Status(StatusCode),
}

type Awaited = Pin<Box<dyn Future<Output = Response<AnswerBody>> + Send>>;

/// What is sent to the program after an answer's head.
pub(super) struct AnswerBody(Kind);

enum Kind {
    Passing(Incoming, OpenExchange),
    Whole { whole: Whole, _open: Option<OpenExchange> },
    Held(Box<Held>),
}

struct Held {
    answer: Awaited,
    preamble: Option<Bytes>,
    keep_alive: Bytes,
    period: Interval,
}

/// All frames of an answer, and its trailers.
#[derive(Debug, Default)]
pub(super) struct Whole {
    frames: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Whole {
    /// Reads all of an answer; `None` when it broke off.
    pub(super) async fn collect(mut body: Incoming, open: &OpenExchange) -> Option<Self> {
        let mut whole = Self::default();
        while let Some(frame) = body.frame().await {
            open.traffic();
            match frame.ok()?.into_data() {
                Ok(data) => whole.frames.push_back(data),
                Err(frame) => whole.trailers = frame.into_trailers().ok(),
            }
        }
        Some(whole)
    }

    fn next(&mut self) -> Option<Frame<Bytes>> {
        self.frames.pop_front().map(Frame::data).or_else(|| self.trailers.take().map(Frame::trailers))
    }
}

impl AnswerBody {
    /// Passes frames on as they arrive.
    pub(super) fn passing(body: Incoming, open: OpenExchange) -> Self {
        Self(Kind::Passing(body, open))
    }

    /// Sends what was collected.
    pub(super) fn whole(whole: Whole, open: OpenExchange) -> Self {
        Self(Kind::Whole { whole, _open: Some(open) })
    }

    /// A few words of our own.
    pub(super) fn text(text: Bytes) -> Self {
        Self(Kind::Whole { whole: Whole { frames: [text].into(), trailers: None }, _open: None })
    }

    /// Preamble and keep-alives until `answer` is there, then its body.
    pub(super) fn held(answer: Awaited, profile: &HoldProfile) -> Self {
        let mut period = interval_at(Instant::now() + profile.period, profile.period);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let preamble = (!profile.preamble.is_empty()).then(|| Bytes::from(profile.preamble.clone()));
        let keep_alive = Bytes::from(profile.keep_alive.clone());
        Self(Kind::Held(Box::new(Held { answer, preamble, keep_alive, period })))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            match &mut self.0 {
                Kind::Passing(body, open) => {
                    let frame = ready!(Pin::new(body).poll_frame(cx));
                    open.traffic();
                    return Poll::Ready(frame.map(|frame| frame.map_err(Cut::from)));
                }
                Kind::Whole { whole, .. } => return Poll::Ready(whole.next().map(Ok)),
                Kind::Held(held) => {
                    if let Some(preamble) = held.preamble.take() {
                        return Poll::Ready(Some(Ok(Frame::data(preamble))));
                    }
                    let Poll::Ready(answer) = held.answer.as_mut().poll(cx) else {
                        ready!(held.period.poll_tick(cx));
                        return Poll::Ready(Some(Ok(Frame::data(held.keep_alive.clone()))));
                    };
                    if answer.status() != StatusCode::OK {
                        return Poll::Ready(Some(Err(Cut::Status(answer.status()))));
                    }
                    *self = answer.into_body();
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Passing(body, _) => body.is_end_stream(),
            Kind::Whole { whole, .. } => whole.frames.is_empty() && whole.trailers.is_none(),
            Kind::Held(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Passing(body, _) => body.size_hint(),
            Kind::Whole { whole, .. } => {
                SizeHint::with_exact(whole.frames.iter().map(|frame| frame.len() as u64).sum())
            }
            Kind::Held(_) => SizeHint::default(),
        }
    }
}
