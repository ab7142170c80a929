//! One simulation: a driver, the world that it acts on, and the time in which things go wrong.
//!
//! Single-threaded and a function of its seed: no clock, no randomness but the seed's, no order that varies.

mod agents;
mod budget;
mod check;
mod crash;
mod hands;
mod news;
mod people;

use std::collections::{BTreeMap, VecDeque};

use outlast_core::admit::Command;
use outlast_core::desired::{Operation, OperationKey};
use outlast_core::driver::{Driver, Effects, Input};
use outlast_core::record::Fact;
use outlast_core::{Core, Record, Stream, Timestamp};

use self::budget::Budgets;
use self::crash::Crash;
use self::hands::{Hand, HandId};
use self::news::Message;
use self::people::Act;
use crate::agenda::Agenda;
use crate::disk::Disk;
use crate::invariant::{Invariant, Violation};
use crate::ledger::Ledger;
use crate::profile::{Faults, Profile};
use crate::referee::Referee;
use crate::report::Report;
use crate::rng::Rng;
use crate::scenario::{Scenario, Spot};
use crate::world::World;

/// More events than any sound simulation has.
const EVENTS_MAX: u64 = 400_000;

/// Something that happens.
#[derive(Debug)]
enum Event {
    /// The driver takes in what has come.
    Turn,
    /// The orchestrator is started again.
    Recover,
    /// An operation goes on.
    Work(HandId),
    /// An agent goes on.
    Agent(Spot, u32),
    /// News reaches the driver.
    Deliver(Box<Message>),
    /// A person or the clock acts.
    Act(Act),
}

/// What the driver asks for in one step.
#[derive(Debug, Default)]
struct Requests(Vec<Request>);

#[derive(Debug)]
enum Request {
    Start(OperationKey, Operation),
    Cancel(OperationKey),
}

impl Effects for Requests {
    fn start(&mut self, key: &OperationKey, operation: &Operation) {
        self.0.push(Request::Start(key.clone(), operation.clone()));
    }

    fn cancel(&mut self, key: &OperationKey) {
        self.0.push(Request::Cancel(key.clone()));
    }
}

/// A simulation under way.
pub(crate) struct Simulation<'a> {
    profile: &'a Profile,
    /// Whether invariants are checked; a simulation goes the same way without.
    is_judged: bool,
    scenario: Scenario,
    rng: Rng,
    agenda: Agenda<Event>,
    disk: Disk,
    ledger: Ledger,
    budgets: Budgets,
    /// The orchestrator, while it lives.
    driver: Option<Driver<Disk, Requests>>,
    inbox: Vec<Input>,
    turn_is_due: bool,
    world: World,
    hands: BTreeMap<HandId, Hand>,
    /// Which hand's return means that an operation is no longer in flight.
    in_hand: BTreeMap<OperationKey, HandId>,
    next_hand: HandId,
    referee: Referee,
    /// The state as it is replayed from the disk, up to `folded` records.
    shadow: Core,
    folded: usize,
    /// A written state, and how many records it covers.
    snapshot: Option<(usize, Vec<u8>)>,
    crashes_to_come: VecDeque<(usize, Crash)>,
    /// Crash in the step under way.
    crash_now: Option<Crash>,
    crashes: u32,
    /// No more faults.
    quiet: bool,
    /// Whether everything that was given up was tried again at the end.
    was_retried: bool,
    /// How often everything was asked to land at the end.
    land_rounds: u32,
    events: u64,
    steps: u64,
    rejections: u64,
    violation: Option<Violation>,
}

impl<'a> Simulation<'a> {
    /// A simulation at the start of its time.
    pub(crate) fn new(seed: u64, profile: &'a Profile, is_judged: bool) -> Self {
        let scenario = Scenario::draw(&mut Rng::new(seed, 1), profile);
        let disk = Disk::default();
        let mut simulation = Self {
            profile,
            is_judged,
            rng: Rng::new(seed, 2),
            agenda: Agenda::new(),
            driver: Some(Driver::new(Core::default(), disk.clone(), Requests::default())),
            disk,
            ledger: Ledger::default(),
            budgets: Budgets::default(),
            inbox: Vec::new(),
            turn_is_due: false,
            world: World::new(scenario.runs.len()),
            hands: BTreeMap::new(),
            in_hand: BTreeMap::new(),
            next_hand: 0,
            referee: Referee::new(&scenario),
            scenario,
            shadow: Core::default(),
            folded: 0,
            snapshot: None,
            crashes_to_come: VecDeque::new(),
            crash_now: None,
            crashes: 0,
            quiet: false,
            was_retried: false,
            land_rounds: 0,
            events: 0,
            steps: 0,
            rejections: 0,
            violation: None,
        };
        simulation.plan_crashes();
        simulation.plan_acts();
        simulation.plan_raises();
        simulation
    }

    /// Lets everything happen, and tells what came of it, and every record that was written.
    pub(crate) fn run(mut self) -> (Report, Vec<Record>) {
        while self.violation.is_none() {
            self.events += 1;
            let more =
                Invariant::Settles.holds(self.events < EVENTS_MAX, || format!("after {EVENTS_MAX} events it goes on"));
            let result = more.and_then(|()| self.next());
            match result {
                Ok(true) => {}
                Ok(false) => break,
                Err(violation) => self.violation = Some(violation),
            }
        }
        let report = Report {
            tasks: self.scenario.spots().count(),
            records: self.disk.len(),
            crashes: self.crashes,
            steps: self.steps,
            events: self.events,
            rejections: self.rejections,
            log_hash: self.disk.hash(),
            violation: self.violation,
        };
        (report, self.disk.since(0))
    }

    /// Lets the next thing happen; false where nothing is left.
    fn next(&mut self) -> Result<bool, Violation> {
        let wake = self.wake();
        let next = self.agenda.next_at();
        if let Some(wake) = wake.filter(|&wake| next.is_none_or(|next| wake <= next)) {
            self.agenda.advance(wake);
            self.turn()?;
            return Ok(true);
        }
        let Some(event) = self.agenda.pop() else {
            return self.at_rest();
        };
        match event {
            Event::Turn => {
                self.turn_is_due = false;
                self.turn()?;
            }
            Event::Recover => self.recover()?,
            Event::Work(hand) => self.work(hand)?,
            Event::Agent(spot, number) => self.agent_goes_on(spot, number),
            Event::Deliver(message) => self.deliver(*message),
            Event::Act(act) => self.act(act),
        }
        Ok(true)
    }

    /// When the driver is to look again by itself.
    fn wake(&self) -> Option<u64> {
        let core = self.driver.as_ref()?.core();
        let (at, _) = core.wake_at(self.agenda.wall())?;
        Some(self.agenda.instant_of(at))
    }

    /// What goes wrong at this time.
    const fn faults(&self) -> &Faults {
        if self.quiet { &Faults::NONE } else { &self.profile.faults }
    }

    /// Puts a command into the driver's inbox.
    fn tell(&mut self, input: Input) {
        self.inbox.push(input);
        self.look();
    }

    /// Has the driver look, soon.
    fn look(&mut self) {
        if !self.turn_is_due {
            self.turn_is_due = true;
            let delay = self.rng.between((0, 30));
            self.agenda.after(delay, Event::Turn);
        }
    }

    fn tell_command(&mut self, command: Command) {
        self.tell(Input::from(command));
    }

    fn now(&self) -> Timestamp {
        self.agenda.wall()
    }

    /// One turn of the driver, with whatever crash is due in it.
    fn turn(&mut self) -> Result<(), Violation> {
        if self.driver.is_none() {
            return Ok(());
        }
        if self.crash_before_step()? {
            return Ok(());
        }
        let inputs = std::mem::take(&mut self.inbox);
        for key in inputs.iter().filter_map(|input| input.returns.as_ref()) {
            self.in_hand.remove(key);
        }
        let now = self.now();
        let Some(driver) = &mut self.driver else {
            return Ok(());
        };
        self.steps += 1;
        let answers = match driver.step(now, inputs) {
            Ok(answers) => answers,
            Err(crashed) => return self.crash_in_step(crashed),
        };
        let requests = std::mem::take(&mut driver.effects().0);
        self.budgets.settle();
        self.rejections += answers.iter().filter(|answer| answer.is_err()).count() as u64;
        self.fold(self.disk.len())?;
        let served = self.requests_served(requests.len());
        for request in requests.into_iter().take(served) {
            match request {
                Request::Start(key, operation) => self.begin(key, operation)?,
                Request::Cancel(key) => self.stop(&key)?,
            }
        }
        if self.crash_now.take().is_some() {
            return self.crash();
        }
        self.check()
    }

    /// Takes durable records into the shadow, and shows them to the referee, up to so many in all.
    fn fold(&mut self, until: usize) -> Result<(), Violation> {
        if !self.is_judged {
            return Ok(());
        }
        let records = self.disk.since(self.folded);
        for record in records.iter().take(until - self.folded) {
            self.shadow.apply(record);
            self.folded += 1;
            self.referee.observe(&self.scenario, record)?;
            if let (Stream::Task(run, task), Fact::AttemptEnded { number }) = (&record.stream, &record.fact)
                && let Some(spot) = self.scenario.spot(run, task)
            {
                self.world.is_over(spot, *number)?;
            }
        }
        Ok(())
    }
}
