//! A request on its way into the loop, and the leave to go out on its way back.

use std::sync::Arc;

use outlast_gateway::{Ask, Denied, Grant};
use tokio::sync::oneshot;

use crate::state_loop::LoopHandle;

/// A request that wants to be forwarded, and where the answer goes.
#[derive(Debug)]
pub(crate) struct PendingAsk {
    pub(crate) ask: Arc<Ask>,
    pub(crate) reply: oneshot::Sender<Result<Granted, Denied>>,
    pub(crate) engine: LoopHandle,
}

/// A grant on its way to whoever asked. One that reaches nobody is settled, so that nothing stays reserved for it.
#[derive(Debug)]
pub(crate) struct Granted {
    grant: Option<Grant>,
    engine: LoopHandle,
}

impl Granted {
    pub(crate) const fn new(grant: Grant, engine: LoopHandle) -> Self {
        Self { grant: Some(grant), engine }
    }

    /// Whoever asked has it, and settles it.
    pub(crate) fn take(mut self) -> Option<Grant> {
        self.grant.take()
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.engine.settled(grant.exchange_id, None);
        }
    }
}
