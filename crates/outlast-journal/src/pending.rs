//! An answer that comes later: waited for by a thread, awaited by any async runtime, or heard where it is given.
//!
//! Written here because the journal must not depend on a runtime. Each answer has exactly one sender and one receiver.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::Error;

/// The result of a write that is under way; the write happens whether or not anyone waits for it.
#[derive(Debug)]
#[must_use = "nothing is durable before the answer has come"]
pub struct Pending<T> {
    slot: Arc<Slot<T>>,
}

/// The sending side: dropped without an answer, it answers that writing has ended.
#[derive(Debug)]
pub(crate) struct Promise<T> {
    slot: Arc<Slot<T>>,
    path: PathBuf,
    kept: bool,
}

#[derive(Debug)]
struct Slot<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    answer: Option<Result<T, Error>>,
    waker: Option<Waker>,
    hears: Option<Hears<T>>,
}

/// Who hears the answer.
struct Hears<T>(Box<dyn FnOnce(Result<T, Error>) + Send>);

impl<T> std::fmt::Debug for Hears<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hears")
    }
}

impl<T> Slot<T> {
    /// The state is two plain values, valid after any panic of its other user.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connected pair; `path` names the journal should the promise be broken.
pub(crate) fn pair<T>(path: &Path) -> (Promise<T>, Pending<T>) {
    let slot =
        Arc::new(Slot { state: Mutex::new(State { answer: None, waker: None, hears: None }), arrived: Condvar::new() });
    (Promise { slot: Arc::clone(&slot), path: path.to_owned(), kept: false }, Pending { slot })
}

impl<T> Promise<T> {
    /// Answers.
    pub(crate) fn keep(mut self, answer: Result<T, Error>) {
        self.answer(answer);
    }

    fn answer(&mut self, answer: Result<T, Error>) {
        self.kept = true;
        let mut state = self.slot.state();
        if let Some(Hears(hears)) = state.hears.take() {
            drop(state);
            return hears(answer);
        }
        state.answer = Some(answer);
        let waker = state.waker.take();
        drop(state);
        self.slot.arrived.notify_one();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        if !self.kept {
            let why = "its writer has ended".to_owned();
            let path = std::mem::take(&mut self.path);
            self.answer(Err(Error::Stopped { path, why }));
        }
    }
}

impl<T> Pending<T> {
    /// Blocks the calling thread until the answer is there. Async code awaits the value instead.
    ///
    /// # Errors
    /// The write's own.
    pub fn wait(self) -> Result<T, Error> {
        let mut state = self.slot.state();
        loop {
            if let Some(answer) = state.answer.take() {
                return answer;
            }
            state = self.slot.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T> Pending<T> {
    /// Has `hears` called with the answer, on the thread that gives it, or at once where it is there already: nobody has to be
    /// woken for what is quickly done.
    pub fn then(self, hears: impl FnOnce(Result<T, Error>) + Send + 'static) {
        let mut state = self.slot.state();
        match state.answer.take() {
            None => state.hears = Some(Hears(Box::new(hears))),
            Some(answer) => {
                drop(state);
                hears(answer);
            }
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.state();
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
