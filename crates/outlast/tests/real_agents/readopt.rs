//! The engine is killed while agents are at work: they go on under their shims, and the next engine takes them up.

use std::collections::BTreeMap;
use std::thread::sleep;

use outlast_testkit::provider::{LogEntry, Script};
use outlast_testkit::wire::Dialect;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, wait};
use crate::gate::Gate;

/// A task whose first command stops at one gate, and its second one at another.
fn task(cli: Cli, [first, second]: &[Gate; 2]) -> String {
    let name = cli.program;
    format!(
        "[[task]]\nid = \"{name}\"\nagent = \"{name}\"\nwrites = [\"{name}.md\", \"{name}-seen.md\"]\n\
         verify = [\"grep -q 'by {name}' {name}-seen.md\"]\n\
         goal = '''\nWrite it down.\n```outlast-script\nwrite {name}.md \"by {name}\\n\"\n\
         run \"{} && cat {name}.md > {name}-seen.md\"\nrun \"{}\"\nsay \"Changed: {name}.md, {name}-seen.md\"\n```\n'''\n\n",
        first.command(),
        second.command()
    )
}

fn steps(log: &[LogEntry], dialect: Dialect) -> Vec<usize> {
    log.iter().filter(|entry| entry.dialect == Some(dialect)).filter_map(|entry| entry.step).collect()
}

#[test]
fn agents_outlive_a_killed_engine_and_are_taken_up_again() {
    let clis = [CLAUDE, CODEX];
    let Some(bench) = Bench::new(&clis, Script::default()) else { return };
    let gates = clis.map(|cli| ["first", "second"].map(|name| bench.gate(&format!("{}-{name}", cli.program))));
    bench.repo.commit_file("README.md", "Nothing yet.\n", "First").unwrap();
    bench.plan(&clis, &[task(CLAUDE, &gates[0]), task(CODEX, &gates[1])].concat());
    let [claude, codex] = gates;

    let run = bench.start(&["run", "--yes"]);
    let (at_claude, at_codex) = (claude[0].reached(), codex[0].reached());
    run.kill();
    // This one's next request finds no engine, and waits for one.
    drop(at_codex);
    let resumed = bench.start(&["resume"]);
    drop(codex[1].reached());
    // This one was in its command all the time.
    drop(at_claude);
    drop(claude[1].reached());
    resumed.ends(0);

    let status = bench.status();
    let mut landed = bench.landed(&status);
    landed.sort();
    assert_eq!(landed, ["claude", "codex"], "each landed once");
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!((&task["attempts"], &task["turns"]), (&1.into(), &4.into()), "{task:#}");
    }
    // No answer was on its way when the engine was killed, so no request was made twice.
    let log = bench.provider.log();
    assert_eq!(steps(&log, Dialect::Anthropic), [1, 2, 3, 4]);
    assert_eq!(steps(&log, Dialect::Responses), [1, 2, 3, 4]);
    let billed = bench.provider.bill().total.tokens;
    assert_eq!(status["budget"]["tokens_used"], billed.total(), "what the first engine paid for is in the ledger too");
}

const TASKS: usize = 12;
/// How many of them are worked on at once.
const AT_ONCE: usize = 4;
/// How many requests each takes.
const TURNS: usize = 4;

#[test]
fn an_engine_that_is_away_is_waited_through() {
    let clis = [CLAUDE, CODEX];
    let names: Vec<String> = (0..TASKS).map(|n| format!("part-{n}")).collect();
    let script = names.iter().fold(Script::default(), |script, name| {
        let work = format!(
            "write {name}.md \"made\\n\"\nrun \"cat {name}.md > {name}-seen.md\"\nrun \"sleep 1\"\nsay \"Changed: {name}.md\""
        );
        script.with_scenario(name, &work)
    });
    let Some(bench) = Bench::new(&clis, script) else { return };
    bench.repo.commit_file("README.md", "Nothing yet.\n", "First").unwrap();
    let task = |(n, name): (usize, &String)| {
        format!(
            "[[task]]\nid = \"{name}\"\nagent = \"{}\"\ngoal = \"Write it down. [[scenario:{name}]]\"\n\
             writes = [\"{name}.md\", \"{name}-seen.md\"]\nverify = [\"grep -q made {name}-seen.md\"]\n\n",
            clis[n % clis.len()].program
        )
    };
    bench.plan_for(AT_ONCE, &clis, &names.iter().enumerate().map(task).collect::<String>());

    let run = bench.start(&["run", "--yes"]);
    bench.provider.wait_until(|log| log.len() >= TASKS * TURNS / 3);
    run.kill();
    // Nothing tells when an agent would have lost patience: it is the time itself that is tested.
    sleep(wait());
    bench.start(&["resume"]).ends(0);

    let status = bench.status();
    assert_eq!(bench.landed(&status).len(), TASKS, "each landed once: {status:#}");
    for task in status["tasks"].as_array().unwrap() {
        assert_eq!(task["attempts"], 1, "no agent died: {task:#}");
    }
    let mut asked: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for entry in bench.provider.model_requests() {
        *asked.entry((entry.scenario.unwrap(), entry.step.unwrap())).or_default() += 1;
    }
    assert_eq!(asked.len(), TASKS * TURNS, "{asked:#?}");
    let again: usize = asked.values().map(|times| times - 1).sum();
    assert!(again <= AT_ONCE, "more than the answers on their way at the kill were asked for again: {asked:#?}");
}
