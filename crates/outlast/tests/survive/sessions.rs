//! The cases of group H on the real binary: sessions that break, state files that are damaged, homes that are shared.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Script, When};
use serde_json::json;

use crate::world::{Plan, World, text};

const TWO: &str = "write parts/a.txt \"part a\\n\"\nwrite parts/b.txt \"part b\\n\"";

fn resuming() -> Plan {
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    plan.task("work", TWO, "writes = [\"parts/**\"]\nretries = 0")
}

fn with_fault(fault: Fault) -> World {
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault, times: Some(1) };
    let world = World::with_script(Script { keep_bodies: true, ..Script::default() }.with_fault(rule));
    world.plan(&resuming());
    world
}

/// A session that the provider will never take again is given up at once, and costs no try.
fn goes_on_in_a_new_session(fault: Fault) {
    goes_on_in_a_new_session_of(&with_fault(fault));
}

fn goes_on_in_a_new_session_of(world: &World) {
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    let refused = world.provider.bill().total.refused;
    assert_eq!(refused, 1, "nobody asks with the broken session again");
    the_new_one_knows_what_is_done(world);
    world.nothing_is_left();
}

#[test]
fn h01_a_session_whose_tool_results_are_missing_is_not_tried_again() {
    goes_on_in_a_new_session(Fault::Refuse { reason: RefusalKind::CorruptSession, seconds: None });
}

#[test]
fn h07_a_session_whose_signatures_are_damaged_is_not_tried_again() {
    let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    goes_on_in_a_new_session(Fault::Status { status: 400, headers: [].into(), body });
}

#[test]
fn h01_so_it_is_in_the_words_of_every_wire_format() {
    for (dialect, provider, path) in
        [("chat", "openai-compatible", "/v1"), ("responses", "openai", "/v1"), ("gemini", "gemini", "")]
    {
        let world = with_fault(Fault::Refuse { reason: RefusalKind::CorruptSession, seconds: None });
        let url = format!("{}{path}", world.provider.url());
        let key = world.env.root().join("key").display().to_string();
        let account = format!("[account.main]\nprovider = {provider:?}\nbase_url = {url:?}\nkey_file = {key:?}\n");
        world.env.write_config(&account).unwrap();
        let arguments = ["--retries", "0", "--resume", "{resume}", "--dialect", dialect];
        world.plan(&Plan::new("land = \"auto\"").agent_arguments(&arguments).task(
            "work",
            TWO,
            "writes = [\"parts/**\"]\nretries = 0",
        ));
        goes_on_in_a_new_session_of(&world);
    }
}

#[test]
fn h01_a_session_that_is_refused_in_words_that_nobody_knows_is_gone_on_with_once() {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "made-up words"}});
    let fault = Fault::Status { status: 400, headers: [].into(), body };
    let rule = Rule { when: When { step: Some(2), ..When::default() }, fault, times: Some(2) };
    let world = World::with_script(Script::default().with_fault(rule));
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    world.plan(&plan.task("work", TWO, "writes = [\"parts/**\"]\nretries = 1"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&3.into(), &"hand_over".into()), "{task:#}");
    world.nothing_is_left();
}

#[test]
fn h01_a_session_whose_file_is_broken_is_not_tried_again_in_whatever_words_its_cli_says_so() {
    // Killed in its first attempt; whoever goes on with its session dies of it, and whoever begins anew does the work.
    for says in [
        "'SyntaxError: Unexpected end of JSON input' '    at JSON.parse (<anonymous>)' '    at load (file:///cli.js:1:2)' >&2",
        "'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)'",
        "'Failed to parse session file: trailing characters at line 3 column 1' >&2",
    ] {
        let script = format!(
            "case $OUTLAST_ATTEMPT in *one.1) echo '{{\"type\":\"system\",\"session_id\":\"s-1\"}}'; kill -9 $$;; esac; \
             [ \"$0\" != s-1 ] || {{ printf '%s\\n' {says}; exit 1; }}; mkdir -p parts; echo 'part one' > parts/one.txt"
        );
        let agent = format!(
            "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\n\
             command = [\"sh\", \"-c\", \'\'\'{script}\'\'\', \"{{resume}}\"]"
        );
        let world = World::new();
        world.plan(&Plan::new(&agent).task("one", "", "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 0"));
        world.run(&["run", "--yes"]).ends(0).says("corrupt_session");
        world.all_are("landed");
        let task = world.task("one");
        assert_eq!((&task["attempts"], &task["resumed_by"]), (&3.into(), &"hand_over".into()), "{task:#}");
        world.nothing_is_left();
    }
}

fn silent_in_the_second_turn() -> World {
    with_fault(Fault::Hold { seconds: None })
}

#[track_caller]
fn the_new_one_knows_what_is_done(world: &World) {
    let told =
        world.provider.model_requests().iter().filter_map(|entry| world.provider.body(entry.number)).any(|body| {
            let body = String::from_utf8_lossy(&body).into_owned();
            body.contains("Another agent worked on this task before you") && body.contains("parts/a.txt")
        });
    assert!(told, "the new one knows what is done");
}

/// The same, once its engine was killed there, and its agent with it.
fn killed_in_the_second_turn() -> World {
    let world = silent_in_the_second_turn();
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a second turn", |log| log.iter().any(|entry| entry.step == Some(2)));
    assert!(run.kill_9().was_killed());
    end_agents(&world);
    world
}

fn end_agents(world: &World) {
    for (_, pid) in world.living_shims() {
        kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }
}

#[test]
fn h18_the_session_is_on_record_before_any_work_and_is_gone_on_with_after_a_crash() {
    let world = killed_in_the_second_turn();
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    // The first turn is in the session: it is not asked for again.
    let first = world.provider.model_requests().iter().filter(|entry| entry.step == Some(1)).count();
    assert_eq!(first, 1);
    world.nothing_is_left();
}

#[test]
fn h18_a_session_that_was_named_before_its_first_answer_is_gone_on_with() {
    let rule =
        Rule { when: When { step: Some(1), ..When::default() }, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&resuming());
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a first turn", |log| log.iter().any(|entry| entry.step == Some(1)));
    assert!(run.kill_9().was_killed());
    end_agents(&world);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    world.nothing_is_left();
}

#[test]
fn h04_a_session_that_is_not_there_any_more_is_gone_on_without_at_the_same_place() {
    let world = killed_in_the_second_turn();
    let before = text(&world.task("work")["workspace"]);
    let mut lost = 0;
    for file in walk(&world.homes()[0].join("homes")) {
        if file.parent().is_some_and(|folder| folder.ends_with(".scripted-agent")) {
            fs::remove_file(&file).unwrap();
            lost += 1;
        }
    }
    assert!(lost > 0, "its session lies elsewhere");
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    let task = world.task("work");
    // The one that looked for it has used no try, and was told of by what it is.
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&3.into(), &"hand_over".into()), "{task:#}");
    assert_eq!(text(&task["workspace"]), before, "sessions are known by where they began");
    world.run(&["log", "work"]).ends(0).says("corrupt_session");
    the_new_one_knows_what_is_done(&world);
    world.nothing_is_left();
}

#[test]
fn h15_state_files_of_no_byte_cost_at_most_what_was_in_them() {
    let world = killed_in_the_second_turn();
    let mut emptied = 0;
    for file in walk(&world.homes()[0].join("attempts")) {
        if file.extension().is_some_and(|extension| extension == "json") {
            fs::write(&file, "").unwrap();
            emptied += 1;
        }
    }
    assert!(emptied > 0);
    world.run(&["status"]).ends(0);
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn h15_a_runs_secret_that_is_damaged_is_made_anew_and_nobodys_account_is_blamed() {
    for held in [&b""[..], b"xx"] {
        let world = killed_in_the_second_turn();
        let secret = walk(&world.homes()[0].join("keys")).remove(0);
        fs::write(&secret, held).unwrap();
        world.run(&["resume"]).ends(0);
        world.all_are("landed");
        assert_eq!(fs::read(secret.with_extension("damaged")).unwrap(), held, "what was there is kept");
        assert_eq!(fs::read(&secret).unwrap().len(), 32);
        world.nothing_is_left();
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn h16_agents_share_no_home_and_leave_the_users_alone() {
    let world = World::new();
    fs::write(world.env.home().join(".agent.json"), "theirs").unwrap();
    let script = |id: &str| {
        format!(
            "run \"test ! -e $HOME/.agent.json && echo {id} > $HOME/.agent.json && mkdir -p parts\"\n\
             run \"echo part $(cat $HOME/.agent.json) > parts/{id}.txt\""
        )
    };
    let mut plan = Plan::new("concurrency = 8\nland = \"auto\"");
    for number in 1..=8 {
        let id = format!("t{number}");
        plan = plan.task(&id, &script(&id), &format!("writes = [\"parts/{id}.txt\"]\nretries = 0"));
    }
    world.plan(&plan);
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(fs::read_to_string(world.env.home().join(".agent.json")).unwrap(), "theirs");
}

#[test]
fn h09_only_what_failed_is_tried_again() {
    let world = World::new();
    let mut plan = Plan::new("concurrency = 4\nland = \"auto\"");
    for number in 1..=12 {
        let id = format!("t{number}");
        let script = format!("write parts/{id}.txt \"part {id}\\n\"");
        let fails = if number == 4 { "fail-first 1 \"true\"\n" } else { "" };
        plan = plan.task(&id, &format!("{fails}{script}"), &format!("writes = [\"parts/{id}.txt\"]\nretries = 1"));
    }
    world.plan(&plan);
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let attempts: Vec<u64> =
        (1..=12).map(|number| world.task(&format!("t{number}"))["attempts"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [1, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_task_that_was_given_up_is_finished_by_another_agent_of_its_plan_which_gets_a_note() {
    let world = World::new();
    let other = "land = \"auto\"\n\n[agent.other]\nkind = \"command\"\n\
                 command = [\"sh\", \"-c\", \"cat $OUTLAST_HANDOVER_FILE | grep -q parts/a.txt && echo part b > parts/b.txt\"]";
    let plan = Plan::new(other).agent_arguments(&["--resume", "{resume}"]);
    let script = "write parts/a.txt \"part a\\n\"\ndie 1";
    world.plan(&plan.task("work", script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(5);
    world.run(&["retry", "work", "--agent", "nobody"]).ends(2).says("the plan has no agent `nobody`; it has");
    world.run(&["retry", "work", "--agent", "other"]).ends(0).says("goes to agent other");
    world.all_are("landed");
    let task = world.task("work");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    let landed = world.repo.text(&["show", &format!("{}:parts/b.txt", world.target())]).unwrap();
    assert_eq!(landed, "part b");
    world.nothing_is_left();
}

#[test]
fn an_agent_that_does_the_same_over_and_over_is_ended_and_the_next_begins_with_a_note() {
    let world = World::new();
    let script = format!("write parts/a.txt \"part a\\n\"\n{}", "run \"cat README.md\"\n".repeat(30));
    let plan = Plan::new("land = \"auto\"").agent_arguments(&["--retries", "0", "--resume", "{resume}"]);
    world.plan(&plan.task("work", &script, "writes = [\"parts/**\"]\nretries = 1\nno_progress = 5"));
    world.run(&["run", "--yes"]).ends(5).says("no_progress");
    let task = world.task("work");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"no_progress".into()), "{task:#}");
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"hand_over".into()), "{task:#}");
    assert!(task["detail"].as_str().unwrap().contains("5 turns"), "{task:#}");
    // Of each attempt: the write, six times the same, and what was on its way by then.
    let asked = world.provider.model_requests().len();
    assert!((14..=18).contains(&asked), "{asked}");
    let kept = world
        .repo
        .text(&[
            "--git-dir",
            &world.homes()[0].join("store.git").display().to_string(),
            "show",
            &format!("{}:parts/a.txt", task["checkpoint"].as_str().unwrap()),
        ])
        .unwrap();
    assert_eq!(kept, "part a");
    world.nothing_is_left();
}

#[test]
fn a_program_of_the_users_own_may_do_the_same_for_as_long_as_it_likes() {
    let world = World::new();
    let script = format!("write parts/a.txt \"part a\\n\"\n{}", "run \"cat README.md\"\n".repeat(35));
    world.plan(&Plan::new("land = \"auto\"").task("work", &script, "writes = [\"parts/**\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
}
