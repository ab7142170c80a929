//! The loop: the one place that owns the state.
//!
//! Everything that happens reaches it as a [`Message`] and waits its turn; a batch of what has piled up shares one
//! commit. It waits on the channel until something arrives or time alone makes a difference.

mod clock;
mod running;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_core::admit::Command;
use outlast_core::desired::OperationKey;
use outlast_core::driver::{Answer, Driver, Effects, Input, Parks, Store};
use outlast_core::{Core, Record, Timestamp};
use outlast_gateway::{Ask, Denied};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{broadcast, oneshot};

use clock::Clock;
pub(crate) use clock::{is_behind, try_all};
pub(crate) use running::Running;

use crate::ask::PendingAsk;
use crate::asks::Asks;
use crate::at_work::AtWork;
use crate::effects::AGAIN_AFTER;
use crate::error::Error;
use crate::held_up::HeldUp;
use crate::turns::Turn;

/// How many inputs share a turn: bounds how long one turn takes.
const BATCH_MAX: usize = 512;
/// A wait does not count the time for which the machine sleeps, nor follow a clock that is set: what is due at a time of day
/// would be late by as much. Nobody tells of either, and so the clock is looked at.
const CLOCK_LOOKED_AT: Duration = Duration::from_secs(30);
/// How many records a slow listener may lag behind before it must look at the state anew.
const RECORDS_KEPT: usize = 4096;

/// Something for the loop.
pub(crate) enum Message {
    /// News or a wish, and who wants to know what became of it.
    Input(Input, Option<oneshot::Sender<Result<Answer, Error>>>),
    /// A request that wants to be forwarded.
    Ask(PendingAsk),
    /// Whose turn a request is; nobody's where its key is void.
    Asker(Arc<Ask>, oneshot::Sender<Option<Turn>>),
    /// Whether anybody has this key, for the attempt that a path names.
    Knows(Option<String>, String, oneshot::Sender<Result<(), Denied>>),
    /// A provider has begun to answer.
    Answered(String),
    /// The end of an exchange that had been granted, and what it puts on record.
    Settled(String, Option<Command>),
    /// A look at the state.
    Look(Box<dyn FnOnce(&Core) + Send>),
    /// Park this from now on; answered once it is on record.
    Park(Parks, oneshot::Sender<()>),
    /// Take no more wishes, if this still holds.
    Leave(Box<dyn FnOnce(&Core) -> bool + Send>),
    /// The end.
    Stop,
}

/// A handle on the loop.
#[derive(Clone)]
pub struct LoopHandle {
    sender: UnboundedSender<Message>,
    records: broadcast::Sender<Arc<[Record]>>,
    at_work: AtWork,
    held_up: HeldUp,
    /// Where the state is.
    folder: Arc<Path>,
}

impl std::fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoopHandle")
    }
}

impl LoopHandle {
    /// A handle and the end that the loop reads from.
    pub(crate) fn channel(folder: &Path) -> (Self, UnboundedReceiver<Message>) {
        let (sender, receiver) = unbounded_channel();
        let records = broadcast::channel(RECORDS_KEPT).0;
        let folder = Arc::from(folder);
        (Self { sender, records, at_work: AtWork::default(), held_up: HeldUp::default(), folder }, receiver)
    }

    /// Says something and waits until it is durable or refused.
    ///
    /// # Errors
    /// Where it was refused, could not be made durable, or the engine has stopped.
    pub async fn tell(&self, command: Command) -> Result<(), Error> {
        self.input(Input::from(command)).await
    }

    /// As [`LoopHandle::tell`], and says which operation has returned with it.
    pub(crate) async fn returns(&self, key: OperationKey, command: Option<Command>) -> Result<(), Error> {
        self.input(Input { command, returns: Some(key) }).await
    }

    async fn input(&self, input: Input) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Message::Input(input, Some(reply))).map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)??.map_err(Error::Rejected)
    }

    /// Says that a provider has begun to answer; nobody waits for what becomes of that.
    pub(crate) fn answered(&self, exchange_id: String) {
        drop(self.sender.send(Message::Answered(exchange_id)));
    }

    /// Says that an exchange has ended; nobody waits for what becomes of that.
    pub(crate) fn settled(&self, exchange_id: String, command: Option<Command>) {
        // A loop that is gone has nothing left to record: the journal is replayed by the next one.
        drop(self.sender.send(Message::Settled(exchange_id, command)));
    }

    /// Whose turn a request is; nobody's where its key is void, or where it is no attempt's.
    ///
    /// The question is put when this is called, before the answer is waited for: ahead of the request's own asking.
    pub(crate) fn asker(&self, ask: Arc<Ask>) -> impl Future<Output = Result<Option<Turn>, Error>> + use<> {
        let (reply, answer) = oneshot::channel();
        let put = self.sender.send(Message::Asker(ask, reply)).map_err(|_| Error::Stopped);
        async move {
            put?;
            answer.await.map_err(|_| Error::Stopped)
        }
    }

    /// Whether anybody has this key. Where there is nobody left to say so, what it asks for is refused later.
    pub(crate) async fn knows(&self, path_attempt: Option<String>, key: String) -> Result<(), Denied> {
        let (reply, answer) = oneshot::channel();
        match self.sender.send(Message::Knows(path_attempt, key, reply)) {
            Ok(()) => answer.await.unwrap_or(Ok(())),
            Err(_) => Ok(()),
        }
    }

    /// The commands of plans that this engine runs.
    pub(crate) const fn at_work(&self) -> &AtWork {
        &self.at_work
    }

    /// Where the state of the engine's repository is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is held up.
    pub(crate) const fn held_up(&self) -> &HeldUp {
        &self.held_up
    }

    pub(crate) fn ask(&self, ask: PendingAsk) -> Result<(), Error> {
        self.sender.send(Message::Ask(ask)).map_err(|_| Error::Stopped)
    }

    /// Looks at the state.
    ///
    /// # Errors
    /// Where the engine has stopped.
    pub async fn look<T: Send + 'static>(&self, look: impl FnOnce(&Core) -> T + Send + 'static) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |core: &Core| drop(reply.send(look(core))));
        self.sender.send(Message::Look(look)).map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Every record from now on, in order, once it is durable.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Record]>> {
        self.records.subscribe()
    }

    pub(crate) fn records(&self) -> broadcast::Sender<Arc<[Record]>> {
        self.records.clone()
    }

    /// Takes no more wishes from now on, if nothing has come up meanwhile that `may` says no to; whether it leaves.
    ///
    /// Whoever asks for something afterwards is told that the engine has stopped, and asks the next one.
    ///
    /// # Errors
    /// Where the engine has stopped.
    pub async fn leave(&self, may: impl FnOnce(&Core) -> bool + Send + 'static) -> Result<bool, Error> {
        let (reply, answer) = oneshot::channel();
        let leave = Box::new(move |core: &Core| {
            let leaves = may(core);
            // Whoever has stopped waiting for the answer leaves all the same.
            reply.send(leaves).unwrap_or_default();
            leaves
        });
        self.sender.send(Message::Leave(leave)).map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    /// Has the engine park this from now on, although its run goes on, and start nothing meanwhile.
    ///
    /// # Errors
    /// Where the engine has stopped.
    pub async fn park(&self, parks: Parks) -> Result<(), Error> {
        let (reply, answer) = oneshot::channel();
        self.sender.send(Message::Park(parks, reply)).map_err(|_| Error::Stopped)?;
        answer.await.map_err(|_| Error::Stopped)
    }

    pub(crate) fn stop(&self) {
        drop(self.sender.send(Message::Stop));
    }
}

/// Runs the loop until it is told to stop or the journal takes no more records; `first` is taken in before anything else.
///
/// # Errors
/// Where records could not be made durable: nothing of them took effect, and the engine must stop.
pub(crate) async fn run<S, E>(
    mut driver: Driver<S, E>,
    mut asks: Asks,
    mut receiver: UnboundedReceiver<Message>,
    first: Vec<Command>,
) -> Result<(), Error>
where
    S: Store<Error = Error>,
    E: Effects,
{
    // The first turn needs no input: it asks for everything that a crash left undone.
    let mut batch: Vec<Message> = first.into_iter().map(|command| Message::Input(command.into(), None)).collect();
    let mut leaving = false;
    let mut clock = Clock::showing(now());
    loop {
        let now = now();
        let late = if clock.was_set_back(now) { try_all(driver.core()) } else { Vec::new() };
        let Sorted { inputs, replies, parks, leaves, askers, stop } = sort(batch, &mut asks, driver.core(), leaving);
        // Requests that a closing gateway lets go of still wait, with their shims: that is no news.
        let held = if leaving { Vec::new() } else { asks.news(driver.core(), now) };
        let told = inputs.len();
        parks.iter().for_each(|(parks, _)| driver.parks(*parks));
        let inputs = inputs.into_iter().chain(held.into_iter().chain(late).map(Input::from)).collect();
        match driver.step(now, inputs) {
            Ok(answers) => {
                for (reply, answer) in replies.into_iter().zip(answers.into_iter().take(told)) {
                    if let Some(reply) = reply {
                        drop(reply.send(Ok(answer)));
                    }
                }
            }
            Err(error) => {
                if matches!(error, Error::HomeGone { .. }) {
                    crate::abandon::end_agents(driver.core());
                }
                return Err(error);
            }
        }
        for (_, reply) in parks {
            reply.send(()).unwrap_or_default();
        }
        // After the step, so that turns are counted that ended just now; before new ones are let go.
        for (ask, reply) in askers {
            drop(reply.send(asks.turn_of(driver.core(), &ask)));
        }
        // What came in the same batch may be a reason to stay.
        for leave in leaves {
            leaving |= leave(driver.core());
        }
        let leaves_news = asks.settle(driver.core(), now);
        if stop {
            return Ok(());
        }
        batch = match leaves_news && !leaving {
            true => Vec::new(),
            false => wait(&mut receiver, wake_at(&driver, &asks, now), now).await,
        };
    }
}

/// When to look again if nothing happens. Nobody tells when a disk has room again: that is looked for.
fn wake_at<S: Store, E: Effects>(driver: &Driver<S, E>, asks: &Asks, now: Timestamp) -> Option<Timestamp> {
    let room = driver.is_held_up().then(|| now.plus(AGAIN_AFTER));
    asks.wake_at(driver.core(), now).into_iter().chain(room).min()
}

/// Where the answer to an input goes.
type Reply = oneshot::Sender<Result<Answer, Error>>;
/// Says whether the loop may end, by what is true.
type Leave = Box<dyn FnOnce(&Core) -> bool + Send>;

/// A batch by what is done with it.
#[derive(Default)]
struct Sorted {
    inputs: Vec<Input>,
    /// Who waits for the input of the same place.
    replies: Vec<Option<Reply>>,
    /// What is to be parked, and who waits until that is on record.
    parks: Vec<(Parks, oneshot::Sender<()>)>,
    leaves: Vec<Leave>,
    /// Who wants to know whose turn a request is, once what came before it is true.
    askers: Vec<(Arc<Ask>, oneshot::Sender<Option<Turn>>)>,
    stop: bool,
}

fn sort(batch: Vec<Message>, asks: &mut Asks, core: &Core, leaving: bool) -> Sorted {
    let mut sorted = Sorted::default();
    for message in batch {
        match message {
            Message::Input(_, Some(reply)) if leaving => drop(reply.send(Err(Error::Stopped))),
            Message::Input(input, reply) => {
                sorted.inputs.push(input);
                sorted.replies.push(reply);
            }
            Message::Ask(ask) => asks.push(ask),
            Message::Settled(exchange_id, command) => {
                if let Some(command) = asks.settled(&exchange_id, command) {
                    sorted.inputs.push(Input::from(command));
                    sorted.replies.push(None);
                }
            }
            Message::Answered(exchange_id) => {
                if let Some(command) = asks.answered(&exchange_id) {
                    sorted.inputs.push(Input::from(command));
                    sorted.replies.push(None);
                }
            }
            Message::Asker(ask, reply) => sorted.askers.push((ask, reply)),
            Message::Knows(path, key, reply) => drop(reply.send(asks.knows(core, path.as_deref(), &key))),
            Message::Look(look) => look(core),
            Message::Park(parks, reply) => sorted.parks.push((parks, reply)),
            Message::Leave(leave) => sorted.leaves.push(leave),
            Message::Stop => sorted.stop = true,
        }
    }
    sorted
}

/// Waits for the next batch: until a message arrives, or until `wake`.
async fn wait(receiver: &mut UnboundedReceiver<Message>, wake: Option<Timestamp>, now: Timestamp) -> Vec<Message> {
    let mut batch = Vec::new();
    let arrived = receiver.recv_many(&mut batch, BATCH_MAX);
    match wake {
        Some(at) => match tokio::time::timeout(patience(at, now), arrived).await {
            Ok(0) => vec![Message::Stop],
            Ok(_) => batch,
            Err(_) => Vec::new(),
        },
        None => match arrived.await {
            0 => vec![Message::Stop],
            _ => batch,
        },
    }
}

/// How long to wait for a message before the clock is looked at.
fn patience(wake: Timestamp, now: Timestamp) -> Duration {
    // A millisecond more than asked for: waking early would find nothing to do and turn in place.
    (wake.since(now) + Duration::from_millis(1)).min(CLOCK_LOOKED_AT)
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_in_hours_is_not_late_by_the_hours_for_which_the_machine_sleeps() {
        let at = Timestamp::from_millis;
        assert_eq!(patience(at(5), at(0)), Duration::from_millis(6));
        assert_eq!(patience(at(0), at(5)), Duration::from_millis(1));
        assert_eq!(patience(at(5 * 3_600_000), at(0)), CLOCK_LOOKED_AT);
    }
}
