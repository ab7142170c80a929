//! How long 1,000 no-op launches take, 20 at once, with sandbox and durable exit records: beside `xargs -P20`.
//!
//! `cargo run --release -p outlast-process --example spawn_bench [COUNT]`

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use outlast_process::{ContainmentChoice, FileRules, LaunchSpec, ShimId, Spawner, Timeouts, files};
use tokio::sync::Semaphore;

const AT_ONCE: usize = 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let spawner = Arc::new(Spawner::fork_early()?);
    let count = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for containment in [ContainmentChoice::Auto, ContainmentChoice::Subreaper] {
        let folder = tempfile::tempdir()?;
        let (asked, took) = runtime.block_on(run_all(&spawner, folder.path(), count, containment))?;
        let each = took.as_secs_f64() * 1e3 / f64::from(count);
        let asked = asked.as_secs_f64() * 1e3 / f64::from(count);
        println!(
            "{containment:?}: {count} launches in {took:.2?}, {each:.2} ms each; waiting for one start {asked:.2} ms"
        );
    }
    let began = Instant::now();
    let mut xargs = Command::new("xargs").args(["-P20", "-n1", "true"]).stdin(Stdio::piped()).spawn()?;
    let numbers: String = (0..count).map(|number| format!("{number}\n")).collect();
    std::io::Write::write_all(&mut xargs.stdin.take().ok_or("no stdin")?, numbers.as_bytes())?;
    xargs.wait()?;
    println!("xargs -P20: {count} in {:.2?}", began.elapsed());
    Ok(())
}

/// Runs all launches; returns the summed wait for starts (per launch in flight) and the whole time.
async fn run_all(
    spawner: &Arc<Spawner>,
    folder: &Path,
    count: u32,
    containment: ContainmentChoice,
) -> Result<(Duration, Duration), Failure> {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for number in 0..count {
        let slot = Arc::clone(&slots).acquire_owned().await?;
        let attempt = folder.join(number.to_string());
        let spawner = Arc::clone(spawner);
        running.spawn(async move {
            std::fs::create_dir(&attempt)?;
            let asked = Instant::now();
            let shim = spawner.spawn_async(&no_op(&attempt, containment)).await?;
            let started = asked.elapsed();
            await_exit(&shim, &attempt).await?;
            drop(slot);
            Ok::<_, Failure>(started)
        });
    }
    let mut waited = Duration::ZERO;
    while let Some(done) = running.join_next().await {
        waited += done??;
    }
    Ok((waited, began.elapsed()))
}

async fn await_exit(shim: &ShimId, attempt: &Path) -> Result<(), Failure> {
    shim.wait_gone().await?;
    let exit = files::load_exit(attempt)?.ok_or("no exit record")?;
    if exit.code == Some(0) { Ok(()) } else { Err(format!("unexpected end: {exit:?}").into()) }
}

fn no_op(attempt: &Path, containment: ContainmentChoice) -> LaunchSpec {
    LaunchSpec {
        argv: vec!["/bin/true".into()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".into())]),
        cwd: "/".into(),
        attempt_dir: attempt.to_owned(),
        marker: attempt.display().to_string(),
        sandbox: FileRules::system(),
        connect_ports: Some(Vec::new()),
        containment,
        timeouts: Timeouts { wall: Some(Duration::from_secs(60)), ..Timeouts::default() },
        kill_grace: Duration::from_secs(1),
        output_limit_bytes: 1 << 20,
        line_limit_bytes: 1 << 16,
        files: Vec::new(),
        listener: None,
    }
}
