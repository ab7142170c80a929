//! `run --detach`: when it returns, the engine in the background works on the run, or the reason why not is told.

use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::world::{Plan, World};

/// A provider that answers nobody.
fn silent() -> World {
    let rule = Rule { when: When::default(), fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world
}

/// What of the background is left in the home.
fn logs(world: &World) -> Vec<String> {
    let files = std::fs::read_dir(world.env.outlast_home()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut logs: Vec<String> = names.filter(|name| name.ends_with(".log") && name != "outlast.log").collect();
    logs.sort();
    logs
}

#[test]
fn it_returns_when_its_engine_works_on_the_run() {
    let world = silent();
    let status = world.run(&["run", "--yes", "--detach", "--json"]).ends(0).says("goes on in process").json();
    let engine = status["engine"]["pid"].as_u64().expect("an engine has the lock");
    assert_eq!((&status["schema"], &status["state"]), (&"outlast/status/v1".into(), &"running".into()), "{status:#}");
    assert!(world.env.processes().contains(&i32::try_from(engine).unwrap()));
    // Whoever comes next meets that engine.
    let id = status["run"].as_str().unwrap();
    world.run(&["resume"]).ends(0).says(&format!("goes on in the engine that is running (process {engine})"));
    world.run(&["run", "--yes"]).ends(12).says(&engine.to_string());
    assert_eq!(logs(&world), [format!("{id}.log")]);
    world.provider_saw("the request", |log| !log.is_empty());
    world.run(&["stop"]).ends(0);
    let told = std::fs::read_to_string(world.env.outlast_home().join(format!("{id}.log"))).unwrap();
    assert!(
        told.contains("the run is stopped") && told.contains("no engine is running"),
        "what it printed at its end: {told}"
    );
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn what_keeps_its_engine_from_beginning_is_told_with_its_exit_code() {
    let world = silent();
    let plan = "[agent.a]\nkind = \"command\"\ncommand = [\"no-such-agent\"]\n[[task]]\nid = \"t\"\ngoal = \"g\"\n";
    world.repo.write("outlast.toml", plan).unwrap();
    let told = world.run(&["run", "--yes", "--detach", "--json"]).ends(12).json();
    assert_eq!((&told["error"]["code"], &told["exit_code"]), (&"host/agent-missing".into(), &12.into()), "{told:#}");
    world.run(&["run", "--yes", "--detach"]).ends(12).says("error[host/agent-missing]").says("do: ");
    world.no_process_is_left();
    assert_eq!(logs(&world), [""; 0], "what it said was told here");
    // One that is killed before it can say anything says nothing.
    let world = silent();
    let mut command = world.command(&["run", "--yes", "--detach", "--json"]);
    command.env("OUTLAST_FAULT", "before_append:1");
    let told = crate::running::Running::of(command).end().ends(12).json();
    assert_eq!(told["error"]["code"], "engine/gone");
    assert!(told["error"]["why"][0].as_str().unwrap().contains("signal: 9"), "{told:#}");
    world.run(&["run", "--yes", "--detach"]).ends(0);
    world.run(&["stop"]).ends(0);
    world.nothing_is_left();
}
