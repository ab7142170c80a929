//! A successor begins when nothing of the attempt before it lives: also where no pid namespace ends what has detached itself,
//! as on a host that refuses them, and its shim is killed with SIGKILL.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_process::files;
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use crate::running::{LIMIT, Running};
use crate::world::{Plan, World, ends_within, text};

/// What the first attempt leaves behind: a daemon with nothing of its agent's open but a lock, which it and all that it starts hold
/// for as long as they live, and which writes into the workspace.
struct Daemon {
    /// Where it goes before it begins.
    folder: &'static str,
    /// What its environment is made of.
    environment: &'static str,
    /// What it keeps open of the workspace.
    open: &'static str,
    /// What it does between two lines.
    does: &'static str,
}

impl Daemon {
    /// The agent: in its first attempt it starts the daemon and asks its model what to do; in the next it fails where anything
    /// holds the lock, and takes away what the daemon has written.
    fn agent(&self) -> String {
        let Self { folder, environment, open, does } = self;
        format!(
            "case $OUTLAST_ATTEMPT in *one.1)\n\
             cat > \"$HOME/daemon.sh\" <<'END'\n\
             exec 9>>\"$1/lock\"; flock 9; echo $$ > \"$1/daemon\"; echo up > \"$1/up\"\n\
             while :; do echo x >> \"$2/grows.txt\"; {does} sleep 0.01; done\n\
             END\n\
             mkfifo \"$HOME/up\"\n\
             setsid sh -c 'cd {folder}; {environment} sh \"$0\" \"$1\" \"$2\" < /dev/null > /dev/null 2>&1 {open} &' \
             \"$HOME/daemon.sh\" \"$HOME\" \"$PWD\"\n\
             read -r up < \"$HOME/up\"\n\
             exec \"$0\" __agent \"$1\";;\n\
             esac\n\
             flock -n \"$HOME/lock\" true || exit 3\n\
             rm grows.txt || exit 4\n\
             mkdir -p parts; echo 'part one' > parts/one.txt"
        )
    }
}

/// The binary on a host that refuses namespaces: in a user namespace that may have none.
fn uncontained(world: &World, arguments: &[&str]) -> Command {
    const REFUSED: &str =
        "echo 0 > /proc/sys/user/max_pid_namespaces && echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let own = ["unshare", "--user", "--map-root-user", "sh", "-c", REFUSED, "sh"];
    let is_allowed = Command::new(own[0]).args(&own[1..]).arg("true").status().is_ok_and(|status| status.success());
    // Where that is refused, this host is such a one itself.
    let words: Vec<&str> = own.into_iter().filter(|_| is_allowed).chain([env!("CARGO_BIN_EXE_outlast")]).collect();
    let mut command = world.env.command(words[0]);
    command.args(&words[1..]).args(arguments).current_dir(world.repo.dir());
    command
}

/// A file that an agent has put into its home.
fn in_a_home(world: &World, name: &str) -> PathBuf {
    let mut folders = vec![world.homes().remove(0).join("homes")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false if entry.file_name() == name => return entry.path(),
                false => {}
            }
        }
    }
    panic!("no agent has made {name}");
}

/// A daemon that is not left behind by a test that fails.
struct Left(OwnedFd);

impl Drop for Left {
    fn drop(&mut self) {
        // It is gone where all is well.
        pidfd_send_signal(&self.0, rustix::process::Signal::KILL).unwrap_or_default();
    }
}

/// Kills the shim of the first attempt once its daemon works, and sees the next attempt begin alone.
fn begins_alone(daemon: &Daemon) {
    let world = World::new();
    let agent = format!(
        "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\naccounts = [\"main\"]\n\
         command = [\"sh\", \"-c\", \'\'\'\n{}\'\'\', {:?}, \"{{goal_file}}\"]",
        daemon.agent(),
        env!("CARGO_BIN_EXE_outlast"),
    );
    world.plan(&Plan::new(&agent).task("one", "hang", "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 0"));
    let run = Running::of(uncontained(&world, &["run", "--yes"]));
    world.provider_saw("the first turn", |log| !log.is_empty());
    let (folder, shim) = world.living_shims().remove(0);
    assert!(!files::load_shim(&folder).unwrap().unwrap().containment.pid_ns, "nothing refuses it a pid namespace");
    let left: i32 = fs::read_to_string(in_a_home(&world, "daemon")).unwrap().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(left).unwrap();
    let _ends = Left(pidfd_open(pid, PidfdFlags::empty()).unwrap());

    // While the engine stands still, nobody ends what outlives the shim.
    run.signal(Signal::SIGSTOP);
    kill(Pid::from_raw(shim), Signal::SIGKILL).unwrap();
    assert!(ends_within(shim, LIMIT), "the shim lives");
    assert!(!ends_within(left, Duration::ZERO), "the daemon ends with the shim");
    run.signal(Signal::SIGCONT);

    run.end().ends(0);
    assert!(ends_within(left, Duration::ZERO), "the daemon lives");
    world.all_are("landed");
    let task = world.task("one");
    assert_eq!(task["attempts"], 2, "{task:#}");
    let workspace = PathBuf::from(text(&task["workspace"]));
    assert!(workspace.is_dir() && !workspace.join("grows.txt").exists(), "somebody writes on");
    world.nothing_is_left();
}

#[test]
fn d07_d10_a_daemon_of_a_killed_shim_is_gone_before_the_next_agent_begins_where_namespaces_are_refused() {
    let (kept, cleared) = ("", "env -i PATH=\"$PATH\"");
    std::thread::scope(|scope| {
        for daemon in [
            Daemon { folder: "/", environment: kept, open: "", does: "" },
            Daemon { folder: "\"$2\"", environment: cleared, open: "", does: "" },
            Daemon { folder: "/", environment: cleared, open: "8>> \"$2/grows.txt\"", does: "" },
            // All that is left of its origin is what it has inherited.
            Daemon { folder: "/", environment: cleared, open: "", does: "" },
            // Who is forked while the others are looked for is found as well.
            Daemon { folder: "/", environment: kept, open: "", does: "setsid sleep 1000 &" },
        ] {
            scope.spawn(move || begins_alone(&daemon));
        }
    });
}
