//! Markdown task files: front matter, steps, goals, and what is no task.

use super::*;

fn task(name: &str, text: &str) -> (TaskLayer, Vec<Finding>) {
    let (task, findings) = read(&Source::new(name, text));
    (task.expect("a task"), findings)
}

fn steps(task: &TaskLayer) -> Vec<(&str, Option<&str>)> {
    task.steps.iter().map(|step| (step.name.value.as_str(), step.command.as_deref())).collect()
}

#[test]
fn steps_leave_the_text_and_the_rest_is_the_goal() {
    let text = "---\nwrites: [a]\n---\n# Move it\n\nDo this.\n\n```\n- [ ] no: `step`\n```\n\n## Steps\n\n\
        - [ ] imports: `! grep -q x y`\n- [x] odd: `` echo `date` ``\n  - [ ] look again\n* [ ] `make test`\n\
        - [ ] long one:\n  `make\n  all`\n\nThe end.\n";
    let (task, findings) = task("plans/p/a.md", text);
    assert_eq!(
        steps(&task),
        [
            ("imports", Some("! grep -q x y")),
            ("odd", Some("echo `date`")),
            ("look again", None),
            ("make test", Some("make test")),
            ("long one", Some("make all")),
        ]
    );
    let goal = task.goal.unwrap().value;
    assert_eq!(goal, "# Move it\n\nDo this.\n\n```\n- [ ] no: `step`\n```\n\n\nThe end.");
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].code, findings[0].at.as_ref().unwrap().line), (Code::TickedStep, 15));
}

#[test]
fn a_command_is_found_where_people_write_it() {
    for (item, name, command) in [
        ("imports: `! grep -q x y`", "imports", "! grep -q x y"),
        ("imports:`true`", "imports", "true"),
        ("**imports:** `true`", "imports", "true"),
        ("**imports**: `true`.", "imports", "true"),
        ("imports（`true`）", "imports", "true"),
        ("\u{5bfc}\u{5165}：`true`", "\u{5bfc}\u{5165}", "true"),
        ("imports - `true`", "imports", "true"),
        ("imports \u{2013} `true`", "imports", "true"),
        ("imports \u{2014} `true`", "imports", "true"),
        ("imports -> `true`", "imports", "true"),
        ("imports => `true`", "imports", "true"),
        ("imports \u{2192} `true`", "imports", "true"),
        ("imports = `true`", "imports", "true"),
        ("no old imports (`true`)", "no old imports", "true"),
        ("no old imports (`true`).", "no old imports", "true"),
        ("`make test`", "make test", "make test"),
        ("`true`.", "true", "true"),
        ("tests pass `cargo test -q`", "tests pass cargo test -q", "cargo test -q"),
        ("`cargo test -q` passes", "cargo test -q passes", "cargo test -q"),
        ("run `./check.sh` at the end", "run ./check.sh at the end", "./check.sh"),
        ("tests: `cargo test -q` exits with 0", "tests", "cargo test -q"),
        ("imports: `true` (once it is done)", "imports", "true"),
        ("see `a`: `b`", "see `a`", "b"),
        (
            "Move `Client` to httpx \u{2014} `! grep -q requests a.py`",
            "Move `Client` to httpx",
            "! grep -q requests a.py",
        ),
        ("odd: `` echo `date` ``", "odd", "echo `date`"),
        ("a: ` `", "a", " "),
    ] {
        let step = Step::read(item, None);
        assert_eq!((step.name.as_str(), step.command.as_deref(), step.unclear), (name, Some(command), None), "{item}");
    }
}

#[test]
fn code_that_is_no_command_stays_text_and_is_told_where_it_might_be_one() {
    for (item, unclear) in [
        ("rename `a` to `b`", Some("b")),
        ("remove `import requests` from the client", Some("import requests")),
        ("remove `legacy_client`", Some("legacy_client")),
        ("remove `legacy_client` everywhere", None),
        ("replace `make all` by `just all`", Some("just all")),
        ("rename a-`b`", Some("b")),
        ("x: ``", None),
        ("`", None),
        ("look again", None),
    ] {
        let step = Step::read(item, None);
        assert_eq!((step.name.as_str(), step.command, step.unclear.as_deref()), (item, None, unclear), "{item}");
    }
    let (task, findings) = task("a.md", "---\nwrites: [a]\n---\nDo it.\n\n- [ ] one: `true`\n- [ ] remove `old`\n");
    assert_eq!(steps(&task), [("one", Some("true")), ("remove `old`", None)]);
    assert_eq!((findings[0].code, findings[0].at.as_ref().unwrap().line), (Code::StepCommand, 7));
    assert_eq!(findings[0].fix.as_deref(), Some("if it is one, write it as: name: `old`"));
}

#[test]
fn a_command_may_stand_below_its_step_and_the_list_may_be_numbered() {
    let text = "---\nwrites: [a]\n---\nDo it.\n\n1. [ ] **imports**\n   `! grep -q x y`\n2) [ ] tests:\n   ```sh\n   set -e\n\n   \
        cargo test\n   ```\n- [ ] rust\n  ```rust\n  fn a() {}\n  ```\n";
    let (task, findings) = task("a.md", text);
    assert_eq!(
        steps(&task),
        [("imports", Some("! grep -q x y")), ("tests", Some("set -e\ncargo test")), ("rust", None)]
    );
    assert_eq!(task.goal.unwrap().value, "Do it.\n\n  ```rust\n  fn a() {}\n  ```");
    assert_eq!(findings, []);
}

#[test]
fn k13_ids_are_file_stems_and_only_tasks_count() {
    let text =
        "---\n\nneeds: [Fix-huz.1, Fix-huz.10, 007, 1.10]\nverify: [\"cargo test\"]\n---\nDo it. Task 005 first.\n";
    let (task, findings) = task("plans/x/Fix-huz.11.md", text);
    assert_eq!(task.id.as_str(), "Fix-huz.11");
    let needs: Vec<_> = task.needs.as_ref().unwrap().value.iter().map(|need| need.value.as_str()).collect();
    assert_eq!(needs, ["Fix-huz.1", "Fix-huz.10", "007", "1.10"]);
    assert_eq!(findings, []);
    for other in ["# Epic\n\ntext\n", "---\nname: epic\nstatus: open\n---\nx", "---\n---\nx", "", "---\ntext\n\nmore"] {
        let (none, findings) = read(&Source::new("plans/x/epic.md", other));
        assert!(none.is_none(), "{other:?}");
        assert_eq!(findings.len(), 1, "{other:?}");
        assert_eq!(findings[0].code, Code::NotATask, "{other:?}");
    }
}

/// As it was seen in the field, with its comments shortened.
const SEEN: &str = "---\nname: Trigger UI\nstatus: open\ncreated: 2026-02-18T20:28:23Z\nupdated: 2026-02-18T20:28:23Z\n\
    github: \"\"\ndepends_on: [PizzaPi-huz.1, PizzaPi-huz.10, 007]\nparallel: false\nconflicts_with: []\n---\n\n# Task: Trigger UI\n\n\
    ## Dependencies\n- [ ] Task 005 is done\n";

#[test]
fn k13_a_task_file_of_another_tool_is_read_and_what_is_not_read_of_it_is_told() {
    let (task, findings) = task("plans/x/PizzaPi-huz.11.md", SEEN);
    assert_eq!(task.id.as_str(), "PizzaPi-huz.11");
    let needs: Vec<_> = task.needs.as_ref().unwrap().value.iter().map(|need| need.value.as_str()).collect();
    assert_eq!(needs, ["PizzaPi-huz.1", "PizzaPi-huz.10", "007"]);
    assert_eq!(steps(&task), [("Task 005 is done", None)]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!((findings[0].code, findings[0].at.as_ref().unwrap().line), (Code::ForeignKey, 2));
    let told = "not read: `name`, `status`, `created`, `updated`, `github`, `parallel`, `conflicts_with`";
    assert_eq!(findings[0].message, told);

    // One that is over is told; a key that nobody knows is an error here too, and so is an order that is given twice.
    for (from, to, code) in [
        ("status: open", "status: closed", Code::StatusInPlan),
        ("status: open", "statsu: open", Code::UnknownKey),
        ("parallel: false", "needs: [a]", Code::BadValue),
    ] {
        let (_, findings) = read(&Source::new("a.md", &SEEN.replace(from, to)));
        assert!(findings.iter().any(|finding| finding.code == code), "{to}: {findings:?}");
    }
    // Beside our own keys alone, theirs are a slip.
    let (_, findings) = read(&Source::new("a.md", "---\nname: x\nwrites: [a]\n---\nx"));
    assert_eq!(findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), [Code::UnknownKey]);
}

#[test]
fn k07_only_the_first_pair_of_fences_counts() {
    let (task, _) = task("a.md", "---\nwrites: [x]\n---\nText\n\n---\nneeds: [y]\n---\n");
    assert!(task.needs.is_none());
    assert_eq!(task.goal.unwrap().value, "Text\n\n---\nneeds: [y]\n---");
}

#[test]
fn a_task_that_is_broken_is_an_error_and_not_overlooked() {
    for (text, code) in [
        ("---\nwrites: [a\n---\nx", Code::Syntax),
        ("---\nwrites: \"a: b\n---\nx", Code::Syntax),
        ("---\nwrites: {a\n---\nx", Code::Syntax),
        ("---\nwrites: [a]\nx", Code::Syntax),
        ("---\nwirtes: [a]\n---\nx", Code::UnknownKey),
        ("---\nwrites: &a [b]\nreads: *a\n---\nx", Code::Syntax),
        ("---\nwrites: [a]\nwrites: [b]\n---\nx", Code::Syntax),
        ("---\nwrites: a, b\n---\nx", Code::WrongType),
        ("---\ngoal: one\n---\ntwo", Code::BadValue),
        ("---\nmode: read\n---\nx", Code::NotSupportedYet),
    ] {
        let (_, findings) = read(&Source::new("a.md", text));
        assert_eq!(findings.iter().map(|f| f.code).collect::<Vec<_>>(), [code], "{text:?}");
        assert!(findings.iter().all(|finding| !finding.message.trim().is_empty()), "{text:?} is not told why");
    }
}

#[test]
fn crlf_and_bom_change_nothing() {
    let text = "---\nwrites: [a]\n---\nOne\n\n- [ ] s: `t`\n";
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let (unix, windows) = (task("a.md", text).0, task("a.md", &windows).0);
    assert_eq!(format!("{unix:?}"), format!("{windows:?}"));
}
