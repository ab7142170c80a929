//! A provider's window closes: requests wait in the gateway, and no agent notices.

use std::time::Duration;

use outlast_journal::{Entry, Journal};
use outlast_testkit::provider::{Fault, RefusalKind, Rule, Says, Script, When, Window, WindowKind};

use crate::world::{Plan, World};

#[test]
fn a_closed_window_with_a_stated_reset_is_waited_for_and_nobody_dies() {
    let window = Window {
        name: "5h".to_owned(),
        kind: WindowKind::Quota,
        requests: Some(7),
        tokens: None,
        concurrent: None,
        per_seconds: 6.0,
        says: Says::Reset,
    };
    let world = World::with_script(Script::default().with_window(window));
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 3").agent_arguments(&["--retries", "0"]);
    for id in ["one", "two", "three", "four", "five", "six"] {
        plan = plan.part(id);
    }
    world.plan(&plan);
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["is held"]);
    let status = world.status();
    let tasks = status["tasks"].as_array().unwrap();
    let held: Vec<_> = tasks.iter().filter(|task| task["state"] == "held").collect();
    assert!(!held.is_empty() && held.iter().all(|task| task["reset_at"].is_string()), "{status:#}");
    let account = &status["accounts"][0]["windows"][0];
    assert_eq!(account["state"], "closed", "{status:#}");
    assert!(account["reset_at"].is_string(), "{status:#}");
    run.end().ends(0);

    world.all_are("landed");
    for id in ["one", "two", "three", "four", "five", "six"] {
        assert_eq!(world.task(id)["attempts"], 1, "{id} was not started anew");
    }
    // Three agents work at once, so that at most two more requests were on their way when the window closed.
    let bill = world.provider.bill();
    assert!(bill.total.refused > 0, "the window did close: {bill:#?}");
    assert!(bill.requests_into_closed_window <= 2, "{bill:#?}");
    world.nothing_is_left();
}

#[test]
fn a_key_that_the_provider_does_not_take_is_told_as_such_and_not_tried_again() {
    let world = World::with_script(Script::default().with_keys(["sk-another"]));
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world.start(&["run", "--yes"]).end().ends(11);
    let task = world.task("one");
    assert_eq!((task["state"].as_str(), task["cause"].as_str()), (Some("failed"), Some("auth")), "{task:#}");
    assert_eq!(task["attempts"], 1, "{task:#}");
    world.nothing_is_left();
}

#[test]
fn a_window_that_stays_closed_for_longer_than_requests_are_held_parks_agents_and_goes_on_by_itself() {
    let window = Window {
        name: "5h".to_owned(),
        kind: WindowKind::Quota,
        requests: Some(4),
        tokens: None,
        concurrent: None,
        per_seconds: 8.0,
        says: Says::Reset,
    };
    let world = World::with_script(Script::default().with_window(window));
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 3\nhold = \"1s\"").agent_arguments(&[
        "--retries",
        "0",
        "--resume",
        "{resume}",
    ]);
    for id in ["one", "two", "three", "four"] {
        plan = plan.part(id);
    }
    world.plan(&plan);
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["is being parked until an account opens"]);
    run.end().ends(0).says("is tried again");

    world.all_are("landed");
    let tasks = world.status();
    let tasks: Vec<_> = tasks["tasks"].as_array().unwrap().iter().map(|task| task["attempts"].as_u64()).collect();
    assert!(tasks.contains(&Some(2)), "somebody was parked and went on: {tasks:?}");
    let bill = world.provider.bill();
    // Three in flight when it closes; after each reset one tries first.
    assert!(bill.requests_into_closed_window <= 2, "{bill:#?}");
    world.nothing_is_left();
}

#[test]
fn whoever_leaves_parked_agents_is_told_what_they_wait_for_and_when_they_go_on() {
    let window = Window {
        name: "5h".to_owned(),
        kind: WindowKind::Quota,
        requests: Some(1),
        tokens: None,
        concurrent: None,
        per_seconds: 3600.0,
        says: Says::Reset,
    };
    let world = World::with_script(Script::default().with_window(window));
    world.plan(&Plan::new("hold = \"1s\"").agent_arguments(&["--retries", "0"]).part("one"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let task = world.task("one");
    assert_eq!((task["state"].as_str(), task["cause"].as_str()), (Some("parked"), Some("window_quota")), "{task:#}");
    assert!(task["reset_at"].is_string(), "{task:#}");
    world.run::<&str>(&[]).ends(0).says("parked").says("goes on at");
    // Whoever takes it up before its time, and need not wait, leaves again as fast.
    world.run(&["resume", "--no-wait"]).ends(6).says("everything that is left waits, the first until 2");
    assert_eq!(world.task("one")["attempts"], task["attempts"]);
    world.nothing_is_left();
}

/// A world whose provider says once that its window is closed for 20 minutes, which it is not.
fn refused_for_long_once() -> World {
    let fault = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(1200) };
    let rule = Rule { when: When { step: Some(1), ..When::default() }, fault, times: Some(1) };
    World::with_script(Script::default().with_fault(rule))
}

#[test]
fn a_held_request_is_tried_at_once_when_a_person_says_so() {
    let world = refused_for_long_once();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["is held"]);
    world.run(&["status"]).ends(0).says("outlast resume").says("if you know that the limit is over");
    world.run(&["resume"]).ends(0).says("is tried now");
    run.end().ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1, "nobody noticed");
}

#[test]
fn a_parked_agent_goes_on_at_once_when_a_person_says_so() {
    let world = refused_for_long_once();
    world.plan(&Plan::new("land = \"auto\"\nhold = \"1s\"").agent_arguments(&["--resume", "{resume}"]).part("one"));
    let mut run = world.start(&["run", "--yes"]);
    run.until(&["is being parked until an account opens"]);
    world.run(&["resume"]).ends(0).says("is tried now");
    run.end().ends(0);
    world.all_are("landed");
    assert_eq!(world.provider.bill().total.refused, 1);
}

/// Their requests may be held for hours, and their limit ends after seconds: only the memory is a reason to park them.
#[test]
fn where_memory_runs_short_agents_that_wait_are_parked_and_go_on_when_their_limit_ends() {
    let fault = Fault::Refuse { reason: RefusalKind::WindowQuota, seconds: Some(6) };
    let when = When { step: Some(2), ..When::default() };
    let world = World::with_script(Script::default().with_fault(Rule { when, fault, times: Some(1) }));
    // Whatever is in use here is more than that.
    let config = std::fs::read_to_string(world.env.config_file()).unwrap();
    world.env.write_config(&format!("{config}\n[ceiling]\nmemory_percent = 1\n")).unwrap();
    let plan = Plan::new("land = \"auto\"\nconcurrency = 2\nhold = \"4h\"");
    let plan = plan.agent_arguments(&["--resume", "{resume}"]);
    world.plan(&["one", "two"].into_iter().fold(plan, |plan, id| {
        plan.task(
            id,
            &format!("write parts/{id}.txt \"part {id}\\n\"\nrun \"true\""),
            &format!("writes = [\"parts/{id}.txt\"]"),
        )
    }));
    let run = world.run(&["run", "--yes"]);
    run.ends(0).says("the memory is almost full").says("it is parked until its limit ends");

    world.all_are("landed");
    for id in ["one", "two"] {
        let task = world.task(id);
        // The plan allows no second try, so none was used.
        assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    }
    // Nothing was asked for twice but what was refused.
    let requests = world.provider.model_requests();
    let asked = [1, 2, 3].map(|step| requests.iter().filter(|entry| entry.step == Some(step)).count());
    assert_eq!((asked, world.provider.bill().total.refused), ([2, 3, 2], 1));
    world.nothing_is_left();
}

/// The clock was hours ahead when the account closed, and has been set right before the next engine.
#[test]
fn what_waits_by_a_clock_that_was_set_back_is_tried_at_once() {
    let world = refused_for_long_once();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let journal = Journal::open(world.homes()[0].join("journal.db")).unwrap();
    let mut last = None;
    let found = journal.replay(0, |_, entry: Entry| {
        last = Some(entry).filter(|entry| entry.body.contains("account_closed")).or(last.take());
        Ok::<_, outlast_journal::Error>(())
    });
    found.unwrap();
    let mut closed = last.expect("the account is closed");
    let ahead = closed.at.plus(Duration::from_secs(3 * 3600));
    let mut body: serde_json::Value = serde_json::from_str(&closed.body).unwrap();
    let until = body["account_closed"]["until"].as_i64().expect("when it opens");
    body["account_closed"]["until"] = (until + 3 * 3_600_000).into();
    (closed.revision, closed.at, closed.body) = (closed.revision + 1, ahead, body.to_string());
    journal.append(vec![closed]).unwrap();
    drop(journal);
    // Within the time that a test may take, and not in three hours.
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    world.nothing_is_left();
}

#[test]
fn a_run_that_waits_is_left_waiting_by_the_next_one_and_is_what_status_shows() {
    let world = refused_for_long_once();
    world.plan(&Plan::new("land = \"auto\"").part("one"));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let first = world.status();
    let quick = "land = \"auto\"\n\n[agent.quick]\nkind = \"command\"\n\
                 command = [\"sh\", \"-c\", \"mkdir -p parts && echo part quick > parts/quick.txt\"]";
    let keys = "writes = [\"parts/quick.txt\"]\nagent = \"quick\"";
    world.plan(&Plan::new(quick).task("quick", "", keys));
    world.run(&["run", "--yes"]).ends(0).says("goes on here too");
    // The newest is over: what is not is what there is to see.
    let shown = world.status();
    assert_eq!((&shown["run"], &shown["state"]), (&first["run"], &"parked".into()), "{shown:#}");
    assert_eq!(shown["tasks"][0]["reset_at"], first["tasks"][0]["reset_at"], "{shown:#}");
    world.nothing_is_left();
}
