//! The one thread that writes: it takes whatever waits, writes it in one transaction, and answers when that is durable.
//!
//! A job that is refused (a revision that exists) leaves the others of its transaction alone; a failure of the disk is
//! everyone's, but for a full one. It never answers before the commit, and after an unconfirmed fsync it writes nothing
//! more.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use rusqlite::Connection;

use crate::entry::{self, Entry};
use crate::ledger::pack::PackWriter;
use crate::ledger::record::{self, Recorded};
use crate::lock::FileLock;
use crate::reserve::Reserve;
use crate::snapshot::{self, Sealed};
use crate::{Error, connection, fault, schema};

/// A transaction that has as many jobs takes no more in: bounds the time the first of them waits for the last.
const GROUP_MAX: usize = 1024;

/// Something to be written.
#[derive(Debug)]
pub(crate) enum Work {
    /// Entries of the caller's streams, all or none.
    Append(Vec<Entry>),
    /// A snapshot of the state up to a sequence number.
    Snapshot(Sealed),
    /// A finished exchange and its bodies.
    Exchange(Box<Recorded>),
    /// The reserve, filled up again.
    Reserve,
}

/// What to do with the result: the sequence number of the last entry in the journal after the job.
pub(crate) type Done = Box<dyn FnOnce(Result<u64, Error>) + Send>;

/// Something to be written, and who hears of it.
pub(crate) struct Job {
    work: Work,
    done: Done,
}

/// Why a job came to nothing: it alone, or the whole transaction.
pub(crate) enum Failed {
    /// This job cannot be written; its savepoint is rolled back.
    Refused(Error),
    /// Nothing can be written.
    Group(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Group(error)
    }
}

/// The owner of the thread: when the last owner goes, what was sent is written and the thread ends.
#[derive(Debug)]
pub(crate) struct Writer {
    sender: Option<Sender<Vec<Job>>>,
    thread: Option<JoinHandle<()>>,
    path: PathBuf,
    counts: Arc<Counts>,
    // Last, so that the lock outlives the thread and its connection.
    _lock: FileLock,
}

#[derive(Debug, Default)]
struct Counts {
    last_seq: AtomicU64,
    commits: AtomicU64,
    short_of_space: AtomicBool,
}

impl Writer {
    /// Locks, creates or opens the journal at `path`, and starts its thread.
    pub(crate) fn start(path: &Path) -> Result<Self, Error> {
        let lock = FileLock::take(path)?;
        schema::create_if_missing(path)?;
        schema::recognise(path)?;
        let connection = connection::open_writer(path)?;
        let last = entry::last(&connection, path)?;
        let reserve = Reserve::open(path)?;
        let packs = PackWriter::open(&connection, path)?;
        let counts = Arc::new(Counts { last_seq: AtomicU64::new(last), ..Counts::default() });
        counts.short_of_space.store(reserve.is_short(), Ordering::Release);
        let (sender, receiver) = mpsc::channel();
        let state = State {
            connection,
            packs,
            reserve,
            path: path.to_owned(),
            last,
            counts: Arc::clone(&counts),
            scratch: Vec::new(),
            stopped: None,
        };
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || state.run(&receiver))
            .map_err(|error| fault::io(path, "start the writer of", error))?;
        Ok(Self { sender: Some(sender), thread: Some(thread), path: path.to_owned(), counts, _lock: lock })
    }

    /// Hands `work` to the thread; `done` runs there, after the commit, and must be short.
    pub(crate) fn send(&self, work: Work, done: Done) {
        self.send_all(vec![Job::new(work, done)]);
    }

    /// Hands several jobs to the thread, which writes them in one transaction.
    pub(crate) fn send_all(&self, jobs: Vec<Job>) {
        let refused = match &self.sender {
            Some(sender) => sender.send(jobs).err().map(|mpsc::SendError(jobs)| jobs),
            None => Some(jobs),
        };
        for job in refused.into_iter().flatten() {
            job.refuse(&self.path);
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The last durable sequence number.
    pub(crate) fn last_seq(&self) -> u64 {
        self.counts.last_seq.load(Ordering::Acquire)
    }

    /// Transactions committed so far; each is one fsync of the log.
    pub(crate) fn commits(&self) -> u64 {
        self.counts.commits.load(Ordering::Relaxed)
    }

    /// Whether some of the reserve is spent.
    pub(crate) fn is_short_of_space(&self) -> bool {
        self.counts.short_of_space.load(Ordering::Acquire)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(path = %self.path.display(), "the journal's writer panicked");
        }
    }
}

impl Job {
    pub(crate) fn new(work: Work, done: Done) -> Self {
        Self { work, done }
    }

    fn refuse(self, path: &Path) {
        (self.done)(Err(Error::Stopped { path: path.to_owned(), why: "its writer has ended".to_owned() }));
    }
}

/// What the thread owns.
struct State {
    connection: Connection,
    packs: PackWriter,
    reserve: Reserve,
    path: PathBuf,
    last: u64,
    counts: Arc<Counts>,
    scratch: Vec<u8>,
    stopped: Option<Error>,
}

impl State {
    fn run(mut self, receiver: &Receiver<Vec<Job>>) {
        while let Ok(mut group) = receiver.recv() {
            while group.len() < GROUP_MAX
                && let Ok(more) = receiver.try_recv()
            {
                group.extend(more);
            }
            self.commit(group);
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::warn!(path = %self.path.display(), %error, "cannot close the journal cleanly");
        }
    }

    fn commit(&mut self, group: Vec<Job>) {
        let (work, done): (Vec<Work>, Vec<Done>) = group.into_iter().map(|job| (job.work, job.done)).unzip();
        let results = match self.transact(&work) {
            Ok(results) => results,
            // On a full disk the records that still fit, or may use the reserve, are not held up by a body that does not.
            Err(Error::NoSpace { .. }) => work.iter().map(|work| self.commit_alone(work)).collect(),
            Err(error) => work.iter().map(|_| Err(error.clone())).collect(),
        };
        self.counts.short_of_space.store(self.reserve.is_short(), Ordering::Release);
        for (done, result) in done.into_iter().zip(results) {
            done(result);
        }
    }

    fn commit_alone(&mut self, work: &Work) -> Result<u64, Error> {
        loop {
            match self.transact(std::slice::from_ref(work)) {
                Err(Error::NoSpace { .. }) if matches!(work, Work::Append(_)) && self.reserve.spend() => {}
                Err(error) => return Err(error),
                Ok(results) => return results.into_iter().next().unwrap_or(Ok(self.last)),
            }
        }
    }

    /// Writes a group in one transaction; `Err` means that nothing of it was written.
    fn transact(&mut self, work: &[Work]) -> Result<Vec<Result<u64, Error>>, Error> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        let before = self.last;
        let results = self.execute("BEGIN IMMEDIATE").and_then(|()| self.write_all(work)).and_then(|results| {
            self.packs.flush(&self.connection)?;
            self.execute("COMMIT")?;
            Ok(results)
        });
        match &results {
            Ok(_) => {
                self.packs.committed();
                self.counts.last_seq.store(self.last, Ordering::Release);
                self.counts.commits.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                self.last = before;
                self.packs.discard();
                self.roll_back(error);
            }
        }
        results
    }

    fn roll_back(&mut self, error: &Error) {
        // Some failures have rolled back by themselves.
        let rolled_back = if self.connection.is_autocommit() { Ok(()) } else { self.execute("ROLLBACK") };
        self.stopped = match (error, rolled_back) {
            (Error::Stopped { .. }, _) => Some(error.clone()),
            (_, Ok(())) => None,
            (_, Err(failed)) => {
                let why = format!("a transaction failed ({error}) and could not be rolled back ({failed})");
                Some(Error::Stopped { path: self.path.clone(), why })
            }
        };
    }

    fn write_all(&mut self, work: &[Work]) -> Result<Vec<Result<u64, Error>>, Error> {
        let mut results = Vec::with_capacity(work.len());
        for work in work {
            let (before, packed) = (self.last, self.packs.mark());
            self.execute("SAVEPOINT job")?;
            match self.write(work) {
                Ok(()) => results.push(Ok(self.last)),
                Err(Failed::Refused(error)) => {
                    self.execute("ROLLBACK TO job")?;
                    self.last = before;
                    self.packs.rewind(packed);
                    results.push(Err(error));
                }
                Err(Failed::Group(error)) => return Err(error),
            }
            self.execute("RELEASE job")?;
        }
        Ok(results)
    }

    fn write(&mut self, work: &Work) -> Result<(), Failed> {
        match work {
            Work::Append(entries) => {
                entry::insert(&self.connection, &self.path, &mut self.last, &mut self.scratch, entries)
            }
            Work::Snapshot(sealed) => snapshot::insert(&self.connection, &self.path, self.last, sealed),
            Work::Exchange(recorded) => record::insert(&self.connection, &self.path, &mut self.packs, recorded),
            Work::Reserve => self.reserve.fill().map_err(Failed::Refused),
        }
    }

    fn execute(&self, statement: &'static str) -> Result<(), Error> {
        self.connection
            .prepare_cached(statement)
            .and_then(|mut prepared| prepared.execute([]))
            .map(drop)
            .map_err(|error| fault::sqlite(&self.path, "write", error))
    }
}

/// Whether an insert failed because its key exists.
pub(crate) fn is_taken(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    matches!(code, Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE | rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY))
}
