//! What a batch came to, out of the provider's log and bill and what the runner says of its own tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_testkit::provider::{Background, ClosingTally, Ended, LogEntry, Says};

use super::Batch;
use super::ideal::Ideal;
use super::kills::Kills;
use super::options::{Options, Runner};
use super::wire::Sent;
use super::work::{self, TURNS};
use super::world::World;
use super::yardstick::Yardstick;

/// The figures of one runner.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) runner: Runner,
    pub(crate) tasks: u32,
    pub(crate) done: u32,
    /// Tasks that lost what they had: the first turn was paid for again.
    pub(crate) from_scratch: u32,
    /// Tasks that were interrupted, and went on where they were.
    pub(crate) resumed: u32,
    /// Tasks that were never interrupted, or had nothing to lose yet.
    pub(crate) untouched: u32,
    pub(crate) refused: u64,
    /// Refused although an earlier refusal had told that the provider is closed.
    pub(crate) into_closed: u64,
    pub(crate) tokens_billed: u64,
    pub(crate) tokens_needed: u64,
    /// Turns that were billed more than once.
    pub(crate) billed_again: u64,
    pub(crate) wall: Duration,
    /// Half of the last pause between two probes, of each closing that stated no end; only outlast probes.
    pub(crate) half_gaps: f64,
    pub(crate) ideal: Ideal,
    pub(crate) left: usize,
    /// Finished tasks of which a turn was asked for again.
    pub(crate) redone: u32,
    /// With what was in flight as the provider saw it; for outlast, which keeps a ledger, as the senders did.
    pub(crate) closings: Vec<ClosingTally>,
    pub(crate) agents_killed: u32,
    pub(crate) orchestrator_killed: u32,
    /// Answers that were on their way when outlast was killed.
    pub(crate) cut_off: u64,
}

impl Figures {
    /// Tokens billed over tokens needed.
    pub(crate) fn tokens_ratio(&self) -> f64 {
        self.tokens_billed as f64 / self.tokens_needed.max(1) as f64
    }

    /// How many turns may be billed again: what was on its way when outlast was killed, and one for each killed agent.
    pub(crate) fn billed_again_max(&self) -> u64 {
        self.cut_off + u64::from(self.agents_killed)
    }

    /// The wall over the ideal one, as it was.
    pub(crate) fn wall_ratio(&self) -> f64 {
        self.wall.as_secs_f64() / self.ideal.seconds()
    }

    /// The same without the half pauses that nobody can know of.
    pub(crate) fn wall_ratio_known(&self) -> f64 {
        (self.wall.as_secs_f64() - self.half_gaps) / self.ideal.seconds()
    }
}

/// Makes the figures.
pub(crate) fn of(
    options: &Options,
    runner: Runner,
    world: &World,
    batch: &Batch,
    kills: &Kills,
    left: usize,
    yardstick: &Yardstick,
) -> Figures {
    let mut bill = world.provider.bill();
    if runner == Runner::Outlast {
        let sent = Sent::of(world);
        bill.closings.iter_mut().for_each(|closing| closing.in_flight = sent.in_flight(closing));
    }
    let histories = histories(&world.provider);
    let fates = (0..options.tasks()).map(|number| {
        let history = histories.get(&work::id(number)).map_or(&[][..], Vec::as_slice);
        Fate::of(history, batch.starts[number as usize], batch.resumed[number as usize])
    });
    let mut counts: BTreeMap<Fate, u32> = BTreeMap::new();
    fates.for_each(|fate| *counts.entry(fate).or_default() += 1);
    let count = |fate| counts.get(&fate).copied().unwrap_or_default();
    let closed = bill.closings.iter().map(|closing| seconds(closing.began_at_ms, closing.ends_at_ms)).collect();
    let away = options.away_seconds * f64::from(kills.orchestrator_killed);
    Figures {
        runner,
        tasks: options.tasks(),
        done: batch.done,
        from_scratch: count(Fate::FromScratch),
        resumed: count(Fate::Resumed),
        untouched: count(Fate::Untouched),
        refused: bill.total.refused,
        into_closed: bill.requests_into_closed_window,
        tokens_billed: bill.total.tokens.total(),
        tokens_needed: yardstick.tokens_needed(&world.cast, runner),
        billed_again: histories.values().map(|history| billed_again(history)).sum(),
        wall: batch.wall,
        half_gaps: if runner == Runner::Outlast { half_gaps(options, &bill.closings) } else { 0.0 },
        ideal: Ideal::of(options, world, yardstick, closed, away),
        left,
        redone: u32::try_from(histories.values().filter(|history| is_redone(history)).count()).unwrap(),
        closings: bill.closings,
        agents_killed: kills.agents_killed,
        orchestrator_killed: kills.orchestrator_killed,
        cut_off: kills.cut_off,
    }
}

/// One request for a turn.
struct Asked {
    step: u32,
    is_billed: bool,
    is_complete: bool,
}

/// What was asked for in each task, in order of arrival.
fn histories(provider: &Background) -> BTreeMap<String, Vec<Asked>> {
    let mut histories: BTreeMap<String, Vec<Asked>> = BTreeMap::new();
    for LogEntry { scenario, step, background, billed, ended, .. } in provider.model_requests() {
        let (Some(task), Some(step), false) = (scenario, step, background) else { continue };
        let step = u32::try_from(step).unwrap();
        let asked = Asked { step, is_billed: billed.is_some(), is_complete: ended == Ended::Complete };
        histories.entry(task).or_default().push(asked);
    }
    histories
}

/// What became of a task's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    FromScratch,
    Resumed,
    Untouched,
}

impl Fate {
    fn of(history: &[Asked], starts: u32, resumed: bool) -> Self {
        let second_turn = history.iter().position(|asked| asked.step > 1).unwrap_or(history.len());
        let begun_again = history[second_turn..].iter().any(|asked| asked.step == 1);
        let paid_firsts = history.iter().filter(|asked| asked.step == 1 && asked.is_complete).count();
        let asked_again = |step: u32| history.iter().filter(|asked| asked.step == step).count() > 1;
        // A session whose very first answer was cut off asks for that one again, and has lost nothing else.
        if begun_again || (starts > 1 && paid_firsts > 1 && !resumed) {
            Self::FromScratch
        } else if resumed && (1..=TURNS).any(asked_again) {
            Self::Resumed
        } else {
            Self::Untouched
        }
    }
}

/// How many turns were billed beyond the first time.
fn billed_again(history: &[Asked]) -> u64 {
    let times = |step: u32| history.iter().filter(|asked| asked.step == step && asked.is_billed).count() as u64;
    (1..=TURNS).map(|step| times(step).saturating_sub(1)).sum()
}

/// Whether an earlier turn was asked for after the closing account had been given.
fn is_redone(history: &[Asked]) -> bool {
    let end = history.iter().position(|asked| asked.step == TURNS && asked.is_complete);
    end.is_some_and(|end| history[end..].iter().any(|asked| asked.step < TURNS))
}

fn half_gaps(options: &Options, closings: &[ClosingTally]) -> f64 {
    let silent: Vec<String> = options
        .closings()
        .into_iter()
        .filter(|closing| closing.says == Says::Nothing)
        .map(|closing| closing.name)
        .collect();
    let gaps = closings
        .iter()
        .filter(|closing| silent.contains(&closing.name))
        .filter_map(|closing| Some(seconds(closing.last_refused_at_ms, closing.taken_again_at_ms?) / 2.0));
    gaps.sum()
}

fn seconds(from_ms: u64, to_ms: u64) -> f64 {
    to_ms.saturating_sub(from_ms) as f64 / 1000.0
}
