//! Keeps `docs/plan.md` equal to what the readers take. `OUTLAST_UPDATE_DOCS=1` writes it.

use std::fs;
use std::path::Path;

use outlast_core::plan::{Plan, TARGET_DEFAULT};
use outlast_core::record::HOLD_MAX_DEFAULT;

use super::tables::{self, Key};
use super::*;
use crate::user;
use crate::{Batch, Checked, Code, PlanFiles, Source, UserConfig, read_plan, read_user};

#[test]
fn the_page_about_plans_is_what_the_readers_take() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plan.md");
    let wanted = reference();
    if std::env::var_os("OUTLAST_UPDATE_DOCS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    let page = fs::read_to_string(&file).unwrap();
    assert!(page == wanted, "docs/plan.md differs; run this test with OUTLAST_UPDATE_DOCS=1");
}

#[test]
fn every_key_that_is_read_is_in_the_reference_and_no_other() {
    let pairs: [(&[Key], &[&str]); 8] = [
        (tables::RUN, keys::RUN),
        (tables::BUDGET, keys::BUDGET),
        (tables::AGENT, keys::AGENT),
        (tables::TASK, keys::TASK),
        (tables::OUTPUT, keys::OUTPUT),
        (tables::ACCOUNT, user::ACCOUNT),
        (tables::LIMITS, user::LIMITS),
        (tables::CEILING, user::CEILING),
    ];
    for (documented, read) in pairs {
        let mut documented: Vec<&str> = documented.iter().map(|key| key.name).collect();
        let mut read = read.to_vec();
        documented.sort_unstable();
        read.sort_unstable();
        assert_eq!(documented, read);
    }
    let tops = reference();
    for top in keys::TOP.iter().filter(|top| **top != "task") {
        assert!(tops.contains(&format!("`[{top}")), "{top}");
    }
    assert!(keys::DEFAULTS.iter().all(|name| keys::TASK.contains(name)), "their meaning is told with the tasks");
}

fn checked(text: &str) -> Checked {
    let project = Some(Source::new("outlast.toml", text));
    read_plan(&PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() }, None)
}

/// A plan in which one key of a table has this value; without one, the same plan without the key.
fn with(table: &str, key: &str, value: Option<&str>) -> String {
    let line = |of: &str| match value {
        Some(value) if of == table => format!("{key} = {value}\n"),
        _ => String::new(),
    };
    let inner = |of: &str, name: &str| match value {
        Some(value) if of == table => format!("{name} = {{ {key} = {value} }}\n"),
        _ => String::new(),
    };
    let unless =
        |of: &str, name: &str, text: &str| if of == table && name == key { String::new() } else { text.to_owned() };
    let kind = match (table, key) {
        ("agent", "model" | "accounts" | "inherit" | "kind") => unless("agent", "kind", "kind = \"codex\"\n"),
        _ => "kind = \"command\"\n".to_owned(),
    };
    let command = if kind.contains("codex") || kind.is_empty() {
        String::new()
    } else {
        unless("agent", "command", "command = [\"x\"]\n")
    };
    format!(
        "[run]\n{}{}[agent.a]\n{kind}{command}{}[[task]]\n{}{}{}{}",
        line("run"),
        inner("budget", "budget"),
        line("agent"),
        unless("task", "id", "id = \"t\"\n"),
        unless("task", "goal", "goal = \"g\"\n"),
        line("task"),
        inner("output", "output"),
    )
}

fn plan(text: &str) -> Plan {
    let checked = checked(text);
    checked.plan.unwrap_or_else(|| panic!("{text}\n{:?}", checked.findings))
}

/// The plan with what holds where it names nothing.
fn effective(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.run.target.get_or_insert_with(|| TARGET_DEFAULT.to_owned());
    plan.run.hold_ms.get_or_insert(u64::try_from(HOLD_MAX_DEFAULT.as_millis()).unwrap());
    plan
}

#[test]
fn every_example_is_taken_every_default_is_what_holds_without_it_and_another_type_is_refused() {
    let tables = [
        ("run", tables::RUN),
        ("budget", tables::BUDGET),
        ("agent", tables::AGENT),
        ("task", tables::TASK),
        ("output", tables::OUTPUT),
    ];
    for (table, keys) in tables {
        for key in keys {
            let with = |value: Option<&str>| with(table, key.name, value);
            let example = plan(&with(Some(key.example)));
            if let Some(default) = key.default {
                let (stated, unstated) = (plan(&with(Some(default))), plan(&with(None)));
                let content = |plan: &Plan| crate::content_hash(&effective(plan));
                assert_eq!(content(&stated), content(&unstated), "the default of {} in {table}", key.name);
                assert!(key.example == default || content(&example) != content(&unstated), "{} in {table}", key.name);
            }
            let wrong = checked(&with(Some(key.takes.wrong())));
            let told = wrong.findings.iter().any(|finding| matches!(finding.code, Code::WrongType | Code::BadValue));
            assert!(wrong.plan.is_none() && told, "{} in {table} takes {}", key.name, key.takes.wrong());
        }
    }
}

fn config(table: &str, key: &str, value: Option<&str>) -> Result<UserConfig, String> {
    let line = |of: &str| match value {
        Some(value) if of == table => format!("{key} = {value}\n"),
        _ => String::new(),
    };
    let limits = match value {
        Some(value) if table == "limits" => format!("limits = {{ {key} = {value} }}\n"),
        _ => String::new(),
    };
    let is = |names: &[&str]| table == "account" && names.contains(&key);
    let provider = if is(&["provider", "login"]) { "" } else { "provider = \"anthropic\"\n" };
    let secret = if is(&["login", "key_env", "key_command", "key_file"]) { "" } else { "key_env = \"K\"\n" };
    let text = format!("[account.a]\n{provider}{secret}{}{limits}[ceiling]\n{}", line("account"), line("ceiling"));
    let read = read_user(&Source::new("config.toml", &text));
    read.config.ok_or_else(|| format!("{text}\n{:?}", read.findings))
}

#[test]
fn the_same_holds_for_the_users_configuration() {
    for (table, keys) in [("account", tables::ACCOUNT), ("limits", tables::LIMITS), ("ceiling", tables::CEILING)] {
        for key in keys {
            let with = |value| config(table, key.name, value);
            // Where it stands is part of an account, and the same here: the keys of the test follow its head.
            let example = with(Some(key.example)).unwrap();
            if let Some(default) = key.default {
                assert_eq!(with(Some(default)), with(None), "the default of {} in {table}", key.name);
                assert_ne!(Ok(example), with(None), "{} in {table}", key.name);
            }
            assert!(with(Some(key.takes.wrong())).is_err(), "{} in {table} takes {}", key.name, key.takes.wrong());
        }
    }
}
