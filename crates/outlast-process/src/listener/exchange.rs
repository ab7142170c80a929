//! One request of the program: kept, asked for upstream until an answer begins, and answered byte for byte.

use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;

use crate::hold::HoldProfile;
use crate::spec::Listener;

use super::body::{AnswerBody, Whole};
use super::report::{OpenExchange, Reporter};
use super::upstream::{Kept, Upstream};

/// A request's body is kept in memory until its answer has begun.
const REQUEST_BODY_MAX: usize = 64 * 1024 * 1024;

/// What all requests of a program share.
#[derive(Debug)]
pub(super) struct Line {
    upstream: Upstream,
    hold: HoldProfile,
    reporter: Arc<Reporter>,
}

impl Line {
    pub(super) fn new(listener: &Listener, reports: OwnedFd) -> Self {
        Self {
            upstream: Upstream::new(listener.upstream_socket.clone(), listener.path_prefix.clone()),
            hold: listener.hold.clone(),
            reporter: Arc::new(Reporter::new(reports)),
        }
    }

    /// Answers one request. The future is dropped when the program hangs up, and the upstream connection with it.
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<AnswerBody>, Infallible> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, REQUEST_BODY_MAX).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE, &format!("request body: {error}"))),
        };
        // Open only now: a program stuck in the middle of sending must not stop its own clock.
        let open = OpenExchange::new(Arc::clone(&self.reporter));
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let may_speak = head.method == Method::POST && self.hold.speaks_to(path, &body);
        let Some(kept) = self.upstream.keep(head, body, open.id()) else {
            return Ok(refuse(StatusCode::BAD_REQUEST, "the request's path is not understood"));
        };
        let line = Arc::clone(&self);
        let mut answer = Box::pin(async move { line.obtain(&kept, open).await });
        let Some(headers_wait) = self.hold.headers_wait.filter(|_| may_speak) else {
            return Ok(answer.await);
        };
        tokio::select! {
            answer = &mut answer => Ok(answer),
            () = tokio::time::sleep(headers_wait) => {
                let mut response = Response::new(AnswerBody::held(answer, &self.hold));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
                Ok(response)
            }
        }
    }

    /// The answer, as soon as it may be passed on: from its head, or once it is whole.
    async fn obtain(&self, kept: &Kept, open: OpenExchange) -> Response<AnswerBody> {
        loop {
            let (head, body) = self.upstream.fetch(kept).await.into_parts();
            open.answer_begun();
            if !self.hold.buffer_whole {
                return Response::from_parts(head, AnswerBody::passing(body, open));
            }
            match Whole::collect(body, &open).await {
                Some(whole) => return Response::from_parts(head, AnswerBody::whole(whole, open)),
                None => open.answer_broken(),
            }
        }
    }
}

fn refuse(status: StatusCode, why: &str) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::text(Bytes::from(format!("outlast: {why}\n"))));
    *response.status_mut() = status;
    response
}
