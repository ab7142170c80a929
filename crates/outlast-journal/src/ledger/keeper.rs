//! The thread that turns finished spools into bodies and rows, off everyone's way.
//!
//! A spool file is emptied only after its exchange is durable in the ledger. One that cannot be written (a full disk)
//! keeps its file, and is tried again after the next success and at the next start.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use super::frames::{self, Contents, End, Parsed};
use super::record::{Packed, Recorded};
use super::row::{Closing, ExchangeRow, Reckoning};
use super::slot::{Slot, Slots};
use crate::pending::Promise;
use crate::writer::{Job, Work, Writer};
use crate::{Error, fault};

/// Most exchanges handed to the writer and not yet durable: bounds the memory their bodies take.
const IN_FLIGHT_MAX: usize = 256;

/// How long an exchange that has ended may wait for others: a commit and the wakes around it cost many times what a row
/// does, and would run beside the very answers that they are about. Its spool file holds it meanwhile.
const GATHER: Duration = Duration::from_millis(5);
/// So many do not wait any longer: what they have written is still in the processor's caches.
const GATHER_MAX: usize = 32;

/// Most bytes of a buffer that are kept from one exchange to the next.
const BUFFER_MAX: usize = 1 << 20;

/// zstd's fastest regular level: bodies are text and there is one of them per turn of every agent.
const LEVEL: i32 = 1;
/// And for bodies up to [`SHORT_BYTES_MAX`], without tables of their own for the letters in them: building those takes most of
/// the time that a short body takes.
const LEVEL_SHORT: i32 = -1;
/// Bodies of up to this many bytes are short.
const SHORT_BYTES_MAX: usize = 2 << 10;

/// How those that end an exchange let the keeper sleep until it is worth its wake.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// Exchanges that have ended since the keeper last took them in.
    ended: AtomicUsize,
    /// The keeper's thread, once it runs.
    keeper: OnceLock<Thread>,
}

impl Gathering {
    /// To be called after an exchange that has ended was sent to the keeper.
    pub(super) fn one_more(&self) {
        if self.ended.fetch_add(1, Ordering::Relaxed) + 1 == GATHER_MAX
            && let Some(keeper) = self.keeper.get()
        {
            keeper.unpark();
        }
    }

    /// Waits for others; woken for nothing, it gathers fewer.
    fn wait(&self) {
        self.keeper.get_or_init(std::thread::current);
        std::thread::park_timeout(GATHER);
        self.ended.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) enum Message {
    /// An exchange has ended.
    Finished(Box<Finished>),
    /// The writer has answered, of each of a batch.
    Written(Vec<Written>),
    /// Write what there is, then end.
    Close,
}

/// An exchange that has ended, on its way into the ledger.
#[derive(Debug)]
pub(super) struct Finished {
    pub slot: Slot,
    /// How it ended; where nobody said, the spool file may.
    pub end: Option<End>,
    /// What tells what it came to, where that has not been read yet.
    pub later: Option<Later>,
    /// What it had come to where nobody said.
    pub reckoning: Option<Reckoning>,
    /// Kept at the first attempt to write it.
    pub promise: Option<Promise<()>>,
}

impl Finished {
    /// Reads what was put off.
    fn read(&mut self) {
        if let (Some(end), Some(Later(read))) = (&mut self.end, self.later.take()) {
            (end.closing, end.unread) = (read(), false);
        }
    }
}

/// What tells what an exchange came to.
pub(super) struct Later(pub Box<dyn FnOnce() -> Closing + Send>);

impl std::fmt::Debug for Later {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Later")
    }
}

pub(super) struct Keeper {
    receiver: Receiver<Message>,
    sender: Sender<Message>,
    writer: Arc<Writer>,
    slots: Arc<Slots>,
    gathering: Arc<Gathering>,
    compressor: zstd::bulk::Compressor<'static>,
    /// The spool file that is looked at, and a body of it compressed: memory that is used again and again.
    file: Vec<u8>,
    packed: Vec<u8>,
    waiting: VecDeque<Box<Finished>>,
    unwritten: VecDeque<Box<Finished>>,
    in_flight: usize,
}

/// What the writer has answered of one.
#[derive(Debug)]
pub(super) struct Written {
    finished: Box<Finished>,
    result: Result<(), Error>,
}

/// The writer's answers to a batch, which go back to the keeper together: a wake for each would cost more than its row.
struct Batch {
    sender: Sender<Message>,
    written: Mutex<Vec<Written>>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !written.is_empty() {
            // The keeper waits for every batch; it is gone only after a panic, and then the files stay as they are.
            drop(self.sender.send(Message::Written(std::mem::take(written))));
        }
    }
}

/// Takes the writer's answer to its batch, also when the writer ends without one. With the last of a batch, that goes.
struct Report {
    batch: Arc<Batch>,
    finished: Option<Box<Finished>>,
    path: PathBuf,
}

impl Report {
    fn note(&mut self, result: Result<(), Error>) {
        if let Some(finished) = self.finished.take() {
            self.batch.written.lock().unwrap_or_else(PoisonError::into_inner).push(Written { finished, result });
        }
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let why = "its writer has ended".to_owned();
        let path = std::mem::take(&mut self.path);
        self.note(Err(Error::Stopped { path, why }));
    }
}

impl Keeper {
    pub(super) fn new(
        receiver: Receiver<Message>,
        sender: Sender<Message>,
        writer: Arc<Writer>,
        slots: Arc<Slots>,
        gathering: Arc<Gathering>,
    ) -> Result<Self, Error> {
        let compressor = zstd::bulk::Compressor::new(LEVEL)
            .map_err(|error| fault::io(writer.path(), "set up compression for", error))?;
        Ok(Self {
            receiver,
            sender,
            writer,
            slots,
            gathering,
            compressor,
            file: Vec::new(),
            packed: Vec::new(),
            waiting: VecDeque::new(),
            unwritten: VecDeque::new(),
            in_flight: 0,
        })
    }

    pub(super) fn run(mut self) {
        let mut closing = false;
        loop {
            self.write();
            if closing && self.in_flight == 0 {
                return;
            }
            let Ok(first) = self.receiver.recv() else { return };
            if matches!(first, Message::Finished(_)) && !closing {
                self.gathering.wait();
            }
            closing |= self.take(first);
            while let Ok(next) = self.receiver.try_recv() {
                closing |= self.take(next);
            }
        }
    }

    /// Takes a message in; whether it is the last wish.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Finished(finished) => self.waiting.push_back(finished),
            Message::Written(batch) => {
                self.in_flight -= batch.len();
                for Written { finished, result } in batch {
                    self.written(finished, result);
                }
            }
            Message::Close => return true,
        }
        false
    }

    /// Hands what waits to the writer, all at once.
    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut jobs = Vec::new();
        let batch = Arc::new(Batch { sender: self.sender.clone(), written: Mutex::new(Vec::new()) });
        while self.in_flight < IN_FLIGHT_MAX
            && let Some(mut finished) = self.waiting.pop_front()
        {
            finished.read();
            match self.record(&finished) {
                Ok(Some(recorded)) => {
                    let path = self.writer.path().to_owned();
                    let mut report = Report { batch: Arc::clone(&batch), finished: Some(finished), path };
                    self.in_flight += 1;
                    jobs.push(Job::new(
                        Work::Exchange(recorded),
                        Box::new(move |result| report.note(result.map(drop))),
                    ));
                }
                Ok(None) => self.written(finished, Ok(())),
                Err(error) => self.written(finished, Err(error)),
            }
        }
        if !jobs.is_empty() {
            self.writer.send_all(jobs);
        }
    }

    /// Reads, hashes and compresses; none when there is nothing to keep.
    fn record(&mut self, finished: &Finished) -> Result<Option<Box<Recorded>>, Error> {
        let mut file = std::mem::take(&mut self.file);
        let recorded = self.record_from(finished, &mut file);
        for buffer in [&mut file, &mut self.packed] {
            if buffer.capacity() > BUFFER_MAX {
                buffer.clear();
                buffer.shrink_to(BUFFER_MAX);
            }
        }
        self.file = file;
        recorded
    }

    fn record_from(&mut self, finished: &Finished, file: &mut Vec<u8>) -> Result<Option<Box<Recorded>>, Error> {
        finished.slot.read(file)?;
        match frames::parse(file) {
            Parsed::Exchange(contents) => {
                let end = finished.end.clone().or_else(|| contents.end());
                self.recorded(*contents, end, finished.reckoning).map(|recorded| Some(Box::new(recorded)))
            }
            Parsed::NeverBegan => Ok(None),
            Parsed::Unreadable => {
                let why = "it is not a spool file of this release".to_owned();
                Err(Error::Damaged { path: finished.slot.path().to_owned(), why })
            }
        }
    }

    fn recorded(
        &mut self,
        contents: Contents<'_>,
        end: Option<End>,
        reckoning: Option<Reckoning>,
    ) -> Result<Recorded, Error> {
        let Contents { opening, request, head, answer, .. } = contents;
        let stored = answer.len() as u64;
        let passed = end.as_ref().map_or(stored, |end| end.passed);
        let request_body = self.pack(request)?;
        let answer_body = if passed == stored { self.pack(answer)? } else { None };
        let reckoned = reckoning.unwrap_or(Reckoning::CUT);
        let known = match &end {
            None => reckoned,
            Some(End { closing, unread: true, .. }) => Reckoning { outcome: closing.outcome, ..reckoned },
            Some(End { closing, .. }) => Reckoning {
                outcome: closing.outcome,
                usage: closing.usage,
                usd_nanos: closing.usd_nanos,
                estimated: closing.estimated,
            },
        };
        let row = ExchangeRow {
            exchange: opening.exchange,
            attempt: opening.attempt,
            turn: opening.turn,
            dialect: opening.dialect,
            model: opening.model,
            account: opening.account,
            started_at: opening.started_at,
            first_byte_at: head.as_ref().map(|head| head.first_byte_at),
            ended_at: end.map(|end| end.closing.ended_at),
            status: head.as_ref().map(|head| head.status),
            outcome: known.outcome,
            request_hash: request_body.as_ref().map(|body| body.hash),
            response_hash: answer_body.as_ref().map(|body| body.hash),
            request_bytes: request.len() as u64,
            response_bytes: passed,
            usage: known.usage.storable(),
            usd_nanos: known.usd_nanos,
            estimated: known.estimated,
            headers: head.map_or_else(|| "{}".to_owned(), |head| head.headers),
        };
        Ok(Recorded { row, bodies: [request_body, answer_body] })
    }

    fn pack(&mut self, bytes: &[u8]) -> Result<Option<Packed>, Error> {
        if bytes.is_empty() {
            return Ok(None);
        }
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        let level = if bytes.len() <= SHORT_BYTES_MAX { LEVEL_SHORT } else { LEVEL };
        let set = self.compressor.set_compression_level(level);
        let packed = set.and_then(|()| self.compressor.compress_to_buffer(bytes, &mut self.packed));
        packed.map_err(|error| fault::io(self.writer.path(), "compress a body for", error))?;
        let packed = self.packed.as_slice().to_vec();
        Ok(Some(Packed { hash: super::BodyHash::of(bytes), len: bytes.len() as u64, packed }))
    }

    fn written(&mut self, mut finished: Box<Finished>, result: Result<(), Error>) {
        let success = result.is_ok();
        let known = matches!(result, Err(Error::DuplicateExchange { .. }));
        if let Err(error) = &result
            && !known
        {
            tracing::warn!(path = %finished.slot.path().display(), %error, "an exchange is not in the ledger yet");
        }
        let promise = finished.promise.take();
        if success || known {
            self.slots.put_back(finished.slot);
        } else {
            self.unwritten.push_back(finished);
        }
        if success {
            self.waiting.extend(self.unwritten.drain(..));
        }
        if let Some(promise) = promise {
            promise.keep(result);
        }
    }
}
