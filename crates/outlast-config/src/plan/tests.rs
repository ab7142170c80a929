//! One refused plan per kind of bad input, as people see it; and what must work.

use proptest::prelude::*;

use super::*;
use crate::{Severity, approval_hash, content_hash};

fn project(text: &str) -> Checked {
    let project = Some(Source::new("outlast.toml", text));
    read_plan(&PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() }, None)
}

/// A plan with one agent, then the given text.
fn with_agent(text: &str) -> Checked {
    project(&format!("[agent.claude]\nkind = \"claude-code\"\n{text}"))
}

/// The errors of a plan that must be refused.
fn errors(checked: &Checked) -> String {
    assert_eq!(checked.plan, None);
    let errors = checked.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| format!("{finding}\n")).collect()
}

fn plan(checked: Checked) -> Plan {
    let errors: Vec<_> = checked.findings.iter().filter(|finding| finding.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    checked.plan.unwrap()
}

fn task(id: &str, more: &str) -> String {
    format!("[[task]]\nid = \"{id}\"\ngoal = \"Do it.\"\n{more}\n")
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    insta::assert_snapshot!(errors(&with_agent(&task("a", "wirtes = [\"src/**\"]"))));
}

#[test]
fn a_key_in_the_wrong_table_is_told_with_the_right_one() {
    let text = errors(&with_agent(
        &("[run]\nverify = [\"make\"]\ncommand = [\"x\"]\n".to_owned() + &task("a", "land = \"auto\"")),
    ));
    for told in [
        "`verify` is a key of a task and of `[defaults]`",
        "`command` is a key of `[agent.NAME]`",
        "`land` is a key of `[run]`",
    ] {
        assert!(text.contains(told), "{told}:\n{text}");
    }
}

#[test]
fn a_silence_nobody_asked_for_is_nobodys_mistake() {
    let warned =
        |keys: &str| with_agent(&task("a", keys)).findings.iter().any(|found| found.code == Code::IdleAboveTimeout);
    assert!(!warned("timeout = \"20s\""));
    assert!(warned("timeout = \"20s\"\nidle_timeout = \"1m\""));
}

#[test]
fn a_circle_is_named_whole() {
    let tasks = task("a", "needs = [\"c\"]") + &task("b", "needs = [\"a\"]") + &task("c", "needs = [\"b\"]");
    insta::assert_snapshot!(errors(&with_agent(&(tasks + &task("d", "needs = [\"d\"]")))));
}

#[test]
fn an_unknown_need_is_refused() {
    insta::assert_snapshot!(errors(&with_agent(&(task("models", "") + &task("client", "needs = [\"modles\"]")))));
}

#[test]
fn an_unknown_agent_is_refused() {
    insta::assert_snapshot!(errors(&with_agent(&(task("a", "agent = \"cloude\"") + "[defaults]\nagent = \"x\"\n"))));
    insta::assert_snapshot!("no_agent", errors(&project(&task("a", ""))));
}

#[test]
fn two_tasks_of_one_id_are_refused() {
    insta::assert_snapshot!(errors(&with_agent(&(task("a", "") + &task("b", "") + &task("a", "")))));
}

#[test]
fn a_scope_outside_the_repository_is_refused() {
    let scope = "writes = [\"/etc/**\", \"src/../../x\", \"C:/x\", \"ok/**\"]\nreads = [\"~/notes\"]";
    insta::assert_snapshot!(errors(&with_agent(&task("a", scope))));
}

#[test]
fn an_account_in_a_project_file_is_refused() {
    let text =
        "[account.mine]\nkey_env = \"K\"\n[agent.x]\nkind = \"claude-code\"\nbase_url = \"http://x\"\n[ceiling]\n";
    insta::assert_snapshot!(errors(&project(&(text.to_owned() + &task("a", "")))));
}

#[test]
fn a_credential_in_an_agents_environment_is_refused() {
    let agent = "[agent.x]\nkind = \"command\"\ncommand = [\"p\"]\nenv = { ANTHROPIC_BASE_URL = \"http://x\", https_proxy = \"x\", OUTLAST_KEY = \"x\", FOO = \"1\" }\n";
    insta::assert_snapshot!(errors(&project(&(agent.to_owned() + &task("a", "")))));
}

#[test]
fn keys_of_later_releases_are_refused_as_such() {
    let later = "mode = \"read\"\ndone_when = [\"x\"]\n[[stack]]\n";
    insta::assert_snapshot!(errors(&with_agent(&task("a", later))));
}

#[test]
fn broken_text_is_refused_at_its_place() {
    insta::assert_snapshot!(errors(&project("[run]\nconcurrency = \n[agent.x]\nkind = 'command\n")));
}

#[test]
fn values_of_the_wrong_kind_or_size_are_refused() {
    let text = "[run]\ntarget = \"a..b\"\nconcurrency = 0\nland = \"now\"\nbudget = { usd = -1, tokens = 0 }\n\
        [agent.a]\nkind = \"command\"\n[agent.b]\nkind = \"codex\"\ncommand = [\"x\"]\ninherit = [\"all\"]\n[agent.c]\n[agent.d]\nkind = \"claud-code\"\n\
        [defaults]\nagent = \"a\"\ntimeout = 20\nidle_timeout = \"5 minutes\"\nretries = 99\nverify = \"make\"\n";
    let tasks = task("t", "")
        + "[[task]]\nid = \"-x\"\ngoal = \"x\"\n[[task]]\nid = \"empty\"\ngoal = \" \"\n[[task]]\ngoal = \"no id\"\n";
    insta::assert_snapshot!(errors(&project(&(text.to_owned() + &tasks))));
}

#[test]
fn names_that_would_be_folders_elsewhere_are_refused() {
    let text = "[agent.\"../x\"]\nkind = \"codex\"\n[agent.One]\nkind = \"codex\"\n[agent.one]\nkind = \"command\"\n\
        command = [\"awk\", \"{print $1}\", \"{goalfile}\"]\n[defaults]\nagent = \"one\"\n";
    let checked = project(&(text.to_owned() + &task("a", "")));
    let warned = checked.findings.iter().filter(|finding| finding.code == crate::Code::UnknownPlaceholder).count();
    assert_eq!(warned, 1);
    insta::assert_snapshot!(errors(&checked));
}

#[test]
fn a_single_bracket_task_is_explained() {
    insta::assert_snapshot!(errors(&with_agent("[task]\nid = \"a\"\n")));
}

#[test]
fn crlf_and_bom_are_read_like_any_other_text() {
    let text = "[agent.claude]\nkind = \"claude-code\"\n".to_owned() + &task("a", "") + "goal2 = 1\n";
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(project(&text), project(&windows));
    let good = text.replace("goal2 = 1\n", "");
    let goal = good.replace("\"Do it.\"", "\"\"\"\nOne\nTwo\n\"\"\"");
    let windows = format!("\u{feff}{}", goal.replace('\n', "\r\n"));
    assert_eq!(plan(project(&windows)).tasks[0].goal, "One\nTwo");
}

#[test]
fn k02_k13_ids_of_any_script_dots_and_case_work() {
    let tasks =
        task("文档", "") + &task("Foo", "needs = [\"文档\"]") + &task("foo", "needs = [\"Foo\"]") + &task("huz.11", "");
    let plan = plan(with_agent(&tasks));
    let slugs: std::collections::BTreeSet<String> = plan.tasks.iter().map(|task| task.id.slug()).collect();
    assert_eq!(slugs.len(), 4);
    assert_eq!(plan.tasks[3].id.slug(), "huz.11");
    let wrong_case = with_agent(&(task("Foo", "") + &task("b", "needs = [\"foo\"]")));
    assert!(errors(&wrong_case).contains("did you mean `Foo`?"));
}

const TWIN_TOML: &str = r#"
[agent.claude]
kind = "claude-code"
[[task]]
id = "a"
goal = "First."
writes = ["src/a/**"]
[[task]]
id = "b.2"
goal = """
Do `this`:

1. now
"""
writes = ["src/b/**", "docs/*.md"]
reads = ["docs/http.md"]
needs = ["a"]
example = "docs/x.md"
output = { path = "report.md", max_words = 300 }
verify = ["pytest -q", "make 'all'"]
model = "sonnet"
timeout = "30m"
retries = 0
[task.steps]
imports = "! grep -q x y"
look = ""
tests = "pytest -q"
"#;

const TWIN_MARKDOWN: &str = r"---
# A comment.
writes: ['src/b/**', docs/*.md]
reads:
  - docs/http.md
needs: [a]
example: docs/x.md
output: {path: report.md, max_words: 300}
verify:
  - pytest -q
  - make 'all'
model: sonnet
timeout: 30m
retries: 0
---

Do `this`:

1. now

## Steps
- [ ] imports: `! grep -q x y`
- [ ] look
- [ ] tests: `pytest -q`
";

#[test]
fn toml_and_markdown_twins_are_one_plan() {
    let toml = plan(project(TWIN_TOML));
    let (agent, _) = TWIN_TOML.split_once("[[task]]").unwrap();
    let folder = Batch::Folder(vec![
        Source::new("plans/p/a.md", "---\nwrites: [src/a/]\n---\nFirst.\n"),
        Source::new("plans/p/b.2.md", TWIN_MARKDOWN),
        Source::new("plans/p/README.md", "# About these tasks\n"),
    ]);
    let project = Some(Source::new("outlast.toml", agent));
    let checked = read_plan(&PlanFiles { name: "p".into(), project, batch: folder, ignored: Vec::new() }, None);
    assert!(checked.findings.iter().any(|finding| finding.code == crate::Code::NotATask));
    let mut markdown = plan(checked);
    for (markdown, toml) in markdown.tasks.iter_mut().zip(&toml.tasks) {
        markdown.source.clone_from(&toml.source);
    }
    assert_eq!(markdown, toml);
    assert_eq!(content_hash(&markdown), content_hash(&toml));
}

#[test]
fn a_batch_lies_on_top_of_the_project_key_by_key() {
    let project = "[run]\ntarget = \"main\"\nconcurrency = 3\nsetup = [\"one\"]\nbudget = { usd = 5, tokens = 10 }\n\
        [agent.x]\nkind = \"codex\"\nmodel = \"m\"\n[defaults]\nretries = 1\nverify = [\"v\"]\n";
    let batch = "[run]\nconcurrency = \"auto\"\nsetup = [\"two\"]\nbudget = { usd = 1 }\n[agent.x]\nmodel = \"n\"\n\
        [agent.y]\nkind = \"qwen\"\n[defaults]\nagent = \"x\"\nverify = [\"w\"]\n";
    let files = PlanFiles {
        name: "p".into(),
        project: Some(Source::new("outlast.toml", &(project.to_owned() + &task("a", "retries = 4")))),
        batch: Batch::File(Source::new("plans/p.toml", &(batch.to_owned() + &task("b", "agent = \"y\"")))),
        ignored: Vec::new(),
    };
    insta::assert_json_snapshot!(plan(read_plan(&files, None)));
}

#[test]
fn a_batch_is_its_own_tasks_with_the_settings_of_the_project() {
    let agent = "[agent.x]\nkind = \"codex\"\n";
    let read = |batch: &str| {
        let project = Some(Source::new("outlast.toml", &(agent.to_owned() + &task("a", "") + &task("same", ""))));
        let batch = Batch::File(Source::new("plans/p.toml", batch));
        read_plan(&PlanFiles { name: "p".into(), project, batch, ignored: Vec::new() }, None)
    };
    let found = plan(read(&(task("b", "") + &task("same", "needs = [\"b\"]"))));
    assert_eq!(found.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["b", "same"]);
    assert_eq!(found.agents.len(), 1);
    let refused = errors(&read(&task("b", "needs = [\"a\"]")));
    assert!(refused.contains("task `b` needs `a`, which is a task of outlast.toml and none of this plan"), "{refused}");
    assert!(read("").plan.is_none(), "a batch without a task runs nothing, whatever the project holds");
}

#[test]
fn a_plan_needs_the_users_accounts_and_keeps_below_the_ceiling() {
    let user = "[account.max]\nlogin = \"claude\"\n[ceiling]\nconcurrency = 4\nbudget = { usd = 2, tokens = 1000 }\n";
    let user = crate::read_user(&Source::new("config.toml", user)).config.unwrap();
    let text = |account| {
        format!(
            "[run]\nconcurrency = 9\nbudget = {{ usd = 5 }}\n[agent.x]\nkind = \"codex\"\naccounts = [\"{account}\"]\n"
        ) + &task("a", "")
    };
    let read = |account| {
        let project = Some(Source::new("outlast.toml", &text(account)));
        read_plan(&PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() }, Some(&user))
    };
    insta::assert_snapshot!(errors(&read("mx")));
    let checked = read("max");
    let above = checked.findings.iter().filter(|finding| finding.code == crate::Code::AboveCeiling).count();
    assert_eq!(above, 2);
    let run = plan(checked).run;
    assert_eq!(run.concurrency, Concurrency::Fixed(4));
    assert_eq!((run.budget.usd_micros, run.budget.tokens), (Some(2_000_000), Some(1000)));
}

#[test]
fn auto_is_bounded_by_the_ceiling_and_a_hint_says_so() {
    let read = |concurrency: &str, most: u32| {
        let user = crate::read_user(&Source::new("config.toml", &format!("[ceiling]\nconcurrency = {most}\n")));
        let text = format!("[run]\n{concurrency}\n[agent.x]\nkind = \"codex\"\n") + &task("a", "");
        let project = Some(Source::new("outlast.toml", &text));
        let files = PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() };
        let checked = read_plan(&files, user.config.as_ref());
        let cut = checked.findings.iter().filter(|finding| finding.code == crate::Code::CeilingCutsAuto);
        let cut: Vec<(Severity, bool)> = cut.map(|finding| (finding.severity, finding.at.is_some())).collect();
        (cut, plan(checked).run.concurrency)
    };
    assert_eq!(read("concurrency = \"auto\"", 3), (vec![(Severity::Hint, true)], Concurrency::Fixed(3)));
    assert_eq!(read("", 3), (vec![(Severity::Hint, false)], Concurrency::Fixed(3)));
    assert_eq!(read("concurrency = \"auto\"", 5), (Vec::new(), Concurrency::Auto));
    assert_eq!(read("concurrency = 2", 3), (Vec::new(), Concurrency::Fixed(2)));
}

#[test]
fn keys_whose_promise_cannot_be_kept_yet_are_refused() {
    let refused = |text: &str, keys: &str| {
        let checked = project(&format!("{text}\n[agent.x]\nkind = \"codex\"\n{}", task("a", keys)));
        assert_eq!(checked.plan, None, "{text} {keys}");
        let codes: Vec<_> = checked.findings.iter().map(|finding| (finding.code, finding.message.clone())).collect();
        assert!(matches!(&codes[..], [(crate::Code::NotSupportedYet, _)]), "{codes:?}");
        codes[0].1.clone()
    };
    assert_eq!(refused("[run]\npilot = 3", ""), "`pilot` in `[run]` is not supported yet");
    assert_eq!(refused("[run]\nbudget = { window = \"60%\" }", ""), "`window` in `budget` is not supported yet");
    assert_eq!(refused("[defaults]\nbudget = { usd = 1 }", ""), "`budget` in `[defaults]` is not supported yet");
    assert_eq!(refused("", "budget = { usd = 1 }"), "`budget` in task `a` is not supported yet");
}

#[test]
fn an_approval_is_bound_to_commands_and_not_to_words() {
    let text =
        "[run]\nsetup = [\"npm ci\"]\n[agent.x]\nkind = \"codex\"\n".to_owned() + &task("a", "verify = [\"make\"]");
    let hash = |text: &str| approval_hash(&plan(project(text)));
    assert_eq!(hash(&text), hash(&text.replace("Do it.", "Do that.")));
    assert_eq!(hash(&text), hash(&format!("# moved\n\n{text}")));
    assert_ne!(hash(&text), hash(&text.replace("make", "make ")));
    assert_ne!(hash(&text), hash(&text.replace("npm ci", "npm i")));
    assert_ne!(hash(&text), hash(&text.replace("codex", "qwen")));
    assert_eq!(hash(&text).len(), 64);
}

#[test]
fn lints_speak_of_what_would_disappoint() {
    let tasks = task("plain", "")
        + &task("wide-1", "writes = [\"**\"]\nverify = [\"x\"]\nidle_timeout = \"1h\"")
        + &task("one-1", "writes = [\"src/a.rs\", \"Cargo.lock\"]\nverify = [\"x\"]\n[task.steps]\nlook = \"\"")
            .replace("Do it.", "Like wide-1, after plain.")
        + &task(
            "two-2",
            "writes = [\"src/b.rs\", \"Cargo.lock\"]\nreads = [\"src/a.rs\"]\nverify = [\"x\"]\nneeds = [\"wide-1\"]",
        );
    let checked = with_agent(&("[run]\nhot_files = [\"Cargo.lock\"]\n".to_owned() + &tasks));
    let all: String = checked.findings.iter().map(|finding| format!("{finding}\n")).collect();
    plan(checked);
    insta::assert_snapshot!(all);
}

#[test]
fn a_plan_of_many_tasks_is_read_at_once() {
    let tasks: String =
        (0..3_000).map(|i| task(&format!("task-{i}"), &format!("writes = [\"src/m{i}/**\"]\nwirtes = 1"))).collect();
    let checked = with_agent(&tasks);
    assert_eq!(checked.findings.len(), 3_000);
    assert_eq!(plan(with_agent(&tasks.replace("wirtes = 1", ""))).tasks.len(), 3_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_panics(text in r"(\[+[a-z.]{0,8}\]+|[a-z_]{1,9} ?= ?|[\[{'\x22]|\PC{0,6}|\n){0,30}") {
        let checked = project(&text);
        prop_assert!(checked.plan.is_some() || checked.findings.iter().any(Finding::is_error));
        for finding in &checked.findings {
            prop_assert!(finding.to_string().contains(finding.code.as_str()));
        }
    }

    #[test]
    fn no_front_matter_panics(text in r"(---\n|[a-z]{1,7}: ?|- \[[ x]\] |[`:\[{&*!|>]|\PC{0,5}|\n ?){0,30}") {
        let source = Source::new("a.md", &format!("---\n{text}"));
        let folder = Batch::Folder(vec![source, Source::new("b.md", &text)]);
        let checked = read_plan(&PlanFiles { name: "p".into(), project: None, batch: folder, ignored: Vec::new() }, None);
        for finding in &checked.findings {
            prop_assert!(finding.to_string().contains(finding.code.as_str()));
        }
    }

    #[test]
    fn a_plan_reads_the_same_twice(goal in r"[^\x00-\x1f\x7f\x22\\]{1,30}[a-z]", retries in 0u32..20) {
        let text = format!("[agent.x]\nkind = \"codex\"\n[[task]]\nid = \"a\"\ngoal = \"{goal}\"\nretries = {retries}\n");
        let read = plan(project(&text));
        prop_assert_eq!(&read.tasks[0].goal, goal.trim());
        prop_assert_eq!(read.tasks[0].retries, retries);
    }
}

#[test]
fn a_stray_quote_is_one_error_at_its_place() {
    let prose: String = (0..60).map(|n| format!("line {n} of what is to be done, \"as said\"\n")).collect();
    let text = format!(
        "[agent.a]\nkind = \"command\"\ncommand = [\"x\"]\n[[task]]\nid = \"one\"\ngoal = \"Do one.\"\n\
         [[task]]\nid = \"two\"\ngoal = \"\"\"\n{prose}\"\"\"\nverify = [\"x\"]\n"
    );
    let errors = |text: &str| {
        let files = PlanFiles {
            name: "p".to_owned(),
            project: Some(Source::new("outlast.toml", text)),
            batch: Batch::None,
            ignored: Vec::new(),
        };
        let found = read_plan(&files, None).findings.into_iter().filter(Finding::is_error);
        found.map(|finding| (finding.code, finding.at.map_or(0, |at| at.line))).collect::<Vec<_>>()
    };
    assert_eq!(errors(&text), []);
    let mended = |from: &str, to: &str| errors(&text.replacen(from, to, 1));
    let one = |line| vec![(Code::Syntax, line)];
    assert_eq!(mended("\"Do one.\"", "\"\"\"Do one.\""), one(6), "three for one");
    assert_eq!(mended("\"Do one.\"", "Do one.\""), one(6), "none before it");
    assert_eq!(mended("\"Do one.\"", "\"\"Do one.\""), one(6), "two before it");
    assert_eq!(mended("goal = \"\"\"", "goal = \"\""), one(10), "one is missing where a text begins");
    assert_eq!(mended("\n\"\"\"\nverify", "\n\"\"\nverify"), one(9), "one is missing where it ends");
    assert_eq!(mended("line 3 of", "\"\"\" line 3 of"), one(13), "it ends too early");
    // Errors that have nothing to do with each other are told at once.
    assert_eq!(errors("[agent.a]\nkind \"x\"\n[run]\nland \"auto\"\n"), [(Code::Syntax, 2), (Code::Syntax, 4)]);
}
