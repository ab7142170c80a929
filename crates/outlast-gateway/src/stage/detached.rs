//! A future that is finished even when nobody waits for it any more: a request that went out is paid for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// Runs in place while it is awaited; dropped before its end, it goes on as a task of `tasks`, and its output is dropped
/// there.
pub(crate) struct Detached<T: Send + 'static> {
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    tasks: TaskTracker,
}

impl<T: Send + 'static> Detached<T> {
    pub(crate) fn new(tasks: &TaskTracker, future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { future: Some(Box::pin(future)), tasks: tasks.clone() }
    }
}

impl<T: Send + 'static> Future for Detached<T> {
    type Output = T;

    #[expect(clippy::expect_used, reason = "a future is not polled after it has given its output")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let output = std::task::ready!(self.future.as_mut().expect("polled after its end").as_mut().poll(context));
        self.future = None;
        Poll::Ready(output)
    }
}

impl<T: Send + 'static> Drop for Detached<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else {
            return;
        };
        // Outside of a runtime, as when the whole process ends, nothing can go on.
        if Handle::try_current().is_ok() {
            self.tasks.spawn(async move { drop(future.await) });
        }
    }
}
