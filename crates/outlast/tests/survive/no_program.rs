//! A command of a plan whose program is not there ends its task at once: no agent is paid for what none can mend.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use nix::sys::signal::Signal;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::world::{Plan, World};

const PART: &str = "write parts/one.txt \"part one\\n\"";

fn world(script: &str, keys: &str) -> World {
    let world = World::new();
    let keys = format!("writes = [\"parts/**\"]\nretries = 2\n{keys}");
    world.plan(&Plan::new("land = \"auto\"").task("one", script, &keys).part("two"));
    world
}

/// The task failed with one attempt, the other one landed, and it says what is not there and what helps.
#[track_caller]
fn ended(world: &World, program: &str, attempts: usize) {
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"no_program".into()), "{task:#}");
    assert_eq!(task["attempts"], attempts, "{task:#}");
    assert!(task["detail"].as_str().unwrap().contains(program), "{task:#}");
    assert!(task["fix"][0].as_str().unwrap().starts_with("outlast retry --run "), "{task:#}");
    assert_eq!(world.task("two")["state"], "landed");
    world.nothing_is_left();
}

#[test]
fn a_check_whose_program_is_not_there_pays_no_second_agent_and_passes_without_one_once_it_is() {
    // A plan that is looked at tells nothing of what a shell in a shell will run.
    let mut world = world(PART, "verify = [\"sh -c no-such-program\"]");
    world.run(&["run", "--yes"]).ends(5).says("no_program");
    ended(&world, "`no-such-program` cannot be run here", 1);
    let asked = world.provider.model_requests().len();

    let bin = world.env.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("no-such-program"), "#!/bin/sh\nexec sh check.sh\n").unwrap();
    fs::set_permissions(bin.join("no-such-program"), Permissions::from_mode(0o755)).unwrap();
    world.env.prepend_path(&bin).unwrap();
    world.run(&["retry", "one"]).ends(0).says("so it needs no agent");
    world.all_are("landed");
    assert_eq!(world.provider.model_requests().len(), asked, "its agent was paid already");
    world.nothing_is_left();
}

#[test]
fn a_step_whose_program_is_not_there_ends_the_task_before_an_agent_is_started_again() {
    let steps = "verify = [\"sh check.sh\"]\n[task.steps]\nmade = \"sh -c no-such-program\"";
    // Asked when its agent has died, and when one has run out of time.
    let world = world(&format!("{PART}\ndie 3"), steps);
    world.run(&["run", "--yes"]).ends(5).says("no_program");
    ended(&world, "`no-such-program` cannot be run here: steps", 2);
    assert_eq!(world.provider.model_requests().iter().filter(|entry| entry.step == Some(1)).count(), 2);
}

#[test]
fn a_script_that_an_agent_wrote_is_an_agents_to_mend() {
    let script = "write parts/run.sh \"no-such-program\\n\"";
    let world = world(script, "verify = [\"sh parts/run.sh\"]");
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["cause"], &task["attempts"]), (&"verify".into(), &3.into()), "{task:#}");
}

#[test]
fn agents_whose_program_is_being_replaced_wait_for_it_and_use_no_try() {
    let stuck = Fault::Hold { seconds: None };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: stuck, times: Some(1) };
    let mut world = World::with_script(Script::default().with_fault(rule));
    let bin = world.env.root().join("bin");
    let program = bin.join("my-agent");
    fs::create_dir(&bin).unwrap();
    fs::write(&program, format!("#!/bin/sh\nexec '{}' __agent \"$@\"\n", env!("CARGO_BIN_EXE_outlast"))).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    world.env.prepend_path(&bin).unwrap();
    let mine = "[agent.mine]\nkind = \"command\"\naccounts = [\"main\"]\ncommand = [\"my-agent\", \"{goal_file}\"]";
    let keys = format!("agent = \"mine\"\nretries = 0\nwrites = [\"parts/**\"]\n{mine}");
    world.plan(&Plan::new("land = \"auto\"").task("one", PART, &keys));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    run.signal(Signal::SIGTERM);
    run.end();

    let away = bin.join("being-installed");
    fs::rename(&program, &away).unwrap();
    let mut resumed = world.start(&["resume"]);
    resumed.until(&["no try is used", "is not on the PATH"]);
    fs::rename(&away, &program).unwrap();
    resumed.end().ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}
