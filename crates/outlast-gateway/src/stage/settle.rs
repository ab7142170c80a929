//! Stage "settle": one granted exchange, from its grant to the one report of how it ended.
//!
//! Every grant is settled exactly once, on every path: what is dropped unfinished settles as what it had come to.

use std::sync::Arc;

use bytes::Bytes;
use http::response;
use outlast_core::Timestamp;
use outlast_journal::{AnswerHead, Closing, Opening, Outcome, Pending, Spool};

use super::account::Outgoing;
use super::backlog::{Backlog, Unwritten};
use super::{headers, replay};
use crate::admission::{Admission, Grant, Settled};
use crate::clock::now;
use crate::dialect::Dialect;
use crate::meter::Reading;
use crate::price;
use crate::upstream::Upstream;

/// An exchange under way.
pub(crate) struct Exchange {
    admission: Arc<dyn Admission>,
    upstream: Arc<Upstream>,
    grant: Grant,
    model: Option<String>,
    spool: Option<Spool>,
    backlog: Backlog,
    recorded: bool,
    /// See [`crate::Ask::request`].
    request: String,
    started_at: Timestamp,
    first_byte_at: Option<Timestamp>,
    status: Option<u16>,
    limits: Vec<(String, String)>,
    /// What it settles as when it is dropped.
    fallback: Outcome,
    settled: bool,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("grant", &self.grant).field("status", &self.status).finish_non_exhaustive()
    }
}

impl Exchange {
    /// An exchange that has been granted and has sent nothing yet.
    pub(crate) fn new(admission: Arc<dyn Admission>, backlog: Backlog, upstream: Arc<Upstream>, grant: Grant) -> Self {
        Self {
            admission,
            upstream,
            grant,
            model: None,
            spool: None,
            backlog,
            recorded: false,
            request: String::new(),
            started_at: now(),
            first_byte_at: None,
            status: None,
            limits: Vec::new(),
            fallback: Outcome::Error,
            settled: false,
        }
    }

    /// Begins the ledger's account of it; the request may go out once this has returned.
    pub(crate) fn begin(
        &mut self,
        ledger: &outlast_journal::Ledger,
        dialect: Dialect,
        outgoing: &Outgoing,
    ) -> Result<(), outlast_journal::Error> {
        self.model.clone_from(&outgoing.model);
        self.request.clone_from(&outgoing.request);
        let opening = Opening {
            exchange: self.grant.exchange_id.clone(),
            attempt: self.grant.attempt.clone(),
            turn: self.grant.turn,
            dialect: dialect.as_str().to_owned(),
            model: outgoing.model.clone(),
            account: self.grant.account.clone(),
            started_at: self.started_at,
        };
        self.spool = Some(ledger.begin(&opening, &outgoing.body)?);
        self.recorded = true;
        Ok(())
    }

    /// Notes how the answer begins; `clean` are its headers as the client gets them.
    pub(crate) fn answered(&mut self, head: &response::Parts, clean: &http::HeaderMap) {
        let at = now();
        self.first_byte_at = Some(at);
        self.status = Some(head.status.as_u16());
        self.limits = headers::limits(clean);
        self.fallback = if head.status.is_success() { Outcome::Cut } else { Outcome::Refused };
        let head = AnswerHead {
            status: head.status.as_u16(),
            first_byte_at: at,
            headers: replay::headers_kept(clean, &self.request, None),
        };
        self.keep(|spool| spool.answer(&head));
    }

    /// Keeps the answer's next bytes; to be called before they pass.
    pub(crate) fn pass(&mut self, bytes: &Bytes) {
        self.keep(|spool| spool.write(bytes));
    }

    /// A disk that refuses must not keep a paid answer from its agent: it is passed on, and said to be unrecorded.
    fn keep(&mut self, write: impl FnOnce(&mut Spool) -> Result<(), outlast_journal::Error>) {
        let Some(spool) = &mut self.spool else { return };
        if let Err(error) = write(spool)
            && std::mem::take(&mut self.recorded)
        {
            tracing::error!(exchange = %self.grant.exchange_id, %error, "an answer cannot be recorded");
        }
    }

    /// Notes that the client has left before the end of the answer.
    pub(crate) fn left(&self) {
        self.admission.left(&self.grant.exchange_id);
    }

    pub(crate) const fn grant(&self) -> &Grant {
        &self.grant
    }

    pub(crate) fn limits(&self) -> &[(String, String)] {
        &self.limits
    }

    pub(crate) const fn status(&self) -> Option<u16> {
        self.status
    }

    /// What it cost; nothing where that is not known.
    pub(crate) fn price<'a>(&self, reading: &'a Reading) -> impl Future<Output = Option<i64>> + Send + use<'a> {
        let (upstream, asked) = (Arc::clone(&self.upstream), self.model.clone());
        async move { price::of(upstream.provider, &upstream.base_url, asked.as_deref(), reading).await }
    }

    /// Ends it, and gives what is left to wait for.
    pub(crate) fn finish(mut self, outcome: Outcome, reading: Reading, usd_nanos: Option<i64>) -> Option<Unwritten> {
        self.settle(outcome, reading, usd_nanos)
    }

    /// Ends one that is no attempt's: nobody is told what it came to, and the ledger reads and prices it off everyone's way.
    pub(crate) fn finish_unread(
        mut self,
        outcome: Outcome,
        read: impl FnOnce() -> (Outcome, Reading) + Send + 'static,
    ) -> Option<Unwritten> {
        let (upstream, asked, ended_at) = (Arc::clone(&self.upstream), self.model.clone(), now());
        self.settle_with(outcome, Reading::default(), None, ended_at, |spool, closing| {
            spool.finish_unread(closing, move || {
                let (outcome, reading) = read();
                let usd_nanos =
                    price::usd_nanos(upstream.provider, &upstream.base_url, asked.as_deref(), &reading, ended_at);
                closing_of(outcome, &reading, usd_nanos, ended_at)
            })
        })
    }

    fn settle(&mut self, outcome: Outcome, reading: Reading, usd_nanos: Option<i64>) -> Option<Unwritten> {
        self.settle_with(outcome, reading, usd_nanos, now(), Spool::finish)
    }

    fn settle_with(
        &mut self,
        outcome: Outcome,
        reading: Reading,
        usd_nanos: Option<i64>,
        ended_at: Timestamp,
        close: impl FnOnce(Spool, Closing) -> Pending<()>,
    ) -> Option<Unwritten> {
        self.settled = true;
        let asked = self.model.take();
        let closing = closing_of(outcome, &reading, usd_nanos, ended_at);
        let exchange_id = std::mem::take(&mut self.grant.exchange_id);
        let unwritten = self
            .spool
            .take()
            .map(|spool| self.backlog.add(exchange_id.clone(), close(spool, closing), &self.admission));
        self.admission.settle(Settled {
            exchange_id,
            account: self.grant.account.clone(),
            attempt: self.grant.attempt.take(),
            turn: self.grant.turn,
            model: asked,
            outcome,
            status: self.status,
            stream_error: reading.error,
            usage: reading.usage,
            usd_nanos,
            limits: std::mem::take(&mut self.limits),
            started_at: self.started_at,
            first_byte_at: self.first_byte_at,
            ended_at,
            recorded: self.recorded,
            replayed: false,
        });
        unwritten
    }
}

fn closing_of(outcome: Outcome, reading: &Reading, usd_nanos: Option<i64>, ended_at: Timestamp) -> Closing {
    // What a broken answer had counted so far is less than what is billed.
    let estimated =
        reading.split_unknown || outcome == Outcome::Cut && reading.usage != outlast_journal::Usage::default();
    Closing { outcome, ended_at, usage: reading.usage, usd_nanos, estimated }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.settled {
            // The ledger writes the row whether or not anyone waits for it.
            drop(self.settle(self.fallback, Reading::default(), None));
        }
    }
}
