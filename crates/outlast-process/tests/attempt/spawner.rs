//! The spawner is killed: whoever needs it next gets another, and what it had started goes on.

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use outlast_process::{ExitReason, Spawner};

use crate::support::{Bench, Test, block_on};

pub(crate) const TESTS: &[Test] = &[
    ("a_killed_spawner_is_replaced_and_what_it_started_goes_on", |_| {
        block_on(async {
            let spawner = Spawner::execute().unwrap();
            let mut running = Bench::new("read line </dev/zero").start(&spawner).await;
            for _ in 0..3 {
                let before = spawner.pid();
                signal(&spawner, Signal::SIGKILL);
                let ended = Bench::new("echo ran").run(&spawner).await;
                assert_eq!((ended.stdout.as_str(), ended.exit.reason), ("ran\n", ExitReason::Exited));
                assert_ne!(spawner.pid(), before);
            }
            assert!(running.shim.is_alive());
            running.client.kill("enough").await.unwrap();
            assert_eq!(running.exited().await.detail.as_deref(), Some("enough"));
        });
    }),
    ("launches_that_die_with_the_spawner_are_made_once_by_the_next", |_| {
        block_on(async {
            let spawner = Spawner::execute().unwrap();
            // It takes no request any more: all three are asked for, and none is begun.
            signal(&spawner, Signal::SIGSTOP);
            let script = "echo ran >>runs; cat runs";
            let launch = || Bench::new(script).run(&spawner);
            let (a, b, c, ()) = tokio::join!(launch(), launch(), launch(), async { signal(&spawner, Signal::SIGKILL) });
            for ended in [a, b, c] {
                assert_eq!((ended.stdout.as_str(), ended.exit.code), ("ran\n", Some(0)));
            }
        });
    }),
    ("an_executed_spawner_hands_nothing_on_and_ends_with_its_engine", |_| {
        block_on(async {
            let spawner = Spawner::execute().unwrap();
            let pid = spawner.pid();
            let ended = Bench::new("env | cut -d= -f1 | sort; exec ls /proc/self/fd").run(&spawner).await;
            assert_eq!(ended.stdout, "OUTLAST_ATTEMPT\nPATH\nPWD\nTMPDIR\n0\n1\n2\n3\n");
            drop(spawner);
            // Unless dropping has taken its status already.
            let status = tokio::task::spawn_blocking(move || waitpid(Pid::from_raw(pid), None)).await.unwrap();
            assert!(matches!(status, Ok(WaitStatus::Exited(_, 0)) | Err(Errno::ECHILD)), "{status:?}");
        });
    }),
];

fn signal(spawner: &Spawner, signal: Signal) {
    kill(Pid::from_raw(spawner.pid()), signal).unwrap();
}
