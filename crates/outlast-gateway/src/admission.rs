//! The one port the gateway asks: may this request go, on which account, and what of a refusal.
//!
//! Windows, budgets and accounts are the asker's: this crate holds none of them and decides none of it.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use outlast_core::{AccountId, AttemptId, Timestamp};
use outlast_journal::{Outcome, Usage};

use crate::dialect::Dialect;

/// Says which requests may go to a provider, and hears how each of them ended.
///
/// Every [`Grant`] is followed by exactly one [`Settled`] with its exchange, after a call to
/// [`refused`](Self::refused) too.
pub trait Admission: Send + Sync + 'static {
    /// Decides on a request; may wait as long as policy says, as while an account's window is closed.
    ///
    /// The future is dropped when the client goes away or the gateway stops: then nothing was granted.
    fn admit(&self, ask: Arc<Ask>) -> BoxFuture<'_, Result<Grant, Denied>>;

    /// Whether whoever shows this key may ask at all; looked at before a long request is read, so that nobody without a key
    /// fills the memory.
    fn knows(&self, path_attempt: Option<String>, key: String) -> BoxFuture<'_, Result<(), Denied>> {
        let _anybody = (path_attempt, key);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Takes note that an agent's next request is here, whole: its tools have ended, and the request says what it knows.
    ///
    /// Called once a request and before [`admit`](Self::admit); no byte of the answer is passed on before the future is
    /// ready. Dropping the future must not end what it stands for.
    fn arrived(&self, arrived: Arrived) -> BoxFuture<'static, ()> {
        let _not_kept = arrived;
        Box::pin(std::future::ready(()))
    }

    /// The answer that the ledger holds to this very request, where one may be given again; nothing is billed for it.
    ///
    /// Asked once a request and before [`admit`](Self::admit). May wait, as for an answer that is still under way to a
    /// client that has left. What is given is followed by exactly one [`Settled`] with the exchange of its grant.
    fn recorded(&self, ask: Arc<Ask>) -> BoxFuture<'_, Option<Recorded>> {
        let _never = ask;
        Box::pin(std::future::ready(None))
    }

    /// Takes note that the client of an exchange has left before the end of its answer, which is read all the same. Must
    /// not block.
    fn left(&self, exchange_id: &str) {
        let _ = exchange_id;
    }

    /// Takes note that a settled exchange is in the ledger, or that it never will be. Must not block.
    fn kept(&self, exchange_id: &str) {
        let _ = exchange_id;
    }

    /// Takes note that an account's credential is another one than was refused.
    fn renewed(&self, account: &AccountId) -> BoxFuture<'_, ()> {
        let _the_same_to_us = account;
        Box::pin(std::future::ready(()))
    }

    /// Takes note that the provider has begun to answer, and not to refuse. Must not block.
    fn answered(&self, exchange_id: &str) {
        let _ = exchange_id;
    }

    /// Takes note of an answer that is the request's own fault (400), and that is handed on to the agent as it is. Must not
    /// block.
    fn faulted(&self, refusal: &Refusal) {
        let _its_own_affair = refusal;
    }

    /// Takes note of how an exchange ended. Must not block.
    fn settle(&self, settled: Settled);

    /// Decides what becomes of a request that the provider refused or that never reached it.
    ///
    /// May wait, as for a back-off. Called before the exchange is settled.
    fn refused(&self, refusal: Refusal) -> BoxFuture<'_, Ruling>;
}

/// A request that wants to go.
#[derive(Clone, PartialEq, Eq)]
pub struct Ask {
    /// `<run>/<task-slug>.<n>` from the path's prefix, when it had one.
    pub path_attempt: Option<String>,
    /// The key the agent presented; empty when it presented none.
    pub key: String,
    /// The wire format, which the account must speak.
    pub dialect: Dialect,
    /// The model asked for, as the agent named it.
    pub model: Option<String>,
    /// How many tokens a conversation with that model may hold, where that is known.
    pub context_tokens: Option<u64>,
    /// Length of the request's body in bytes.
    pub request_bytes: u64,
    /// A name for its path, query and body together: the same for the same bytes, and only for them. Empty where nothing
    /// is generated, and for a client that is no attempt.
    pub request: String,
    /// What part of the agent's work this is.
    pub turn_kind: TurnKind,
    /// The name of the agent that asks, where the attempt's own agent has started it.
    pub sub_agent: Option<String>,
    /// When the request arrived.
    pub received_at: Timestamp,
    /// The refused exchange of the same request, when it asks again.
    pub again_after: Option<String>,
}

impl fmt::Debug for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("path_attempt", &self.path_attempt)
            .field("dialect", &self.dialect)
            .field("model", &self.model)
            .field("turn_kind", &self.turn_kind)
            .field("again_after", &self.again_after)
            .finish_non_exhaustive()
    }
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Arrived {
    /// Who asks, and for what.
    pub ask: Arc<Ask>,
    /// The body, as the agent sent it.
    pub body: Bytes,
}

/// What part of an agent's work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TurnKind {
    /// A turn of the agent itself: it offers tools.
    Main,
    /// A title, a summary: the same agent, without tools.
    Background,
    /// A turn of an agent that the agent started.
    SubAgent,
    /// A count of tokens, which generates nothing.
    CountTokens,
    /// A look at the list of models, which generates nothing.
    Models,
}

/// Leave to send one request upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// A new name for this exchange, unique in the ledger and safe as a file name.
    pub exchange_id: String,
    /// The attempt the key belongs to; `None` for a client that is no attempt.
    pub attempt: Option<AttemptId>,
    /// The account that pays, which must be one of the gateway's upstreams.
    pub account: AccountId,
    /// Which turn of the attempt this is, counted from 1; 0 where turns are not counted.
    pub turn: u32,
}

/// An answer out of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The exchange that it was the answer of.
    pub of: String,
    /// Under which name it is given again, and for whom.
    pub grant: Grant,
    /// The status that it had.
    pub status: u16,
    /// The headers that were kept of it, as a JSON object.
    pub headers: String,
    /// Its body, whole.
    pub body: Bytes,
}

/// Why a request may not go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// No attempt and no client has this key.
    UnknownKey,
    /// The attempt was ended; its key is void.
    Revoked,
    /// No account can serve this dialect and model; the reason is for people.
    NoAccount {
        /// Why, without any secret in it.
        reason: String,
    },
    /// The account was refused for good, and would be again: the same is said without asking.
    Refused(Box<Repeated>),
    /// A budget is spent and policy says to answer instead of holding.
    Budget {
        /// Which budget, without any secret in it.
        reason: String,
    },
}

/// A refusal that is given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeated {
    /// Whose.
    pub account: AccountId,
    /// The provider's status; none where it was never asked, as without a credential.
    pub status: Option<u16>,
    /// What the provider said, or the beginning of it; or why it was not asked.
    pub body: Bytes,
}

/// How an exchange ended.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The exchange that was granted.
    pub exchange_id: String,
    /// The account that was used.
    pub account: AccountId,
    /// The attempt it belongs to.
    pub attempt: Option<AttemptId>,
    /// Which turn of the attempt it was.
    pub turn: u32,
    /// The model that was asked of the provider.
    pub model: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The provider's status; `None` when no answer began.
    pub status: Option<u16>,
    /// The type of an error event inside an answer whose status was a success.
    pub stream_error: Option<String>,
    /// What the provider said was used; unknown stays unknown.
    pub usage: Usage,
    /// Price in billionths of a US dollar, when usage and price are known.
    pub usd_nanos: Option<i64>,
    /// The answer's rate-limit headers, in order.
    pub limits: Vec<(String, String)>,
    /// When the request went upstream.
    pub started_at: Timestamp,
    /// When the answer's first body byte arrived.
    pub first_byte_at: Option<Timestamp>,
    /// When the exchange ended.
    pub ended_at: Timestamp,
    /// Whether the answer is in the ledger's keeping; `false` means that the disk refused it.
    pub recorded: bool,
    /// Whether it came out of the ledger: nobody was asked, and nothing is billed.
    pub replayed: bool,
}

impl Settled {
    /// The end of a grant for which nothing was sent.
    pub(crate) fn unsent(grant: Grant, at: Timestamp) -> Self {
        Self {
            exchange_id: grant.exchange_id,
            account: grant.account,
            attempt: grant.attempt,
            turn: grant.turn,
            model: None,
            outcome: Outcome::Error,
            status: None,
            stream_error: None,
            usage: Usage::default(),
            usd_nanos: None,
            limits: Vec::new(),
            started_at: at,
            first_byte_at: None,
            ended_at: at,
            recorded: false,
            replayed: false,
        }
    }
}

/// An answer that is a refusal, or the lack of any answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The exchange that was refused.
    pub exchange_id: String,
    /// The account that was refused.
    pub account: AccountId,
    /// The attempt it belongs to.
    pub attempt: Option<AttemptId>,
    /// The provider's status; `None` when it could not be reached.
    pub status: Option<u16>,
    /// The answer's rate-limit headers, in order.
    pub limits: Vec<(String, String)>,
    /// The beginning of the body, without any credential; or what went wrong on the way.
    pub excerpt: String,
    /// A first guess at its kind.
    pub kind: RefusalKind,
    /// When the provider says to come back.
    pub retry_at: Option<Timestamp>,
    /// When the refusal arrived.
    pub at: Timestamp,
}

/// A first guess at what a refusal means, from status and error code alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// Too much at once, or a quota's end: 429, or a 403 that speaks of usage.
    Limit,
    /// The account cannot pay.
    Billing,
    /// The credential was refused, also after it was fetched anew.
    Auth,
    /// The provider has no capacity.
    Overload,
    /// The provider failed.
    Server,
    /// No answer: not reached, or the line broke before a status came.
    Network,
}

/// What becomes of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Ask [`Admission::admit`] again, which waits as long as policy says.
    Again,
    /// Hand the provider's own answer to the agent.
    Pass,
}
