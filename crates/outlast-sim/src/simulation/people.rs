//! Whatever acts without being asked: people and the wall clock. And what is done when nothing happens any more.

use outlast_core::admit::Command;
use outlast_core::driver::{Driver, Parks};
use outlast_core::record::Assigned;
use outlast_core::run::Mode;
use outlast_core::task::Phase;
use outlast_core::{AgentName, Class, RunId};

use super::budget::PLENTY;
use super::crash::Crash;
use super::{Event, Simulation};
use crate::invariant::Violation;
use crate::scenario::Spot;

/// An act of a person or of the clock.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// A person starts a run, if none of its id was started.
    Start(usize),
    Pause(usize),
    Stop(usize),
    Resume(usize),
    /// A person has tried at once what a run waits for.
    TryNow(usize),
    /// A person has everything of a run tried again that was given up.
    Retry(usize),
    /// A person lets a run spend so much in all.
    Raise(usize, u64),
    Land(Spot),
    Discard(Spot),
    /// A provider refuses an account for good.
    Shut(usize),
    /// A person has seen to an account.
    Open(usize),
    /// A person gives a task to another agent, with these accounts.
    Assign(Spot, Vec<usize>),
    /// A person commits on the target.
    Commit(usize),
    /// A person checks the target out, or leaves it.
    CheckOut(usize, bool),
    /// Somebody wants to leave who need not wait, or stays after all.
    Park(Parks),
    /// The machine runs short of memory.
    MakeRoom,
    /// The wall clock jumps by so many milliseconds.
    Jump(i64),
    /// The faults stop, and everything goes on that was paused.
    Quiet,
}

/// How long people wait before they try again what found no orchestrator.
const PATIENCE: u64 = 30_000;
/// How long a checked-out target or a pause lasts.
const BREAK: (u64, u64) = (5_000, 1_200_000);
/// How often memory that is short is looked at, and how far apart.
const SHORTAGE_LOOKS: u64 = 60;
const SHORTAGE_LOOK: u64 = 10_000;
/// The farthest that the wall clock jumps.
const JUMP_MAX: u64 = 7_200_000;
/// How often everything is asked to land once nothing else is left to do.
const LAND_ROUNDS: u32 = 3;

impl Simulation<'_> {
    /// Draws what will be done unasked.
    pub(super) fn plan_acts(&mut self) {
        self.agenda.at(0, Event::Act(Act::Start(0)));
        for run in 1..self.scenario.runs.len() {
            let at = self.rng.between((0, 600_000));
            self.agenda.at(at, Event::Act(Act::Start(run)));
        }
        // Most of what a plan does is over in a part of the time in which faults may happen.
        let soon = (1_000, self.profile.faults_end / 3);
        for _ in 0..self.rng.between(self.profile.commands) {
            let at = self.rng.between(soon);
            self.plan_command(at);
        }
        for _ in 0..self.rng.between(self.profile.meddling) {
            let run = self.rng.index(self.scenario.runs.len());
            let at = self.rng.between(soon);
            if self.rng.chance(500) {
                self.agenda.at(at, Event::Act(Act::Commit(run)));
            } else {
                let until = at + self.rng.between(BREAK);
                self.agenda.at(at, Event::Act(Act::CheckOut(run, true)));
                self.agenda.at(until, Event::Act(Act::CheckOut(run, false)));
            }
        }
        for _ in 0..self.rng.between(self.profile.clock_jumps) {
            let at = self.rng.between(soon);
            let by = i64::try_from(self.rng.below(JUMP_MAX)).unwrap_or(0);
            let by = if self.rng.chance(500) { by } else { -by };
            self.agenda.at(at, Event::Act(Act::Jump(by)));
        }
        // Without drawing anything of the rest of the history anew.
        for run in (0..self.scenario.runs.len()).filter(|run| self.scenario.runs[*run].spec.seed.is_multiple_of(3)) {
            let at = self.profile.faults_end / 5 + self.scenario.runs[run].spec.seed % (self.profile.faults_end / 2);
            self.agenda.at(at, Event::Act(Act::TryNow(run)));
        }
        for run in (0..self.scenario.runs.len()).filter(|run| self.scenario.runs[*run].spec.seed % 3 == 1) {
            let at = self.profile.faults_end / 2 + self.scenario.runs[run].spec.seed % (self.profile.faults_end / 3);
            self.agenda.at(at, Event::Act(Act::Retry(run)));
        }
        self.plan_accounts();
        self.plan_leaves();
        self.plan_shortage();
        let end = self.profile.faults_end;
        self.agenda.at(end, Event::Act(Act::Quiet));
    }

    /// Accounts that are refused for good until somebody has seen to them, and tasks that are given to agents with others: of what
    /// is drawn already, too.
    fn plan_accounts(&mut self) {
        let (soon, accounts) = (self.profile.faults_end / 3, self.scenario.accounts.len());
        for run in 0..self.scenario.runs.len() {
            let (seed, tasks) = (self.scenario.runs[run].spec.seed, self.scenario.runs[run].tasks.len());
            let of = |shift: u32, many: usize| usize::try_from(seed >> shift).unwrap_or(0) % many;
            if seed % 4 == 1 {
                let (at, account) = (seed % soon, of(3, accounts));
                self.agenda.at(at, Event::Act(Act::Shut(account)));
                // Sometimes all of them.
                let all = if seed % 8 == 1 { 0..accounts } else { account..account };
                for account in all {
                    self.agenda.at(at + 1 + seed % 1_000, Event::Act(Act::Shut(account)));
                }
                for account in 0..accounts {
                    self.agenda.at(at + BREAK.0 + seed % BREAK.1, Event::Act(Act::Open(account)));
                }
            }
            if seed % 5 == 2 {
                for nth in 0..3 {
                    let spot = Spot { run, task: of(5 + nth, tasks) };
                    let to = (0..=of(9 + nth, accounts)).map(|i| (of(11 + nth, accounts) + i) % accounts).collect();
                    let at = soon / 4 * u64::from(nth + 1) + seed % soon;
                    self.agenda.at(at, Event::Act(Act::Assign(spot, to)));
                }
            }
        }
    }

    /// Somebody who need not wait has what waits parked, or all of it, and stays after all: of what is drawn already, too.
    fn plan_leaves(&mut self) {
        let soon = self.profile.faults_end / 3;
        for seed in self.scenario.runs.iter().map(|run| run.spec.seed).filter(|seed| seed % 4 == 2) {
            let parks = if seed % 8 == 2 { Parks::Held } else { Parks::All };
            for nth in 1..=3 {
                let at = soon / 4 * nth + seed % (soon / 4);
                self.agenda.at(at, Event::Act(Act::Park(parks)));
                self.agenda.at(at + BREAK.0 + seed % BREAK.1, Event::Act(Act::Park(Parks::Nothing)));
            }
        }
    }

    /// The machine is short of memory for a while, in which it is looked at again and again: of what is drawn already, too.
    fn plan_shortage(&mut self) {
        let soon = self.profile.faults_end / 3;
        for seed in self.scenario.runs.iter().map(|run| run.spec.seed).filter(|seed| seed % 5 == 3) {
            for nth in 0..SHORTAGE_LOOKS {
                self.agenda.at(seed % soon + nth * SHORTAGE_LOOK, Event::Act(Act::MakeRoom));
            }
        }
    }

    fn plan_command(&mut self, at: u64) {
        let run = self.rng.index(self.scenario.runs.len());
        let spot = Spot { run, task: self.rng.index(self.scenario.runs[run].tasks.len()) };
        let act = match self.rng.below(20) {
            0..=3 => Act::Pause(run),
            4 | 5 => Act::Stop(run),
            6 | 7 => Act::Discard(spot),
            _ => Act::Land(spot),
        };
        let pauses = matches!(act, Act::Pause(_) | Act::Stop(_));
        self.agenda.at(at, Event::Act(act));
        if pauses {
            let until = at + self.rng.between(BREAK);
            self.agenda.at(until, Event::Act(Act::Resume(run)));
        }
    }

    /// Something is done unasked.
    pub(super) fn act(&mut self, act: Act) {
        let command = match act.clone() {
            Act::Commit(run) => return self.world.targets[run].person_commits(),
            Act::CheckOut(run, is) => {
                self.world.targets[run].checked_out = is;
                return;
            }
            Act::Jump(by) => return self.agenda.jump(by),
            Act::Park(parks) => return self.park(parks),
            Act::Quiet => return self.calm_down(),
            Act::Start(run) => match self.start(run) {
                Some(command) => command,
                None => return,
            },
            Act::Pause(run) => Command::PauseRun(self.run_id(run)),
            Act::Stop(run) => Command::StopRun(self.run_id(run)),
            Act::Resume(run) => Command::ResumeRun(self.run_id(run)),
            Act::Retry(run) => {
                if self.driver.is_none() {
                    self.agenda.after(PATIENCE, Event::Act(act));
                } else {
                    self.retry(run);
                }
                return;
            }
            Act::MakeRoom => Command::MakeRoom,
            Act::TryNow(run) => Command::TryNow(self.run_id(run)),
            Act::Raise(run, usd_nanos) => self.raise(run, usd_nanos),
            Act::Shut(account) => Command::ShutAccount {
                account: self.scenario.accounts[account].clone(),
                class: if account % 2 == 0 { Class::Auth } else { Class::Billing },
            },
            Act::Open(account) => Command::OpenAccount(self.scenario.accounts[account].clone()),
            Act::Assign(spot, to) => Command::Assign {
                run: self.run_id(spot.run),
                task: self.scenario.task(spot).id.clone(),
                assigned: Assigned {
                    agent: AgentName::from("another"),
                    accounts: to.into_iter().map(|account| self.scenario.accounts[account].clone()).collect(),
                    needs_quota: true,
                },
            },
            Act::Land(spot) => Command::Land { run: self.run_id(spot.run), task: self.scenario.task(spot).id.clone() },
            Act::Discard(spot) => {
                Command::Discard { run: self.run_id(spot.run), task: self.scenario.task(spot).id.clone() }
            }
        };
        if self.driver.is_none() {
            self.agenda.after(PATIENCE, Event::Act(act));
            return;
        }
        self.tell_command(command);
    }

    /// The command that starts a run; nothing where that is known to have happened.
    fn start(&self, run: usize) -> Option<Command> {
        let plan = &self.scenario.runs[run];
        let core = self.driver.as_ref().map(Driver::core);
        if core.is_some_and(|core| core.run(&plan.id).is_some()) {
            return None;
        }
        let tasks = plan.tasks.iter();
        Some(Command::StartRun {
            run: plan.id.clone(),
            spec: plan.spec.clone(),
            tasks: tasks.map(|task| (task.id.clone(), task.spec.clone())).collect(),
        })
    }

    pub(super) fn run_id(&self, run: usize) -> RunId {
        self.scenario.runs[run].id.clone()
    }

    /// It is a switch of the driver: whoever comes after a crash has not set it.
    fn park(&mut self, parks: Parks) {
        if let Some(driver) = &mut self.driver {
            driver.parks(parks);
            self.look();
        }
    }

    fn calm_down(&mut self) {
        self.quiet = true;
        self.park(Parks::Nothing);
        for account in 0..self.scenario.accounts.len() {
            if self.driver.as_ref().is_some_and(|driver| driver.core().is_shut(&self.scenario.accounts[account])) {
                self.agenda.after(PATIENCE, Event::Act(Act::Open(account)));
            }
        }
        for run in 0..self.scenario.runs.len() {
            self.world.targets[run].checked_out = false;
            self.agenda.after(0, Event::Act(Act::Start(run)));
            self.agenda.after(PATIENCE, Event::Act(Act::Resume(run)));
        }
    }

    /// Nothing happens any more: what is left of the crashes comes now, then everything is asked to land, then the
    /// end is judged. False where that was all.
    pub(super) fn at_rest(&mut self) -> Result<bool, Violation> {
        let armed = self.disk.disarm();
        let left = if armed { None } else { self.crashes_to_come.pop_front() };
        if armed || left.is_some() {
            if left.is_some_and(|(_, crash)| crash == Crash::Reboot) {
                self.world.reboot();
            }
            self.crash()?;
            return Ok(true);
        }
        if let Some(run) = self.resting_run() {
            self.act(Act::Resume(run));
            return Ok(true);
        }
        if let Some(account) = self.shut_account() {
            self.act(Act::Open(account));
            return Ok(true);
        }
        if let Some(raise) = self.run_without_budget() {
            self.act(raise);
            return Ok(true);
        }
        self.judge_targets()?;
        if !std::mem::replace(&mut self.was_retried, true) {
            let retried: Vec<bool> = (0..self.scenario.runs.len()).map(|run| self.retry(run)).collect();
            if retried.contains(&true) {
                return Ok(true);
            }
        }
        if self.land_rounds < LAND_ROUNDS {
            self.land_rounds += 1;
            self.land_all();
            return Ok(true);
        }
        self.judge_end()?;
        Ok(false)
    }

    /// An account that is shut still: whoever has seen to it was not heard.
    fn shut_account(&self) -> Option<usize> {
        let core = self.driver.as_ref()?.core();
        self.scenario.accounts.iter().position(|account| core.is_shut(account))
    }

    /// A run that is paused or stopped still: whoever resumed it was not heard.
    fn resting_run(&self) -> Option<usize> {
        let core = self.driver.as_ref()?.core();
        let rests = |id: &RunId| core.run(id).is_some_and(|run| matches!(run.mode, Mode::Paused | Mode::Stopped));
        self.scenario.runs.iter().position(|plan| rests(&plan.id))
    }

    /// Has everything of a run tried again that was given up; whether there is anything.
    fn retry(&mut self, run: usize) -> bool {
        let Some(driver) = &self.driver else { return false };
        let id = self.run_id(run);
        let Some(found) = driver.core().run(&id) else { return false };
        let failed: Vec<_> =
            found.tasks.iter().filter(|task| task.phase == Phase::Failed).map(|task| task.id.clone()).collect();
        for task in &failed {
            self.tell_command(Command::Retry { run: id.clone(), task: task.clone() });
        }
        // A run that was over has no budget raised: whoever goes on with it has to.
        if !failed.is_empty() && self.scenario.runs[run].spec.budget.usd_nanos.is_some() {
            let raise = self.raise(run, PLENTY);
            self.tell_command(raise);
        }
        !failed.is_empty()
    }

    fn land_all(&mut self) {
        let Some(driver) = &self.driver else { return };
        let mut spots = Vec::new();
        for spot in self.scenario.spots() {
            let run = driver.core().run(&self.scenario.runs[spot.run].id);
            if run.is_some_and(|run| matches!(run.tasks[spot.task].phase, Phase::Done(_))) {
                spots.push(spot);
            }
        }
        for spot in spots {
            self.act(Act::Land(spot));
        }
    }
}
