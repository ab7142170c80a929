//! Engines that die, and engines that come after them.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlast_process::{ContainmentChoice, Event, ExitReason, LaunchSpec, OsText, ShimClient, ShimId, Spawner, files};

use crate::support::{Bench, Running, Test, block_on, make_gate, open_gate};

/// Set in the environment of the test program when it is to play an engine: the attempt folder whose launch it starts.
pub(crate) const ENGINE_VARIABLE: &str = "OUTLAST_TEST_ENGINE";

/// A key that a user has exported.
const CANARY: &str = "sk-canary-5c1f";

pub(crate) const TESTS: &[Test] = &[
    ("d10_a_killed_engine_loses_nothing", |_| {
        block_on(async {
            let bench = Bench::new("echo ready; read line <gate; echo $line");
            let gate = make_gate(&bench.spec.cwd);
            let (mut engine, shim) = start_engine(&bench.spec);
            let spawner_of_engine = child_named(engine.id(), "outlast-spawner");
            engine.kill().unwrap();
            engine.wait().unwrap();
            spawner_of_engine.wait_gone().await.unwrap();
            assert!(shim.is_alive());

            // The next engine finds it by its file, sees what was written meanwhile, and hears of its end.
            let found = files::load_shim(&bench.spec.attempt_dir).unwrap().unwrap();
            assert_eq!(found.shim, shim);
            let mut client = ShimClient::connect(&bench.spec.attempt_dir).await.unwrap();
            let Some(Event::State(state)) = client.next_event().await.unwrap() else { panic!("no greeting") };
            let mut running = Running::adopted(bench, shim, client, *state);
            running.wrote(6).await;
            open_gate(gate).await;
            let exit = running.exited().await;
            assert_eq!((exit.code, exit.reason), (Some(0), ExitReason::Exited));
            running.shim.wait_gone().await.unwrap();
            assert_eq!(files::load_exit(&running.spec.attempt_dir).unwrap(), Some(exit));
            assert_eq!(running.stdout(), "ready\ngo\n");
            assert!(ShimClient::connect(&running.spec.attempt_dir).await.is_err(), "nobody listens any more");
        });
    }),
    ("no_key_of_the_engines_environment_is_left_in_its_forks", |_| {
        block_on(async {
            let mut bench = Bench::new("sleep 600");
            bench.spec.listener = Some(crate::upstream::listener_to(&bench.folder().join("gateway")));
            let (mut engine, shim) = start_engine(&bench.spec);
            let mut client = ShimClient::connect(&bench.spec.attempt_dir).await.unwrap();
            let Some(Event::State(state)) = client.next_event().await.unwrap() else { panic!("no greeting") };
            let running = Running::adopted(bench, shim, client, *state);
            // An ordinary user cannot read the shim's, which is hidden; root can, and must find nothing.
            let shows_key = |pid: i32| {
                std::fs::read(format!("/proc/{pid}/environ"))
                    .is_ok_and(|bytes| bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()))
            };
            let spawner = child_named(engine.id(), "outlast-spawner").pid;
            let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", running.shim.pid)).unwrap();
            let children: Vec<i32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
            assert_eq!(children.len(), 2, "listener and first process");
            assert!(shows_key(engine.id().cast_signed()), "the search finds what is there");
            for pid in children.into_iter().chain([spawner, running.shim.pid]) {
                assert!(!shows_key(pid), "process {pid}");
            }
            engine.kill().unwrap();
            engine.wait().unwrap();
        });
    }),
    ("shims_outlive_the_spawner_and_the_engine_gets_another", |_| {
        block_on(async {
            let bench = Bench::new("echo ready; read line <gate; exit 7");
            let gate = make_gate(&bench.spec.cwd);
            let (mut engine, shim) = start_engine(&bench.spec);
            child_named(engine.id(), "outlast-spawner").kill().unwrap();
            // The engine makes a second launch once its input ends, and tells what came of it.
            drop(engine.stdin.take());
            let mut told = String::new();
            engine.stdout.take().unwrap().read_to_string(&mut told).unwrap();
            let second: ShimId = serde_json::from_str(&told).unwrap();
            engine.wait().unwrap();
            second.wait_gone().await.unwrap();
            let again = bench.spec.attempt_dir.with_file_name(AGAIN);
            assert_eq!(files::load_exit(&again).unwrap().unwrap().code, Some(3));
            assert!(shim.is_alive());
            open_gate(gate).await;
            shim.wait_gone().await.unwrap();
            assert_eq!(files::load_exit(&bench.spec.attempt_dir).unwrap().unwrap().code, Some(7));
        });
    }),
    ("two_clients_hear_the_same", |spawner| {
        block_on(async {
            let mut first = Bench::new("echo ready; sleep 600").start(spawner).await;
            first.wrote(6).await;
            let mut second = ShimClient::connect(&first.spec.attempt_dir).await.unwrap();
            let Some(Event::State(state)) = second.next_event().await.unwrap() else { panic!("no greeting") };
            assert_eq!((state.stdout_bytes, state.ending, state.shim.shim.clone()), (6, false, first.shim.clone()));
            assert!(
                state.agent_pid.is_some_and(|pid| first.traces().iter().any(|trace| trace.pid == pid)),
                "{state:?}"
            );
            second.kill("second").await.unwrap();
            let exit = first.exited().await;
            assert_eq!(exit.detail.as_deref(), Some("second"));
            loop {
                match second.next_event().await.unwrap() {
                    Some(Event::Exited(heard)) => assert_eq!(heard, exit),
                    Some(_) => {}
                    None => break,
                }
            }
        });
    }),
    ("a_waiting_shim_uses_no_time", |spawner| {
        block_on(async {
            for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
                let mut bench = Bench::new("echo ready; sleep 600");
                bench.spec.containment = containment;
                bench.spec.listener = Some(crate::upstream::listener_to(&bench.folder().join("gateway")));
                let mut running = bench.start(spawner).await;
                running.wrote(6).await;
                let before = ticks_used(running.shim.pid);
                tokio::time::sleep(Duration::from_millis(400)).await;
                let used = ticks_used(running.shim.pid) - before;
                assert!(used <= 1, "{used} ticks of about 40 under {containment:?}");
            }
        });
    }),
    ("an_old_end_in_the_same_folder_is_not_the_new_ones", |spawner| {
        block_on(async {
            let mut bench = Bench::new("echo first; echo first >&2; exit 1");
            spawner.spawn(&bench.spec).unwrap().wait_gone().await.unwrap();
            assert_eq!(files::load_exit(&bench.spec.attempt_dir).unwrap().unwrap().code, Some(1));
            bench.spec.argv = ["sh", "-c", "echo second; sleep 600"].map(Into::into).into();
            let mut running = bench.start(spawner).await;
            assert_eq!(files::load_exit(&running.spec.attempt_dir).unwrap(), None);
            running.wrote(7).await;
            assert_eq!(running.stdout(), "second\n");
            assert!(!running.spec.attempt_dir.join(files::STDERR).exists());
        });
    }),
    ("a_pid_of_another_start_is_not_the_shim", |spawner| {
        block_on(async {
            let running = Bench::new("sleep 600").start(spawner).await;
            let reused = ShimId { start_time: running.shim.start_time + 1, ..running.shim.clone() };
            assert!(running.shim.is_alive() && !reused.is_alive());
            reused.kill().unwrap();
            reused.wait_gone().await.unwrap();
            assert!(running.shim.is_alive());
        });
    }),
];

/// Starts this test program as an engine that launches `spec`, and waits until it has.
fn start_engine(spec: &LaunchSpec) -> (std::process::Child, ShimId) {
    std::fs::write(spec.attempt_dir.join("engine.json"), serde_json::to_vec(spec).unwrap()).unwrap();
    let program = std::env::current_exe().unwrap();
    let mut engine = Command::new(program)
        .env(ENGINE_VARIABLE, &spec.attempt_dir)
        .env("ANTHROPIC_API_KEY", CANARY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = Vec::new();
    let stdout = engine.stdout.as_mut().unwrap();
    while !line.ends_with(b"\n") {
        let mut byte = [0];
        stdout.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    (engine, serde_json::from_slice(&line).unwrap())
}

/// The folder of the second launch, beside that of the first.
const AGAIN: &str = "again";

/// The engine's part: one launch, then waiting for the end of input, then another.
pub(crate) fn play_engine(spawner: &Spawner, attempt: &Path) -> ! {
    let mut spec: LaunchSpec = serde_json::from_slice(&std::fs::read(attempt.join("engine.json")).unwrap()).unwrap();
    println!("{}", serde_json::to_string(&spawner.spawn(&spec).unwrap()).unwrap());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    spec.argv = ["sh", "-c", "exit 3"].map(OsText::from).into();
    spec.attempt_dir = spec.attempt_dir.with_file_name(AGAIN);
    spec.marker.push_str("-again");
    std::fs::create_dir(&spec.attempt_dir).unwrap();
    println!("{}", serde_json::to_string(&spawner.spawn(&spec).unwrap()).unwrap());
    std::process::exit(0);
}

/// Processor time of a process so far, in clock ticks of 10 ms.
fn ticks_used(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

/// A child of `parent` by the name the kernel has for it.
pub(crate) fn child_named(parent: u32, name: &str) -> ShimId {
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let found = std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let pid: i32 = entry.unwrap().file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (front, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<_> = rest.split(' ').collect();
        let wanted = front.ends_with(&format!("({name}")) && fields[1] == parent.to_string();
        wanted.then(|| ShimId { pid, start_time: fields[19].parse().unwrap(), boot_id: boot_id.clone() })
    });
    found.expect("such a child")
}
