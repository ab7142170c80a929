//! Trees that do not want to end.

use std::time::{Duration, Instant};

use outlast_process::{ContainmentChoice, ExitReason, Spawner, Trace};

use crate::engine::child_named;
use crate::support::{Bench, Test, block_on};
use crate::upstream::listener_to;

/// Three spinning processes, each in a session of its own and forked twice, so that no parent or group leads to them.
const SPINNERS: &str =
    "for i in 1 2 3; do setsid sh -c 'sh -c \"while :; do :; done\" & exit 0' & done; wait; echo ready; sleep 600";

pub(crate) const TESTS: &[Test] = &[
    ("d07_detached_spinners_end_with_a_kill", |spawner| block_on(spinners_end(spawner, ContainmentChoice::Auto))),
    ("d07_detached_spinners_end_with_a_kill_under_the_subreaper", |spawner| {
        block_on(spinners_end(spawner, ContainmentChoice::Subreaper));
    }),
    ("d07_detached_spinners_end_when_the_shim_is_killed", |spawner| {
        block_on(async {
            let mut bench = Bench::new(SPINNERS);
            bench.spec.listener = Some(listener_to(&bench.folder().join("gateway")));
            let mut running = bench.start(spawner).await;
            assert!(running.state.shim.containment.pid_ns, "this host has no pid namespaces for us");
            running.wrote(6).await;
            let listener = child_named(running.shim.pid.cast_unsigned(), "outlast-listen");
            let spinners = running.traces();
            assert!(spinners.len() >= 4, "{spinners:?}");
            let killed = Instant::now();
            running.shim.kill().unwrap();
            running.shim.wait_gone().await.unwrap();
            // The kernel ends the rest on its own; whoever is still there is waited for, not killed.
            listener.wait_gone().await.unwrap();
            await_end(&spinners).await;
            assert!(killed.elapsed() < Duration::from_secs(2));
            assert_eq!(running.traces(), []);
        });
    }),
    ("d10_a_program_under_the_subreaper_ends_with_its_shim_and_the_rest_is_found", |spawner| {
        block_on(async {
            let mut bench = Bench::new("setsid sleep 600 & echo ready; exec sleep 600");
            bench.spec.containment = ContainmentChoice::Subreaper;
            let mut running = bench.start(spawner).await;
            running.wrote(6).await;
            let program = running.next_state().await.agent_pid.unwrap();
            let all = running.traces();
            let (own, detached): (Vec<_>, Vec<_>) = all.into_iter().partition(|each| each.pid == program);
            running.shim.kill().unwrap();
            await_end(&own).await;
            let left = running.traces();
            assert_eq!(
                left.iter().map(|each| (each.pid, &each.trace)).collect::<Vec<_>>(),
                [(detached[0].pid, &Trace::Marker)]
            );
            assert_eq!(outlast_process::kill_survivors(&left, Duration::from_secs(5)).unwrap(), []);
            assert_eq!(running.traces(), []);
        });
    }),
    ("d10_what_has_cleared_its_environment_and_left_its_folder_is_found_as_well", |spawner| {
        block_on(async {
            // It says so once it has neither; what it becomes then has no output either.
            let away = "cd / && exec env -i PATH=/usr/bin:/bin sh -c \"echo ready; exec sleep 600 > /dev/null 2>&1\"";
            let mut bench = Bench::new(&format!("setsid sh -c '{away}' < /dev/null & exec sleep 600"));
            bench.spec.containment = ContainmentChoice::Subreaper;
            let mut running = bench.start(spawner).await;
            running.wrote(6).await;
            let program = running.next_state().await.agent_pid.unwrap();
            let (own, others): (Vec<_>, Vec<_>) = running.traces().into_iter().partition(|each| each.pid == program);
            let daemon = &others[0];
            assert_eq!(std::fs::read_link(format!("/proc/{}/cwd", daemon.pid)).unwrap(), std::path::Path::new("/"));
            let environment = std::fs::read_to_string(format!("/proc/{}/environ", daemon.pid)).unwrap();
            assert!(!environment.contains(outlast_process::MARKER_VARIABLE), "{environment}");
            running.shim.kill().unwrap();
            await_end(&own).await;
            let left = running.traces();
            assert_eq!(left.iter().map(|each| each.pid).collect::<Vec<_>>(), [daemon.pid]);
            assert_eq!(outlast_process::kill_survivors(&left, Duration::from_secs(5)).unwrap(), []);
        });
    }),
    ("d10_whoever_is_started_while_the_rest_is_looked_for_is_found_as_well", |spawner| {
        block_on(async {
            // Each holds a lock that all of them share, and nothing else of it is left once nobody does.
            let forks = "exec 9>>lock; flock -s 9; echo ready; while :; do setsid sleep 600 & sleep 0.001; done";
            let mut bench = Bench::new(&format!("setsid sh -c '{forks}' & exec sleep 600"));
            bench.spec.containment = ContainmentChoice::Subreaper;
            let mut running = bench.start(spawner).await;
            running.wrote(6).await;
            running.shim.kill().unwrap();
            running.shim.wait_gone().await.unwrap();
            let left = outlast_process::end_survivors(
                || outlast_process::survivors(&running.spec.marker, running.workspace()),
                Duration::from_secs(5),
            );
            assert_eq!(left.unwrap(), []);
            assert_eq!(running.traces(), []);
            let lock = std::fs::File::open(running.workspace().join("lock")).unwrap();
            lock.try_lock().expect("one of them lives");
        });
    }),
    ("d07_what_a_program_leaves_behind_ends_with_it", |spawner| {
        block_on(async {
            for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
                let mut bench = Bench::new("setsid sh -c 'sleep 600 & exec sleep 600' & echo bye");
                bench.spec.containment = containment;
                let ended = bench.run(spawner).await;
                assert_eq!((ended.exit.code, ended.exit.reason), (Some(0), ExitReason::Exited));
                let left = outlast_process::survivors(&ended.spec.marker, &ended.spec.cwd).unwrap();
                assert_eq!(left, [], "{containment:?}");
            }
        });
    }),
    ("d11_wrappers_do_not_save_the_program", |spawner| {
        block_on(async {
            let script = "env A=1 sh -c 'sh -c \"echo ready; sleep 600; true\"; true'; true";
            let mut running = Bench::new(script).start(spawner).await;
            running.wrote(6).await;
            running.client.kill("test").await.unwrap();
            let exit = running.exited().await;
            assert_eq!((exit.reason, exit.detail.as_deref()), (ExitReason::Killed, Some("test")));
            assert_eq!(running.traces(), []);
        });
    }),
    ("d13_a_stopped_program_that_ignores_requests_is_killed", |spawner| {
        block_on(async {
            for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
                let mut bench = Bench::new("trap '' TERM; echo ready; kill -STOP $$; kill -STOP $$; sleep 600");
                bench.spec.containment = containment;
                let mut running = bench.start(spawner).await;
                running.wrote(6).await;
                running.client.kill("stuck").await.unwrap();
                let exit = running.exited().await;
                assert_eq!((exit.reason, exit.signal), (ExitReason::Killed, Some(9)), "{containment:?}");
            }
        });
    }),
    ("d13_a_stopped_program_asked_to_end_may_say_goodbye", |spawner| {
        block_on(async {
            for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
                let script =
                    "trap 'echo saved; exit 3' TERM; echo ready; kill -STOP $$; while :; do sleep 600 & wait; done";
                let mut bench = Bench::new(script);
                bench.spec.kill_grace = Duration::from_secs(10);
                bench.spec.containment = containment;
                let mut running = bench.start(spawner).await;
                running.wrote(6).await;
                running.client.kill("time to go").await.unwrap();
                let exit = running.exited().await;
                assert_eq!((exit.reason, exit.code), (ExitReason::Killed, Some(3)), "{containment:?}");
                assert_eq!(running.stdout(), "ready\nsaved\n");
            }
        });
    }),
    ("the_shim_asked_to_end_ends_its_tree", |spawner| {
        block_on(async {
            let mut running = Bench::new("echo ready; sleep 600").start(spawner).await;
            running.wrote(6).await;
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(running.shim.pid), nix::sys::signal::Signal::SIGTERM)
                .unwrap();
            assert_eq!(running.exited().await.reason, ExitReason::ShimTerminated);
            assert_eq!(running.traces(), []);
        });
    }),
    ("d08_a_stranger_in_the_workspace_is_found_and_killed_only_on_demand", |spawner| {
        block_on(async {
            let mut running = Bench::new("echo ready; sleep 600").start(spawner).await;
            running.wrote(6).await;
            let mut stranger = tokio::process::Command::new("sleep")
                .arg("600")
                .current_dir(running.workspace())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            let pid = stranger.id().unwrap().cast_signed();
            running.client.kill("test").await.unwrap();
            running.exited().await;
            let left = running.traces();
            assert_eq!(left.iter().map(|each| each.pid).collect::<Vec<_>>(), [pid]);
            assert!(matches!(left[0].trace, Trace::WorkingDirectory(_)), "{left:?}");
            let watched = stranger.wait();
            assert_eq!(outlast_process::kill_survivors(&left, Duration::from_secs(5)).unwrap(), []);
            assert!(!watched.await.unwrap().success());
        });
    }),
    ("a_link_in_the_place_of_a_workspace_makes_nobody_a_survivor_who_works_where_it_leads", |_| {
        let place = tempfile::tempdir().unwrap();
        let (theirs, link) = (place.path().join("theirs"), place.path().join("workspace"));
        std::fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        let mut person = std::process::Command::new("sleep").arg("600").current_dir(&theirs).spawn().unwrap();
        let pids = |folder: &std::path::Path| -> Vec<u32> {
            let found = outlast_process::survivors("nobody's marker", folder).unwrap();
            found.iter().map(|each| each.pid.cast_unsigned()).collect()
        };
        let found = (pids(&theirs), pids(&link));
        person.kill().unwrap();
        person.wait().unwrap();
        assert_eq!(found, (vec![person.id()], vec![]));
    }),
];

async fn spinners_end(spawner: &Spawner, containment: ContainmentChoice) {
    let mut bench = Bench::new(SPINNERS);
    bench.spec.containment = containment;
    let mut running = bench.start(spawner).await;
    running.wrote(6).await;
    let spinners = running.traces();
    assert!(spinners.len() >= 4, "{spinners:?}");
    let killed = Instant::now();
    running.client.kill("test").await.unwrap();
    let exit = running.exited().await;
    assert!(killed.elapsed() < Duration::from_secs(2), "took {:?}", killed.elapsed());
    assert_eq!(exit.reason, ExitReason::Killed);
    assert_eq!(running.traces(), []);
    running.shim.wait_gone().await.unwrap();
}

/// Waits until the kernel has ended all of these.
async fn await_end(processes: &[outlast_process::Survivor]) {
    for process in processes {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
        let id = outlast_process::ShimId { pid: process.pid, start_time: process.start_time, boot_id };
        id.wait_gone().await.unwrap();
    }
}
