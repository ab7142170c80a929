//! What a program finds at its start: input, environment, descriptors, powers, and what the listener's port was put into.

use outlast_process::{ContainmentChoice, Error, ExitReason, TemplateFile, Timeouts, files};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::support::{Bench, Test, block_on};

pub(crate) const TESTS: &[Test] = &[
    ("d01_standard_input_is_at_its_end", |spawner| {
        block_on(async {
            let ended = Bench::new("read line || echo no input").run(spawner).await;
            assert_eq!(
                (ended.stdout.as_str(), ended.exit.code, ended.exit.reason),
                ("no input\n", Some(0), ExitReason::Exited)
            );
        });
    }),
    ("the_environment_is_exactly_the_map_and_the_marker", |spawner| {
        block_on(async {
            let mut bench = Bench::new("");
            bench.spec.argv = vec!["env".into()];
            bench.spec.env.insert("ODD".to_owned(), "a=b c".into());
            let ended = bench.run(spawner).await;
            let mut found: Vec<_> = ended.stdout.lines().map(str::to_owned).collect();
            found.sort();
            let marker = format!("OUTLAST_ATTEMPT={}", ended.spec.marker);
            let temp = format!("TMPDIR={}", ended.spec.sandbox.write[1].display());
            assert_eq!(found, ["ODD=a=b c", &marker, "PATH=/usr/bin:/bin", &temp]);
        });
    }),
    ("no_descriptor_is_inherited", |spawner| {
        block_on(async {
            // 3 is the listing's own.
            let ended = Bench::new("exec ls /proc/self/fd").run(spawner).await;
            assert_eq!(ended.stdout, "0\n1\n2\n3\n");
        });
    }),
    ("no_power_and_no_terminal_is_left", |spawner| {
        block_on(async {
            for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
                let fields = "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|SigIgn|SigBlk)";
                let script = format!("grep -E '{fields}' /proc/self/status; cat </dev/tty || echo no tty");
                let mut bench = Bench::new(&script);
                bench.spec.containment = containment;
                let ended = bench.run(spawner).await;
                let zero = |name| format!("{name}:\t0000000000000000\n");
                let mut expected: String = ["SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff"].map(zero).concat();
                // An ordinary user may keep what nothing can be gained from.
                let bound = ended.stdout.lines().find(|line| line.starts_with("CapBnd")).unwrap();
                let root = nix::unistd::Uid::effective().is_root();
                expected += &if root { zero("CapBnd") } else { format!("{bound}\n") };
                expected += &zero("CapAmb");
                assert_eq!(ended.stdout, format!("{expected}NoNewPrivs:\t1\nno tty\n"), "{containment:?}");
            }
        });
    }),
    ("a_missing_program_and_a_missing_folder_say_so", |spawner| {
        block_on(async {
            let mut bench = Bench::new("");
            bench.spec.argv = vec!["no-such-agent".into()];
            let exit = bench.run(spawner).await.exit;
            assert_eq!((exit.reason, exit.code), (ExitReason::LaunchFailed, None));
            assert!(
                exit.detail.as_deref().unwrap().starts_with("cannot execute no-such-agent: No such file"),
                "{exit:?}"
            );

            let mut bench = Bench::new("echo ran");
            bench.spec.sandbox.write.push("/no/such/folder".into());
            let ended = bench.run(spawner).await;
            assert_eq!((ended.exit.reason, ended.stdout.as_str()), (ExitReason::LaunchFailed, ""));
            assert!(ended.exit.detail.as_deref().unwrap().contains("/no/such/folder"), "{:?}", ended.exit);
        });
    }),
    ("what_cannot_be_executed_says_what_is_wrong_with_it", |spawner| {
        block_on(async {
            let program = |text: &str, argument: &str| {
                let mut bench = Bench::new("");
                let file = bench.spec.cwd.join("agent");
                std::fs::write(&file, text).unwrap();
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
                bench.spec.argv = vec!["./agent".into(), argument.to_owned().into()];
                bench
            };
            let long = "x".repeat(128 * 1024);
            for (text, argument, wanted) in [
                ("echo ran\n", "", "a script needs a first line such as `#!/bin/sh`"),
                ("#!/no/such/shell\necho ran\n", "", "the interpreter that its `#!` line names is not"),
                ("#!/bin/sh\necho ran\n", long.as_str(), "its arguments and environment are too long"),
            ] {
                let exit = program(text, argument).run(spawner).await.exit;
                let detail = exit.detail.as_deref().unwrap_or_default();
                assert!(exit.reason == ExitReason::LaunchFailed && detail.contains(wanted), "{exit:?}");
            }
        });
    }),
    ("what_cannot_be_prepared_is_an_error_of_the_spawn", |spawner| {
        block_on(async {
            let mut bench = Bench::new("echo ran");
            let (root, text) = (bench.folder().join("missing"), String::new());
            bench.spec.files = vec![TemplateFile { root, path: "settings".into(), text }];
            let error = spawner.spawn(&bench.spec).unwrap_err();
            assert!(matches!(&error, Error::Prepare { message } if message.contains("missing/settings")), "{error}");
            assert!(files::load_exit(&bench.spec.attempt_dir).unwrap().is_none());

            let mut bench = Bench::new("");
            bench.spec.attempt_dir = bench.spec.cwd.join("attempt");
            let error = spawner.spawn(&bench.spec).unwrap_err();
            assert!(matches!(&error, Error::Spec { why, .. } if why.contains("could write")), "{error}");
        });
    }),
    ("a_shim_is_reached_in_a_folder_whose_path_is_longer_than_a_sockets_may_be", |spawner| {
        block_on(async {
            let mut bench = Bench::new("echo ran");
            bench.spec.attempt_dir = bench.folder().join("x".repeat(200));
            std::fs::create_dir(&bench.spec.attempt_dir).unwrap();
            let mut running = bench.start(spawner).await;
            assert_eq!(running.exited().await.code, Some(0));
        });
    }),
    ("the_port_is_put_into_arguments_environment_and_files", |spawner| {
        block_on(async {
            let mut bench = Bench::new("echo {port} $URL; cat settings");
            bench.spec.env.insert("URL".to_owned(), "http://127.0.0.1:{port}/x".into());
            let root = bench.spec.cwd.clone();
            bench.spec.files = vec![TemplateFile { root, path: "settings".into(), text: "port={port}\n".to_owned() }];
            bench.spec.listener = Some(crate::upstream::listener_to(&bench.folder().join("gateway")));
            let ended = bench.run(spawner).await;
            let port = files::load_shim(&ended.spec.attempt_dir).unwrap().unwrap().port.unwrap();
            assert_eq!(ended.stdout, format!("{port} http://127.0.0.1:{port}/x\nport={port}\n"));
        });
    }),
    ("d05_a_program_that_never_speaks_is_a_start_timeout", |spawner| {
        block_on(async {
            let mut bench = Bench::new("sleep 600");
            bench.spec.timeouts.start = Some(Duration::from_millis(150));
            let exit = bench.run(spawner).await.exit;
            assert_eq!((exit.reason, exit.code, exit.signal), (ExitReason::StartTimeout, None, Some(15)));
        });
    }),
    ("d02_one_line_and_then_silence_is_an_idle_timeout", |spawner| {
        block_on(async {
            let mut bench = Bench::new("echo Reading additional input from stdin... >&2; sleep 600");
            let (start, idle) = (Some(Duration::from_secs(10)), Some(Duration::from_millis(150)));
            bench.spec.timeouts = Timeouts { wall: None, idle, start, stderr_is_a_start: false };
            let ended = bench.run(spawner).await;
            assert_eq!(ended.exit.reason, ExitReason::IdleTimeout);
            assert_eq!(ended.stderr, "Reading additional input from stdin...\n");
        });
    }),
];
