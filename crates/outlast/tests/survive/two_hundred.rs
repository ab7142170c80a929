//! One run of thirty tasks while two hundred of its processes are killed with SIGKILL, at moments and in an order that
//! nobody has chosen: agents, which go on with their sessions, the shims that look after them, the engine at any moment, in the
//! middle of an answer that is streamed, and in the middle of a checkpoint, and git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_core::record::{Fact, Rung, Stream};
use outlast_journal::JournalReader;
use outlast_testkit::provider::{Ended, Fault, Rule, Script, When};

use crate::kills::{Dice, everything_landed_once};
use crate::long;
use crate::running::Running;
use crate::user::Snapshot;
use crate::world::{Plan, World};

const TASKS: usize = 30;
/// The last so many do not end before everything is killed that is to be: until then there is something to kill.
const WAIT: usize = 8;
/// How often the agents of one task are killed: each time it waits longer for its next.
const KILLS_PER_TASK: u32 = 4;
/// The longest pause between two kills, in milliseconds.
const PAUSE_MAX: u64 = 120;
/// How long a process to kill is looked for before another kind is chosen, and how long an engine may take to pass a point.
const LOOK: Duration = Duration::from_millis(100);
const PASS: Duration = Duration::from_millis(1500);
/// From when on whatever is left to kill is the engine: of that there always is one.
const HUNT_MAX: Duration = Duration::from_secs(45);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Agent,
    Shim,
    Engine,
    /// The engine, while an answer goes through its gateway.
    Answer,
    /// The engine, where it keeps a turn.
    Checkpoint,
    Git,
}

/// How many of each are killed.
const DECK: [(Victim, usize); 6] = [
    (Victim::Agent, 65),
    (Victim::Shim, 45),
    (Victim::Engine, 25),
    (Victim::Answer, 15),
    (Victim::Checkpoint, 15),
    (Victim::Git, 35),
];
/// How many of each there must have been at the least, however slow the machine is.
const LEAST: u32 = 5;
/// How long the provider takes for each frame of an answer, in milliseconds.
const FRAME: u64 = 30;
/// Where an engine is when it keeps what an agent has done.
const KEEPING: [&str; 4] = ["turn_before_checkpoint", "turn_after_checkpoint", "after_checkpoint", "after_answer"];

fn plan(gate: &Path) -> Plan {
    let mut plan = Plan::new("concurrency = 8\nland = \"auto\"");
    // As real CLIs do when an answer is cut, and when they are started again.
    plan = plan.agent_arguments(&["--retries", "5", "--resume", "{resume}"]);
    plan.defaults = "timeout = \"10m\"\nidle_timeout = \"10m\"\nretries = 1\nverify = [\"sh check.sh\"]\n".to_owned();
    for number in 1..=TASKS {
        let id = format!("t{number}");
        let own = "git add -A && git commit -q --allow-empty -m own";
        let own = match number > TASKS - WAIT {
            true => format!("until test -e {}; do {own}; sleep 0.2; done", gate.display()),
            false => own.to_owned(),
        };
        let part = |name: &str| format!("write parts/{name}.txt \"part {name}\\n\"\n");
        let more = ["a", "b", "c"].map(|more| part(&format!("{id}-{more}"))).concat();
        let script = format!("{}run \"{own}\"\n{more}", part(&id));
        plan = plan.task(&id, &script, &format!("writes = [\"parts/{id}.txt\", \"parts/{id}-*.txt\"]"));
    }
    plan
}

/// The words of a process's command line.
fn words(pid: i32) -> Vec<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).split('\0').map(str::to_owned).collect()
}

/// The id of the task that a process works for, by its environment.
fn task_of(pid: i32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment).into_owned();
    environment.split('\0').find_map(|pair| pair.strip_prefix("OUTLAST_TASK=").map(str::to_owned))
}

/// The task whose attempt a shim's folder belongs to.
fn task_in(folder: &Path) -> Option<String> {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    folder.ancestors().map(name).find_map(|name| {
        let task = name.split(['.', '@']).next()?.to_owned();
        (task.starts_with('t') && task[1..].parse::<usize>().is_ok()).then_some(task)
    })
}

/// What is killed, and of what there was nothing to kill.
struct Hunt<'a> {
    world: &'a World,
    dice: Dice,
    left: BTreeMap<Victim, usize>,
    killed_of: BTreeMap<String, u32>,
    killed: BTreeMap<Victim, u32>,
    engine: Option<Running>,
}

impl Hunt<'_> {
    /// Any one of these, if there is any.
    fn any<T>(&mut self, mut of: Vec<T>) -> Option<T> {
        let at = usize::try_from(self.dice.roll(of.len() as u64)).unwrap();
        (!of.is_empty()).then(|| of.swap_remove(at))
    }

    fn spares(&self, task: Option<&String>) -> bool {
        task.is_some_and(|task| self.killed_of.get(task).is_some_and(|times| *times >= KILLS_PER_TASK))
    }

    /// Kills one process of a kind; whether there was one.
    fn strike(&mut self, victim: Victim) -> bool {
        let since = Instant::now();
        loop {
            let found: Vec<(i32, Option<String>)> = match victim {
                Victim::Engine => {
                    self.again(None);
                    return true;
                }
                Victim::Answer => match self.answers() {
                    answers if answers.is_empty() => Vec::new(),
                    answers => return self.cuts(&answers),
                },
                Victim::Checkpoint => {
                    let point = KEEPING[usize::try_from(self.dice.roll(KEEPING.len() as u64)).unwrap()];
                    let fault = format!("{point}:{}", 1 + self.dice.roll(3));
                    return self.again(Some(&fault));
                }
                Victim::Shim => {
                    self.world.living_shims().into_iter().map(|(folder, pid)| (pid, task_in(&folder))).collect()
                }
                Victim::Agent => {
                    let agents = self.world.env.processes().into_iter();
                    agents
                        .filter(|pid| words(*pid).get(1).is_some_and(|word| word == "__agent"))
                        .map(|pid| (pid, task_of(pid)))
                        .collect()
                }
                Victim::Git => {
                    let is_git = |pid: &i32| words(*pid).first().is_some_and(|word| word.ends_with("git"));
                    self.world.env.processes().into_iter().filter(is_git).map(|pid| (pid, None)).collect()
                }
            };
            let found = found.into_iter().filter(|(_, task)| !self.spares(task.as_ref())).collect();
            if let Some((pid, task)) = self.any(found)
                && kill(Pid::from_raw(pid), Signal::SIGKILL).is_ok()
            {
                *self.killed_of.entry(task.unwrap_or_default()).or_default() += 1;
                *self.killed.entry(victim).or_default() += 1;
                return true;
            }
            if since.elapsed() > LOOK {
                return false;
            }
        }
    }

    /// The numbers of the requests whose answers have begun and are still on their way, by the provider's own log.
    fn answers(&self) -> Vec<u64> {
        let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let log = self.world.provider.log().into_iter();
        let open = log.filter(|entry| entry.ended == Ended::Open && entry.stream && entry.arrived_at_ms + FRAME < now);
        open.map(|entry| entry.number).collect()
    }

    /// Kills the engine and starts the next one; whether that cut off one of these answers, which the provider had begun.
    fn cuts(&mut self, answers: &[u64]) -> bool {
        self.engine.take().unwrap().kill_9();
        let is_one = |number: &u64| answers.contains(number);
        self.world.provider_saw("the end of the answers that were cut off", |log| {
            log.iter().filter(|entry| is_one(&entry.number)).all(|entry| entry.ended != Ended::Open)
        });
        let log = self.world.provider.log();
        let mut ended = log.iter().filter(|entry| is_one(&entry.number));
        let is_cut = ended.any(|entry| entry.ended == Ended::ClientGone && entry.status == 200);
        *self.killed.entry(if is_cut { Victim::Answer } else { Victim::Engine }).or_default() += 1;
        self.engine = Some(self.world.start(&["resume"]));
        is_cut
    }

    /// Kills the engine and starts the next one, or has the next one kill itself when it passes a point, if it does soon.
    fn again(&mut self, fault: Option<&str>) -> bool {
        self.engine.take().unwrap().kill_9();
        *self.killed.entry(Victim::Engine).or_default() += 1;
        let mut command = self.world.command(&["resume"]);
        let Some(fault) = fault else {
            self.engine = Some(Running::of(command));
            return true;
        };
        command.env("OUTLAST_FAULT", fault);
        let mut faulty = Running::of(command);
        let died = faulty.ended_within(PASS);
        if let Some(left) = self.left.get_mut(&Victim::Engine) {
            *left = left.saturating_sub(1);
        }
        faulty.kill_9();
        *self.killed.entry(if died { Victim::Checkpoint } else { Victim::Engine }).or_default() += 1;
        self.engine = Some(self.world.start(&["resume"]));
        died
    }

    /// Kills until nothing is left to kill.
    fn run(&mut self) {
        let since = Instant::now();
        while self.left.values().any(|left| *left > 0) {
            let open: Vec<Victim> =
                self.left.iter().flat_map(|(victim, left)| std::iter::repeat_n(*victim, *left)).collect();
            let victim = self.any(open).unwrap();
            let is_late = since.elapsed() > HUNT_MAX;
            if self.strike(if is_late { Victim::Engine } else { victim }) {
                let left = self.left.get_mut(&victim).unwrap();
                *left = left.saturating_sub(1);
            }
            std::thread::sleep(Duration::from_millis(self.dice.roll(PAUSE_MAX)));
        }
    }
}

/// Every attempt on record has one start and one end, in this order; how many of them went on with a session.
fn journal_is_sound(path: PathBuf) -> u32 {
    let mut resumed = 0;
    let reader = JournalReader::open(path).unwrap();
    let mut attempts: BTreeMap<(String, u32), (u32, u32)> = BTreeMap::new();
    reader
        .replay(0, |_, entry| {
            let record = outlast_engine::read_record(&entry)?;
            let Stream::Task(_, task) = &record.stream else { return Ok(()) };
            match record.fact {
                Fact::AttemptStarted { number, rung, .. } => {
                    attempts.entry((task.to_string(), number)).or_default().0 += 1;
                    resumed += u32::from(matches!(rung, Rung::Session(_)));
                }
                Fact::AttemptEnded { number } => {
                    let (started, ended) = attempts.entry((task.to_string(), number)).or_default();
                    assert_eq!((*started, *ended), (1, 0), "{task}.{number}");
                    *ended += 1;
                }
                _ => {}
            }
            Ok::<(), outlast_engine::Error>(())
        })
        .unwrap();
    assert!(attempts.values().all(|counts| *counts == (1, 1)), "{attempts:?}");
    resumed
}

#[test]
fn two_hundred_random_kills_of_thirty_tasks_lose_nothing() {
    if !long("200 kills of 30 tasks") {
        return;
    }
    let began = Instant::now();
    let slow = Rule { when: When::default(), fault: Fault::Slow { per_frame_ms: FRAME }, times: None };
    let world = World::with_script(Script::default().with_fault(slow));
    let gate = world.env.root().join("gate");
    world.plan(&plan(&gate));
    let base = world.repo.commit_id("HEAD").unwrap();
    let user = Snapshot::of_lived_in(&world.repo, "outlast/");
    let seed = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["the run starts"]);
    let left = BTreeMap::from(DECK);
    let mut hunt = Hunt {
        world: &world,
        dice: Dice(seed),
        left,
        killed_of: BTreeMap::new(),
        killed: BTreeMap::new(),
        engine: Some(run),
    };
    hunt.run();
    eprintln!("seed {seed}: after {:?} these are killed: {:?}", began.elapsed(), hunt.killed);
    assert!(hunt.killed.values().sum::<u32>() >= 200 && hunt.killed.values().all(|times| *times >= LEAST));
    assert_eq!(hunt.killed.len(), DECK.len());
    std::fs::write(&gate, "").unwrap();
    hunt.engine.take().unwrap().end().ends(0);
    everything_landed_once(&world, &base, TASKS, &format!("seed {seed}"));
    let target = world.target();
    for id in 1..=TASKS {
        for name in ["", "-a", "-b", "-c"].map(|more| format!("t{id}{more}")) {
            let text = world.repo.text(&["show", &format!("{target}:parts/{name}.txt")]).unwrap();
            assert_eq!(text.trim_end(), format!("part {name}"), "seed {seed}");
        }
    }
    user.is_untouched(&format!("seed {seed}"));
    let resumed = journal_is_sound(world.homes()[0].join("journal.db"));
    eprintln!("seed {seed}: everything has landed after {:?}, {resumed} attempts with a session", began.elapsed());
    assert!(resumed >= LEAST, "seed {seed}");
}
