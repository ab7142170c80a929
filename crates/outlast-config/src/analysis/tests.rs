//! Edges, waves and the critical path of small plans.

use super::*;
use outlast_core::plan::{AgentSpec, RunSettings};

/// Id, needs, writes and reads.
type Sketch<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

fn plan(tasks: &[Sketch<'_>]) -> Plan {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let tasks = tasks.iter().map(|(id, needs, writes, reads)| Task {
        needs: needs.iter().map(|need| TaskId::from(*need)).collect(),
        writes: owned(writes),
        reads: owned(reads),
        ..Task::new(*id, "goal", "x")
    });
    Plan { run: RunSettings::new("p"), agents: [("x".into(), AgentSpec::new("codex"))].into(), tasks: tasks.collect() }
}

fn edges(analysis: &Analysis) -> Vec<String> {
    let reason = |reason: &Reason| match reason {
        Reason::Needs => "needs".to_owned(),
        Reason::Scope { from, to } => format!("{from} meets {to}"),
        Reason::HotFile { file } => format!("hot {file}"),
        Reason::Reads { from, to } => format!("{to} reads {from}"),
    };
    analysis.edges.iter().map(|edge| format!("{} {}: {}", edge.from, edge.to, reason(&edge.reason))).collect()
}

fn waves(analysis: &Analysis) -> Vec<Vec<&str>> {
    analysis.waves.iter().map(|wave| wave.iter().map(TaskId::as_str).collect()).collect()
}

#[test]
fn each_edge_has_its_reason_and_needs_come_first() {
    let mut plan = plan(&[
        ("late", &["early"], &["src/x.rs"], &[]),
        ("early", &[], &["src/**"], &[]),
        ("beside", &[], &["src/x.*", "Cargo.lock"], &["docs/a.md"]),
        ("docs", &[], &["docs/*.md", "Cargo.*"], &[]),
        ("alone", &[], &["a/b"], &[]),
    ]);
    plan.run.hot_files = vec!["Cargo.lock".into()];
    let analysis = analyse(&plan);
    assert_eq!(
        edges(&analysis),
        [
            "early late: needs",
            "early beside: src/** meets src/x.*",
            "late beside: src/x.rs meets src/x.*",
            "docs beside: docs/a.md reads docs/*.md",
            "beside docs: hot Cargo.lock",
        ]
    );
    assert_eq!(waves(&analysis), [vec!["early", "alone"], vec!["late"], vec!["beside"], vec!["docs"]]);
    assert_eq!(analysis.critical_path, ["early", "late", "beside", "docs"].map(TaskId::from));
}

#[test]
fn tasks_in_order_by_needs_do_not_collide() {
    let analysis =
        analyse(&plan(&[("a", &[], &["x"], &[]), ("b", &["a"], &["y"], &[]), ("c", &["b"], &["x"], &["y", "x"])]));
    assert_eq!(edges(&analysis), ["a b: needs", "b c: needs"]);
}

#[test]
fn a_plan_with_a_circle_or_nothing_has_no_waves() {
    assert_eq!(analyse(&plan(&[("a", &["b"], &[], &[]), ("b", &["a"], &[], &[])])), Analysis::default());
    assert_eq!(waves(&analyse(&plan(&[]))), Vec::<Vec<&str>>::new());
}

#[test]
fn every_pair_of_the_sorted_search_is_found() {
    let globs = ["**", "s*", "src/**", "src/a/*.rs", "src/a/x.rs", "src/ab", "{src,t}/a", "t/a", "z", "[sz]*"];
    let ids: Vec<String> = (0..globs.len()).map(|i| format!("t{i}")).collect();
    let writes: Vec<[&str; 1]> = globs.iter().map(|glob| [*glob]).collect();
    let tasks: Vec<Sketch<'_>> =
        ids.iter().zip(&writes).map(|(id, glob)| (id.as_str(), &[][..], &glob[..], &[][..])).collect();
    let found = analyse(&plan(&tasks)).edges.len();
    let pairs = (0..globs.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    let expected = pairs.filter(|&(a, b)| outlast_core::glob::overlap(globs[a], globs[b])).count();
    assert_eq!(found, expected);
}

#[test]
fn a_large_plan_in_folders_of_its_own_is_analysed_at_once() {
    let scopes: Vec<String> = (0..5_000).map(|i| format!("src/m{i}/**")).collect();
    let tasks: Vec<Task> = scopes
        .iter()
        .enumerate()
        .map(|(i, scope)| Task { writes: vec![scope.clone()], ..Task::new(format!("t{i}"), "goal", "x") })
        .collect();
    let analysis = analyse(&Plan { tasks, ..plan(&[]) });
    assert_eq!((analysis.edges.len(), analysis.waves.len()), (0, 1));
}

#[test]
fn a_plan_of_wide_scopes_says_that_it_was_not_looked_at_whole() {
    let wide = |n: usize| {
        let tasks = (0..n).map(|i| Task { writes: vec!["**".into()], ..Task::new(format!("t{i}"), "goal", "x") });
        analyse(&Plan { tasks: tasks.collect(), ..plan(&[]) })
    };
    assert!(wide(100).complete);
    let large = wide(650);
    assert!(!large.complete && large.edges.len() <= MEETING_MAX);
}
