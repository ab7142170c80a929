//! The commands of plans that are running: whoever stops a run need not wait for them, and an engine that leaves ends them.
//!
//! A command can be run again, unlike an agent's turn: it is ended with everything that it has started, and the next engine
//! runs it from its start, as after a crash.

use std::collections::BTreeMap;

use outlast_core::RunId;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Knows how many commands run, by run.
#[derive(Debug, Clone)]
pub(crate) struct AtWork {
    running: watch::Sender<BTreeMap<RunId, usize>>,
    leaving: CancellationToken,
}

impl Default for AtWork {
    fn default() -> Self {
        Self { running: watch::Sender::new(BTreeMap::new()), leaving: CancellationToken::new() }
    }
}

impl AtWork {
    /// Takes note of a command until what is returned is dropped; nothing where the engine leaves and none may begin.
    pub(crate) fn begin(&self, run: &RunId) -> Option<Running> {
        self.running.send_modify(|running| *running.entry(run.clone()).or_default() += 1);
        let running = Running { of: self.clone(), run: run.clone() };
        // In this order: whoever has the commands ended waits for those that were counted before it said so.
        (!self.leaving.is_cancelled()).then_some(running)
    }

    /// Whether a command of this run is running.
    pub(crate) fn is_running(&self, run: &RunId) -> bool {
        self.running.borrow().contains_key(run)
    }

    /// Tells of every command that begins or ends from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<BTreeMap<RunId, usize>> {
        self.running.subscribe()
    }

    /// Waits until the engine leaves.
    pub(crate) async fn leaving(&self) {
        self.leaving.cancelled().await;
    }

    /// Has every command ended, and waits until all are.
    pub(crate) async fn end(&self) {
        self.leaving.cancel();
        // The sender is here: it cannot be gone.
        drop(self.running.subscribe().wait_for(BTreeMap::is_empty).await);
    }
}

/// A command that is running.
pub(crate) struct Running {
    of: AtWork,
    run: RunId,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.of.running.send_modify(|running| {
            if let Some(count) = running.get_mut(&self.run) {
                *count -= 1;
                if *count == 0 {
                    running.remove(&self.run);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_engine_leaves_when_the_last_command_is_ended() {
        let (at_work, run) = (AtWork::default(), RunId::new("r"));
        let commands = [at_work.begin(&run).unwrap(), at_work.begin(&run).unwrap()];
        assert!(at_work.is_running(&run) && !at_work.is_running(&RunId::new("another")));
        let ended = at_work.clone();
        let ended = tokio::spawn(async move { ended.end().await });
        at_work.leaving().await;
        assert!(!ended.is_finished());
        drop(commands);
        ended.await.unwrap();
        assert!(at_work.begin(&run).is_none());
        assert!(!at_work.is_running(&run));
    }
}
