//! One engine per state folder: what is said, and what helps, where it works on another repository.

use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::{Ran, Running};
use crate::world::{Plan, World, text};

/// A world whose task never comes to an end, and another repository with a run whose work waits.
fn two_repositories() -> (World, Repo) {
    let rule = Rule { when: When::default(), fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let other = world.env.repo("other").unwrap();
    for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
        other.git(&["config", key, value]).unwrap();
    }
    other.commit_file("README.md", "# Other\n", "First").unwrap();
    let plan = "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > t.txt\"]\n\
                [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n";
    other.write("outlast.toml", plan).unwrap();
    (world, other)
}

fn there(world: &World, other: &Repo, arguments: &[&str]) -> Ran {
    let mut command = world.command(arguments);
    command.current_dir(other.dir());
    Running::of(command).end()
}

/// The commands after `do:` and `or:` of an error as JSON.
fn fixes(told: &Ran) -> Vec<String> {
    let told = told.json();
    assert_eq!(told["error"]["code"], "host/engine-running", "{told:#}");
    let command = |fix: &serde_json::Value| text(fix).split("    #").next().unwrap_or_default().to_owned();
    told["error"]["fix"].as_array().unwrap().iter().map(command).collect()
}

#[test]
fn what_is_to_be_done_about_an_engine_elsewhere_works_from_here() {
    let (world, other) = two_repositories();
    there(&world, &other, &["run", "--yes"]).ends(0);
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    let id = text(&world.status()["run"]);
    let stop = format!("outlast stop {id}");
    for command in [&["run", "--yes", "--again"][..], &["resume"], &["land", "t"], &["discard", "t"]] {
        let told = there(&world, &other, &[command, &["--json"]].concat()).ends(12);
        let wanted = [format!("outlast status {id}"), stop.clone(), "outlast run --home DIR".to_owned()];
        assert_eq!(fixes(&told), wanted, "{command:?}");
        there(&world, &other, command).ends(12).says("one engine per state folder").says(&stop);
    }
    // A state folder of its own has an engine of its own.
    let home = world.env.root().join("second").display().to_string();
    there(&world, &other, &["run", "--yes", "--home", &home]).ends(0);
    there(&world, &other, &["stop", &id]).ends(0).says("is stopped");
    run.end().ends(0);
    there(&world, &other, &["land", "t"]).ends(0);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_gateway_that_is_in_the_way_is_named_as_one() {
    let (world, other) = two_repositories();
    let mut gateway = world.start(&["gateway"]);
    gateway.until(&["ANTHROPIC_BASE_URL="]);
    let pid = gateway.pid();
    let told = there(&world, &other, &["run", "--yes", "--json"]).ends(12);
    assert_eq!(fixes(&told), [format!("kill {pid}"), "outlast run --home DIR".to_owned()]);
    assert_eq!(told.json()["error"]["what"], format!("a gateway is already running (process {pid})"));
    gateway.signal(nix::sys::signal::Signal::SIGTERM);
    gateway.end().ends(0);
    there(&world, &other, &["run", "--yes"]).ends(0);
}

#[test]
fn an_engine_that_works_elsewhere_is_not_shown_as_that_of_a_run_here() {
    let (world, other) = two_repositories();
    // A task that is to be tried later.
    let plan = "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"exit 75\"]\n\
                [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n";
    other.write("outlast.toml", plan).unwrap();
    there(&world, &other, &["run", "--yes", "--no-wait"]).ends(6);
    let id = text(&there(&world, &other, &["status", "--json"]).json()["run"]);
    let goes_on = format!("outlast resume {id}");
    let as_without_an_engine = |what: &str| {
        let shown = there(&world, &other, &["status", "--json"]).json();
        assert!(shown["engine"].is_null(), "{what}: {shown:#}");
        there(&world, &other, &["status"]).ends(0).says("no engine is running").says(&goes_on);
    };
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    as_without_an_engine("an engine");
    let own = world.status();
    assert_eq!(own["engine"]["pid"], run.pid(), "{own:#}");
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    let mut gateway = world.start(&["gateway"]);
    gateway.until(&["ANTHROPIC_BASE_URL="]);
    as_without_an_engine("a gateway");
    gateway.signal(nix::sys::signal::Signal::SIGTERM);
    gateway.end().ends(0);
}
