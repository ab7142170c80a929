//! What the listener process tells the shim, for its clock and for the engine.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, send};
use serde::{Deserialize, Serialize};

/// Chunks of answers are told at most this often: they only feed a timeout of seconds.
const TRAFFIC_PERIOD: Duration = Duration::from_millis(100);

/// One step of one request, or traffic of any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// A request has arrived.
    Started(u64),
    /// Its answer has begun.
    Begun(u64),
    /// Its answer broke off and is asked for again.
    Broken(u64),
    /// It is over.
    Ended(u64),
    /// Bytes of an answer passed.
    Traffic,
    /// The process is gone; made by the shim's side.
    Gone,
}

/// The channel to the shim.
#[derive(Debug)]
pub(super) struct Reporter {
    channel: OwnedFd,
    born: Instant,
    last_traffic_millis: AtomicU64,
    last_id: AtomicU64,
}

impl Reporter {
    pub(super) fn new(channel: OwnedFd) -> Self {
        Self { channel, born: Instant::now(), last_traffic_millis: AtomicU64::new(0), last_id: AtomicU64::new(0) }
    }

    /// Waits while the shim is behind: it reads all the time. When it is gone, so is this process in a moment.
    fn tell(&self, report: Report) {
        if let Ok(text) = serde_json::to_vec(&report) {
            let _ = send(self.channel.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL);
        }
    }

    fn tell_traffic(&self) {
        let now = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last_traffic_millis.load(Ordering::Relaxed);
        if u128::from(now.saturating_sub(last)) >= TRAFFIC_PERIOD.as_millis() {
            self.last_traffic_millis.store(now, Ordering::Relaxed);
            self.tell(Report::Traffic);
        }
    }
}

/// An open request: reported as started when made, and as ended when dropped, however that comes about.
#[derive(Debug)]
pub(super) struct OpenExchange {
    id: u64,
    reporter: Arc<Reporter>,
}

impl OpenExchange {
    pub(super) fn new(reporter: Arc<Reporter>) -> Self {
        let id = reporter.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        reporter.tell(Report::Started(id));
        Self { id, reporter }
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    pub(super) fn answer_begun(&self) {
        self.reporter.tell(Report::Begun(self.id));
    }

    pub(super) fn answer_broken(&self) {
        self.reporter.tell(Report::Broken(self.id));
    }

    pub(super) fn traffic(&self) {
        self.reporter.tell_traffic();
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.reporter.tell(Report::Ended(self.id));
    }
}
