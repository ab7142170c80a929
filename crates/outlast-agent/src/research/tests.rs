//! Plain shell commands, patches, scripts and followed edits; see `tests/research.rs` for whole conversations.

use outlast_core::research::EditKind;

use super::files::{Files, text_hash};
use super::patch::{self, FilePatch, Hunk};
use super::shell::{self, Plain};
use super::{Change, Shown, script};

fn read(path: &str, from: Option<u64>, part: bool, numbered: bool) -> Option<Plain> {
    Some(Plain::Read { path: path.to_owned(), from, part, numbered })
}

#[test]
fn commands_that_only_show_a_file_are_reads() {
    for (command, expected) in [
        ("cat -- 'it'\\''s here.txt'", read("it's here.txt", Some(1), false, false)),
        ("cat \"a b\"", read("a b", Some(1), false, false)),
        ("cd src && cat main.rs", read("src/main.rs", Some(1), false, false)),
        ("sed -n '5,20p' a.rs", read("a.rs", Some(5), true, false)),
        ("sed -n 5p a.rs", read("a.rs", Some(5), true, false)),
        ("nl -ba a.rs | sed -n '1,200p'", read("a.rs", Some(1), true, true)),
        ("cat a.rs | head -20", read("a.rs", Some(1), true, false)),
        ("head -n 5 a", read("a", Some(1), true, false)),
        ("tail -5 a", read("a", None, true, false)),
        ("rg -n 'a|b' src", Some(Plain::Look)),
        ("ls -la", Some(Plain::Look)),
        ("find . -name x", Some(Plain::Look)),
    ] {
        assert_eq!(shell::plain(command), expected, "{command}");
    }
}

#[test]
fn commands_that_do_more_are_commands() {
    for command in [
        "cat a > b",
        "cat a b",
        "cat $(rm x)",
        "cat \"$HOME\"",
        "cat a; rm a",
        "cat a && rm a",
        "cat a | sh",
        "cat *.rs",
        "sed -i s/a/b/ x",
        "sed -n 'w out' x",
        "find . -delete",
        "find . -exec rm {} +",
        "git commit -m x",
        "pytest -q",
        "cat 'unclosed",
        "",
    ] {
        assert_eq!(shell::plain(command), None, "{command}");
    }
    assert_eq!(shell::unwrapped("bash -lc 'cat a'"), "cat a");
    assert_eq!(shell::unwrapped("bash -lc cat a"), "bash -lc cat a");
}

#[test]
fn a_patch_is_read_alone_and_within_a_command() {
    let text = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+one\n+\n*** Update File: b\n*** Move to: c\n@@ fn x\n one\n-two\n+2\n@@\n-x\n\n+y\n*** Delete File: d\n*** End Patch\nEOF\n";
    let hunks = vec![
        Hunk { old: "one\ntwo\n".into(), new: "one\n2\n".into() },
        Hunk { old: "x\n\n".into(), new: "\ny\n".into() },
    ];
    let expected = [
        FilePatch::Add { path: "a".into(), text: "one\n\n".into() },
        FilePatch::Update { path: "b".into(), hunks, to: Some("c".into()) },
        FilePatch::Delete { path: "d".into() },
    ];
    assert_eq!(patch::parse(text), expected);
    assert!(patch::parse("no patch").is_empty());
}

#[test]
fn calls_are_found_in_a_script() {
    let source = "const a = await tools.exec_command({\"cmd\":\"ls \\\"x\\\"\"});\nawait tools.exec_command({cmd: 'cat \\'a\\'', yield_time_ms: 1});\ntools.apply_patch(`*** Begin\n${x}`); tools.apply_patch(`*** Begin`); tools.y; tools.z(";
    let calls = script::calls(source);
    let names: Vec<&str> = calls.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["exec_command", "exec_command", "apply_patch"]);
    assert_eq!((&calls[0].1["cmd"], &calls[1].1["cmd"]), (&"ls \"x\"".into(), &"cat 'a'".into()));
    assert_eq!(calls[2].1, "*** Begin");
}

fn shown(text: &str, first: u64, whole: bool) -> Option<Shown> {
    Some(Shown { text: text.to_owned(), first, whole })
}

fn change(old: &str, new: &str, all: bool) -> Change {
    Change { old: old.to_owned(), new: new.to_owned(), all }
}

#[test]
fn a_file_is_followed_through_edits_and_lost_where_they_cannot_be() {
    let mut files = Files::default();
    files.read("a", shown("x = 1\ny = 1\n", 1, true));
    files.edited("a", &[change("x = 1", "x = 2", false), change("1", "3", true)]);
    files.read("part", shown("l3\nl4", 3, false));
    files.read("part", shown("l5\n", 5, false));
    files.read("lost", shown("seen\n", 1, true));
    files.edited("lost", &[change("unseen", "x", false)]);
    files.written("new", "text");
    files.read("gone", shown("x", 1, true));
    files.deleted("gone");
    files.read("moved", shown("one\n", 1, true));
    files.patched("moved", &[Hunk { old: "one\n".into(), new: "two\n".into() }], Some("there"));
    let (read, edits) = files.finish();
    let of = |path: &str| read.iter().find(|file| file.path == path).unwrap();
    assert_eq!(
        (of("a").text.as_deref(), of("a").hash.clone()),
        (Some("x = 2\ny = 3\n"), Some(text_hash(b"x = 2\ny = 3")))
    );
    assert_eq!(
        (of("part").text.as_deref(), of("part").first_line, of("part").hash.as_ref()),
        (Some("l3\nl4\nl5\n"), Some(3), None)
    );
    assert!(of("lost").outdated && of("lost").hash.is_none());
    assert!(of("gone").outdated && of("gone").text.is_none());
    let edits: Vec<_> = edits.iter().map(|edit| (&*edit.path, edit.kind, edit.text.as_deref())).collect();
    let expected = [
        ("a", EditKind::Changed, None),
        ("lost", EditKind::Changed, None),
        ("new", EditKind::Written, Some("text")),
        ("gone", EditKind::Deleted, None),
        ("moved", EditKind::Deleted, None),
        ("there", EditKind::Written, Some("two\n")),
    ];
    assert_eq!(edits, expected);
}

#[test]
fn a_hash_is_of_the_lines_and_not_of_their_ends() {
    assert_eq!(text_hash(b"a\nb\n"), text_hash(b"\xef\xbb\xbfa\r\nb"));
    assert_ne!(text_hash(b"a\nb"), text_hash(b"a\n\nb"));
    assert_ne!(text_hash(b"a\rb"), text_hash(b"ab"));
    assert_eq!(text_hash(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn what_is_added_to_a_file_is_known_as_far_as_the_file_was() {
    let mut files = Files::default();
    files.read("whole", Some(Shown { text: "a\n".to_owned(), first: 1, whole: true }));
    files.read("part", Some(Shown { text: "a\n".to_owned(), first: 3, whole: false }));
    for path in ["whole", "part", "unseen"] {
        files.appended(path, "b\n");
    }
    let (read, edits) = files.finish();
    assert_eq!((read[0].hash.clone(), read[0].outdated), (Some(text_hash(b"a\nb\n")), false));
    assert!(read[1].outdated);
    let kinds: Vec<_> = edits.iter().map(|edit| (&*edit.path, edit.kind, edit.hash.is_some())).collect();
    let changed = EditKind::Changed;
    assert_eq!(kinds, [("whole", changed, true), ("part", changed, false), ("unseen", changed, false)]);
}
