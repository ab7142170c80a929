//! Times the dispatch of no-op commands: the core's decisions, a durable journal, a shim per command, and no workspace.
//!
//! `dispatch_bench TASKS CONCURRENCY` prints the seconds from the first decision to the last durable record. It leaves its
//! folder, in the temp folder, to the caller: some file systems (ext4 without a journal) make new files slowly for minutes
//! after thousands were deleted, and the next round would be timed in that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outlast_core::admit::{AttemptNews, Command};
use outlast_core::budget::Allowed;
use outlast_core::desired::{Operation, OperationKey};
use outlast_core::driver::{Driver, Effects, Input, Store};
use outlast_core::record::{Outcome, RunSpec, TaskSpec, VERSION, Verdict};
use outlast_core::run::Mode;
use outlast_core::{AgentName, Core, Oid, Record, RunId, TaskId, Timestamp};
use outlast_journal::{Entry, Journal};
use outlast_process::{ContainmentChoice, FileRules, LaunchSpec, OsText, Spawner, Timeouts};
use tokio::runtime::Handle;

struct BenchStore(Journal);

impl Store for BenchStore {
    type Error = Box<dyn std::error::Error>;

    fn append(&mut self, records: &[(u64, Record)]) -> Result<(), Self::Error> {
        let entry = |(revision, record): &(u64, Record)| -> Result<Entry, Self::Error> {
            let body = serde_json::to_string(&record.fact)?;
            Ok(Entry { stream: record.stream.to_string(), revision: *revision, at: record.at, version: VERSION, body })
        };
        self.0.append(records.iter().map(entry).collect::<Result<_, _>>()?)?;
        Ok(())
    }
}

struct BenchEffects {
    spawner: Arc<Spawner>,
    runtime: Handle,
    folder: std::path::PathBuf,
    inputs: Sender<Input>,
}

impl Effects for BenchEffects {
    fn start(&mut self, key: &OperationKey, operation: &Operation) {
        let OperationKey { run, task, .. } = key.clone();
        let returns = Some(key.clone());
        let inputs = self.inputs.clone();
        let say = move |command| drop(inputs.send(Input { command: Some(command), returns }));
        match operation {
            &Operation::Attempt { number, epoch, .. } => {
                let (spawner, spec) = (Arc::clone(&self.spawner), spec(&self.folder, &task));
                self.runtime.spawn(async move {
                    let outcome = match run_to_the_end(&spawner, spec).await {
                        Ok(()) => Outcome::Finished,
                        Err(error) => panic!("{task}: {error}"),
                    };
                    say(Command::Attempt { run, task, number, epoch, news: AttemptNews::Exited(outcome) });
                });
            }
            &Operation::End { number, epoch, .. } => {
                say(Command::Attempt { run, task, number, epoch, news: AttemptNews::Ended });
            }
            &Operation::Verify { number, .. } => {
                let verdict = Verdict::Passed { result: Oid::new("0".repeat(40)) };
                say(Command::Verified { run, task, number, checkpoint: None, verdict });
            }
            Operation::Candidate { .. } | Operation::Move { .. } | Operation::Discard => {}
        }
    }

    fn cancel(&mut self, _: &OperationKey) {}
}

async fn run_to_the_end(spawner: &Spawner, spec: LaunchSpec) -> Result<(), outlast_process::Error> {
    std::fs::create_dir_all(&spec.attempt_dir).unwrap_or_default();
    spawner.spawn_async(&spec).await?.wait_gone().await
}

fn spec(folder: &std::path::Path, task: &TaskId) -> LaunchSpec {
    LaunchSpec {
        argv: ["/bin/true"].map(OsText::new).into(),
        env: BTreeMap::new(),
        cwd: "/".into(),
        attempt_dir: folder.join("a").join(task.as_str()),
        marker: format!("bench/{task}"),
        sandbox: FileRules::system(),
        connect_ports: None,
        containment: ContainmentChoice::Subreaper,
        timeouts: Timeouts::default(),
        kill_grace: Duration::from_secs(1),
        output_limit_bytes: 1 << 20,
        line_limit_bytes: 1 << 20,
        files: Vec::new(),
        listener: None,
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(0))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spawner = Arc::new(Spawner::fork_early()?);
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>());
    let tasks = args.next().unwrap_or(Ok(1000))?;
    let concurrency = args.next().unwrap_or(Ok(20))?;
    let folder = std::env::temp_dir().join(format!("dispatch-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (inputs, received) = channel();
    let effects = BenchEffects { spawner, runtime: runtime.handle().clone(), folder: folder.clone(), inputs };
    let store = BenchStore(Journal::open(folder.join("journal.db"))?);
    let mut driver = Driver::new(Core::default(), store, effects);

    let run = RunId::new("bench");
    let spec = RunSpec {
        plan: "bench".to_owned(),
        base: Oid::new("0".repeat(40)),
        target: "bench".to_owned(),
        concurrency,
        auto_land: false,
        seed: 1,
        budget: Allowed::default(),
        hold_max_ms: None,
    };
    let task = TaskSpec {
        needs: Vec::new(),
        writes: Vec::new(),
        agent: AgentName::new("true"),
        accounts: Vec::new(),
        retries: 0,
        needs_quota: false,
        startup_retries: None,
        empty_retries: None,
    };
    let tasks = (0..tasks).map(|n| (TaskId::new(format!("t{n}")), task.clone())).collect();
    let started = Instant::now();
    let mut batch = vec![Input::from(Command::StartRun { run: run.clone(), spec, tasks })];
    while !driver.core().run(&run).is_some_and(|run| matches!(run.mode, Mode::Finished(_))) {
        for answer in driver.step(now(), batch)? {
            answer?;
        }
        batch = received.try_iter().collect();
        if batch.is_empty() && !driver.core().run(&run).is_some_and(|run| matches!(run.mode, Mode::Finished(_))) {
            batch = std::iter::once(received.recv()?).chain(received.try_iter()).collect();
        }
    }
    println!("{:.3}", started.elapsed().as_secs_f64());
    Ok(())
}
