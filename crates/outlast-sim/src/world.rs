//! The simulated world: workspaces, process trees and targets, which outlive every crash of the orchestrator.
//!
//! The world is what effects act on. It keeps the promises that real effects must keep (a launch looks first, an ended
//! attempt is fenced) and complains when it is asked for something that must never happen. It decides nothing.

pub(crate) mod agent;
pub(crate) mod target;

use std::collections::{BTreeMap, VecDeque};

use outlast_core::class::Class;
use outlast_core::record::{Outcome, ShimRef};
use outlast_core::{Oid, Timestamp};

use self::agent::Script;
use self::target::Target;
use crate::invariant::{Invariant, Violation};
use crate::scenario::Spot;

/// Everything outside the orchestrator.
#[derive(Debug)]
pub(crate) struct World {
    sites: BTreeMap<Spot, Site>,
    /// The target of each run.
    pub(crate) targets: Vec<Target>,
    next_pid: u32,
}

/// A task's workspace and what was ever launched in it.
#[derive(Debug, Default)]
struct Site {
    workspace: Option<Oid>,
    trees: BTreeMap<u32, Tree>,
    /// Attempts up to this number were ended: nothing of them may be launched any more.
    fence: u32,
}

/// The process tree of one attempt, and the files that its shim left.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The process that owns the agent.
    pub(crate) shim: ShimRef,
    agent: Agent,
    child_lives: bool,
    /// What the agent will do.
    pub(crate) script: Script,
    /// The CLI's session.
    pub(crate) session: Option<String>,
    /// What a request of it waits for, and until when.
    pub(crate) held: Option<(Class, Option<Timestamp>)>,
    /// The newest tree in the store.
    pub(crate) checkpoint: Option<Oid>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Agent {
    Lives,
    Exited(Outcome),
    /// Killed, or gone without an exit status.
    Gone,
}

/// What came of asking for a launch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// The agent lives from now on.
    Started,
    /// It was launched before.
    Found,
    /// The attempt was ended: nothing is launched.
    Fenced,
}

impl World {
    /// An untouched world with one target for each run.
    pub(crate) fn new(runs: usize) -> Self {
        Self { sites: BTreeMap::new(), targets: (0..runs).map(Target::new).collect(), next_pid: 100 }
    }

    /// Makes the workspace, or leaves the one that is there, and names its base.
    pub(crate) fn prepare(&mut self, spot: Spot, base: impl FnOnce() -> Oid) -> Oid {
        let site = self.sites.entry(spot).or_default();
        site.workspace.get_or_insert_with(base).clone()
    }

    /// Launches an attempt unless it was launched or ended before.
    pub(crate) fn launch(
        &mut self,
        spot: Spot,
        number: u32,
        script: impl FnOnce() -> Script,
    ) -> Result<Launch, Violation> {
        let site = self.sites.entry(spot).or_default();
        if site.trees.contains_key(&number) {
            return Ok(Launch::Found);
        }
        if number <= site.fence {
            return Ok(Launch::Fenced);
        }
        if let Some((old, _)) = site.trees.iter().find(|(_, tree)| tree.lives()) {
            return Err(Invariant::OneProcessPerTask
                .broken(format!("{spot:?}: attempt {number} is launched while {old} lives")));
        }
        self.next_pid += 1;
        let shim = ShimRef { pid: self.next_pid, start_time: u64::from(self.next_pid) * 7, boot_id: "boot".into() };
        site.trees.insert(
            number,
            Tree {
                shim,
                agent: Agent::Lives,
                child_lives: false,
                script: script(),
                session: None,
                held: None,
                checkpoint: None,
            },
        );
        Ok(Launch::Started)
    }

    /// The tree of an attempt that was launched.
    pub(crate) fn tree(&mut self, spot: Spot, number: u32) -> Option<&mut Tree> {
        self.sites.get_mut(&spot)?.trees.get_mut(&number)
    }

    /// Kills whatever lives of an attempt and makes sure that nothing of it is launched any more.
    pub(crate) fn end(&mut self, spot: Spot, number: u32) {
        let site = self.sites.entry(spot).or_default();
        site.fence = site.fence.max(number);
        if let Some(tree) = site.trees.get_mut(&number) {
            tree.kill();
        }
    }

    /// Complains if an attempt is said to be over before it was ended here: something of it may live, or be launched later.
    pub(crate) fn is_over(&self, spot: Spot, number: u32) -> Result<(), Violation> {
        let site = self.sites.get(&spot);
        let is_fenced = site.is_some_and(|site| site.fence >= number);
        let lives = site.and_then(|site| site.trees.get(&number)).is_some_and(Tree::lives);
        Invariant::EndProven.holds(is_fenced && !lives, || {
            format!("{spot:?}: attempt {number} is over, it lives: {lives}, it was ended: {is_fenced}")
        })
    }

    /// Complains if anything of the task lives, because `wish` needs it at rest.
    pub(crate) fn at_rest(&self, spot: Spot, wish: &str) -> Result<(), Violation> {
        let living = self.sites.get(&spot).and_then(|site| {
            let mut trees = site.trees.iter();
            trees.find(|(_, tree)| tree.lives()).map(|(number, _)| *number)
        });
        Invariant::OneProcessPerTask.holds(living.is_none(), || format!("{spot:?}: attempt {living:?} lives: {wish}"))
    }

    /// Archives the work and removes the workspace.
    pub(crate) fn archive(&mut self, spot: Spot) -> Result<(), Violation> {
        self.at_rest(spot, "its workspace is removed")?;
        self.sites.entry(spot).or_default().workspace = None;
        Ok(())
    }

    /// Ends every process there is, as a reboot does.
    pub(crate) fn reboot(&mut self) {
        for site in self.sites.values_mut() {
            site.trees.values_mut().for_each(Tree::kill);
        }
    }
}

impl Tree {
    /// Whether any process of it lives.
    pub(crate) fn lives(&self) -> bool {
        self.agent == Agent::Lives || self.child_lives
    }

    /// Whether the agent itself lives.
    pub(crate) fn agent_lives(&self) -> bool {
        self.agent == Agent::Lives
    }

    /// What a watcher finds once the agent no longer lives; nothing while it does.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &self.agent {
            Agent::Lives => None,
            Agent::Exited(outcome) => Some(outcome.clone()),
            Agent::Gone => Some(Outcome::Failed {
                class: Class::Vanished,
                why: "no process and no exit status".into(),
                until: None,
            }),
        }
    }

    /// The agent ends by itself. A detached child of it stays.
    pub(crate) fn exit(&mut self, outcome: Outcome) {
        self.agent = Agent::Exited(outcome);
        self.held = None;
    }

    /// The agent is gone and has left no exit status.
    pub(crate) fn vanish(&mut self) {
        self.agent = Agent::Gone;
        self.held = None;
    }

    /// The agent starts a process that does not end with it.
    pub(crate) const fn fork(&mut self) {
        self.child_lives = true;
    }

    fn kill(&mut self) {
        if self.agent == Agent::Lives {
            self.vanish();
        }
        self.child_lives = false;
        self.script = VecDeque::new();
    }
}
