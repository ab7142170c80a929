//! Repositories that are refused: exit code 4, what to do, and not a byte of them changed.

use std::fs;

use outlast_testkit::fixture::Odd;

use crate::bench::Bench;

const PLAN: &str = "[agent.a]\nkind = \"command\"\ncommand = [\"true\"]\n[[task]]\nid = \"t\"\ngoal = \"g\"\n";

#[track_caller]
fn is_refused(shape: Odd, code: &str) {
    let bench = Bench::odd(shape);
    bench.plan(PLAN);
    let before = bench.files();
    for command in [&["run", "--yes", "--json"][..], &["check", "--json"], &["init", "--json"]] {
        let error = bench.run(command).fails(4, code);
        assert!(!error["error"]["why"].as_array().unwrap().is_empty(), "{error:#}");
    }
    before.assert_same(&bench.files(), "nothing is changed");
}

#[test]
fn e21_a_repository_without_a_commit_is_refused() {
    is_refused(Odd::Empty, "repository/no-commit");
    is_refused(Odd::Orphan, "repository/no-commit");
}

#[test]
fn an_unfinished_operation_is_refused() {
    is_refused(Odd::MidRebase, "repository/operation-in-progress");
    is_refused(Odd::MidMerge, "repository/operation-in-progress");
}

#[test]
fn a_branch_in_the_place_of_the_runs_own_is_told_before_anybody_says_yes() {
    let bench = Bench::new();
    bench.plan(PLAN);
    bench.repo.git(&["branch", "outlast"]).unwrap();
    let before = bench.files();
    for command in
        [&["check", "--json"][..], &["run", "--dry-run", "--json"], &["run", "--json"], &["run", "--yes", "--json"]]
    {
        let error = bench.run(command).fails(4, "repository/target-collides");
        assert!(error["error"]["what"].as_str().unwrap().contains("`outlast`"), "{error:#}");
    }
    before.assert_same(&bench.files(), "nothing is changed");
}

#[test]
fn shapes_that_are_not_supported_yet_are_refused() {
    is_refused(Odd::Shallow, "repository/shallow-clone");
    is_refused(Odd::Partial, "repository/partial-clone");
    is_refused(Odd::Submodule, "repository/submodules");
    is_refused(Odd::Sha256, "repository/sha256-repository");
    is_refused(Odd::UnknownExtension, "repository/unknown-extension");
}

#[test]
fn outside_of_a_repository_nothing_is_made() {
    let bench = Bench::new();
    for command in
        [&["run", "--yes", "--json"][..], &["check", "--json"], &["init", "--json"], &["init", "--print", "--json"]]
    {
        bench.run_outside(command).fails(4, "repository/not-a-repository");
    }
    assert_eq!(fs::read_dir(bench.env.home()).unwrap().count(), 0);
    assert_eq!(fs::read_dir(bench.env.outlast_home()).unwrap().count(), 0);
}

#[test]
fn another_repository_in_the_place_of_a_runs_own_is_told_with_what_helps() {
    let bench = Bench::new();
    bench.plan(
        "[agent.a]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"echo x > t.txt\"]\n[[task]]\nid = \"t\"\ngoal = \"g\"\n",
    );
    bench.run(&["run", "--yes"]).ends(0);
    let (place, own) = (bench.repo.dir().to_owned(), bench.env.root().join("own"));
    std::fs::rename(&place, &own).unwrap();
    let other = bench.env.repo("repo").unwrap();
    other.commit_file("other.txt", "other\n", "Other").unwrap();
    for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
        other.git(&["config", key, value]).unwrap();
    }
    let told = bench.run(&["land", "t"]).shows("another repository is at ").code;
    assert_ne!(told, 0);
    assert_eq!(other.text(&["log", "--format=%s"]).unwrap(), "Other");
    // With its own back, all is as it was.
    std::fs::rename(&place, bench.env.root().join("repo.other")).unwrap();
    std::fs::rename(&own, &place).unwrap();
    bench.run(&["land", "t"]).ends(0).shows("landed");
}
