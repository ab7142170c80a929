//! One turn of the loop: commands in, records durable, state changed, effects started and cancelled.
//!
//! Synchronous and generic over where records go and what effects are, so that the engine and the simulator run the
//! same code. The order within a turn is the crash-safety argument: nothing is applied that is not durable, and no
//! effect starts that is not the consequence of something durable.

use std::collections::BTreeMap;

use crate::admit::{Command, Rejection};
use crate::core::Core;
use crate::desired::{Operation, OperationKey, Operations};
use crate::mutant::{Bug, planted};
use crate::record::{Fact, Record, Stream};
use crate::time::Timestamp;

/// Where records become durable.
pub trait Store {
    /// Why they could not.
    type Error;

    /// Makes records durable, in order, all or none. Each comes with its revision within its stream.
    ///
    /// # Errors
    /// Where they are not durable: the caller must take nothing in.
    fn append(&mut self, records: &[(u64, Record)]) -> Result<(), Self::Error>;

    /// Takes note of the state at the end of a turn, as for a snapshot of it.
    ///
    /// # Errors
    /// Where what it keeps cannot be kept.
    fn turn_ended(&mut self, _core: &Core) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Whether there is room for more than the end of what is under way: where there is none, nothing is started.
    fn has_room(&mut self) -> bool {
        true
    }
}

/// What acts on the world.
pub trait Effects {
    /// Starts an operation, which reports by commands.
    fn start(&mut self, key: &OperationKey, operation: &Operation);

    /// Stops working on an operation that is no longer wanted.
    fn cancel(&mut self, key: &OperationKey);

    /// Takes note that attempts are not started for want of room; said once for as long as that lasts.
    fn no_room(&mut self) {}
}

/// Something the loop is given.
#[derive(Debug, Clone)]
pub struct Input {
    /// What the outside world says or wants, if anything.
    pub command: Option<Command>,
    /// The operation that has returned with this input: it is no longer in flight.
    pub returns: Option<OperationKey>,
}

impl From<Command> for Input {
    fn from(command: Command) -> Self {
        Self { command: Some(command), returns: None }
    }
}

/// What is parked, although its run goes on: nobody stays to look after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parks {
    /// Nothing.
    Nothing,
    /// Attempts whose request is held.
    Held,
    /// Every attempt that is at work.
    All,
}

/// The one owner of the state.
#[derive(Debug)]
pub struct Driver<S, E> {
    core: Core,
    store: S,
    effects: E,
    in_flight: Operations,
    starts: bool,
    parks: Parks,
    /// Whether something is not started for want of room.
    is_held_up: bool,
}

impl<S: Store, E: Effects> Driver<S, E> {
    /// A driver over a state that was replayed from `store`. Nothing is in flight yet.
    pub const fn new(core: Core, store: S, effects: E) -> Self {
        Self {
            core,
            store,
            effects,
            in_flight: Operations::new(),
            starts: true,
            parks: Parks::Nothing,
            is_held_up: false,
        }
    }

    /// The same driver, but it starts no attempt: what is alive is looked after, and what a person asks for is done.
    #[must_use]
    pub const fn without_starts(mut self) -> Self {
        self.starts = false;
        self
    }

    /// Parks from now on, and starts nothing meanwhile: for whoever wants to leave, and may change their mind.
    pub const fn parks(&mut self, parks: Parks) {
        self.parks = parks;
    }

    /// Whether it parks, and so starts nothing.
    pub const fn is_parking(&self) -> bool {
        !matches!(self.parks, Parks::Nothing)
    }

    /// What is true.
    pub const fn core(&self) -> &Core {
        &self.core
    }

    /// What acts on the world.
    pub const fn effects(&mut self) -> &mut E {
        &mut self.effects
    }

    /// How many operations are in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether something would start if there were room: time alone may make a difference then.
    pub const fn is_held_up(&self) -> bool {
        self.is_held_up
    }

    /// One turn: takes a batch of inputs in and brings the world in line. The answers are in the order of the inputs.
    ///
    /// # Errors
    /// Where records could not be made durable. What was durable before is applied, nothing else; inputs that have no
    /// answer had no effect.
    pub fn step(&mut self, now: Timestamp, inputs: Vec<Input>) -> Result<Vec<Answer>, S::Error> {
        let mut answers = Vec::with_capacity(inputs.len());
        let mut batch = Batch::default();
        for input in inputs {
            if let Some(key) = input.returns {
                self.in_flight.remove(&key);
            }
            answers.push(match input.command {
                Some(command) => self.admit(now, command, &mut batch)?,
                None => Ok(()),
            });
        }
        self.commit(&mut batch)?;
        let has_room = self.store.has_room();
        let mut held_up = false;
        let may_start = self.starts && !self.is_parking();
        loop {
            let mut records = self.core.decide(now);
            records.retain(|record| {
                let starts = matches!(record.fact, Fact::AttemptStarted { .. });
                held_up |= starts && may_start && !has_room;
                !starts || may_start && has_room
            });
            if records.is_empty() && self.is_parking() {
                records = self.core.park(self.parks == Parks::All, now);
            }
            if records.is_empty() {
                break;
            }
            batch.extend(&self.core, records);
            self.commit(&mut batch)?;
        }
        if held_up && !std::mem::replace(&mut self.is_held_up, held_up) {
            self.effects.no_room();
        }
        self.is_held_up = held_up;
        self.store.turn_ended(&self.core)?;
        self.reconcile();
        Ok(answers)
    }

    /// Admits a command into the batch. One that reads what the batch has touched is admitted after the batch is
    /// committed; the others share one commit.
    fn admit(&mut self, now: Timestamp, command: Command, batch: &mut Batch) -> Result<Answer, S::Error> {
        let reads_the_batch = match command.stream() {
            Some(stream) => batch.revisions.contains_key(&stream),
            None => !batch.records.is_empty(),
        };
        // An exchange is true whatever else is, as long as its task is known.
        let is_true =
            |core: &Core| matches!(command, Command::Exchanged { .. }) && core.admit(now, command.clone()).is_ok();
        if reads_the_batch && !is_true(&self.core) && !planted(Bug::BatchBlind) {
            self.commit(batch)?;
        }
        let answer = self.core.admit(now, command);
        Ok(answer.map(|records| batch.extend(&self.core, records)))
    }

    fn commit(&mut self, batch: &mut Batch) -> Result<(), S::Error> {
        let batch = std::mem::take(batch);
        if batch.records.is_empty() {
            return Ok(());
        }
        let written = self.store.append(&batch.records);
        if !planted(Bug::AppliesUnwritten) {
            written?;
        }
        for (_, record) in &batch.records {
            self.core.apply(record);
        }
        Ok(())
    }

    fn reconcile(&mut self) {
        let wanted = self.core.desired();
        let unwanted: Vec<OperationKey> = self
            .in_flight
            .keys()
            .filter(|key| !wanted.contains_key(key) && !planted(Bug::CancelForgotten))
            .cloned()
            .collect();
        for key in unwanted {
            self.in_flight.remove(&key);
            self.effects.cancel(&key);
        }
        for (key, operation) in wanted {
            if !self.in_flight.contains_key(&key) {
                self.effects.start(&key, &operation);
                self.in_flight.insert(key, operation);
            }
        }
    }
}

/// What became of an input.
pub type Answer = Result<(), Rejection>;

/// Records that share a commit.
#[derive(Default)]
struct Batch {
    records: Vec<(u64, Record)>,
    revisions: BTreeMap<Stream, u64>,
}

impl Batch {
    fn extend(&mut self, core: &Core, records: Vec<Record>) {
        for record in records {
            let next =
                self.revisions.entry(record.stream.clone()).or_insert_with(|| core.next_revision(&record.stream));
            self.records.push((*next, record));
            *next += 1;
        }
    }
}

#[cfg(test)]
mod tests;
