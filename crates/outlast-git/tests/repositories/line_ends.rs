//! Files that git converts on their way to disk and back: whatever an agent wrote comes back byte for byte.

use std::path::Path;

use outlast_git::Pinned;

use crate::fixture::{World, git, write};
use crate::restores::lose_and_restore;

/// Every kind of file, in a folder.
fn every_kind(path: &Path, folder: &str) {
    let utf16: Vec<u8> = "ein Wort\nnoch eins\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let files: [(&str, &[u8]); 10] = [
        ("lf.txt", b"one\ntwo\n"),
        ("crlf.txt", b"one\r\ntwo\r\n"),
        ("mixed.txt", b"one\r\ntwo\nthree\r\n"),
        ("binary.bin", b"a\0\r\n\n\xff"),
        ("ident.c", b"/* $Id: by hand $ */\n"),
        ("fresh.c", b"/* $Id$ */\r\n"),
        ("little.utf16", &utf16),
        ("with-mark.utf16", &[&[0xff, 0xfe][..], &utf16].concat()),
        ("broken.utf16", b"\xff"),
        ("filtered.up", b"Not All Upper\r\n"),
    ];
    for (name, bytes) in files {
        write(path, &format!("{folder}/{name}"), bytes);
    }
}

/// Works in a repository with these settings, and loses the workspace after each step.
fn comes_back(attributes: &str, config: &[(&str, &str)]) {
    let world = World::with(|repo| {
        for (key, value) in config {
            git(repo, &["config", key, value]);
        }
        every_kind(repo, "base");
        // Git refuses to add these where they are to be UTF-16.
        for name in ["broken", "little"] {
            std::fs::remove_file(repo.join(format!("base/{name}.utf16"))).unwrap();
        }
        write(repo, ".gitattributes", attributes);
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "converted"]);
    });
    let workspace = world.workspace("t");
    let path = workspace.path();
    lose_and_restore(&world, &workspace);
    every_kind(path, "new");
    for name in ["base/lf.txt", "base/crlf.txt"] {
        write(path, name, "changed\r\nin both\n");
    }
    lose_and_restore(&world, &workspace);
    assert_eq!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::Yes);
    // Only the line ends are others: the tree is the same, the file is not.
    write(path, "new/lf.txt", "one\r\ntwo\r\n");
    write(path, "new/crlf.txt", "one\ntwo\n");
    assert!(matches!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::No(_)));
    lose_and_restore(&world, &workspace);
    // The agent's own repository converts in another way than the user's.
    git(path, &["config", "core.autocrlf", "true"]);
    write(path, ".gitattributes", "*.txt text eol=lf\n");
    write(path, "new/mixed.txt", "again\r\nin both\n");
    git(path, &["add", "-A"]);
    std::fs::remove_file(path.join("new/binary.bin")).unwrap();
    let kept = world.checkpoint(&workspace, "t");
    let before = crate::restores::tree(path);
    std::fs::remove_dir_all(path).unwrap();
    let spec = outlast_git::Spec { restore: Some(kept.commit.clone()), ..world.spec("t") };
    let back = outlast_git::Workspace::create(&world.user, &world.store, &spec).unwrap();
    assert_eq!(crate::restores::tree(back.path()), before);
    assert_eq!(world.checkpoint(&back, "t").tree, kept.tree);
}

#[test]
fn line_ends_by_attribute_come_back() {
    comes_back("* text eol=crlf\n*.bin -text\n*.utf16 -text\n", &[]);
    comes_back("* text=auto eol=lf\n", &[]);
}

#[test]
fn line_ends_by_configuration_come_back() {
    for value in ["true", "input"] {
        comes_back("*.bin binary\n", &[("core.autocrlf", value), ("core.safecrlf", "false")]);
    }
}

#[test]
fn identifiers_encodings_and_filters_come_back() {
    let attributes =
        "*.c ident\n*.utf16 text working-tree-encoding=UTF-16\n*.up filter=upper\n*.txt text=auto eol=crlf\n";
    comes_back(attributes, &[("filter.upper.clean", "tr a-z A-Z"), ("filter.upper.smudge", "cat")]);
}

#[test]
fn h15_what_is_remembered_of_converted_files_is_found_out_again_where_it_holds_garbage() {
    let world = World::with(|repo| {
        write(repo, ".gitattributes", "*.txt text\n");
        git(repo, &["add", "-A"]);
        git(repo, &["commit", "-qm", "converted"]);
    });
    let workspace = world.workspace("t");
    write(workspace.path(), "crlf.txt", "one\r\ntwo\r\n");
    let kept = world.checkpoint(&workspace, "t");
    let folder = format!("outlast/workspaces/{}/t.d", world.run);
    let raw = world.store.path().join(folder).join("raw");
    assert!(!std::fs::read(&raw).unwrap().is_empty());
    std::fs::write(&raw, "\u{1}garbage").unwrap();
    assert!(workspace.pinned(&world.store, &world.user).is_err());
    let spec = world.checkpoint_spec("t", Some(&kept));
    workspace.checkpoint(&world.store, &world.user, &spec).unwrap();
    assert_eq!(std::fs::read(raw.with_extension("damaged")).unwrap(), b"\x01garbage", "it is kept");
    assert_eq!(workspace.pinned(&world.store, &world.user).unwrap(), Pinned::Yes);
    lose_and_restore(&world, &workspace);
    assert_eq!(std::fs::read(workspace.path().join("crlf.txt")).unwrap(), b"one\r\ntwo\r\n");
}
