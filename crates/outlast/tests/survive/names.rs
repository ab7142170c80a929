//! Names and repositories as people have them: every script, spaces, dots, two ids that differ in case, a detached HEAD,
//! ignored files that work needs, and dependencies that a setup command makes.

use std::collections::BTreeSet;

use outlast_testkit::provider::Script;

use crate::running::Running;
use crate::user::Snapshot;
use crate::world::{Plan, World};

#[test]
fn e22_ids_and_paths_of_any_script_land_as_they_are() {
    let world = World::in_folder("项目 mit Leerzeichen", Script::default());
    let file = |path: &str| format!("run \"mkdir -p 文档 && printf '%s' \\\"$OUTLAST_TASK\\\" > '文档/{path}'\"");
    let ids = ["文档.client", "Task", "task", "a.b", "ünï-code"];
    let mut plan = Plan::new("target = \"landed\"\nland = \"auto\"");
    for id in ids {
        plan = plan.task(id, &file(&format!("说明 {id}.txt")), &format!("writes = [\"文档/说明 {id}.txt\"]"));
    }
    let odd = "write \"文档/a -> \\\"b\\\".txt\" \"odd\"";
    plan = plan.task("last one", odd, "writes = [\"文档/**\"]\nneeds = [\"Task\", \"task\"]");
    world.plan(&plan);
    // Nothing is checked out that could be asked where HEAD is.
    world.repo.git(&["checkout", "--quiet", "--detach"]).unwrap();
    let base = world.repo.commit_id("HEAD").unwrap();
    let user = Snapshot::of(&world.repo, Some("landed"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    user.is_untouched("detached");

    let tree = world.repo.git(&["ls-tree", "-r", "-z", "--name-only", "landed", "文档"]).unwrap();
    let names: BTreeSet<String> = tree
        .split(|byte| *byte == 0)
        .filter(|n| !n.is_empty())
        .map(|n| String::from_utf8(n.to_vec()).unwrap())
        .collect();
    let expected: BTreeSet<String> =
        ids.iter().map(|id| format!("文档/说明 {id}.txt")).chain(["文档/a -> \"b\".txt".to_owned()]).collect();
    assert_eq!(names, expected);
    for id in ids {
        assert_eq!(world.repo.text(&["show", &format!("landed:文档/说明 {id}.txt")]).unwrap(), id);
    }
    let landed: BTreeSet<String> = world.landed_on("landed", &base).into_iter().collect();
    assert_eq!(landed, ids.into_iter().chain(["last one"]).map(str::to_owned).collect());
    for id in ids {
        world.run(&["log", id, "--json"]).ends(0).says("\"attempt_started\"");
        world.run(&["diff", id, "--stat"]).ends(0).says(&format!("说明 {id}.txt"));
    }
    world.nothing_is_left();
}

#[test]
fn e19_k16_ignored_files_and_the_results_of_setup_reach_workspaces_and_verify() {
    let world = World::new();
    world.repo.write(".gitignore", "outlast.toml\n.env.local\ndeps/\nsecret.txt\n").unwrap();
    world.repo.write(".worktreeinclude", "# what tests need\n**/.env.local\n").unwrap();
    world.repo.commit("Ignore and include").unwrap();
    world.repo.write(".env.local", "SECRET=42\n").unwrap();
    world.repo.write("app/.env.local", "SECRET=43\n").unwrap();
    world.repo.write("secret.txt", "stays\n").unwrap();
    let setup =
        "mkdir -p deps/bin && printf '#!/bin/sh\\\\necho built\\\\n' > deps/bin/build && chmod +x deps/bin/build";
    let verify =
        ". ./.env.local && test $SECRET = 42 && test \\\"$(deps/bin/build)\\\" = built && test ! -e secret.txt";
    let mut plan = Plan::new(&format!("land = \"auto\"\nsetup = [\"{setup}\"]"));
    plan.defaults = plan.defaults.replace("\"sh check.sh\"", &format!("\"sh check.sh\", \"{verify}\""));
    let script = "run \". ./app/.env.local && mkdir -p parts && test $SECRET = 43 && deps/bin/build && echo 'part one' > parts/one.txt\"";
    world.plan(&plan.task("one", script, "writes = [\"parts/one.txt\"]").part("two"));
    let base = world.repo.commit_id("HEAD").unwrap();
    let user = Snapshot::of_lived_in(&world.repo, "outlast/");
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    user.is_untouched("with ignored files");
    let target = world.target();
    let tree = world.repo.text(&["diff", "--name-only", &base, &target]).unwrap();
    assert_eq!(tree, "parts/one.txt\nparts/two.txt", "what is ignored does not land");
    world.nothing_is_left();
}

#[test]
fn setup_of_what_the_user_has_committed_reaches_a_registry_and_nothing_that_agents_have_changed_does() {
    let registry = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dial = format!("bash -c ': < /dev/tcp/127.0.0.1/{}'", registry.local_addr().unwrap().port());
    // Once a result of an agent's is in the tree, setup is as shut as verify.
    let setup = format!("if test -e parts/one.txt; then ! {dial}; else {dial}; fi && mkdir -p deps && touch deps/made");
    let world = World::new();
    world.repo.write(".gitignore", "outlast.toml\ndeps/\n").unwrap();
    world.repo.commit("Ignore dependencies").unwrap();
    let keys =
        |more: &str| format!("{more}\nverify = [\"sh check.sh\", {:?}]", format!("test -e deps/made && ! {dial}"));
    let part = |id: &str| format!("write parts/{id}.txt \"part {id}\\n\"");
    let plan = Plan::new(&format!("land = \"auto\"\nsetup = [{setup:?}]"));
    let plan = plan.task("one", &part("one"), &keys("writes = [\"parts/one.txt\"]"));
    world.plan(&plan.task("two", &part("two"), &keys("writes = [\"parts/two.txt\"]\nneeds = [\"one\"]")));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
}

#[test]
fn a_setup_that_fails_is_told_and_costs_no_agent_anything() {
    let world = World::new();
    world.plan(&Plan::new("setup = [\"echo no such registry >&2; exit 7\"]").part("one"));
    world.run(&["run", "--yes"]).ends(5).says("no such registry");
    let task = world.task("one");
    assert_eq!((&task["state"], &task["cause"]), (&"failed".into(), &"setup".into()), "{task:#}");
    assert!(world.provider.model_requests().is_empty(), "no token was spent");
    world.nothing_is_left();
}

#[test]
fn a_home_whose_path_is_longer_than_a_sockets_may_be_works_after_the_temp_folder_has_changed() {
    let world = World::in_folder(&"x".repeat(200), Script::default());
    world.plan(&Plan::new("land = \"auto\"").task("one", "run \"sleep 2\"\nwrite parts/one.txt \"part one\\n\"", ""));
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    run.kill_9();
    // The shim waits in the home for the next engine, whatever became of the folder that was for temporary files.
    let other = world.env.root().join("another temp");
    std::fs::create_dir(&other).unwrap();
    let mut command = world.command(&["resume"]);
    command.env("TMPDIR", &other);
    Running::of(command).end().ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 1, "its agent went on");
}
