//! The engine is killed while agents are at work: they go on under their shims, and the next engine takes them up.

use outlast_testkit::provider::{LogEntry, Script};
use outlast_testkit::wire::Dialect;

use crate::bench::{Bench, CLAUDE, CODEX, Cli};
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
