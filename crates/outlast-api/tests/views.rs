//! Every view as scripts see it: a name that changes here breaks somebody's script.

use std::collections::BTreeMap;

use outlast_api::{
    AccountView, Act, Acted, ActedTask, BudgetView, Check, CheckView, Clean, CleanItem, Diagnostic, Diff, Doctor,
    EdgeView, EngineView, ExitCode, FileChange, FindingView, LogLine, Noted, ReachedView, RunLine, Runs, Severity,
    Status, TaskView, TokensView, WindowView, schema,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

const AT: &str = "2026-11-29T14:00:00Z";

fn text(text: &str) -> String {
    text.to_owned()
}

/// Reads a view back from its own JSON: faces use the same types.
#[expect(clippy::unwrap_used, reason = "only tests call it")]
fn round<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(view: T) -> T {
    let json = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).unwrap(), view);
    view
}

/// A task of which nothing is known yet.
fn untouched() -> TaskView {
    TaskView {
        id: text("b"),
        state: text("pending"),
        cause: None,
        detail: None,
        fix: Vec::new(),
        left_out: Vec::new(),
        put_away: Vec::new(),
        reset_at: None,
        attempts: 0,
        turns: 0,
        resumed_by: None,
        tokens: TokensView::default(),
        usd: None,
        workspace: None,
        branch: None,
        checkpoint: None,
        verify: None,
        landed: None,
        was_there: false,
        off_target: false,
    }
}

#[test]
fn status_knows_what_it_does_not_know() {
    let known = TaskView {
        id: text("文档.B"),
        state: text("parked"),
        cause: Some(text("window_quota")),
        detail: Some(text("the 5 h window of `max` is used up")),
        fix: vec![text("outlast retry a")],
        left_out: Vec::new(),
        put_away: Vec::new(),
        reset_at: Some(text(AT)),
        attempts: 2,
        turns: 14,
        resumed_by: Some(text("session")),
        tokens: TokensView {
            input: Some(1),
            cache_write: Some(2),
            cache_read: Some(3),
            output: Some(4),
            spent_again: Some(0),
            unmetered: 3,
        },
        usd: Some(0.25),
        workspace: Some(text("/state/workspaces/r/t")),
        branch: Some(text("outlast/t")),
        checkpoint: Some(text("c0ffee")),
        verify: Some(text("passed")),
        landed: None,
        was_there: false,
        off_target: false,
    };
    let windows = vec![
        WindowView {
            kind: Some(text("window_quota")),
            used: Some(9),
            limit: Some(10),
            reset_at: Some(text(AT)),
            state: text("closed"),
        },
        WindowView { kind: None, used: None, limit: None, reset_at: None, state: text("open") },
    ];
    insta::assert_json_snapshot!(round(Status {
        schema: schema("status"),
        run: text("migrate-7f3a"),
        state: text("parked"),
        engine: Some(EngineView { pid: 42 }),
        started_at: text(AT),
        base: text("abc"),
        target: text("outlast/migrate-7f3a"),
        counts: BTreeMap::from([(text("parked"), 1), (text("pending"), 1)]),
        tasks: vec![known, untouched()],
        accounts: vec![AccountView { name: text("max"), windows }],
        budget: BudgetView {
            usd_used: None,
            usd_limit: Some(40.0),
            tokens_used: 10,
            unmetered: 3,
            tokens_limit: Some(4),
            usd_left: Some(0.5),
            tokens_counted: 4,
            tokens_left: Some(0),
            unpriced: 1,
            reached: Some(ReachedView { lack: text("usd"), next_usd: Some(0.75), next_tokens: 3 }),
        },
    }));
}

#[test]
fn runs_are_one_line_each() {
    let line = RunLine {
        run: text("migrate-7f3a"),
        repository: None,
        state: text("running"),
        started_at: text(AT),
        counts: BTreeMap::from([(text("landed"), 3)]),
        reset_at: None,
    };
    insta::assert_json_snapshot!(round(Runs { schema: schema("runs"), runs: vec![line] }));
}

#[test]
fn check_shows_findings_edges_and_waves() {
    let placed = FindingView {
        code: text("plan/unknown-need"),
        severity: Severity::Error,
        task: Some(text("b")),
        file: Some(text("outlast.toml")),
        line: Some(3),
        column: Some(10),
        message: text("task `b` needs `x`, which no task is"),
        why: text("The task would wait for ever."),
        fix: Some(text("did you mean `a`?")),
    };
    let bare = FindingView {
        severity: Severity::Hint,
        task: None,
        file: None,
        line: None,
        column: None,
        fix: None,
        ..placed.clone()
    };
    insta::assert_json_snapshot!(round(CheckView {
        schema: schema("check"),
        plan: text("migrate"),
        runnable: false,
        approval: None,
        commands: vec!["cargo test".into()],
        approved: false,
        findings: vec![placed, bare],
        edges: vec![EdgeView {
            from: text("a"),
            to: text("b"),
            reason: text("scope"),
            detail: Some(text("src/** meets src/x"))
        }],
        waves: vec![vec![text("a")], vec![text("b")]],
        critical_path: vec![text("a"), text("b")],
        estimate: None,
    }));
}

#[test]
fn acts_are_told_task_by_task() {
    insta::assert_json_snapshot!(
        "acts_asked_for",
        [
            round(Act::Pause { run: text("r") }),
            round(Act::Resume { run: text("r") }),
            round(Act::TryNow { run: text("r") }),
            round(Act::Stop { run: text("r") }),
            round(Act::Budget { run: text("r"), usd_nanos: Some(60_000_000_000), tokens: None }),
            round(Act::Land { run: text("r"), tasks: vec![text("a")] }),
            round(Act::Discard { run: text("r"), tasks: vec![] }),
        ]
    );
    let landed = ActedTask {
        id: text("a"),
        state: text("landed"),
        landed: Some(text("c0ffee")),
        by_hand: true,
        landed_with: None,
        refused: None,
        cause: None,
        kept: None,
        archive: None,
        get_back: None,
        lost: None,
        put_away: Vec::new(),
        dependants: Vec::new(),
    };
    let refused = ActedTask {
        id: text("b"),
        state: text("done"),
        landed: None,
        by_hand: false,
        landed_with: None,
        refused: Some(text("main is checked out in /x: run `git merge --ff-only outlast/r` there")),
        cause: Some(text("target_checked_out")),
        kept: None,
        archive: None,
        get_back: None,
        lost: None,
        put_away: Vec::new(),
        dependants: Vec::new(),
    };
    insta::assert_json_snapshot!(
        "act",
        round(Acted { schema: schema("act"), run: text("r"), tasks: vec![landed, refused] })
    );
}

#[test]
fn log_lines_stand_alone() {
    insta::assert_json_snapshot!(round(LogLine {
        schema: schema("log"),
        at: text(AT),
        run: text("r"),
        task: None,
        event: text("run_started"),
        data: serde_json::json!({ "base": "abc" }),
        outputs: None,
    }));
}

#[test]
fn a_diff_tells_what_is_outside_the_scope() {
    let file = FileChange {
        path: text("文 档.md"),
        kind: text("added"),
        in_scope: false,
        in_worktree: false,
        added: Some(3),
        removed: None,
    };
    insta::assert_json_snapshot!(round(Diff {
        state: text("running"),
        kept_at: Some(text("2026-07-31T10:00:00Z")),
        workspace: Some(text("/home/ann/.local/state/outlast/w/a")),
        schema: schema("diff"),
        run: text("r"),
        task: text("a"),
        base: text("b0"),
        commit: text("c0"),
        files: vec![file],
        left_out: Vec::new(),
        put_away: Vec::new(),
        patch: text("diff --git …"),
    }));
}

#[test]
fn doctor_and_clean_list_what_they_saw() {
    let check = Check {
        name: text("git"),
        state: text("warning"),
        detail: text("git 2.38"),
        fix: Some(text("install git 2.39 or newer")),
    };
    insta::assert_json_snapshot!("doctor", round(Doctor { schema: schema("doctor"), checks: vec![check] }));
    let item = CleanItem {
        kind: text("workspace"),
        run: text("r"),
        task: text("a"),
        path: text("/state/w"),
        bytes: 1,
        kept: Some(text("not landed")),
    };
    insta::assert_json_snapshot!("clean", round(Clean { schema: schema("clean"), removed: false, items: vec![item] }));
}

#[test]
fn what_an_agent_noted_is_steps_and_notes() {
    insta::assert_json_snapshot!(
        "noted",
        round(Noted {
            schema: schema("noted"),
            task_id: text("pay"),
            completed_steps: vec![text("imports")],
            remaining_steps: vec![text("tests")],
            notes: vec![text("the retry is in the caller")],
        })
    );
}

#[test]
fn a_failure_says_what_why_and_what_to_do() {
    let told = Diagnostic::error("repository/no-commit", ExitCode::Repository, "`/r` has no commit")
        .because("HEAD points to refs/heads/main, which does not exist")
        .fix("git commit --allow-empty -m start")
        .about("migrate-7f3a");
    insta::assert_json_snapshot!(round(told.into_failure()));
    let older = r#"{"code":"c","severity":"error","what":"w","why":[],"fix":[],"exit":"plan"}"#;
    assert_eq!(serde_json::from_str::<Diagnostic>(older).unwrap().related, Vec::<String>::new());
}
