//! A verified result that changes nothing which its target does not hold: there is nothing to land, and nothing to give up.

use crate::bench::Bench;

#[test]
fn an_empty_result_needs_nobody_and_its_workspace_can_go() {
    let bench = Bench::new();
    bench.plan(
        "[run]\ntarget = \"topic\"\n[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > t.txt\"]\n\
         [[task]]\nid = \"t\"\ngoal = \"g\"\nwrites = [\"t.txt\"]\n",
    );
    bench.run(&["run", "--yes"]).ends(0).shows("outlast land --run");
    bench.repo.commit_file("t.txt", "x\n", "The same by hand").unwrap();
    bench.repo.git(&["branch", "topic"]).unwrap();
    bench.run(&["land", "t"]).ends(0).shows("empty: the target holds all of it already");
    let told = bench.run(&["status"]).ends(0).shows("finished (1)");
    assert!(!told.stdout.contains("needs you") && !told.stdout.contains("outlast land"), "{told:#?}");
    bench.run(&["discard", "t"]).ends(5).shows("`outlast clean` removes its workspace");

    let workspace = bench.run(&["status", "--json"]).ends(0).json("status")["tasks"][0]["workspace"].clone();
    bench.run(&["clean", "--yes"]).ends(0).shows("removed");
    assert!(!std::path::Path::new(workspace.as_str().unwrap()).exists());
    bench.run(&["status"]).ends(0).shows("finished (1)");
}
