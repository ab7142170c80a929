//! What somebody does who wants to break it: kills the process that starts agents, ends one run in the midst of another,
//! hands in files that may not land as they are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::Running;
use crate::world::{Plan, World, text};

/// The process of this name that a process has started.
fn child_named(parent: i32, name: &str) -> i32 {
    let named = |pid: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let (front, rest) = stat.rsplit_once(") ").unwrap_or_default();
        front.ends_with(&format!("({name}")) && rest.split(' ').nth(1) == Some(&parent.to_string())
    };
    let pids =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    pids.into_iter().find(named).unwrap_or_else(|| panic!("no {name} beneath {parent}"))
}

fn end(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

/// A provider that never answers the first requests, however many.
fn silent_at_first(requests: u64) -> World {
    let hold = Rule { when: When::default(), fault: Fault::Hold { seconds: None }, times: Some(requests) };
    World::with_script(Script::default().with_fault(hold))
}

fn asked(world: &World, times: usize) {
    world.provider_saw("a request", |log| log.len() >= times);
}

#[test]
fn a_killed_spawner_costs_no_try_and_no_task() {
    let world = silent_at_first(1);
    let parts = ["a", "b", "c"].iter().fold(Plan::new("concurrency = 1\nland = \"auto\""), |plan, id| plan.part(id));
    world.plan(&parts);
    let run = world.start(&["run", "--yes"]);
    asked(&world, 1);
    let first = child_named(run.pid(), "outlast-spawner");
    end(first);
    // What it had started goes on, parked here only to be started again, twice, and each time by another spawner.
    for (id, shim) in world.living_shims().into_iter().take(1) {
        assert!(id.is_dir());
        end(shim);
    }
    run.end().ends(0);
    world.all_are("landed");
    let attempts: u64 = ["a", "b", "c"].iter().map(|id| world.task(id)["attempts"].as_u64().unwrap()).sum();
    assert_eq!(attempts, 4, "one more than tasks: the one whose shim was killed");
    world.nothing_is_left();
}

/// A run whose engine was killed while its agent waits for the provider.
fn abandoned(world: &World) -> String {
    world.plan(&Plan::new("land = \"auto\"").part("first"));
    let run = world.start(&["run", "--yes"]);
    asked(world, 1);
    assert!(run.kill_9().was_killed());
    assert_eq!(world.living_shims().len(), 1);
    text(&world.status()["run"])
}

/// Starts another run in the same home, which takes up the agent of the first one too.
fn second(world: &World, asks: usize) -> Running {
    world.plan(&Plan::new("land = \"auto\"").part("second"));
    let run = world.start(&["run", "--yes"]);
    asked(world, asks);
    run
}

#[track_caller]
fn first_is_parked_and_goes_on(world: &World, first: &str) {
    let status = world.run(&["status", first, "--json"]).ends(0).json();
    assert_eq!((&status["state"], &status["tasks"][0]["state"]), (&"stopped".into(), &"parked".into()), "{status:#}");
    world.nothing_is_left();
    world.run(&["resume", first]).ends(0);
    let status = world.run(&["status", first, "--json"]).ends(0).json();
    assert_eq!(status["tasks"][0]["state"], "landed", "{status:#}");
    world.nothing_is_left();
}

#[test]
fn an_interrupted_run_leaves_no_agent_of_another_without_an_engine() {
    let world = silent_at_first(3);
    let first = abandoned(&world);
    // The agent of the first asks the new engine again, that of the second for the first time.
    let run = second(&world, 3);
    assert_eq!(world.living_shims().len(), 2);
    run.signal(Signal::SIGINT);
    run.end().ends(130).says(&format!("outlast resume {first}"));
    world.all_are("parked");
    first_is_parked_and_goes_on(&world, &first);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
}

#[test]
fn a_run_that_ends_leaves_no_agent_of_another_without_an_engine() {
    // Whichever of the two asks second is answered: hold what the first run's agent asks, by its place in the log.
    let script = |id: &str| format!("write parts/{id}.txt \"part {id}\\n\"\nwrite parts/{id}-2.txt \"part {id}-2\\n\"");
    let rule =
        Rule { when: When { step: Some(2), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(2) };
    let world = World::with_script(Script::default().with_fault(rule));
    let writes = "writes = [\"parts/**\"]";
    world.plan(&Plan::new("land = \"auto\"").task("first", &script("first"), writes));
    let run = world.start(&["run", "--yes"]);
    let second_turns = |n| {
        world.provider_saw("a second turn", |log| log.iter().filter(|entry| entry.step == Some(2)).count() >= n);
    };
    second_turns(1);
    assert!(run.kill_9().was_killed());
    let first = text(&world.status()["run"]);
    // The only turn of this one is its first: it ends while the other waits.
    world.plan(&Plan::new("land = \"auto\"").task(
        "second",
        "write other/second.txt \"x\\n\"",
        "writes = [\"other/**\"]\nverify = [\"true\"]",
    ));
    let run = world.start(&["run", "--yes"]);
    second_turns(2);
    run.end().ends(0).says(&format!("outlast resume {first}"));
    world.all_are("landed");
    first_is_parked_and_goes_on(&world, &first);
}

#[test]
fn of_two_runs_at_once_the_second_is_refused_and_names_the_first() {
    let world = silent_at_first(1);
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let runs = [world.start(&["run", "--yes"]), world.start(&["run", "--yes"])];
    let pids = runs.each_ref().map(Running::pid);
    asked(&world, 1);
    let mut runs = runs.into_iter().zip(pids);
    let (mut a, a_pid) = runs.next().unwrap();
    let (b, b_pid) = runs.next().unwrap();
    let (refused, works, works_pid) =
        if a.ended_within(std::time::Duration::from_millis(1)) { (a, b, b_pid) } else { (b, a, a_pid) };
    let refused = refused.end().ends(12);
    assert!(refused.stderr.contains(&format!("process {works_pid}")), "{}", refused.stderr);
    works.signal(Signal::SIGINT);
    works.end().ends(130);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
}

/// A repository with a filter that hides what is in `*.key` files.
fn with_a_filter() -> World {
    let world = World::new();
    world.repo.git(&["config", "filter.hide.clean", "sed s/secret/HIDDEN/"]).unwrap();
    world.repo.write(".gitattributes", "*.key filter=hide\n").unwrap();
    world.repo.commit("Attributes").unwrap();
    world
}

#[test]
fn g03_what_a_filter_hides_never_lands_as_it_is() {
    let world = with_a_filter();
    let writes = "writes = [\"parts/**\", \"*.key\", \".gitattributes\"]";
    let script = "write parts/one.txt \"part one\\n\"\nwrite my.key \"secret\\n\"\nwrite .gitattributes \"\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, writes).part("two"));
    let base = world.repo.commit_id("HEAD").unwrap();
    world.run(&["run", "--yes"]).ends(8);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"done".into(), &"filter".into()), "{task:#}");
    assert_eq!(world.task("two")["state"], "landed");
    assert_eq!(world.landed_on(&world.target(), &base), ["two"]);
    let all = world.repo.text(&["log", "--all", "-p", "--format="]).unwrap();
    assert!(!all.contains("secret"), "{all}");
    world.run(&["land", "one"]).ends(8).says("my.key");

    // The command that it names puts the file into the person's index as the filter makes it.
    let detail = text(&task["detail"]);
    let command = detail.split_once("by hand: ").expect("a command").1;
    world.env.command("sh").args(["-c", command]).current_dir("/").status().unwrap();
    assert_eq!(world.repo.text(&["cat-file", "blob", ":my.key"]).unwrap(), "HIDDEN");
    world.nothing_is_left();
}

#[test]
fn what_lands_is_in_the_name_that_the_environment_gives() {
    let world = World::new();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let mut command = world.command(&["run", "--yes"]);
    command.envs([
        ("GIT_AUTHOR_NAME", "Eve"),
        ("GIT_AUTHOR_EMAIL", "eve@example.invalid"),
        ("GIT_COMMITTER_NAME", "CI"),
        ("GIT_COMMITTER_EMAIL", "ci@example.invalid"),
    ]);
    Running::of(command).end().ends(0);
    let who = world.repo.text(&["log", "-1", "--format=%an <%ae> %cn <%ce>", &world.target()]).unwrap();
    assert_eq!(who, "Eve <eve@example.invalid> CI <ci@example.invalid>");
}

#[test]
fn work_that_no_checkpoint_can_hold_is_named_and_stays_when_it_is_given_up() {
    let world = World::new();
    let script = "run \"truncate -s 60M big.bin; mkfifo pipe\"";
    world.plan(&Plan::new("").task("one", script, "retries = 0"));
    let ran = world.run(&["run", "--yes"]).ends(5).says("only its workspace holds `big.bin` (62914560 bytes");
    assert!(ran.stderr.contains("left out: `big.bin`"), "{}", ran.stderr);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"gave_up".into()), "{task:#}");

    let workspace: PathBuf = text(&task["workspace"]).into();
    let said = world.run(&["discard", "one"]).ends(0).says("its workspace stays").says("`big.bin` is in no checkpoint");
    assert!(said.stdout.contains(&workspace.display().to_string()), "{}", said.stdout);
    assert_eq!(std::fs::metadata(workspace.join("big.bin")).unwrap().len(), 60 << 20);
    let again = world.run(&["discard", "one", "--json"]).ends(0).json();
    assert!(text(&again["tasks"][0]["kept"]).contains("big.bin"), "{again:#}");
    assert_eq!(world.task("one")["state"], "discarded");
}

#[test]
fn g05_a_link_that_leaves_the_tree_is_told_in_words() {
    let world = World::new();
    world.plan(&Plan::new("").task("one", "run \"ln -s /etc/passwd out\"", "retries = 0"));
    world.run(&["run", "--yes"]).ends(5).says("`out` may never land: it is a link that leads out of the tree");
}

#[test]
fn a_secret_beside_the_task_is_out_of_an_agents_reach() {
    let world = World::new();
    let key = world.env.root().join("id_rsa");
    shut_file(&key);
    let others = world.env.outlast_home().join("other/secret");
    std::fs::create_dir_all(others.parent().unwrap()).unwrap();
    shut_file(&others);
    let read = |path: &Path| format!("cat {} >>stolen.txt 2>>denied.txt", path.display());
    let reads = [&key, &others, Path::new("/etc/shadow"), Path::new("/etc/gshadow")].map(read).join("; ");
    world.plan(&Plan::new("").task("one", &format!("run \"{reads}; echo tried >>stolen.txt\""), ""));
    world.run(&["run", "--yes"]).ends(0);
    let workspace: PathBuf = text(&world.task("one")["workspace"]).into();
    assert_eq!(std::fs::read_to_string(workspace.join("stolen.txt")).unwrap(), "tried\n");
    assert_eq!(std::fs::read_to_string(workspace.join("denied.txt")).unwrap().matches("denied").count(), 4);
}

fn shut_file(path: &Path) {
    std::fs::write(path, "private\n").unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn a_state_folder_that_is_removed_ends_the_run_and_its_agents() {
    let world = silent_at_first(9);
    world.plan(&Plan::new("land = \"auto\"").part("one").part("two"));
    let run = world.start(&["run", "--yes"]);
    asked(&world, 2);
    let shims = world.living_shims();
    assert_eq!(shims.len(), 2);
    // What is written there meanwhile makes a removal fail, as `rm -r` does: whoever means it says so again.
    while let Err(error) = std::fs::remove_dir_all(world.env.outlast_home()) {
        assert_eq!(error.kind(), std::io::ErrorKind::DirectoryNotEmpty, "{error}");
    }
    // Whatever is to be put on record next finds out.
    run.signal(Signal::SIGINT);
    run.end().ends(12).says("was removed while the engine was at work");
    for (_, pid) in shims {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
    assert!(world.env.processes().is_empty());
    // Nothing is in the way of a new run.
    world.provider_saw("the held requests", |log| log.len() >= 2);
    let run = world.start(&["run", "--yes"]);
    asked(&world, 4);
    run.signal(Signal::SIGTERM);
    run.end().ends(143);
}

#[test]
fn a_repository_that_is_moved_away_and_put_back_costs_nothing() {
    let world = silent_at_first(1);
    world.plan(&Plan::new("land = \"auto\"").part("one").part("two"));
    let mut run = world.start(&["run", "--yes"]);
    asked(&world, 1);
    let away = world.env.root().join("away");
    std::fs::rename(world.repo.dir(), &away).unwrap();
    for (_, shim) in world.living_shims() {
        end(shim);
    }
    run.until(&["is not there any more: put it back"]);
    std::fs::rename(&away, world.repo.dir()).unwrap();
    run.end().ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn e26_what_a_killed_clean_or_a_discard_leaves_goes_with_the_next_clean() {
    let world = World::new();
    world.plan(&Plan::new("").part("landed").part("given-up").part("waits"));
    world.run(&["run", "--yes"]).ends(0);
    let run = text(&world.status()["run"]);
    let home = |task: &str| world.homes()[0].join("homes").join(&run).join(task);
    world.run(&["land", "landed"]).ends(0);
    world.run(&["discard", "given-up"]).ends(0);
    // Killed between a workspace and its home.
    let aside = world.env.root().join("aside");
    std::fs::rename(home("landed"), &aside).unwrap();
    world.run(&["clean", "--yes"]).ends(0);
    std::fs::rename(&aside, home("landed")).unwrap();
    let listed = world.run(&["clean", "--json"]).ends(0).json();
    assert_eq!(listed["items"][1]["kind"], "home", "{listed:#}");
    assert!(home("landed").is_dir(), "a list removes nothing");
    world.run(&["clean", "--yes"]).ends(0);
    let there = ["landed", "given-up", "waits"].map(|task| home(task).is_dir());
    assert_eq!(there, [false, false, true]);
}

#[test]
fn what_stands_in_the_place_of_a_workspace_is_named_and_not_waited_for() {
    let pause = Fault::Hang { after_frames: 1, seconds: Some(1.0) };
    let rule = Rule { when: When { step: Some(1), ..When::default() }, fault: pause, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("").part("one").task("two", "say \"no\"", "needs = [\"one\"]\nretries = 1"));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    let place = PathBuf::from(text(&world.task("one")["workspace"])).with_file_name("two");
    std::fs::create_dir(&place).unwrap();
    std::fs::write(place.join("somebodys"), "work\n").unwrap();
    run.end().says("is no workspace of this task; move it away");
    let task = world.task("two");
    assert_eq!((task["state"].as_str(), task["cause"].as_str()), (Some("failed"), Some("startup")), "{task:#}");
    assert_eq!(task["attempts"], 2, "its tries, and no more: {task:#}");
    assert_eq!(std::fs::read_to_string(place.join("somebodys")).unwrap(), "work\n");
}
