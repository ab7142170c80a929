//! The cases of group E on the real binary: what a run starts from, what it refuses, what it says of a repository.

use outlast_testkit::fixture::Repo;
use outlast_testkit::provider::{Fault, Rule, Script, When};

use crate::running::Running;
use crate::user::Snapshot;
use crate::world::{Plan, World};

fn landing() -> Plan {
    Plan::new("land = \"auto\"").part("one")
}

/// The parent of the only commit that landed.
fn lands_on(world: &World, base: &str) {
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.repo.commit_id(&format!("{}^", world.target())).unwrap(), base);
}

#[test]
fn e01_thirteen_tasks_land_while_somebody_holds_every_lock_of_the_repository() {
    let world = World::new();
    let mut plan = Plan::new("land = \"auto\"\nconcurrency = 13");
    for number in 1..=13 {
        plan = plan.part(&format!("t{number}"));
    }
    world.plan(&plan);
    let locks = ["index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock", "gc.pid"];
    for lock in locks {
        world.repo.write(format!(".git/{lock}"), "").unwrap();
    }
    // None of them is waited for, and none is ours to remove.
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    for lock in locks {
        let lock = world.repo.dir().join(".git").join(lock);
        assert!(lock.exists(), "{} is not ours to remove", lock.display());
    }
}

#[test]
fn e01_what_a_killed_git_has_locked_in_its_own_workspace_keeps_nobody_from_going_on() {
    let world = World::new();
    let locks = ".git/index.lock .git/HEAD.lock .git/config.lock .git/refs/heads/outlast/one.lock";
    // Its git was killed, and it with it; the next one writes nothing before it has committed.
    let killed = format!("test -e tried || {{ touch tried {locks}; kill -9 $PPID; }}");
    let commit = "git -c user.name=a -c user.email=a@b commit --allow-empty -qm mine && git update-ref refs/heads/outlast/one HEAD";
    let made = "rm tried && mkdir -p parts && echo 'part one' > parts/one.txt";
    let script = format!("run {killed}\nrun {commit} && {made}");
    world.plan(&Plan::new("land = \"auto\"").task("one", &script, "writes = [\"parts/one.txt\"]\nretries = 0"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2, "{:#}", world.task("one"));
}

#[test]
fn h15_a_workspace_whose_repository_a_crash_has_damaged_is_mended_before_anybody_goes_on_in_it() {
    let world = World::new();
    // As a power cut leaves them: without a byte, or with what was on the disk before.
    let files = "index HEAD objects/info/alternates refs/heads/outlast/one";
    let damage = format!("for f in {files}; do : > .git/$f; done; head -c 300 /dev/zero > .git/config");
    let killed = format!("test -e tried || {{ touch tried; {damage}; kill -9 $PPID; }}");
    let part = "mkdir -p parts && echo 'part one' > parts/one.txt && git add parts";
    let commit = "git diff --cached --quiet; test $? = 1 && git commit -qm mine && git fsck && rm tried";
    let script = format!("run {part}\nrun {killed}\nrun {commit}");
    world.plan(&Plan::new("land = \"auto\"").task("one", &script, "writes = [\"parts/one.txt\"]\nretries = 0"));
    let told = world.run(&["run", "--yes"]).ends(0);
    told.says("the repository in its workspace was damaged");
    world.all_are("landed");
    assert_eq!(world.task("one")["attempts"], 2, "{:#}", world.task("one"));
}

#[test]
fn e07_a_run_starts_from_what_is_checked_out_ten_commits_ahead_or_on_an_orphan() {
    let world = World::new();
    world.plan(&landing());
    world.repo.git(&["checkout", "--quiet", "-b", "feature"]).unwrap();
    for number in 0..10 {
        world.repo.commit_file("number", number.to_string(), "more").unwrap();
    }
    lands_on(&world, &world.repo.commit_id("feature").unwrap());

    world.repo.git(&["checkout", "--quiet", "--orphan", "fresh"]).unwrap();
    world.repo.commit("root").unwrap();
    let root = world.repo.commit_id("fresh").unwrap();
    assert!(world.repo.commit_id("fresh^").is_err());
    lands_on(&world, &root);
}

#[test]
fn e21_without_a_name_nothing_starts() {
    let world = World::new();
    world.repo.git(&["config", "--unset", "user.email"]).unwrap();
    world.plan(&landing());
    let user = Snapshot::of(&world.repo, None);
    let mut command = world.command(&["run", "--yes"]);
    command.env_remove("GIT_AUTHOR_EMAIL").env_remove("GIT_COMMITTER_EMAIL").env_remove("EMAIL");
    Running::of(command).end().ends(4).says("user.email");
    user.is_untouched("refused");
    assert!(world.provider.model_requests().is_empty());
}

#[test]
fn e22_names_with_line_ends_quotes_and_tabs_land_and_are_shown() {
    let world = World::new();
    let script = "run \"mkdir -p odd && printf x > \\\"$(printf 'odd/a\\\\nb\\\\t\\\\042c\\\\042')\\\"\"";
    world.plan(&Plan::new("land = \"auto\"").task("one", script, "writes = [\"odd/**\"]"));
    world.run(&["run", "--yes"]).ends(0);
    world.all_are("landed");
    let tree = world.repo.git(&["ls-tree", "-r", "-z", "--name-only", &world.target(), "odd"]).unwrap();
    assert_eq!(String::from_utf8(tree).unwrap(), "odd/a\nb\t\"c\"\0");
    let shown = world.run(&["diff", "one", "--json"]).ends(0).json();
    assert_eq!(shown["files"][0]["path"], "odd/a\nb\t\"c\"", "{shown:#}");
}

#[test]
fn e23_a_target_that_collides_with_a_branch_is_refused_before_anything_starts() {
    let world = World::new();
    world.repo.git(&["branch", "agents"]).unwrap();
    world.plan(&Plan::new("land = \"auto\"\ntarget = \"Agents/run1\"").part("one"));
    let user = Snapshot::of(&world.repo, None);
    world.run(&["run", "--yes"]).ends(4).says("agents");
    user.is_untouched("refused");
}

#[test]
fn e27_a_home_inside_the_repository_is_refused() {
    let world = World::new();
    world.plan(&landing());
    let user = Snapshot::of(&world.repo, None);
    for home in ["state", "deep/state"] {
        let home = world.repo.dir().join(home);
        let mut command = world.command(&["run", "--yes"]);
        command.env("OUTLAST_HOME", &home);
        Running::of(command).end().ends(12).says("lies inside the repository").says("set OUTLAST_HOME");
    }
    user.is_untouched("refused");
    assert!(world.provider.model_requests().is_empty());
}

#[test]
fn a_home_inside_another_checkout_or_the_git_folder_is_refused_before_anything_is_made() {
    let world = World::new();
    world.plan(&landing());
    let other = world.env.root().join("other checkout");
    world.repo.git(&["worktree", "add", "-q", "--detach", &other.display().to_string()]).unwrap();
    let elsewhere = world.env.root().join("linked");
    std::os::unix::fs::symlink(&other, &elsewhere).unwrap();
    let user = Snapshot::of(&world.repo, None);
    for home in [other.join("state"), elsewhere.join("deep/state"), world.repo.dir().join(".git/outlast")] {
        let mut command = world.command(&["run", "--yes"]);
        command.env("OUTLAST_HOME", &home);
        Running::of(command).end().ends(12).says("lies inside the repository").says("set OUTLAST_HOME");
        assert!(!home.exists(), "{}", home.display());
    }
    // From the other checkout, the first one counts as well.
    let mut command = world.command(&["check"]);
    command.current_dir(&other).env("OUTLAST_HOME", world.repo.dir().join("state"));
    Running::of(command).end().ends(12).says("lies inside the repository");
    user.is_untouched("refused");
}

#[test]
fn a_home_that_cannot_be_named_is_refused_before_anything_is_made() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    world.plan(&landing());
    for (name, why) in [(&b"st\xffate"[..], "it is no UTF-8"), (b"st\nate", "it contains a line end")] {
        let home = world.env.root().join(std::ffi::OsStr::from_bytes(name));
        for arguments in [&["run", "--yes"][..], &["check"], &["status"], &[]] {
            let mut command = world.command(arguments);
            command.env("OUTLAST_HOME", &home);
            Running::of(command).end().ends(12).says("cannot be used").says(why).says("set OUTLAST_HOME");
        }
        assert!(!home.exists());
    }
}

#[test]
fn e18_a_change_of_the_repositorys_settings_during_a_run_is_said_once() {
    let pause = Fault::Hang { after_frames: 1, seconds: Some(1.0) };
    let rule = Rule { when: When { step: Some(1), ..When::default() }, fault: pause, times: Some(1) };
    let world = World::with_script(Script::default().with_fault(rule));
    world.plan(&landing());
    let run = world.start(&["run", "--yes"]);
    world.provider_saw("a request", |log| !log.is_empty());
    world.repo.git(&["config", "core.hooksPath", ".husky/_"]).unwrap();
    let ran = run.end().ends(0).says("somebody changed the settings of your repository");
    assert_eq!(ran.stderr.matches("changed the settings").count(), 1, "{}", ran.stderr);
}

#[test]
fn e17_e18_what_a_workspace_lacks_of_the_checkout_is_said_once() {
    let world = World::new();
    let repo: &Repo = &world.repo;
    repo.git(&["config", "core.hooksPath", ".husky/_"]).unwrap();
    repo.write(".gitignore", "outlast.toml\n.husky/_/\n").unwrap();
    repo.write(".gitattributes", "*.bin filter=lfs\n").unwrap();
    repo.write("big.bin", "version https://git-lfs.github.com/spec/v1\n").unwrap();
    repo.commit("hooks and large files").unwrap();
    repo.write(".husky/_/pre-commit", "#!/bin/sh\n").unwrap();
    world.plan(&landing().part("two"));
    let ran = world.run(&["run", "--yes"]).ends(0).says("`.husky/_`").says("lfs");
    assert_eq!(ran.stderr.matches(".husky/_").count(), 1, "{}", ran.stderr);
}
