//! What a program that is no known CLI says of its provider last: cases A01, A09, A13, A20 and D02 as `command` agents meet
//! them, with a login of their own.

use serde_json::Value;

use crate::world::{Plan, World, text};

/// A task without a try to spare, whose agent does this in its first attempt and its part in each other.
fn first(does: &str, keys: &str) -> Plan {
    let script = format!(
        "case $OUTLAST_ATTEMPT in *one.1) {does};; esac\nmkdir -p parts; echo 'part one' > parts/one.txt; echo All done."
    );
    let agent = format!(
        "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\naccounts = [\"main\"]\n\
         command = [\"sh\", \"-c\", \'\'\'\n{script}\'\'\']"
    );
    Plan::new(&agent).task(
        "one",
        "say \"it\"",
        &format!("writes = [\"parts/**\"]\nagent = \"own\"\nretries = 0\n{keys}"),
    )
}

/// Runs it to its end: the first attempt ended by this cause, used no try, and the second one landed.
fn goes_on(does: &str, keys: &str, cause: &str) {
    let world = World::new();
    world.plan(&first(does, keys));
    world.run(&["run", "--yes"]).ends(0).says(cause);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2, "{does}");
    let log = world.run(&["log", "one", "--json"]).ends(0);
    let events: Vec<Value> = log.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| events.iter().filter(|record| record["event"] == event).count();
    assert_eq!((of("attempt_started"), of("attempt_ended")), (2, 2), "{events:#?}");
    world.nothing_is_left();
}

/// Runs it to its end: the first attempt is the last one, and failed with this cause.
fn fails(does: &str, cause: &str, code: i32) {
    let world = World::new();
    world.plan(&first(does, ""));
    world.run(&["run", "--yes"]).ends(code);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &cause.into()), "{does}: {task:#}");
    assert_eq!(task["attempts"], 1, "{task:#}");
    world.nothing_is_left();
}

const THROTTLED: &str = "ThrottlingException: Too many tokens, please wait before trying again.";

#[test]
fn a20_an_exit_of_0_without_a_change_after_a_providers_error_is_that_error() {
    goes_on(&format!("echo looking; echo '{THROTTLED}'; exit 0"), "", "minute_limit");
    goes_on(&format!("echo '{THROTTLED}' >&2; exit 0"), "", "minute_limit");
    goes_on("echo '529 overloaded_error: Overloaded'; exit 0", "", "overload");
    // What it wrote outside its scope is no change of its own.
    goes_on(&format!("echo notes > notes.txt; echo '{THROTTLED}'; exit 0"), "", "minute_limit");
    fails("echo 'Invalid API key · Please run /login'; exit 0", "auth", 11);
    fails("echo 'Credit balance is too low'; exit 0", "billing", 11);
    fails("echo 'I changed nothing: the file says Too many requests'; exit 0", "gave_up", 5);
}

#[test]
fn a20_a_limit_said_at_an_exit_of_0_parks_the_task_and_closes_its_account() {
    let world = World::new();
    let resets = "$(date -u -d '+5 seconds' '+%Y-%m-%dT%H:%M:%SZ')";
    world.plan(&first(&format!("echo \"You've hit your limit · resets {resets}\"; exit 0"), ""));
    world.run(&["run", "--yes", "--no-wait"]).ends(6);
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"parked".into(), &"window_quota".into()), "{task:#}");
    let status = world.status();
    let window = &status["accounts"][0]["windows"][0];
    assert_eq!((&window["state"], &window["kind"]), (&"closed".into(), &"window_quota".into()), "{status:#}");
    assert_eq!(text(&window["reset_at"]), text(&task["reset_at"]), "{status:#}");
    world.run(&["resume"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2);
    world.nothing_is_left();
}

#[test]
fn a20_with_a_change_its_work_is_looked_at() {
    let world = World::new();
    let does = format!("mkdir -p parts; echo 'part one' > parts/one.txt; echo '{THROTTLED}'; exit 0");
    world.plan(&first(&does, ""));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1);
}

#[test]
fn a01_a09_an_exit_of_1_after_a_providers_error_uses_no_try() {
    goes_on("mkdir -p parts; printf par > parts/one.txt; echo 'Connection closed mid-response'; exit 1", "", "network");
    goes_on("printf half; echo 'API Error: Connection closed mid-response' >&2; exit 1", "", "network");
    let billing_cycle = "403 You have reached your usage limit for this billing cycle.";
    goes_on(&format!("mkdir -p parts; printf par > parts/one.txt; echo '{billing_cycle}'; exit 1"), "", "window_quota");
    fails("echo 'Error: connect ECONNREFUSED 127.0.0.1:5432'; exit 1", "crash", 5);
    // In a log, before a trace, and with more behind it; at an exit of 0 as well.
    for code in [0, 1] {
        goes_on(&format!("echo '[agent] ERROR Premature close'; echo '    at x (y:1:1)'; exit {code}"), "", "network");
        let says = "API Error: 529 Overloaded' 'The session was aborted.";
        goes_on(&format!("printf '%s\\n' '{says}'; exit {code}"), "", "overload");
    }
    goes_on("printf '%s\\n' 'API Error: 529 Overloaded' 'sorry about that'; exit 1", "", "overload");
}

#[test]
fn a13_one_that_asks_a_closed_account_again_and_again_is_ended_early_and_parked() {
    let asks = "while :; do echo 'Error: 429 Too Many Requests' >&2; sleep 0.05; done";
    goes_on(asks, "timeout = \"10m\"\nidle_timeout = \"10m\"", "minute_limit");
    // One that waits in silence is not at fault either.
    goes_on(
        "echo 'Error: 429 Too Many Requests, retrying in 600 s'; sleep 600",
        "idle_timeout = \"1s\"",
        "minute_limit",
    );
}

/// Says a line again and again, in half a minute more often than any program that gets on.
fn says_again(line: &str, stream: &str) -> String {
    format!("n=0; while :; do n=$((n+1)); echo \"{line}\" {stream}; sleep 0.3; done")
}

#[test]
fn a13_one_that_retries_for_a_limit_by_itself_is_ended_early_and_parked_in_whatever_words_it_says_so() {
    std::thread::scope(|scope| {
        for (line, stream, cause) in [
            ("attempt $n: 429 Too Many Requests, retrying in 3s", "", "minute_limit"),
            ("Retry $n/999 after error: 429 {\\\"error\\\":{\\\"message\\\":\\\"slow down\\\"}}", "", "minute_limit"),
            ("Rate limited. Waiting 4 s before retry", ">&2", "minute_limit"),
            ("[12:03:11] WARN retrying ($n/999) after 429", ">&2", "minute_limit"),
            ("Retry $n: You have hit your session limit", "", "window_quota"),
        ] {
            let keys = "timeout = \"10m\"\nidle_timeout = \"10m\"";
            scope.spawn(move || goes_on(&says_again(line, stream), keys, cause));
        }
        // It ran out of time before that was seen, and is not at fault either.
        scope.spawn(|| {
            let asks = says_again("attempt $n: 429 Too Many Requests, retrying in 3s", "");
            goes_on(&asks, "timeout = \"4s\"", "minute_limit");
        });
    });
}

#[test]
fn a13_one_that_asks_through_the_gateway_may_print_of_limits_for_as_long_as_it_likes() {
    let gets_on = |says: &str| {
        let world = World::new();
        let script = format!("$0 __agent $1 && n=0; while [ $n -lt 90 ]; do n=$((n+1)); {says}; sleep 0.3; done");
        let agent = format!(
            "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\naccounts = [\"main\"]\n\
             command = [\"sh\", \"-c\", '''{script}''', {:?}, \"{{goal_file}}\"]",
            env!("CARGO_BIN_EXE_outlast")
        );
        let keys = "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 0";
        world.plan(&Plan::new(&agent).task("one", "write parts/one.txt \"part one\\n\"", keys));
        world.run(&["run", "--yes"]).ends(0);
        world.all_are("landed");
        assert_eq!(world.task("one")["attempts"], 1, "{says}");
        world.nothing_is_left();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| gets_on("echo \"attempt $n: 429 Too Many Requests, retrying in 3s\""));
        // What a client shows of the limiter that the agent has written.
        scope.spawn(|| gets_on("echo \"< HTTP/1.1 429 Too Many Requests\" >&2"));
    });
}

#[test]
fn a13_one_that_logs_its_work_as_errors_is_not_ended_for_what_it_has_met_before() {
    let world = World::new();
    let refused = "for n in 1 2 3; do for m in 1 2 3 4 5 6 7 8 9 10 11; do echo \"429 Too Many Requests\" >&2; done";
    let script =
        format!("{refused}; sleep 0.3; echo \"INFO step $n: edited src/m$n.c\" >&2; done; echo done > one.txt");
    let agent =
        format!("land = \"auto\"\n\n[agent.own]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''{script}''']");
    let keys = "writes = [\"one.txt\"]\nagent = \"own\"\nretries = 0\nverify = [\"test -s one.txt\"]";
    world.plan(&Plan::new(&agent).task("one", "say \"it\"", keys));
    world.run(&["run", "--yes"]).ends(0);
    assert_eq!(world.task("one")["attempts"], 1);
    world.nothing_is_left();
}

#[test]
fn d02_a_program_that_waits_for_its_input_never_began() {
    for says in [
        "'Reading additional input from stdin...' >&2",
        "'Waiting for input on stdin' >&2",
        "'Waiting for input on stdin'",
    ] {
        let world = World::new();
        world.plan(&first(&format!("echo {says}; exec sleep 1000"), "idle_timeout = \"2s\""));
        world.run(&["run", "--yes"]).ends(5);
        let task = world.task("one");
        assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"startup".into()), "{task:#}");
        assert!(task["detail"].as_str().unwrap().contains("standard input"), "{task:#}");
        world.nothing_is_left();
    }
}

#[test]
fn d05_one_that_asks_a_person_before_it_has_begun_is_told_with_its_question_and_not_tried_as_often() {
    let fails = |says: &str, cause: &str, attempts: u64| {
        let world = World::new();
        let keys = "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 3\nidle_timeout = \"1s\"";
        let agent =
            format!("[agent.own]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", '''\n{says}; exec sleep 1000''']");
        world.plan(&Plan::new(&agent).task("one", "say \"it\"", keys));
        world.run(&["run", "--yes"]).ends(5);
        let task = world.task("one");
        assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &cause.into()), "{says}: {task:#}");
        assert_eq!(task["attempts"], attempts, "{says}: {task:#}");
        world.nothing_is_left();
        text(&task["detail"])
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let told = fails("echo; echo 'Do you trust the files in this folder? (y/n)'", "startup", 2);
            assert!(told.contains("`Do you trust the files in this folder? (y/n)`"), "{told}");
            assert!(told.contains("[agent.own]"), "what helps: {told}");
        });
        scope.spawn(move || {
            let told = fails("printf 'Password: ' >&2", "startup", 2);
            assert!(told.contains("`Password:`"), "{told}");
        });
        scope.spawn(move || {
            let told = fails("echo; echo ' '", "startup", 2);
            assert!(told.contains("never began") && told.contains("idle_timeout"), "{told}");
        });
        // Whoever has done something, or says something else, has begun.
        scope.spawn(move || {
            fails("mkdir -p parts; date +%N > parts/one.txt; echo 'Go on? (y/n)'", "timeout", 4);
        });
        scope.spawn(move || {
            fails("echo 'Shall I? I do.'", "timeout", 4);
        });
    });
}

#[test]
fn a06_whoever_goes_on_after_a_limit_is_told_what_is_made_and_gets_its_session() {
    for (resume, rung) in [("{resume}", "session"), ("none", "hand_over")] {
        let world = World::new();
        let script = "case $OUTLAST_ATTEMPT in *one.1) mkdir -p artifacts; echo png > artifacts/a.png; \
                      echo '{\"type\":\"system\",\"session_id\":\"s-1\"}'; \
                      echo \"You've hit your limit\"; exit 1;; esac; \
                      cat \"$OUTLAST_HANDOVER_FILE\" > told.txt; echo \"$0\" > session.txt";
        let agent = format!(
            "land = \"auto\"\n\n[agent.own]\nkind = \"command\"\naccounts = [\"main\"]\n\
             command = [\"sh\", \"-c\", \'\'\'{script}\'\'\', \"{resume}\"]"
        );
        let keys = "writes = [\"**\"]\nagent = \"own\"\nretries = 0";
        world.plan(&Plan::new(&agent).task("one", "say \"it\"", keys));
        world.run(&["run", "--yes"]).ends(0);
        let task = world.task("one");
        assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &rung.into()), "{task:#}");
        let landed = |path: &str| world.repo.text(&["show", &format!("{}:{path}", world.target())]).unwrap();
        let told = landed("told.txt");
        assert_eq!(told.matches("artifacts/a.png (added)").count(), 1, "{told}");
        assert_eq!(landed("artifacts/a.png"), "png", "it was not made again");
        if rung == "session" {
            assert_eq!(landed("session.txt"), "s-1");
        }
        // Both went past the gateway: what was paid again is not known, and never zero.
        assert_eq!(task["tokens"]["spent_again"], Value::Null, "{task:#}");
    }
}

#[test]
fn a06_whoever_goes_on_is_told_of_files_that_git_ignores_and_a_killed_attempt_has_made() {
    for resume in ["{resume}", "none"] {
        let world = World::new();
        world.repo.write(".gitignore", "*.png\ncache.log\nnode_modules/\n").unwrap();
        world.repo.write("tracked.txt", "1\n").unwrap();
        world.repo.git(&["add", "-A"]).unwrap();
        world.repo.git(&["commit", "--quiet", "-m", "ignores"]).unwrap();
        let script = "case $OUTLAST_ATTEMPT in *one.1) mkdir -p artifacts node_modules; echo png > artifacts/a.png; \
                      echo x > node_modules/x.js; echo '{\"type\":\"system\",\"session_id\":\"s-1\"}'; \
                      echo \"You've hit your limit\"; exit 1;; esac; cat \"$OUTLAST_HANDOVER_FILE\" > told.txt";
        let agent = format!(
            "land = \"auto\"\nsetup = [\"echo 1 > cache.log\"]\n\n[agent.own]\nkind = \"command\"\naccounts = [\"main\"]\n\
             command = [\"sh\", \"-c\", \'\'\'{script}\'\'\', \"{resume}\"]"
        );
        let keys = "writes = [\"**\"]\nagent = \"own\"\nretries = 0";
        world.plan(&Plan::new(&agent).task("one", "say \"it\"", keys));
        world.run(&["run", "--yes"]).ends(0);
        let told = world.repo.text(&["show", &format!("{}:told.txt", world.target())]).unwrap();
        assert!(told.contains("- artifacts/a.png") && told.contains("git ignores"), "{resume}: {told}");
        // What was there before the agent was, and what tools keep for themselves, is no work of it.
        assert!(!told.contains("cache.log") && !told.contains("node_modules"), "{resume}: {told}");
    }
}

#[test]
fn an_agent_that_takes_its_work_for_done_and_has_changed_nothing_is_tried_once_more() {
    let world = World::new();
    let agent = "[agent.own]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo All done.\"]";
    let keys = "writes = [\"parts/**\"]\nagent = \"own\"\nretries = 5";
    world.plan(&Plan::new(agent).task("one", "", keys));
    world.run(&["run", "--yes"]).ends(5);
    let task = world.task("one");
    assert_eq!((&task["cause"], &task["attempts"]), (&"gave_up".into(), &2.into()), "{task:#}");
    assert!(text(&task["detail"]).contains("changing anything; 2 attempts in a row ended so"), "{task:#}");
    world.nothing_is_left();
}
