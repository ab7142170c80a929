//! Where the loop runs: on a thread of its own, or among the tasks of the runtime.

use std::thread::JoinHandle;

use crate::error::Error;

/// A loop at work.
pub(crate) enum Running {
    /// Beside agents: a commit that takes its time delays nobody's answer.
    Thread(JoinHandle<Result<(), Error>>),
    /// For a gateway alone, which commits only where an account closes or opens: a request that asks the loop stays on the
    /// thread that it came in on, where two wakes of a sleeping core would cost it more than all the rest.
    Task(tokio::task::JoinHandle<Result<(), Error>>),
}

impl Running {
    /// Lets the loop run on a thread of its own.
    ///
    /// # Errors
    /// Where the host has no thread left.
    pub(crate) fn on_a_thread(work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Result<Self, Error> {
        let no_thread = |error| Error::Internal(format!("no thread for the loop: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(no_thread)?;
        let thread = std::thread::Builder::new().name("state-loop".to_owned()).spawn(move || runtime.block_on(work));
        thread.map(Self::Thread).map_err(no_thread)
    }

    /// Lets the loop run among the runtime's own tasks.
    pub(crate) fn as_a_task(work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Self {
        Self::Task(tokio::spawn(work))
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Thread(thread) => thread.is_finished(),
            Self::Task(task) => task.is_finished(),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// What ended it.
    pub(crate) async fn ended(self) -> Result<(), Error> {
        let panicked = || Error::Internal("the loop panicked".to_owned());
        match self {
            Self::Thread(thread) => tokio::task::spawn_blocking(|| thread.join())
                .await
                .map_err(|error| Error::Internal(error.to_string()))?
                .map_err(|_| panicked())?,
            Self::Task(task) => task.await.map_err(|_| panicked())?,
        }
    }
}
