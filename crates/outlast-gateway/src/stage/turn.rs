//! One round of the scheduler: every task that can run now has run before it is over.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// Waits one round, as often as it is asked to.
///
/// Being polled again says nothing: hyper polls a body twice within one poll of its task. So the scheduler is given a
/// waker of our own, which it calls when the round is over.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    shared: Arc<Shared>,
    asked: bool,
}

#[derive(Debug, Default)]
struct Shared {
    over: AtomicBool,
    task: AtomicWaker,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.over.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl Turn {
    /// Ready once a round is over since the first of the calls that were not ready.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.shared.task.register(context.waker());
        if !self.asked {
            self.asked = true;
            self.shared.over.store(false, Ordering::Release);
            let waker = Waker::from(Arc::clone(&self.shared));
            // The runtime keeps the waker for the end of its round; the future itself is not needed for that.
            return pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker));
        }
        if self.shared.over.load(Ordering::Acquire) {
            self.asked = false;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[tokio::test]
    async fn a_round_lets_every_other_task_run_however_often_it_is_polled() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let ran = Rc::new(Cell::new(0));
                let mut turn = Turn::default();
                for round in 1..=3 {
                    let other = Rc::clone(&ran);
                    tokio::task::spawn_local(async move { other.set(other.get() + 1) });
                    let at_once = std::future::poll_fn(|cx| {
                        Poll::Ready([turn.poll(cx), turn.poll(cx), turn.poll(cx)].iter().any(Poll::is_ready))
                    });
                    assert!(!at_once.await, "a second poll is no round");
                    std::future::poll_fn(|cx| turn.poll(cx)).await;
                    assert_eq!(ran.get(), round);
                }
            })
            .await;
    }
}
