//! The one task that owns the books; connections ask it and tell it. It also writes the log file.

use std::fs::File;
use std::io::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot, watch};

use super::arrival::{Arrival, Ruling, Settlement};
use super::books::Books;
use super::file::Script;
use super::log::{Bill, LogEntry};

/// Something to tell or ask the keeper.
enum Message {
    Note(Box<LogEntry>, Bytes),
    Rule(Box<Arrival>, oneshot::Sender<Ruling>),
    Settle(Settlement),
    Bill(oneshot::Sender<Bill>),
    Log(oneshot::Sender<Vec<LogEntry>>),
    Body(u64, oneshot::Sender<Option<Bytes>>),
}

/// A handle on the keeper. What is told is booked before what is asked later through any handle.
#[derive(Clone)]
pub(super) struct Keeper {
    messages: mpsc::UnboundedSender<Message>,
    changes: watch::Receiver<u64>,
}

impl Keeper {
    /// Starts the keeper; it ends when the last handle is gone.
    pub(super) fn start(script: &Script, log: Option<File>) -> Self {
        let (messages, mut inbox) = mpsc::unbounded_channel();
        let (changed, changes) = watch::channel(0);
        let mut desk = Desk { books: Books::new(script), log, started: Instant::now() };
        tokio::spawn(async move {
            while let Some(message) = inbox.recv().await {
                if desk.handle(message) {
                    changed.send_modify(|version| *version += 1);
                }
            }
        });
        Self { messages, changes }
    }

    pub(super) fn note(&self, entry: LogEntry, body: Bytes) {
        self.tell(Message::Note(Box::new(entry), body));
    }

    /// `None` only while the runtime shuts down.
    pub(super) async fn rule(&self, arrival: Arrival) -> Option<Ruling> {
        self.ask(|reply| Message::Rule(Box::new(arrival), reply)).await
    }

    pub(super) fn settle(&self, settlement: Settlement) {
        self.tell(Message::Settle(settlement));
    }

    pub(super) async fn bill(&self) -> Bill {
        self.ask(Message::Bill).await.unwrap_or_default()
    }

    pub(super) async fn log(&self) -> Vec<LogEntry> {
        self.ask(Message::Log).await.unwrap_or_default()
    }

    pub(super) async fn body(&self, number: u64) -> Option<Bytes> {
        self.ask(|reply| Message::Body(number, reply)).await.flatten()
    }

    /// Waits until the log meets a condition, from change to change.
    pub(super) async fn wait_until(&self, met: impl Fn(&[LogEntry]) -> bool) -> Vec<LogEntry> {
        let mut changes = self.changes.clone();
        loop {
            // Marked as seen before the log is read, so that a change in between wakes this up again.
            changes.borrow_and_update();
            let log = self.log().await;
            if met(&log) || changes.changed().await.is_err() {
                return log;
            }
        }
    }

    fn tell(&self, message: Message) {
        // The keeper is gone only while the runtime shuts down; nobody is left to read the books then.
        drop(self.messages.send(message));
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.tell(message(reply));
        answer.await.ok()
    }
}

/// The books with a clock and a log file.
struct Desk {
    books: Books,
    log: Option<File>,
    started: Instant,
}

impl Desk {
    /// Whether the log has changed.
    fn handle(&mut self, message: Message) -> bool {
        match message {
            Message::Note(entry, body) => {
                let number = self.books.note(*entry, body);
                self.write(number);
            }
            Message::Rule(arrival, reply) => {
                let ruling = self.books.rule(*arrival, self.started.elapsed(), unix_now());
                if matches!(ruling, Ruling::Refuse { .. }) {
                    self.write(self.books.log_len());
                }
                drop(reply.send(ruling));
            }
            Message::Settle(settlement) => {
                self.books.settle(&settlement);
                self.write(settlement.number);
            }
            Message::Bill(reply) => {
                drop(reply.send(self.books.bill()));
                return false;
            }
            Message::Log(reply) => {
                drop(reply.send(self.books.log()));
                return false;
            }
            Message::Body(number, reply) => {
                drop(reply.send(self.books.body(number)));
                return false;
            }
        }
        true
    }

    /// Writes a finished entry as one line. A log that cannot be written is said once on stderr, then given up.
    fn write(&mut self, number: u64) {
        let (Some(file), Some(entry)) = (&mut self.log, self.books.find(number)) else { return };
        let written =
            serde_json::to_string(entry).map_err(std::io::Error::other).and_then(|line| writeln!(file, "{line}"));
        if let Err(error) = written {
            eprintln!("the log of the scripted provider cannot be written: {error}");
            self.log = None;
        }
    }
}

/// Unix seconds.
pub(super) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Unix milliseconds.
pub(super) fn unix_now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}
