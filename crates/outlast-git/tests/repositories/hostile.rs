//! An agent plants programs wherever git would run them; none of them runs outside its sandbox.

use std::path::Path;

use outlast_git::{Integration, Note, Pinned, Removal, Scope, Spec, Workspace};

use crate::fixture::{World, executable, git, write};

/// Plants every trap known, each of which makes the file `canary`.
fn plant(path: &Path, canary: &Path) {
    let touch = format!("touch '{}'", canary.display());
    let script = format!("#!/bin/sh\n{touch}\n");
    let set = |key: &str, value: &str| {
        let text = std::fs::read_to_string(path.join(".git/config")).unwrap();
        let (section, name) = key.rsplit_once('.').unwrap();
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        std::fs::write(path.join(".git/config"), format!("{text}{header}\n{name} = \"{value}\"\n")).unwrap();
    };
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "filter.mine.clean",
        "filter.mine.smudge",
        "diff.external",
        "diff.evil.textconv",
        "merge.evil.driver",
        "gpg.program",
        "uploadpack.packObjectsHook",
        "core.alternateRefsCommand",
        "credential.helper",
    ] {
        set(key, &touch);
    }
    set("commit.gpgsign", "true");
    set("core.hooksPath", ".husky");
    for hook in ["pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-merge", "update"] {
        executable(path, &format!(".git/hooks/{hook}"), &script);
        executable(path, &format!(".husky/{hook}"), &script);
    }
    // A filter that the user configured as a script of the tree: the agent rewrites the script.
    executable(path, "tools/filter.sh", &format!("{script}cat\n"));
    write(path, ".gitattributes", "* filter=evil diff=evil merge=evil\n*.md filter=mine\n");
    write(path, ".git/info/attributes", "* filter=evil merge=evil\n");
    write(path, "README.md", "changed by the agent\n");
    write(path, "src/new.md", "new\n");
}

#[test]
fn nothing_that_an_agent_plants_runs() {
    let world = World::with(|repo| {
        executable(repo, "tools/filter.sh", "#!/bin/sh\ncat\n");
        write(repo, ".gitattributes", "*.md filter=mine\n");
        git(repo, &["config", "filter.mine.clean", "tools/filter.sh"]);
        git(repo, &["config", "filter.mine.smudge", "tools/filter.sh"]);
        git(repo, &["config", "merge.evil.driver", "false"]);
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "filter"]);
    });
    let canary = world.dir.path().join("canary");
    let workspace = world.workspace("t");
    plant(workspace.path(), &canary);

    let end = world.checkpoint(&workspace, "t");
    let again = world.checkpoint(&workspace, "t");
    assert_eq!(end, again);
    let split = world.store.scope_diff(&world.base, &end.commit, &Scope::everything()).unwrap();
    assert!(split.in_scope.len() > 8, "{:?}", split.in_scope);
    let tree = world.store.in_scope_tree(&world.base, &split).unwrap();
    let result = world
        .store
        .keep_result(&world.run, &"t".into(), &world.base, &tree, &crate::fixture::ann(), crate::fixture::at(1))
        .unwrap();
    workspace.pinned(&world.store, &world.user).unwrap();

    // The target moved, so that a real merge is needed.
    write(&world.repo, "docs/guide.md", "moved on\n");
    git(&world.repo, &["commit", "-qam", "moved on"]);
    let tip = world.user.head().unwrap().commit;
    let candidate = world.ready("t", &end, &tip);
    let integration = Integration::new(world.dir.path().join("integration"));
    for commit in [&candidate.commit, &tip, &candidate.commit] {
        integration.checkout(&world.user, &world.store, &world.base, commit).unwrap();
    }
    assert_eq!(crate::fixture::read(integration.path(), "README.md"), "changed by the agent\n");

    // A task that needs this result starts with the rewritten filter in its tree.
    let outlast_git::Merged::Clean(composed) = world.store.compose(&world.user, &world.base, &[result]).unwrap() else {
        panic!("conflict")
    };
    let spec = Spec { base: composed, ..world.spec("next") };
    let next = Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!(crate::fixture::read(next.path(), "README.md"), "changed by the agent\n");

    let step = world.published("t", "outlast/run-1", None, &candidate);
    world.user.move_target(&world.store, &step).unwrap();
    workspace.archive(&world.store, &world.user, Some(&end.commit)).unwrap();
    workspace.remove(&world.store, &world.user, &Removal::Safe { users: &|_| Vec::new() }).unwrap();
    assert!(!canary.exists(), "a planted program ran");
}

#[test]
fn the_planted_programs_would_run_in_an_ordinary_git() {
    let world = World::new();
    let canary = world.dir.path().join("canary");
    let workspace = world.workspace("t");
    plant(workspace.path(), &canary);
    crate::fixture::try_git(workspace.path(), &["status"]);
    assert!(canary.exists(), "the traps of these tests are set wrongly");
}

#[test]
fn nothing_is_read_through_a_link_that_an_agent_put_in_the_way() {
    let world = World::new();
    let secret = world.dir.path().join("secret");
    write(&secret, "a.rs", "the user's key");
    let workspace = world.workspace("t");
    let path = workspace.path();
    std::fs::remove_dir_all(path.join("src")).unwrap();
    std::os::unix::fs::symlink(&secret, path.join("src")).unwrap();
    std::fs::remove_file(path.join(".git/HEAD")).unwrap();
    std::os::unix::fs::symlink(secret.join("a.rs"), path.join(".git/HEAD")).unwrap();
    std::fs::remove_file(path.join(".gitignore")).unwrap();
    nix::unistd::mkfifo(&path.join(".gitignore"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let checkpoint = world.checkpoint(&workspace, "t");
    assert_eq!(checkpoint.head, None);
    let listed =
        git(world.store.path(), &["ls-tree", "-r", "--format=%(objectmode) %(path)", checkpoint.commit.as_str()]);
    assert!(listed.contains("120000 src") && !listed.contains("src/"), "{listed}");
    workspace.remove(&world.store, &world.user, &Removal::Forced).unwrap();
    assert_eq!(crate::fixture::read(&secret, "a.rs"), "the user's key");
}

#[test]
fn packs_of_any_size_cost_the_agents_commits_and_not_the_tree() {
    let world = World::new();
    let workspace = world.workspace("t");
    let path = workspace.path();
    write(path, "work.txt", "done\n");
    git(path, &["add", "-A"]);
    git(path, &["-c", "user.name=Agent", "-c", "user.email=a@example.org", "commit", "-qm", "by the agent"]);
    git(path, &["repack", "-adlq"]);
    let whole = world.checkpoint(&workspace, "t");
    assert!(whole.notes.is_empty(), "{:?}", whole.notes);

    git(path, &["-c", "user.name=Agent", "-c", "user.email=a@example.org", "commit", "-qm", "again", "--allow-empty"]);
    git(path, &["repack", "-adlq"]);
    // A hundred gigabytes that take no room: reading them would take for ever.
    let planted = path.join(".git/objects/pack/pack-planted.pack");
    std::fs::File::create(planted).unwrap().set_len(100 << 30).unwrap();
    write(path, "more.txt", "also done\n");
    let kept = world.checkpoint(&workspace, "t");
    assert_eq!(world.text(&kept.commit, "more.txt"), "also done");
    let [Note::HeadNotCopied { why, .. }] = kept.notes.as_slice() else { panic!("{:?}", kept.notes) };
    assert!(why.contains(" bytes or more in 3 files of packs"), "{why}");
    let Pinned::No(open) = workspace.pinned(&world.store, &world.user).unwrap() else { panic!("the commit is pinned") };
    assert!(open.iter().any(|what| what.contains("is not in the store")), "{open:?}");
}
