//! An agent is killed, with all it started, right after it has edited a file: the edit is there once, in the file and in the
//! conversation that goes on.

use std::path::Path;
use std::sync::mpsc::channel;

use notify::{RecursiveMode, Watcher as _};
use outlast_testkit::provider::{Fault, Rule, Script, When};
use outlast_testkit::wire::Call;

use crate::bench::{Bench, CLAUDE, CODEX, Cli, GEMINI, KIMI, OPENCODE, QWEN, Said};
use crate::gate::{ARRIVAL_MAX, Gate};
use crate::processes::kill_tree;
use crate::tree::{self, OF_ALL_KINDS};

/// The file that is edited, before and after. What is replaced stands in its replacement: an edit that is made twice does not
/// fail, it can be seen.
const PATH: &str = "journal.md";
const BEFORE: &str = "first entry\n";
const AFTER: &str = "first entry\nsecond entry\n";
/// The turn that edits.
const EDIT: usize = 3;

/// A task whose third turn edits; the second waits at the first of the gates, the fourth at the last.
fn begin(bench: &Bench, cli: Cli, [before, after]: &[Gate; 2]) {
    tree::commit(&bench.repo);
    bench.repo.commit_file(PATH, BEFORE, "A journal").unwrap();
    let task = format!(
        "[[task]]\nid = \"journal\"\nagent = \"{}\"\nwrites = [\"**\"]\nverify = [\"grep -q second {PATH}\"]\n\
         goal = '''\nAdd an entry to the journal.\n```outlast-script\nread {PATH}\nrun {OF_ALL_KINDS}; {}\n\
         edit {PATH} {BEFORE:?} {AFTER:?}\nrun {}\nsay \"Changed: {PATH}\"\n```\n'''\n",
        cli.program,
        before.command(),
        after.command()
    );
    bench.plan(&[cli], &task);
}

/// What stands in the arguments of the edit alone.
const ADDED: &str = "second entry";

/// The results of the calls that make the edit.
fn edits(said: &Said) -> Vec<Option<&str>> {
    let of = |call: &Call| call.argument_texts().contains(ADDED);
    said.calls().into_iter().filter(|(call, _)| of(call)).map(|(_, result)| result).collect()
}

fn steps(bench: &Bench) -> Vec<usize> {
    bench.provider.model_requests().iter().filter_map(|entry| entry.step).collect()
}

/// Killed when the request that tells of the edit waits for its answer.
fn is_told_once(cli: Cli) {
    let when = When { step: Some(EDIT + 1), ..When::default() };
    let silence = Rule { when, fault: Fault::Hold { seconds: None }, times: Some(1) };
    let Some(bench) = Bench::new(&[cli], Script::default().with_fault(silence)) else { return };
    let gates = ["before", "after"].map(|name| bench.gate(name));
    begin(&bench, cli, &gates);
    let run = bench.start(&["run", "--yes"]);
    drop(gates[0].reached());
    bench.provider.wait_until(|log| log.iter().any(|entry| entry.step == Some(EDIT + 1)));
    let workspace = bench.workspace();
    let at_the_kill = tree::on_disk(&workspace);
    tree::has_all_kinds(&at_the_kill);
    assert_eq!(at_the_kill[Path::new(PATH)], tree::file(AFTER));
    bench.kill_agent("journal");
    let held = gates[1].reached();
    let taken_up = tree::on_disk(&workspace);
    drop(held);
    run.ends(0);

    let resumed = goes_on(&bench);
    // Claude Code writes its session down a moment later than it asks: what it has lost by that, it is told.
    assert!(is_told_done(&resumed.by_people()), "{resumed:#?}");
    let knows = matches!(edits(&resumed)[..], [Some(_)]);
    assert!(knows || cli.program == CLAUDE.program, "the edit and its result are there: {resumed:#?}");
    assert_eq!(steps(&bench), [1, 2, 3, 4, 4, 5], "nothing is asked for again but the answer that nobody got");
    assert_eq!(tree::kept_at_the_end(&bench, "journal", 1), at_the_kill);
    assert_eq!(taken_up, at_the_kill);
}

/// Killed when the edit is on disk, and nobody but the agent can know that it was made.
fn is_made_once(cli: Cli) {
    let Some(bench) = Bench::new(&[cli], Script::default()) else { return };
    let gates = ["before", "after"].map(|name| bench.gate(name));
    begin(&bench, cli, &gates);
    let run = bench.start(&["run", "--yes"]);
    let held = gates[0].reached();
    let workspace = bench.workspace();
    let (sender, changes) = channel();
    let mut watcher = notify::recommended_watcher(move |change| drop(sender.send(change))).unwrap();
    watcher.watch(&workspace, RecursiveMode::NonRecursive).unwrap();
    let journal = workspace.join(PATH);
    let shim = bench.shim("journal");
    drop(held);
    // One that is replaced as a whole may be gone for a moment.
    while std::fs::read_to_string(&journal).unwrap_or_default() != AFTER {
        changes.recv_timeout(ARRIVAL_MAX).expect("the edit is made").unwrap();
    }
    kill_tree(shim);
    let at_the_kill = tree::on_disk(&workspace);
    let held = gates[1].reached();
    let taken_up = tree::on_disk(&workspace);
    drop(held);
    run.ends(0);

    let resumed = goes_on(&bench);
    let steps = steps(&bench);
    assert!([&[1, 2, 3, 4, 5][..], &[1, 2, 3, 4, 4, 5]].contains(&&steps[..]), "the edit is asked for once: {steps:?}");
    // A session that was killed in the edit has no word of its end: what is told beside it says that it was made.
    if !resumed.has_called(ADDED) || edits(&resumed).iter().flatten().any(|result| is_cut_off(result)) {
        let told = resumed.by_people();
        let cut_off = told.rsplit_once("had no result yet when the work stopped").is_some_and(|(_, told)| {
            let effect = format!("these files have changed since they were asked for:\n- {PATH} (changed)\n");
            told.split_once(&effect).is_some_and(|(call, _)| call.contains(PATH))
        });
        assert!(cut_off || is_told_done(&told), "{told}");
    }
    assert_eq!(tree::kept_at_the_end(&bench, "journal", 1), at_the_kill);
    assert_eq!(taken_up, at_the_kill);
}

/// Whether the newest prompt names the edit among what was done last.
fn is_told_done(told: &str) -> bool {
    let edit = format!("\n- the file {PATH} was changed\n");
    told.rsplit_once("Done last before that").is_some_and(|(_, acts)| acts.contains(&edit))
}

/// How the CLIs mark a call that was under way when they were killed.
fn is_cut_off(result: &str) -> bool {
    ["aborted", "interrupted"].iter().any(|mark| result.contains(mark))
}

/// The second attempt goes on in the session of the first, and ends with the edit made once; its first request.
#[track_caller]
fn goes_on(bench: &Bench) -> Said {
    let status = bench.status();
    let task = &status["tasks"][0];
    assert_eq!((&task["attempts"], &task["resumed_by"]), (&2.into(), &"session".into()), "{task:#}");
    assert_eq!(bench.landed(&status), ["journal"]);
    assert_eq!(bench.on_target(&status, PATH), AFTER.trim_end(), "it was edited once");
    let requests = bench.provider.model_requests();
    let is_new = |said: &Said| said.by_people().contains("You go on with your task now");
    let resumed = requests.iter().map(|entry| bench.said(entry)).find(is_new).expect("the session goes on");
    assert!(resumed.by_people().contains("Add an entry to the journal."), "the goal is there: {resumed:#?}");
    assert!(resumed.has_called("mkdir -p deep/er"), "what was run before: {resumed:#?}");
    let last = bench.said(requests.last().unwrap());
    assert!(edits(&last).len() <= 1, "it was asked for once: {last:#?}");
    resumed
}

#[test]
fn claude_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(CLAUDE);
}

#[test]
fn codex_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(CODEX);
}

#[test]
fn opencode_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(OPENCODE);
}

#[test]
fn gemini_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(GEMINI);
}

#[test]
fn qwen_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(QWEN);
}

#[test]
fn kimi_killed_after_an_edit_goes_on_and_knows_of_it() {
    is_told_once(KIMI);
}

#[test]
fn claude_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(CLAUDE);
}

#[test]
fn codex_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(CODEX);
}

#[test]
fn opencode_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(OPENCODE);
}

#[test]
fn gemini_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(GEMINI);
}

#[test]
fn qwen_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(QWEN);
}

#[test]
fn kimi_killed_as_it_edits_does_not_edit_twice() {
    is_made_once(KIMI);
}
