//! A provider for tests that are not async: it runs on a thread of its own, so that a test can wait for processes.

use std::net::SocketAddr;

use tokio::runtime::Runtime;

use super::file::Script;
use super::log::{Bill, LogEntry};
use super::serve::{Provider, Running};
use crate::Result;
use crate::error::Attempt;

/// A provider on a thread of its own; it stops when this is dropped. Not to be used inside a tokio runtime.
pub struct Background {
    running: Running,
    runtime: Runtime,
}

impl Provider {
    /// Starts a provider on a free port of loopback and on a thread of its own.
    ///
    /// # Errors
    /// As [`Provider::start`].
    pub fn start_in_background(script: Script) -> Result<Background> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.attempting(|| "starting the runtime".to_owned())?;
        let running = runtime.block_on(Self::start_local(script))?;
        Ok(Background { running, runtime })
    }
}

impl Background {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.running.addr
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        self.running.url()
    }

    /// The bill so far.
    pub fn bill(&self) -> Bill {
        self.runtime.block_on(self.running.bill())
    }

    /// All requests so far, oldest first.
    pub fn log(&self) -> Vec<LogEntry> {
        self.runtime.block_on(self.running.log())
    }

    /// The model requests so far: everything but checks, lists and counts.
    pub fn model_requests(&self) -> Vec<LogEntry> {
        self.runtime.block_on(self.running.model_requests())
    }

    /// Waits until the log meets a condition; the log then.
    pub fn wait_until(&self, met: impl Fn(&[LogEntry]) -> bool) -> Vec<LogEntry> {
        self.runtime.block_on(self.running.wait_until(met))
    }

    /// The body of a request by its number; `None` unless the script says `keep_bodies`.
    pub fn body(&self, number: u64) -> Option<bytes::Bytes> {
        self.runtime.block_on(self.running.body(number))
    }
}
