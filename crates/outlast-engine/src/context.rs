//! What every operation works with: the repositories, the spawner, the plans, the loop.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_agent::{KeyShape, Kind, adapter};
use outlast_core::admit::Command;
use outlast_core::desired::OperationKey;
use outlast_core::plan::AgentSpec;
use outlast_core::task::{Failure, Task};
use outlast_core::{AccountId, AgentName, AttemptId, Epoch, Oid, RunId, TaskId, Timestamp};
use outlast_git::Note;
use outlast_process::{ShimFile, Spawner, files};
use tokio::sync::{OwnedMutexGuard, Semaphore, broadcast};

use crate::asks::{AccountInfo, spoken};
use crate::effects::AGAIN_AFTER;
use crate::error::Error;
use crate::fill::Fill;
use crate::held_up;
use crate::home::RepoHome;
use crate::keys::RunSecret;
use crate::loops::Loops;
use crate::notes;
use crate::obstacle::Obstacle;
use crate::ops::Unshown;
use crate::passed::PassedRefusals;
use crate::plans::Plans;
use crate::repositories::Repositories;
use crate::room::NoSpace;
use crate::state_loop::LoopHandle;
use crate::toolchain::Toolchain;

/// Shared by all operations.
pub(crate) struct Context {
    pub(crate) engine: LoopHandle,
    pub(crate) home: RepoHome,
    pub(crate) git: Arc<Repositories>,
    pub(crate) spawner: Spawner,
    pub(crate) toolchain: Toolchain,
    /// Every account, in the user's order of preference.
    pub(crate) accounts: Vec<AccountId>,
    /// What is known of them, in the same order.
    pub(crate) infos: Vec<AccountInfo>,
    /// What attempts were told by providers that no waiting mends.
    pub(crate) passed: Arc<PassedRefusals>,
    /// Who does the same over and over.
    pub(crate) loops: Loops,
    /// How full their conversations are.
    pub(crate) fill: Fill,
    /// What commands of plans have not shown.
    pub(crate) unshown: Unshown,
    /// The integration worktree has one user at a time.
    pub(crate) integration: tokio::sync::Mutex<()>,
    /// Trees that verify has passed on since this engine started: what was shown need not be shown twice.
    verified: Mutex<BTreeMap<(RunId, TaskId), Oid>>,
    /// The run and tree that `setup` was last run for in the integration worktree.
    set_up: Mutex<Option<(RunId, Oid)>>,
    pub(crate) plans: Plans,
    /// As many as may keep the cores and the disk busy at once.
    turns: Semaphore,
    locks: Mutex<TaskLocks>,
    trees: Mutex<TaskLocks>,
    /// What was said of a run already: it holds for all of its tasks.
    told: Mutex<BTreeSet<(RunId, String)>>,
    trouble: broadcast::Sender<Trouble>,
    /// Word of what is held up is left by one at a time.
    leaves_word: Mutex<()>,
}

/// One lock a task: who holds it works on that task alone.
type TaskLocks = BTreeMap<(RunId, TaskId), Arc<tokio::sync::Mutex<()>>>;

/// What is on record about a task.
#[derive(Debug, Clone)]
pub(crate) struct TaskFacts {
    pub(crate) run_base: Oid,
    pub(crate) target: String,
    /// The commits by which tasks of its run have landed.
    pub(crate) landed: Vec<Oid>,
    /// When the run started: the date of everything that must come out the same when it is made again.
    pub(crate) started_at: Timestamp,
    pub(crate) base: Option<Oid>,
    /// Whether the results that it needs are on the target, all of them.
    pub(crate) needs_landed: bool,
    pub(crate) checkpoint: Option<Oid>,
    pub(crate) attempts: u32,
    /// The fence of its living attempt.
    pub(crate) epoch: Option<Epoch>,
    /// Whether its living attempt has changed its tree at a turn.
    pub(crate) made_headway: bool,
    /// Whether its living attempt has asked its model anything.
    pub(crate) has_asked: bool,
    /// Whether the last answer to its living attempt broke before its end.
    pub(crate) answer_broke: bool,
    /// How many tokens its session would be paid for again, where that is dearer than a fresh one.
    pub(crate) dear_session: Option<u64>,
    pub(crate) last_failure: Option<Failure>,
    /// Who works on it from its next attempt on.
    pub(crate) agent: AgentName,
}

/// Something that a person should hear of at once: it holds a task up, or it is about to be missed.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// The task that it is about; none where it holds up everything that is to start.
    pub task: Option<TaskId>,
    /// What went wrong.
    pub what: String,
    /// Whether the disk is full.
    pub no_space: bool,
    /// Whether it is tried again: it held the task up.
    pub again: bool,
}

/// Of those on a core, some wait for the disk or for a git that they have started.
const TURNS_PER_CORE: usize = 4;

/// How many troubles a slow listener may lag behind.
const TROUBLES_KEPT: usize = 64;

impl Context {
    pub(crate) fn new(
        engine: LoopHandle,
        home: RepoHome,
        git: Arc<Repositories>,
        spawner: Spawner,
        infos: Vec<AccountInfo>,
        passed: Arc<PassedRefusals>,
    ) -> Self {
        Self {
            engine,
            toolchain: Toolchain::of_this_process(home.root()),
            home,
            git,
            spawner,
            accounts: infos.iter().map(|info| info.id.clone()).collect(),
            infos,
            passed,
            loops: Loops::default(),
            fill: Fill::default(),
            unshown: Unshown::default(),
            integration: tokio::sync::Mutex::new(()),
            verified: Mutex::default(),
            set_up: Mutex::default(),
            plans: Plans::default(),
            turns: Semaphore::new(TURNS_PER_CORE * std::thread::available_parallelism().map_or(1, usize::from)),
            locks: Mutex::default(),
            trees: Mutex::default(),
            told: Mutex::default(),
            trouble: broadcast::channel(TROUBLES_KEPT).0,
            leaves_word: Mutex::default(),
        }
    }

    /// Says something to the loop and waits until it is durable. What is stale by now is no error: whoever made it
    /// stale has put on record what happens instead.
    pub(crate) async fn tell(&self, command: Command) -> Result<(), Error> {
        match self.engine.tell(command).await {
            Err(Error::Rejected(outlast_core::admit::Rejection::Stale(..))) => Ok(()),
            answer => answer,
        }
    }

    /// What is on record about a task, as far as operations need it.
    pub(crate) async fn task_facts(&self, run: &RunId, task: &TaskId) -> Result<TaskFacts, Error> {
        let (run_id, task_id) = (run.clone(), task.clone());
        let facts = self.engine.look(move |core| {
            let run = core.run(&run_id)?;
            let task = run.task(&task_id)?;
            Some(TaskFacts {
                run_base: run.spec.base.clone(),
                target: run.spec.target.clone(),
                landed: run.tasks.iter().filter_map(|task| task.landed_as().cloned()).collect(),
                started_at: run.started_at,
                base: task.base.clone(),
                needs_landed: task.spec.needs.iter().all(|need| run.task(need).is_none_or(Task::is_on_target)),
                checkpoint: task.checkpoint.clone(),
                attempts: task.attempts,
                epoch: task.attempt().map(|attempt| attempt.epoch),
                made_headway: task.attempt().is_some_and(|attempt| attempt.made_headway),
                has_asked: task.attempt().is_some_and(|attempt| attempt.has_asked),
                answer_broke: task.attempt().is_some_and(|attempt| attempt.answer_broke),
                dear_session: task.paid_again.dear_session(crate::state_loop::now()),
                last_failure: task.last_failure.clone(),
                agent: task.spec.agent.clone(),
            })
        });
        facts.await?.ok_or_else(|| Error::Internal(format!("no task `{task}` in run `{run}`")))
    }

    /// Keeps the tree of a task's workspace, on top of the tree that was kept last.
    pub(crate) async fn checkpoint(&self, id: &AttemptId, why: &'static str) -> Result<Oid, Error> {
        Ok(self.checkpoint_with_notes(id, why).await?.0)
    }

    /// As [`Context::checkpoint`], with what it did not take.
    pub(crate) async fn checkpoint_with_notes(
        &self,
        id: &AttemptId,
        why: &'static str,
    ) -> Result<(Oid, Vec<Note>), Error> {
        let _tree = self.tree_lock(id).lock_owned().await;
        let (commit, notes) = self.keep_tree_with_notes(id, why.to_owned(), false).await?;
        if let Some(what) = notes::finding(&notes) {
            self.note_finding(id, what);
        }
        if self.in_git(Repositories::settings_changed).await? {
            self.note_finding(id, notes::SETTINGS_CHANGED.to_owned());
        }
        Ok((commit, notes))
    }

    /// As [`Context::checkpoint`], for whoever has the tree's lock.
    pub(crate) async fn keep_tree(&self, id: &AttemptId, why: String, only_if_changed: bool) -> Result<Oid, Error> {
        Ok(self.keep_tree_with_notes(id, why, only_if_changed).await?.0)
    }

    async fn keep_tree_with_notes(
        &self,
        id: &AttemptId,
        why: String,
        only_if_changed: bool,
    ) -> Result<(Oid, Vec<Note>), Error> {
        let known = self.task_facts(&id.run, &id.task).await?;
        // Work is kept also where the copy of the plan is damaged: its scope is not known then.
        let task = self.plan(&id.run).await.ok().and_then(|plan| plan.task(&id.task).cloned());
        let (id, home, at) = (id.clone(), self.home.clone(), crate::state_loop::now());
        self.in_git(move |git| {
            let kept = git.checkpoint(&id, known.checkpoint.clone(), &why, at, only_if_changed)?;
            crate::left_out::note(&home, &id, task.as_ref(), &kept.notes, only_if_changed)?;
            crate::put_away::note(&home, &id, &kept.notes)?;
            Ok((kept.commit, kept.notes))
        })
        .await
    }

    /// What whoever keeps a task's tree must hold: each checkpoint stands on the one before.
    pub(crate) fn tree_lock(&self, id: &AttemptId) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(lock(&self.trees).entry((id.run.clone(), id.task.clone())).or_default())
    }

    /// As [`Context::checkpoint`]; nothing where the workspace was never finished, and so no agent has
    /// been in it, or where its record is damaged: whoever makes it anew sets it aside.
    pub(crate) async fn checkpoint_if_made(&self, id: &AttemptId, why: &'static str) -> Result<Option<Oid>, Error> {
        match self.checkpoint(id, why).await {
            Ok(commit) => Ok(Some(commit)),
            Err(Error::Git(outlast_git::Error::NoWorkspace { .. } | outlast_git::Error::DamagedWorkspace { .. })) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Who runs in the folder of a launch, once nothing can start there any more that an engine before this one asked for.
    pub(crate) async fn launched(&self, dir: &Path) -> Result<Option<ShimFile>, Error> {
        let dir = dir.to_owned();
        self.waiting(move || {
            files::settle_launches(&dir)?;
            Ok(files::load_shim(&dir)?)
        })
        .await
    }

    /// Checks that there is anything to work with: the user's repository, and room on the disk that holds the state.
    pub(crate) fn room(&self) -> Result<(), Error> {
        self.git.is_there()?;
        crate::room::check(self.home.root())
    }

    /// What is in the way of everything, if anything is.
    pub(crate) fn obstacle(&self) -> Option<Obstacle> {
        Obstacle::of(&self.home)
    }

    /// Waits for as long as anything is in the way of everything, and tells whoever listens: an agent that is at work on a
    /// full disk writes half of what it means to, and nothing is kept of what it does without our store.
    pub(crate) async fn until_clear(&self) {
        let mut is_told = false;
        // Nobody tells when a disk has room again, or when a folder is back.
        while let Some(obstacle) = self.obstacle() {
            if !std::mem::replace(&mut is_told, true) {
                let (no_space, what) = match &obstacle {
                    Obstacle::DiskFull(_) => {
                        let until = "agents wait with their next request, and go on by themselves when there is room";
                        (true, format!("the disk is full: {until}"))
                    }
                    gone => (false, format!("{}; agents wait with their next request", gone.detail())),
                };
                self.trouble.send(Trouble { task: None, what, no_space, again: false }).unwrap_or_default();
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// As [`Context::room`], and the disk that holds the user's checkout, which git leaves half-written where it fills up.
    pub(crate) fn room_to_land(&self) -> Result<(), Error> {
        self.room()?;
        crate::room::check(self.git.user().root())?;
        crate::room::check(self.git.user().common_dir())
    }

    /// The secret that keys of a run are derived from.
    pub(crate) fn secret(&self, run: &RunId) -> Result<RunSecret, Error> {
        RunSecret::load_or_create(&self.home.run_secret(run))
    }

    /// In which shape an agent is handed its key: as that of the account that pays first, of those that answer it.
    pub(crate) fn key_shape(&self, agent: &AgentSpec, kind: Kind) -> KeyShape {
        let named = if agent.accounts.is_empty() { &self.accounts } else { &agent.accounts };
        match named.iter().find_map(|account| self.answering(account, kind)) {
            Some(info) if info.login => KeyShape::Login,
            _ => KeyShape::ApiKey,
        }
    }

    /// An account, if it answers what agents of a kind send.
    fn answering(&self, account: &AccountId, kind: Kind) -> Option<&AccountInfo> {
        let dialects = adapter(kind).capabilities().dialects;
        let info = self.infos.iter().find(|info| info.id == *account)?;
        dialects.iter().any(|&dialect| info.dialects.contains(&spoken(dialect))).then_some(info)
    }

    /// See [`accounts_for`].
    pub(crate) fn accounts_of(&self, agent: &AgentSpec, kind: Kind) -> Vec<AccountId> {
        accounts_for(&self.infos, agent, kind)
    }

    /// Waits until nobody else works on the task.
    pub(crate) async fn task_lock(&self, key: &OperationKey) -> OwnedMutexGuard<()> {
        let mutex = Arc::clone(lock(&self.locks).entry((key.run.clone(), key.task.clone())).or_default());
        mutex.lock_owned().await
    }

    /// Runs what keeps a core or the disk busy away from the threads that must not. Where many come at once, as when hundreds of
    /// agents begin, they take turns: all at once, each takes as long as all of them, and the memory of all their threads.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turns.acquire().await;
        let turn = turn.map_err(|closed| Error::Internal(format!("no turn to work: {closed}")))?;
        let done = self.waiting(work).await;
        drop(turn);
        done
    }

    /// Runs what mostly waits away from the threads that must not, at once.
    pub(crate) async fn waiting<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        tokio::task::spawn_blocking(work).await.map_err(|e| Error::Internal(format!("an operation panicked: {e}")))?
    }

    /// Remembers that the integration worktree holds what `setup` made for a tree.
    pub(crate) fn note_set_up(&self, run: &RunId, tree: &Oid) {
        *lock(&self.set_up) = Some((run.clone(), tree.clone()));
    }

    /// Whether the integration worktree holds what `setup` made for this very tree.
    pub(crate) fn is_set_up(&self, run: &RunId, tree: &Oid) -> bool {
        lock(&self.set_up).as_ref() == Some(&(run.clone(), tree.clone()))
    }

    /// Remembers that verify has passed on a tree.
    pub(crate) fn note_verified(&self, key: (RunId, TaskId), tree: Oid) {
        lock(&self.verified).insert(key, tree);
    }

    /// Whether verify of this task has passed on this very tree.
    pub(crate) fn has_verified(&self, key: &(RunId, TaskId), tree: &Oid) -> bool {
        lock(&self.verified).get(key) == Some(tree)
    }

    /// Tells whoever listens that something is being tried again.
    pub(crate) fn note_trouble(&self, key: &OperationKey, error: &Error) {
        tracing::warn!(run = %key.run, task = %key.task, step = ?key.step, %error, "an operation came to nothing");
        let (task, no_space) = (Some(key.task.clone()), error.is_no_space());
        let what = crate::diagnose::in_short(error);
        drop(self.trouble.send(Trouble { task, what, no_space, again: true }));
    }

    /// Tells whoever listens that a turn of a living attempt could not be kept. It is not tried again: the next turn keeps
    /// all there is by then.
    pub(crate) fn note_not_kept(&self, id: &AttemptId, turn: u32, error: &Error) {
        tracing::warn!(attempt = %id, turn, %error, "a turn was not kept");
        let what = format!("turn {turn} is not kept, its agent goes on and the next turn keeps all of it: {error}");
        drop(self.trouble.send(Trouble {
            task: Some(id.task.clone()),
            what,
            no_space: error.is_no_space(),
            again: false,
        }));
    }

    /// Tells whoever listens that a turn's tree takes long to keep; its agent goes on meanwhile.
    pub(crate) fn note_slow(&self, id: &AttemptId, turn: u32, patience: Duration) {
        let seconds = patience.as_secs();
        self.note_finding(
            id,
            format!(
                "turn {turn} takes more than {seconds} s to keep, so its agent goes on meanwhile: its workspace holds very much, \
                 or its disk is slow"
            ),
        );
    }

    /// Tells whoever listens what a person should know of an attempt, although it goes on.
    pub(crate) fn note_finding(&self, id: &AttemptId, what: String) {
        tracing::warn!(attempt = %id, what, "a finding");
        drop(self.trouble.send(Trouble { task: Some(id.task.clone()), what, no_space: false, again: false }));
    }

    /// As [`Context::note_finding`], once for all tasks of a run.
    pub(crate) fn note_finding_once(&self, id: &AttemptId, what: String) {
        if lock(&self.told).insert((id.run.clone(), what.clone())) {
            self.note_finding(id, what);
        }
    }

    /// Tells whoever listens that nothing is started until the disk has room.
    pub(crate) fn note_no_room(&self) {
        let what = format!("{}: nothing more is started", NoSpace::of(self.home.root()).words());
        drop(self.trouble.send(Trouble { task: None, what, no_space: true, again: true }));
    }

    /// Tells whoever listens that our store was damaged.
    pub(crate) fn note_mended_store(&self) {
        let what = notes::MENDED_STORE.to_owned();
        drop(self.trouble.send(Trouble { task: None, what, no_space: false, again: false }));
    }

    /// Leaves word of what is tried again and again, for those who look without asking this engine.
    pub(crate) fn leave_word(&self) {
        let _alone = lock(&self.leaves_word);
        if let Err(error) = held_up::save(&self.home.tried(), &self.engine.held_up().tried()) {
            tracing::warn!(%error, "what is tried again cannot be told to those who look");
        }
    }

    pub(crate) fn troubles(&self) -> broadcast::Receiver<Trouble> {
        self.trouble.subscribe()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The accounts that an agent may use, in order of preference: those it names, or else all, without those that do not
/// answer what it sends.
pub(crate) fn accounts_for(infos: &[AccountInfo], agent: &AgentSpec, kind: Kind) -> Vec<AccountId> {
    let dialects = adapter(kind).capabilities().dialects;
    let answers = |info: &AccountInfo| dialects.iter().any(|&dialect| info.dialects.contains(&spoken(dialect)));
    let usable = |account: &&AccountId| infos.iter().any(|info| info.id == **account && answers(info));
    match agent.accounts.as_slice() {
        [] => infos.iter().map(|info| &info.id).filter(usable).cloned().collect(),
        named => named.iter().filter(usable).cloned().collect(),
    }
}
