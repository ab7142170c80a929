//! `outlast check` on a plan that runs.

use crate::bench::Bench;

const PLAN: &str = r#"
[run]
hot_files = ["Cargo.lock"]
[agent.a]
kind = "command"
command = ["true"]
[defaults]
verify = ["touch ran"]
timeout = "5m"
[[task]]
id = "models"
goal = "Move the models."
writes = ["src/models/**"]
[[task]]
id = "client"
goal = "Move the client; follow docs/http.md."
writes = ["src/client/**", "Cargo.lock"]
needs = ["models"]
[[task]]
id = "server"
goal = "Move the server."
writes = ["src/server/**", "Cargo.lock"]
reads = ["src/models/base.py"]
"#;

#[test]
fn waves_edges_and_the_longest_chain_are_told_with_reasons() {
    let bench = Bench::new();
    bench.plan(PLAN);
    let before = bench.files();
    let view = bench.run(&["check", "--json"]).ends(0).json("check");
    assert_eq!(view["runnable"], true);
    assert!(view["approval"].as_str().is_some_and(|hash| !hash.is_empty()));
    let edges: Vec<[&str; 3]> = view["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| ["from", "to", "reason"].map(|key| edge[key].as_str().unwrap()))
        .collect();
    assert!(edges.contains(&["models", "client", "needs"]), "{edges:?}");
    assert!(
        edges.iter().any(|[from, to, reason]| *reason == "hot_file" && [*from, *to].contains(&"server")),
        "{edges:?}"
    );
    assert!(edges.contains(&["models", "server", "reads"]), "{edges:?}");
    let waves: usize = view["waves"].as_array().unwrap().iter().map(|wave| wave.as_array().unwrap().len()).sum();
    assert_eq!(waves, 3);
    assert_eq!(view["critical_path"][0], "models");

    let told = bench.run(&["check"]).ends(0).shows("wave 1: models").shows("models ▸ client").shows("longest chain:");
    assert!(told.stdout.trim_end().lines().last().unwrap().starts_with("3 tasks: "), "{told:#?}");
    before.assert_same(&bench.files(), "a check changes nothing and runs nothing");
}

#[test]
fn a_prompt_is_shown_as_it_is_sent_and_an_unknown_task_is_told() {
    let bench = Bench::new();
    bench.plan(PLAN);
    let prompt = bench.run(&["check", "--prompt", "client"]).ends(0).shows("Move the client; follow docs/http.md.");
    assert!(prompt.stdout.contains("- src/client/**\n- Cargo.lock"), "{prompt:#?}");
    let view = bench.run(&["check", "--prompt", "client", "--json"]).ends(0).json("prompt");
    assert_eq!(view["prompt"], prompt.stdout);
    assert_eq!(view["bytes"], prompt.stdout.len());
    let error = bench.run(&["check", "--prompt", "clint", "--json"]).fails(9, "task/none");
    assert!(error["error"]["why"][0].as_str().unwrap().contains("client"), "{error:#}");
}

#[test]
fn what_fifty_tasks_have_in_common_is_told_once() {
    let bench = Bench::new();
    let task = |n: usize| format!("[[task]]\nid = \"t{n:02}\"\ngoal = \"g\"\nwrites = [\"f{n}\"]\n");
    let tasks: String = (1..=50).map(task).collect();
    bench.plan(&format!("[agent.a]\nkind = \"command\"\ncommand = [\"true\"]\n{tasks}"));
    let told = bench.run(&["check"]).ends(0).shows("also `t02`, `t03`").shows("and 41 more").shows("50 warnings");
    assert_eq!(told.stdout.matches("warning[plan/no-verify]").count(), 1, "{told:#?}");
    let view = bench.run(&["check", "--json"]).ends(0).json("check");
    let findings = view["findings"].as_array().unwrap();
    assert_eq!(findings.iter().filter(|finding| finding["code"] == "plan/no-verify").count(), 50);
}
