//! Pause, stop, signals and leaving: the work is kept, no try is used up, and it goes on where it was.

use nix::sys::signal::Signal;
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};
use serde_json::Value;

use crate::running::Running;
use crate::world::{Plan, World};

/// A provider that never answers the second turn of the first conversation; the next one is answered.
pub(crate) fn stuck_in_the_second_turn() -> World {
    let rule =
        Rule { when: When { step: Some(2), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("works", script, "writes = [\"parts/**\"]\nretries = 0"));
    world
}

pub(crate) fn in_the_second_turn(world: &World) {
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
}

/// The task was parked with its work, and lands in a second attempt that did not use up a try.
#[track_caller]
fn parked_with_its_work(world: &World) -> Value {
    let task = world.task("works");
    assert_eq!((&task["state"], &task["attempts"]), (&"parked".into(), &1.into()), "{task:#}");
    let workspace = task["workspace"].as_str().expect("its workspace is kept");
    let written = std::fs::read_to_string(format!("{workspace}/parts/one.txt")).unwrap();
    assert_eq!(written, "part one\n");
    world.run(&["diff", "works", "--stat"]).ends(0).says("parts/one.txt");
    world.nothing_is_left();
    task
}

#[track_caller]
fn goes_on(world: &World) {
    world.run(&["resume"]).ends(0).says("continuing from what is there");
    let task = world.task("works");
    assert_eq!((&task["state"], &task["attempts"]), (&"landed".into(), &2.into()), "{task:#}");
    assert_eq!(task["resumed_by"], "hand_over");
    world.nothing_is_left();
}

#[test]
fn stop_parks_and_resume_goes_on() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    world.run(&["stop"]).ends(0).says("is stopped");
    // The engine leaves as well: it was asked to.
    run.end().ends(0);
    assert_eq!(world.status()["state"], "stopped");
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn pause_parks_and_resume_goes_on() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    world.run(&["pause"]).ends(0).says("is paused");
    run.end().ends(6);
    assert_eq!(world.status()["state"], "parked");
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn who_need_not_wait_stays_until_what_is_paused_is_parked() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes", "--no-wait"]);
    in_the_second_turn(&world);
    world.run(&["pause"]).ends(0).says("is paused");
    run.end().ends(6);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn a_resume_in_the_moment_an_engine_leaves_is_not_lost() {
    let hold = Rule { when: When::default(), fault: Fault::Hold { seconds: None }, times: Some(4) };
    let world = World::with_script(Script::default().with_fault(hold));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let mut engines = vec![world.start(&["run", "--yes"])];
    for asked in 1..=4 {
        world.provider_saw("the next request", |log| log.len() >= asked);
        world.run(&["pause"]).ends(0);
        // The engine that was paused is on its way out at this moment: either it stays, or this is the next one.
        let mut resumed = world.start(&["resume"]);
        resumed.until(&["goes on"]);
        engines.push(resumed);
    }
    for engine in engines {
        assert!(matches!(engine.end().code(), Some(0 | 6)));
    }
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn an_interrupted_run_saves_its_work_and_says_129_130_or_143() {
    for (signal, code) in [(Signal::SIGHUP, 129), (Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let world = stuck_in_the_second_turn();
        let run = world.start(&["run", "--yes"]);
        in_the_second_turn(&world);
        // As `timeout` does: one wish, told twice.
        run.signal(signal);
        run.signal(signal);
        run.end().ends(code);
        parked_with_its_work(&world);
        goes_on(&world);
    }
}

/// A shell that does something first and then is `outlast run --yes`.
fn run_by_shell(world: &World, first: &str) -> Running {
    let inner = world.command(&["run", "--yes"]);
    let mut shell = world.env.command("sh");
    shell.args(["-c", &format!("{first}; exec \"$0\" \"$@\"")]).arg(inner.get_program()).args(inner.get_args());
    shell.current_dir(world.repo.dir());
    Running::of(shell)
}

#[test]
fn a_terminal_that_is_gone_takes_no_words_and_the_work_is_saved_all_the_same() {
    let world = stuck_in_the_second_turn();
    let run = run_by_shell(&world, "exec > /dev/full");
    in_the_second_turn(&world);
    run.signal(Signal::SIGHUP);
    run.end().ends(129);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn under_nohup_the_end_of_the_terminal_changes_nothing() {
    let world = stuck_in_the_second_turn();
    let run = run_by_shell(&world, "trap '' HUP");
    in_the_second_turn(&world);
    run.signal(Signal::SIGHUP);
    world.run(&["stop"]).ends(0).says("is stopped");
    run.end().ends(0);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn a_second_run_does_not_begin_anew_what_an_unfinished_one_goes_on_with() {
    type Halt = fn(&World, Running);
    let halts: [(&str, Halt); 3] = [
        ("killed", |_, run| assert!(run.kill_9().was_killed())),
        ("paused", |world, run| {
            world.run(&["pause"]).ends(0);
            run.end().ends(6);
        }),
        ("stopped", |world, run| {
            world.run(&["stop"]).ends(0);
            run.end().ends(0);
        }),
    ];
    for (how, halt) in halts {
        let world = stuck_in_the_second_turn();
        let run = world.start(&["run", "--yes"]);
        in_the_second_turn(&world);
        halt(&world, run);
        let before = world.status();
        let id = before["run"].as_str().unwrap().to_owned();
        let asked = world.provider.log().len();
        for arguments in [&["run", "--yes"][..], &["run", "--yes", "--detach"], &["run", "--dry-run"]] {
            let told = world.run(arguments).ends(3).says("error[plan/unfinished-run]").says("paid for twice");
            let told = told.says(&format!("run `{id}` is not finished and still has to do: works"));
            told.says(&format!("outlast resume {id}")).says("outlast run --again");
        }
        let told = world.run(&["run", "--yes", "--json"]).ends(3).json();
        assert_eq!(told["error"]["code"], "plan/unfinished-run", "{how}");
        assert_eq!(told["error"]["related"][0], id.as_str(), "{how}");
        let runs = world.run(&["--json"]).ends(0).json();
        assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{how}");
        assert_eq!(
            (world.provider.log().len(), world.status()["tasks"][0]["attempts"].as_u64()),
            (asked, Some(1)),
            "{how}"
        );
        world.run(&["resume"]).ends(0);
        world.all_are("landed");
        world.run(&["run", "--yes"]).ends(0).says("nothing is left to do");
        world.nothing_is_left();
    }
}

#[test]
fn another_task_starts_beside_an_unfinished_run_and_the_same_one_does_where_that_is_said() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    let first = world.status()["run"].clone();
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    let both = Plan::new("land = \"auto\"").task("works", script, "writes = [\"parts/**\"]\nretries = 0").part("other");
    world.plan(&both);
    let told = world.run(&["run", "--yes"]).ends(3).says("still has to do: works");
    told.says("other is not in that run as the plan has it now");
    world.run(&["run", "--yes", "--only", "other"]).ends(0);
    world.run(&["run", "--yes", "--again", "--only", "works"]).ends(0);
    let status = world.status();
    assert_ne!(status["run"], first);
    assert_eq!((&status["tasks"][0]["state"], &status["tasks"][0]["attempts"]), (&"landed".into(), &1.into()));
    // What was started once more has taken the place of what it was before.
    world.run(&["run", "--yes"]).ends(0).says("nothing is left to do");
    world.nothing_is_left();
}

#[test]
fn who_names_no_run_stops_the_one_that_is_at_work_also_beside_a_newer_one_that_is_over() {
    // The other task's last turn is the second of all second turns.
    let held = |nth| Rule {
        when: When { step: Some(2), nth: Some(nth), ..When::default() },
        fault: Fault::Hold { seconds: None },
        times: Some(1),
    };
    let world = World::with_script(Script::default().with_fault(held(1)).with_fault(held(3)));
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    let plan = Plan::new("land = \"auto\"").task("works", script, "writes = [\"parts/**\"]\nretries = 0");
    world.plan(&plan.part("other"));
    let seconds = |n: usize| {
        world.provider_saw("a second turn", |log| log.iter().filter(|entry| entry.step == Some(2)).count() >= n);
    };
    let run = world.start(&["run", "--yes", "--only", "works"]);
    seconds(1);
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    let first = world.status()["run"].as_str().unwrap().to_owned();
    world.run(&["run", "--yes", "--only", "other"]).ends(0);
    let resumed = world.start(&["resume", &first]);
    seconds(3);
    world.run(&["stop"]).ends(0).says(&format!("{first} is stopped"));
    resumed.end().ends(0);
    world.run(&["resume", &first]).ends(0);
    world.nothing_is_left();
}

#[test]
fn work_that_is_being_parked_is_shown_as_that() {
    let world = stuck_in_the_second_turn();
    let mut run = world.command(&["run", "--yes"]);
    run.env("OUTLAST_FAULT", "before_end:1");
    let run = Running::of(run);
    in_the_second_turn(&world);
    // The engine that is told to park its work dies while it does.
    run.signal(Signal::SIGINT);
    assert!(run.end().was_killed());
    let task = world.task("works");
    assert_eq!((&task["state"], &task["cause"]), (&"running".into(), &"parking".into()), "{task:#}");
    let shown = world.run(&["status"]).ends(0).says("parking    works").says(": its work is being kept");
    assert!(!shown.stdout.contains("running    works"), "{}", shown.stdout);
    world.run(&["pause"]).ends(0);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn an_engine_that_is_killed_while_it_parks_leaves_that_to_whoever_asked() {
    for (command, says, run_says) in
        [("pause", "is paused; its work is kept", "parked"), ("stop", "is stopped; its work", "stopped")]
    {
        let world = stuck_in_the_second_turn();
        let mut run = world.command(&["run", "--yes"]);
        run.env("OUTLAST_FAULT", "before_end:1");
        let run = Running::of(run);
        in_the_second_turn(&world);
        world.run(&[command]).ends(0).says("has ended before all was parked: parking it now").says(says);
        assert!(run.end().was_killed());
        assert_eq!(world.status()["state"], run_says);
        parked_with_its_work(&world);
        goes_on(&world);
    }
}

#[test]
fn a_paused_run_without_an_engine_stays_paused_until_it_is_resumed() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    let pid = run.pid();
    assert!(run.kill_9().was_killed());
    // No engine is there to be asked: a short one parks what goes on under its shim, and says so.
    let gone =
        format!("no engine was at work: the last one (process {pid}) is gone; what it had left at work is parked now");
    world.run(&["pause"]).ends(0).says(&gone).says("is paused; its work is kept. Go on with: outlast resume");
    let told = world.run(&["pause"]).ends(0);
    assert!(!told.stderr.contains("no engine was at work"), "it is paused: {}", told.stderr);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn a_run_whose_engine_was_killed_is_stopped_resumed_and_landed_from_anywhere() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    let id = world.status()["run"].as_str().unwrap().to_owned();
    assert!(run.kill_9().was_killed());
    let other = world.env.repo("other").unwrap();
    other.commit_file("README.md", "# Other\n", "First").unwrap();
    let from = |place: &std::path::Path, arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.current_dir(place);
        Running::of(command).end()
    };
    from(world.env.home(), &["stop", &id]).ends(0).says("no engine was at work: the last one").says("is stopped");
    parked_with_its_work(&world);
    from(other.dir(), &["diff", "works", "--run", &id, "--stat"]).ends(0).says("parts/one.txt");
    from(other.dir(), &["resume", &id]).ends(0).says("continuing from what is there");
    world.all_are("landed");
    from(world.env.home(), &["land", "works", "--run", &id]).ends(0);
    world.nothing_is_left();
    // What is not there any more is named.
    let moved = world.env.root().join("moved");
    std::fs::rename(world.repo.dir(), &moved).unwrap();
    let told = from(world.env.home(), &["diff", "works", "--run", &id, "--json"]).ends(4).json();
    assert_eq!(told["error"]["code"], "repository/elsewhere", "{told:#}");
    assert!(told["error"]["what"].as_str().unwrap().contains("/repo`"), "{told:#}");
    std::fs::rename(moved, world.repo.dir()).unwrap();
}

#[test]
fn a_run_that_need_not_wait_leaves_with_6_and_goes_on_later() {
    let refuse = Fault::Refuse { reason: RefusalKind::MinuteLimit, seconds: Some(4) };
    let rule = Rule { when: When { nth: Some(1), ..When::default() }, fault: refuse, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"parked".into(), &"minute_limit".into()), "{task:#}");
    assert!(task["reset_at"].is_string(), "{task:#}");
    world.nothing_is_left();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_detached_run_goes_on_by_itself() {
    let world = stuck_in_the_second_turn();
    world.run(&["run", "--yes", "--detach"]).ends(0).says("goes on in process");
    in_the_second_turn(&world);
    let status = world.status();
    assert_eq!(status["state"], "running");
    let engine = status["engine"]["pid"].as_u64().expect("an engine works on it");
    assert!(world.env.processes().contains(&i32::try_from(engine).unwrap()));
    // A second run is refused and names it.
    let refused = world.run(&["run", "--yes"]).ends(12);
    assert!(refused.stderr.contains(&engine.to_string()), "{}", refused.stderr);
    world.run(&["stop"]).ends(0);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn an_engine_that_is_suspended_is_told_of_by_whoever_asks_it() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    run.signal(Signal::SIGSTOP);
    // The journal tells without the engine.
    assert_eq!(world.status()["state"], "running");
    let mut pause = world.start(&["pause"]);
    pause.until(&["is suspended", &format!("kill -CONT {}", run.pid())]);
    run.signal(Signal::SIGCONT);
    pause.end().ends(0).says("is paused");
    run.end().ends(6);
    parked_with_its_work(&world);
    goes_on(&world);
}

#[test]
fn resume_beside_a_running_engine_says_as_json_what_it_goes_on_with() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    let status = world.run(&["resume", "--json"]).ends(0).says("goes on in the engine").json();
    assert_eq!((&status["state"], &status["engine"]["pid"]), (&"running".into(), &run.pid().into()), "{status:#}");
    assert_eq!(status["schema"], "outlast/status/v1");
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    world.nothing_is_left();
}

#[test]
fn a_person_who_looks_into_a_workspace_is_not_ended_with_its_agent() {
    let world = stuck_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    let task = world.task("works");
    let mut shell = std::process::Command::new("sleep");
    let mut shell = shell.arg("600").current_dir(task["workspace"].as_str().unwrap()).spawn().unwrap();
    let (folder, _) = world.living_shims().remove(0);
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    let ended = shell.try_wait().unwrap();
    shell.kill().unwrap();
    shell.wait().unwrap();
    // Where the host has no pid namespaces, nobody can tell a person from what an agent has left.
    let contained = outlast_process::files::load_shim(&folder).unwrap().unwrap().containment.pid_ns;
    assert_eq!(ended.is_none(), contained, "{ended:?}");
    parked_with_its_work(&world);
}

#[test]
fn an_engine_that_works_on_another_repository_is_named_by_whoever_needs_one_here() {
    let world = stuck_in_the_second_turn();
    let other = world.env.repo("other").unwrap();
    for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
        other.git(&["config", key, value]).unwrap();
    }
    other.commit_file("README.md", "# Other\n", "First").unwrap();
    let plan = "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > t.txt\"]\n\
                [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n";
    other.write("outlast.toml", plan).unwrap();
    let there = |arguments: &[&str]| {
        let mut command = world.command(arguments);
        command.current_dir(other.dir());
        Running::of(command).end()
    };
    there(&["run", "--yes"]).ends(0);
    let run = world.start(&["run", "--yes"]);
    in_the_second_turn(&world);
    for command in [&["land", "t"][..], &["resume"]] {
        there(command).ends(12).says("host/engine-running").says("/repo/");
    }
    world.run(&["stop"]).ends(0);
    run.end().ends(0);
    there(&["land", "t"]).ends(0);
}

#[test]
fn an_engine_that_has_a_journal_is_named_with_the_command_that_ends_it() {
    type Reached = fn(&World) -> Vec<String>;
    let by_process: Reached = |world| {
        std::fs::remove_file(world.env.outlast_home().join("engine.lock")).unwrap();
        vec!["resume".to_owned()]
    };
    let by_its_home: Reached = |world| {
        let second = world.env.root().join("second");
        std::fs::create_dir(&second).unwrap();
        let folder = world.homes().remove(0);
        std::os::unix::fs::symlink(&folder, second.join(folder.file_name().unwrap())).unwrap();
        ["resume", "--home", second.to_str().unwrap()].map(str::to_owned).to_vec()
    };
    for (reached, code) in [(by_process, 143), (by_its_home, 0)] {
        let world = stuck_in_the_second_turn();
        let run = world.start(&["run", "--yes"]);
        in_the_second_turn(&world);
        let id = world.status()["run"].as_str().unwrap().to_owned();
        let mut arguments = reached(&world);
        arguments.push("--json".to_owned());
        let told = world.run(&arguments).ends(12).json();
        let pid = run.pid();
        assert!(told["error"]["what"].as_str().unwrap().contains(&format!("process {pid}")), "{told:#}");
        let fix = told["error"]["fix"][0].as_str().unwrap();
        let (command, _) = fix.split_once("    #").unwrap();
        let home = world.env.outlast_home().display().to_string();
        let wanted = match code {
            143 => format!("kill {pid}"),
            _ => format!("outlast stop {id} --home '{home}'"),
        };
        assert_eq!(command, wanted);
        match code {
            143 => run.signal(Signal::SIGTERM),
            _ => drop(world.run(&["stop", &id, "--home", &home]).ends(0)),
        }
        run.end().ends(code);
        parked_with_its_work(&world);
        goes_on(&world);
    }
}

#[test]
fn a01_who_need_not_wait_leaves_no_agent_behind_whose_request_waits() {
    let refuse = Fault::Refuse { reason: RefusalKind::MinuteLimit, seconds: Some(5) };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault: refuse, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    let script = "write parts/one.txt \"part one\\n\"\nwrite parts/two.txt \"part two\\n\"";
    world.plan(&Plan::new("land = \"auto\"").task("works", script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6).says("everything that is left waits").says("parked");
    let task = parked_with_its_work(&world);
    assert_eq!(task["cause"], "minute_limit", "{task:#}");
    assert!(task["reset_at"].is_string() && task["checkpoint"].is_string(), "{task:#}");
    assert_eq!(world.status()["state"], "parked");
    world.run(&["status"]).ends(0).says("no engine is running").says("outlast resume");
    goes_on(&world);
}
