//! The stages a request passes, in order; [`crate::pipeline`] calls them.
//!
//! key → attempt → dialect → replay → account → admission → forward → meter → settle. A stage that may answer by itself
//! (a replay) or hold (a budget) stands between dialect and account: it takes an [`inbound::Inbound`] like the others.

pub(crate) mod account;
pub(crate) mod attempt;
pub(crate) mod backlog;
pub(crate) mod body;
pub(crate) mod detached;
pub(crate) mod facts;
pub(crate) mod forward;
pub(crate) mod headers;
pub(crate) mod inbound;
pub(crate) mod key;
pub(crate) mod relay;
pub(crate) mod replay;
pub(crate) mod settle;
pub(crate) mod turn;
