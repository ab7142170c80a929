//! Operations in flight: each is a task of its own that works on the world and comes back with a command.
//!
//! One operation at a time works on a task of the plan: a later one waits until the earlier one, told that it is no
//! longer wanted, has let go. So nothing of an attempt is being launched while its end is being proven.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::desired::{Operation, OperationKey};
use outlast_core::driver::Effects;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;
use crate::ops;

/// How long an operation that came to nothing waits before it is tried again: what it met (a full disk, a lock) does
/// not go away sooner.
pub(crate) const AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The engine's effects.
pub(crate) struct EngineEffects {
    /// None for a gateway alone, which has no operations.
    context: Option<Arc<Context>>,
    runtime: Handle,
    running: BTreeMap<OperationKey, CancellationToken>,
}

impl EngineEffects {
    pub(crate) const fn new(context: Option<Arc<Context>>, runtime: Handle) -> Self {
        Self { context, runtime, running: BTreeMap::new() }
    }
}

impl Effects for EngineEffects {
    fn start(&mut self, key: &OperationKey, operation: &Operation) {
        let Some(context) = self.context.clone() else { return };
        self.running.retain(|_, token| !token.is_cancelled());
        let token = CancellationToken::new();
        self.running.insert(key.clone(), token.clone());
        let (key, operation) = (key.clone(), operation.clone());
        self.runtime.spawn(perform(context, key, operation, token));
    }

    fn cancel(&mut self, key: &OperationKey) {
        if let Some(token) = self.running.remove(key) {
            token.cancel();
        }
    }

    fn no_room(&mut self) {
        if let Some(context) = &self.context {
            context.note_no_room();
        }
    }
}

async fn perform(context: Arc<Context>, key: OperationKey, operation: Operation, token: CancellationToken) {
    let guard = context.task_lock(&key).await;
    if token.is_cancelled() {
        return;
    }
    let came_of_it = ops::perform(&context, &key, operation, &token).await;
    drop(guard);
    let held_up = context.engine.held_up();
    let has_changed = match &came_of_it {
        Err(error) if error.is_tried_again() && !token.is_cancelled() => {
            held_up.note(&key, crate::diagnose::why(error, &key.run, &context.home))
        }
        _ => held_up.lets_go(&key),
    };
    if has_changed {
        context.leave_word();
    }
    // Whoever cancelled it has taken it off the books: what it would say is stale, and its place may be taken.
    if token.is_cancelled() {
        return;
    }
    let command = match came_of_it {
        Ok(command) => command,
        // The engine leaves: the next one asks for it again.
        Err(Error::Ended) => return,
        Err(error) => {
            context.note_trouble(&key, &error);
            tokio::time::sleep(AGAIN_AFTER).await;
            None
        }
    };
    if token.is_cancelled() {
        return;
    }
    // Ends the entry in `running`; cancelling a finished operation is harmless.
    token.cancel();
    if let Err(error) = context.engine.returns(key.clone(), command).await {
        context.note_trouble(&key, &error);
    }
}
