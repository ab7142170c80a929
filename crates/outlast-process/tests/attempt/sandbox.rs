//! What the kernel refuses a program, and what must go on working inside.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use outlast_process::files;

use crate::support::{Bench, Test, block_on};

pub(crate) const TESTS: &[Test] = &[
    ("writing_and_reading_outside_is_refused", |spawner| {
        block_on(async {
            let mut bench = Bench::new(
                "echo mine >own && cat own; echo x >$OUT/new || echo refused; cat $OUT/secret || echo refused; \
                 echo x >>$OUT/secret || echo refused; rm $OUT/secret || echo refused; cat <$LAUNCH || echo refused; \
                 ln $OUT/secret here || echo refused",
            );
            let outside = bench.folder().join("outside");
            std::fs::create_dir(&outside).unwrap();
            std::fs::write(outside.join("secret"), "secret").unwrap();
            bench.spec.env.insert("OUT".to_owned(), outside.clone().into());
            bench.spec.env.insert("LAUNCH".to_owned(), bench.spec.attempt_dir.join(files::LAUNCH).into());
            let ended = bench.run(spawner).await;
            assert_eq!(ended.stdout, format!("mine\n{}", "refused\n".repeat(6)));
            assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "secret");
            assert!(!outside.join("new").exists());
        });
    }),
    ("what_its_owner_shuts_to_others_is_shut_to_root_too", |spawner| {
        block_on(async {
            let script = "for f in /etc/passwd /etc/shadow /etc/gshadow $SHUT; do head -c0 $f && echo $f; done; \
                          ls /etc | grep -x shadow; grep -q root /etc/group && git --version | cut -c1-3";
            let mut bench = Bench::new(script);
            // A key of somebody's, in a folder that everybody may read but for this one file.
            let public = bench.folder().join("public");
            std::fs::create_dir(&public).unwrap();
            std::fs::write(public.join("open"), "").unwrap();
            std::fs::write(public.join("key"), "").unwrap();
            let shut = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(public.join("key"), shut).unwrap();
            let (open, key) = (public.join("open"), public.join("key"));
            bench.spec.env.insert("SHUT".to_owned(), format!("{} {}", open.display(), key.display()).into());
            bench.spec.sandbox.public.push(public);
            let ended = bench.run(spawner).await;
            // The owner of a file may always read it where he is not root: there the sandbox leaves it to the file system.
            let mine =
                if nix::unistd::Uid::effective().is_root() { String::new() } else { format!("{}\n", key.display()) };
            assert_eq!(
                ended.stdout,
                format!("/etc/passwd\n{}\n{mine}shadow\ngit\n", open.display()),
                "{}",
                ended.stderr
            );
        });
    }),
    ("a_path_that_is_named_may_be_read_even_where_its_owner_shuts_it_to_others", |spawner| {
        block_on(async {
            let shut = Path::new("/etc/shadow");
            if !nix::unistd::Uid::effective().is_root() || !shut.exists() {
                println!("not as root, or no /etc/shadow: the file system decides");
                return;
            }
            let mut bench = Bench::new("head -c0 /etc/shadow && echo read; head -c0 /etc/gshadow || echo refused");
            bench.spec.sandbox.read.push(shut.to_owned());
            assert_eq!(bench.run(spawner).await.stdout, "read\nrefused\n");
        });
    }),
    ("a_program_in_a_folder_new_beside_the_system_runs", |spawner| {
        block_on(async {
            if !nix::unistd::Uid::effective().is_root() {
                println!("not as root: nothing can be made there");
                return;
            }
            // The layer that all launches share names what there was when it was made.
            assert_eq!(Bench::new("cat /proc/self/comm").run(spawner).await.stdout, "cat\n");
            let folder = tempfile::Builder::new().prefix("outlast-test-").tempdir_in("/").unwrap();
            std::fs::write(folder.path().join("file"), "new\n").unwrap();
            let mut bench = Bench::new("cat $NEW/file && mv $NEW/file $NEW/moved && ls $NEW");
            bench.spec.env.insert("NEW".to_owned(), folder.path().to_owned().into());
            bench.spec.sandbox.write.push(folder.path().to_owned());
            assert_eq!(bench.run(spawner).await.stdout, "new\nmoved\n");
        });
    }),
    ("memory_of_the_processes_around_it_is_out_of_reach", |spawner| {
        block_on(async {
            // Process 1 of the namespace holds a copy of the engine's memory, the test is the engine.
            let script = format!(
                "cat /proc/1/environ || echo refused; cat /proc/{}/environ || echo refused",
                std::process::id()
            );
            let ended = Bench::new(&script).run(spawner).await;
            assert_eq!(ended.stdout, "refused\nrefused\n");
        });
    }),
    ("only_the_named_ports_can_be_reached", |spawner| {
        block_on(async {
            let open = TcpListener::bind("127.0.0.1:0").unwrap();
            let closed = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = |socket: &TcpListener| socket.local_addr().unwrap().port();
            let dial = |port| format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo {port}");
            let mut bench = Bench::new("");
            let script = format!(
                "{}; {}; {}",
                dial("{port}".to_owned()),
                dial(port(&open).to_string()),
                dial(port(&closed).to_string())
            );
            bench.spec.argv = vec!["bash".into(), "-c".into(), script.into()];
            bench.spec.connect_ports = Some(vec![port(&open)]);
            bench.spec.listener = Some(crate::upstream::listener_to(&bench.folder().join("gateway")));
            let ended = bench.run(spawner).await;
            let own = files::load_shim(&ended.spec.attempt_dir).unwrap().unwrap().port.unwrap();
            assert_eq!(ended.stdout, format!("{own}\n{}\n", port(&open)), "{}", ended.stderr);
        });
    }),
    ("an_agent_cannot_command_a_shim", |spawner| {
        block_on(async {
            let script = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die; \
                          print $s qq({\"command\":\"kill\",\"reason\":\"mutiny\"}\\n); print while <$s>; print qq(cut off\\n); sleep 600";
            let mut bench = Bench::new("");
            let socket = bench.spec.attempt_dir.join(files::CONTROL);
            bench.spec.argv = vec![
                "perl".into(),
                "-e".into(),
                format!("$| = 1; $SIG{{PIPE}} = 'IGNORE'; {script}").into(),
                socket.into(),
            ];
            let mut running = bench.start(spawner).await;
            running.wrote(8).await;
            assert_eq!(running.stdout(), "cut off\n");
            running.client.kill("the engine").await.unwrap();
            assert_eq!(running.exited().await.detail.as_deref(), Some("the engine"));
        });
    }),
    ("git_and_cargo_work_inside", |spawner| {
        block_on(async {
            let mut bench = Bench::new(
                "git init -q . && echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -qm a && git log --format=%s \
                 && cargo init -q --vcs none --name inside pkg && cd pkg && cargo run -q --offline",
            );
            let home = bench.folder().join("home");
            std::fs::create_dir(&home).unwrap();
            let toolchain = toolchain();
            let path = format!("{}:/usr/bin:/bin", toolchain.join("bin").display());
            for (name, value) in
                [("HOME", home.clone().into()), ("PATH", path.into()), ("CARGO_HOME", home.join("cargo").into())]
            {
                bench.spec.env.insert(name.to_owned(), value);
            }
            bench.spec.sandbox.write.push(home);
            bench.spec.sandbox.execute.push(toolchain);
            let ended = bench.run(spawner).await;
            assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("a\nHello, world!\n", ""));
        });
    }),
];

/// The folder of the toolchain that runs this test.
fn toolchain() -> PathBuf {
    let rustc = std::process::Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    Path::new(std::str::from_utf8(&rustc.stdout).unwrap().trim()).to_owned()
}
