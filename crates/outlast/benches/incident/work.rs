//! What each task is to do: eight turns that read, write and run.

use outlast_testkit::provider::Script;

use super::agents::Cli;

/// The turns of each task: seven tool calls and the closing account.
pub(crate) const TURNS: u32 = 8;

/// The project's own check: what a task wrote is there, whole and once.
pub(crate) const CHECK: &str = r#"id=$1
[ "$(cat "parts/$id-a.txt")" = "first of $id" ] || exit 1
[ "$(cat "parts/$id-b.txt")" = "second of $id" ] || exit 1
cat module.txt "parts/$id-a.txt" "parts/$id-b.txt" | cmp -s - "parts/$id-sum.txt" || exit 1
"#;

/// The file that every task reads.
pub(crate) const MODULE: &str = "The module: what it does today, and what it is to do.\nOne line more.\n";

/// The name of a task, from 0. All are of one length, so that all cost the same.
pub(crate) fn id(number: u32) -> String {
    format!("t{:03}", number + 1)
}

/// What the model has the agent do.
fn steps(id: &str) -> String {
    format!(
        r#"read module.txt
write parts/{id}-a.txt "first of {id}\n"
run "cat module.txt parts/{id}-a.txt > parts/{id}-sum.txt"
read parts/{id}-sum.txt
write parts/{id}-b.txt "second of {id}\n"
run "cat module.txt parts/{id}-a.txt parts/{id}-b.txt > parts/{id}-sum.txt"
run "wc -l < parts/{id}-sum.txt"
say "Changed: parts/{id}-a.txt, parts/{id}-b.txt, parts/{id}-sum.txt"
"#
    )
}

/// What the agent is asked for.
pub(crate) fn goal(id: &str) -> String {
    format!("Write the parts of {id}. [[scenario:{id}]]")
}

/// A provider that knows so many tasks.
pub(crate) fn script(tasks: usize) -> Script {
    let ids = (0..u32::try_from(tasks).unwrap()).map(id);
    ids.fold(Script::default(), |script, id| script.with_scenario(&id, &steps(&id)))
}

/// The plan for outlast.
pub(crate) fn plan(cast: &[Cli], at_once: u32) -> String {
    let mut plan = format!("[run]\nconcurrency = {at_once}\nland = \"review\"\n\n");
    let mut known: Vec<Cli> = Vec::new();
    for cli in cast {
        if !known.contains(cli) {
            known.push(*cli);
            plan.push_str(&cli.in_plan());
        }
    }
    plan.push_str("[defaults]\ntimeout = \"30m\"\nidle_timeout = \"15m\"\nretries = 2\n\n");
    for (number, cli) in cast.iter().enumerate() {
        let id = id(u32::try_from(number).unwrap());
        plan.push_str(&format!(
            "[[task]]\nid = \"{id}\"\nagent = \"{}\"\ngoal = \"{}\"\nwrites = [\"parts/{id}-*.txt\"]\n\
             verify = [\"sh check.sh {id}\"]\n\n",
            cli.name(),
            goal(&id)
        ));
    }
    plan
}
