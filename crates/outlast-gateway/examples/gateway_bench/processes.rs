//! What is measured, as processes that end with this one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::{Outcome, shapes};

/// One worker, connections to the upstream kept, events passed as they come: what the gateway is measured against.
const NGINX_CONFIG: &str = include_str!("../../../../bench/gateway/nginx.conf");

/// Something that answers requests.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) addr: SocketAddr,
    child: Child,
    /// The process that does the work, where it is not the child itself.
    worker: u32,
}

/// The upstream itself, nginx before it, and before it each build of the gateway, with a folder of its own.
pub(crate) fn start(folder: &Path, builds: &[&Path]) -> Outcome<Vec<Target>> {
    fs::create_dir_all(folder)?;
    let upstream = upstream()?;
    let addr = upstream.addr;
    let mut targets = vec![upstream, nginx(folder, addr)?];
    for (number, build) in builds.iter().enumerate() {
        let name = if builds.len() == 1 { "gateway".to_owned() } else { format!("gateway {}", number + 1) };
        let own = folder.join(format!("gateway-{number}"));
        fs::create_dir_all(&own)?;
        targets.push(gateway(name, &own, build, addr)?);
    }
    Ok(targets)
}

fn upstream() -> Outcome<Target> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg("upstream").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let addr = first_line(&mut child)?.trim().parse()?;
    let worker = child.id();
    Ok(Target { name: "direct".to_owned(), addr, child, worker })
}

/// As people run it: one account, a key of the caller's choice, the ledger on.
fn gateway(name: String, folder: &Path, outlast: &Path, upstream: SocketAddr) -> Outcome<Target> {
    let config = folder.join("config.toml");
    let account = format!(
        "[account.bench]\nprovider = \"anthropic\"\nbase_url = \"http://{upstream}\"\nkey_env = \"BENCH_ACCOUNT\"\n"
    );
    fs::write(&config, account)?;
    let mut command = Command::new(outlast);
    command.args(["gateway", "--json", "--key-env", "BENCH_KEY"]);
    command.arg("--home").arg(folder.join("home")).arg("--config").arg(config);
    command.env("BENCH_KEY", shapes::KEY).env("BENCH_ACCOUNT", "upstream-key");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let told: serde_json::Value = serde_json::from_str(&first_line(&mut child)?)?;
    let addr = told["address"].as_str().ok_or("no address")?.parse()?;
    let worker = child.id();
    Ok(Target { name, addr, child, worker })
}

fn first_line(child: &mut Child) -> Outcome<String> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    Ok(line)
}

fn nginx(folder: &Path, upstream: SocketAddr) -> Outcome<Target> {
    let addr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let config = NGINX_CONFIG.replace("@LISTEN@", &addr.to_string()).replace("@UPSTREAM@", &upstream.to_string());
    let path = folder.join("nginx.conf");
    fs::write(&path, config)?;
    let child = Command::new("nginx").arg("-p").arg(folder).arg("-c").arg(&path).stdin(Stdio::null()).spawn()?;
    let begun = Instant::now();
    // nginx does not say when it listens and works.
    let worker = loop {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id()))?;
        if let Some(worker) = children.split_whitespace().next()
            && TcpStream::connect(addr).is_ok()
        {
            break worker.parse()?;
        }
        if begun.elapsed() > Duration::from_secs(5) {
            return Err("nginx does not listen".into());
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Ok(Target { name: "nginx".to_owned(), addr, child, worker })
}

/// Where a request's parties run: left to itself, the system moves them together or apart at whim, and a wake on another core
/// costs several times what nginx adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The client and the upstream on one core, what is measured on another.
    Apart,
    /// All of them on one core.
    Together,
    /// Wherever the system puts them.
    Free,
}

/// Puts this thread, the upstream (the first of `targets`) and all others where `placement` says, on a machine of so many
/// cores.
pub(crate) fn place(targets: &[Target], placement: Placement, cores: usize) -> Outcome<()> {
    let (ends, between) = match placement {
        Placement::Apart if cores > 1 => (0..1, 1..2),
        Placement::Free => (0..cores, 0..cores),
        Placement::Apart | Placement::Together => (0..1, 0..1),
    };
    sched_setaffinity(Pid::from_raw(0), &set(ends.clone())?)?;
    for (index, target) in targets.iter().enumerate() {
        let set = set(if index == 0 { ends.clone() } else { between.clone() })?;
        for thread in fs::read_dir(format!("/proc/{}/task", target.worker))? {
            let Ok(thread) = thread?.file_name().to_string_lossy().parse() else { continue };
            // One that has ended since it was listed needs no core.
            let _ = sched_setaffinity(Pid::from_raw(thread), &set);
        }
    }
    Ok(())
}

fn set(cores: std::ops::Range<usize>) -> Outcome<CpuSet> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(core)?;
    }
    Ok(set)
}

impl Target {
    /// Processor time used so far, all threads.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.worker)).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
        // Linux counts in hundredths of a second on every machine this runs on.
        Duration::from_millis(ticks * 10)
    }

    pub(crate) fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.worker)).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.name != "direct" {
            // The master of nginx takes its worker with it on SIGTERM, not on SIGKILL.
            drop(Command::new("kill").arg(self.child.id().to_string()).status());
        }
        drop(self.child.wait());
    }
}
