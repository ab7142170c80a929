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
fn only_a_code_span_after_the_name_is_a_command() {
    assert_eq!(step("rename `a` to `b`"), ("rename `a` to `b`".into(), None));
    assert_eq!(step("see `a`: `b`"), ("see `a`".into(), Some("b".into())));
    assert_eq!(step("x: ``"), ("x: ``".into(), None));
    assert_eq!(step("`"), ("`".into(), None));
    assert_eq!(step("a: ` `"), ("a".into(), Some(" ".into())));
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
    }
}

#[test]
fn crlf_and_bom_change_nothing() {
    let text = "---\nwrites: [a]\n---\nOne\n\n- [ ] s: `t`\n";
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let (unix, windows) = (task("a.md", text).0, task("a.md", &windows).0);
    assert_eq!(format!("{unix:?}"), format!("{windows:?}"));
}
