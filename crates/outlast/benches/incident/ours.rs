//! outlast, with nobody watching: `outlast run`, and where it is killed, a person who types `outlast resume`.

use std::fs::File;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Batch;
use super::bare::ends_within;
use super::kills::{Kills, LOOK};
use super::options::Options;
use super::world::{World, binary};

/// Runs the batch to its end.
pub(crate) fn run(world: &World, options: &Options, kills: &mut Kills) -> Batch {
    world.for_outlast(options.at_once());
    let began = Instant::now();
    let until = began + Duration::from_secs(options.limit_total_seconds);
    let mut outlast = start(world, &["run", "--yes"]);
    while watch(&mut outlast, world, kills, until) {
        sleep(Duration::from_secs_f64(options.away_seconds));
        outlast = start(world, &["resume"]);
    }
    let wall = began.elapsed();
    let status = status(world);
    let tasks = status["tasks"].as_array().unwrap();
    let done = tasks.iter().filter(|task| matches!(task["state"].as_str(), Some("done" | "landed"))).count();
    for task in tasks.iter().filter(|task| task["state"] != "done") {
        eprintln!("outlast: {} is {}: {} ({})", task["id"], task["state"], task["cause"], task["detail"]);
    }
    let starts = tasks.iter().map(|task| u32::try_from(task["attempts"].as_u64().unwrap()).unwrap()).collect();
    let went_on = |task: &Value| matches!(task["resumed_by"].as_str(), Some("session" | "hand_over"));
    let resumed = tasks.iter().map(went_on).collect();
    Batch { done: u32::try_from(done).unwrap(), starts, resumed, wall }
}

/// What one task alone costs: the tokens billed.
pub(crate) fn alone(world: &World) -> u64 {
    world.for_outlast(1);
    let status = start(world, &["run", "--yes"]).wait().unwrap();
    assert!(status.success(), "one task alone ends well: {status}\n{}", said(world));
    world.provider.bill().total.tokens.total()
}

fn start(world: &World, arguments: &[&str]) -> Child {
    let output = File::options().create(true).append(true).open(world.env.root().join("outlast.output")).unwrap();
    let mut command = world.env.command(binary());
    command.args(arguments).current_dir(&world.repo).stdin(Stdio::null());
    command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
}

fn said(world: &World) -> String {
    std::fs::read_to_string(world.env.root().join("outlast.output")).unwrap_or_default()
}

/// Waits for the end of outlast; whether it was killed before.
fn watch(outlast: &mut Child, world: &World, kills: &mut Kills, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let look = if kills.are_to_come() { LOOK.min(left) } else { left };
        if let Some(status) = ends_within(outlast, look) {
            if !status.success() {
                let said = said(world);
                let tail: Vec<&str> = said.lines().rev().take(30).collect();
                eprintln!("outlast ended with {status}; it said last:");
                tail.iter().rev().for_each(|line| eprintln!("  {line}"));
            }
            return false;
        }
        if left.is_zero() {
            eprintln!("outlast did not come to its end in time");
            outlast.kill().unwrap();
            outlast.wait().unwrap();
            return false;
        }
        kills.agents(world);
        if kills.orchestrator_is_due(world) {
            // Stopped first: what is on its way is counted before its connections break.
            kill(Pid::from_raw(i32::try_from(outlast.id()).unwrap()), Signal::SIGSTOP).unwrap();
            kills.cut_off += world.provider.bill().in_flight;
            outlast.kill().unwrap();
            outlast.wait().unwrap();
            kills.orchestrator_killed += 1;
            return true;
        }
    }
}

fn status(world: &World) -> Value {
    let mut command = world.env.command(binary());
    let output = command.args(["status", "--json"]).current_dir(&world.repo).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}\n{}", said(world)))
}
