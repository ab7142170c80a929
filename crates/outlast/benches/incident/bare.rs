//! The runner of the field: so many agents at once, each to its end or to a fixed timeout.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::agents::{Cli, Place};
use super::world::World;

/// A task in the hands of a person.
pub(crate) struct Job {
    number: u32,
    cli: Cli,
    fresh: u32,
    /// How often an agent was started for it.
    pub(crate) starts: u32,
    /// Whether a start went on with the session of an earlier one.
    pub(crate) resumed: bool,
    pub(crate) done: bool,
}

/// How an agent takes up a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begin {
    /// In a fresh clone, with a session of its own.
    Anew,
    /// In the clone and with the session that are there; anew where none was kept.
    Resume,
}

/// Every task of a world, not yet begun.
pub(crate) fn jobs(world: &World) -> Vec<Job> {
    let numbered = world.cast.iter().zip(0..);
    numbered.map(|(cli, number)| Job { number, cli: *cli, fresh: 0, starts: 0, resumed: false, done: false }).collect()
}

impl Job {
    /// The place of the newest fresh start.
    fn place<'a>(&self, world: &'a World) -> Place<'a> {
        Place { world, cli: self.cli, number: self.number, fresh: self.fresh }
    }

    /// Starts an agent and waits for its end, however it ends. One that takes too long is killed.
    pub(crate) fn attempt(&mut self, world: &World, begin: Begin, timeout: Duration) {
        let is_there = begin == Begin::Resume && self.fresh > 0;
        let session = is_there.then(|| self.place(world).kept_session()).flatten();
        self.resumed |= session.is_some();
        if session.is_none() {
            self.fresh += 1;
            self.place(world).make();
        }
        self.starts += 1;
        let place = self.place(world);
        let mut agent = place.command(session.as_deref()).spawn().unwrap();
        let status = ends_within(&mut agent, timeout).unwrap_or_else(|| {
            agent.kill().unwrap();
            agent.wait().unwrap()
        });
        self.done = status.success() && status.signal().is_none() && place.passes();
    }

    /// Which task it is, from 0.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }
}

/// Works through a queue with so many workers, as long as the queue goes on; every job, in the order of the tasks.
pub(crate) fn pool(
    at_once: u32,
    jobs: Vec<Job>,
    goes_on: impl Fn() -> bool + Sync,
    work: impl Fn(&mut Job) + Sync,
) -> Vec<Job> {
    let queue = Mutex::new(VecDeque::from(jobs));
    let over = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while goes_on() {
                    let next = queue.lock().unwrap().pop_front();
                    let Some(mut job) = next else { break };
                    work(&mut job);
                    over.lock().unwrap().push(job);
                }
            });
        }
    });
    let mut jobs = over.into_inner().unwrap();
    jobs.extend(queue.into_inner().unwrap());
    jobs.sort_by_key(Job::number);
    jobs
}

/// Waits for the end of a child of ours, so long at most.
pub(crate) fn ends_within(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let limit =
        Timespec { tv_sec: i64::try_from(patience.as_secs()).unwrap(), tv_nsec: i64::from(patience.subsec_nanos()) };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
    child.try_wait().unwrap()
}
