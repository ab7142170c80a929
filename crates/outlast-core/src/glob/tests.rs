//! Globs against hand-picked paths, against a second implementation, and against hostile patterns.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use globset::GlobBuilder;
use proptest::prelude::*;

use super::*;

/// Every path over `a`, `b`, `c` with up to three segments of up to two characters.
fn paths() -> Vec<String> {
    let letters = ["a", "b", "c"];
    let pairs = letters.iter().flat_map(|a| letters.map(|b| format!("{a}{b}")));
    let segments: Vec<String> = letters.iter().map(|&a| a.to_owned()).chain(pairs).collect();
    let beneath = |paths: &[String]| -> Vec<String> {
        paths.iter().flat_map(|p| segments.iter().map(move |s| format!("{p}/{s}"))).collect()
    };
    let two = beneath(&segments);
    let three = beneath(&two);
    [segments, two, three].concat()
}

fn matched(glob: &str, paths: &[String]) -> Vec<String> {
    let matcher = GlobBuilder::new(glob).literal_separator(true).build().unwrap().compile_matcher();
    paths.iter().filter(|path| matcher.is_match(path.as_str())).cloned().collect()
}

/// Whether the two lists hold the same path, or one a path beneath a path of the other.
fn share(a: &[String], b: &[String]) -> bool {
    let reaches = |from: &[String], to: &[String]| {
        let to: BTreeSet<&str> = to.iter().map(String::as_str).collect();
        let ends = |p: &str| p.match_indices('/').map(|(i, _)| i).chain([p.len()]).collect::<Vec<_>>();
        from.iter().any(|p| ends(p).into_iter().any(|end| to.contains(&p[..end])))
    };
    reaches(a, b) || reaches(b, a)
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[abc]{1,2}",
        2 => Just("*".to_owned()),
        2 => Just("**".to_owned()),
        2 => "[abc][*?]|[*?][abc]",
        1 => Just("[ab]".to_owned()),
        1 => Just("[!a]b".to_owned()),
        1 => Just("[a-b]?".to_owned()),
        1 => Just("{a,bb}".to_owned()),
        1 => Just("{a*,c,{b,c}a}".to_owned()),
    ]
}

fn glob() -> impl Strategy<Value = String> {
    prop::collection::vec(segment(), 1..4).prop_map(|segments| segments.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn overlap_agrees_with_looking_at_every_path(a in glob(), b in glob()) {
        let paths = paths();
        let witness = share(&matched(&a, &paths), &matched(&b, &paths));
        let overlap_found = overlap(&a, &b);
        prop_assert!(overlap_found || !witness, "missed: {} {}", &a, &b);
        // Only up to two segments each is every possible witness among the paths.
        if a.matches('/').count() < 2 && b.matches('/').count() < 2 {
            prop_assert!(witness || !overlap_found, "made up: {} {}", &a, &b);
        }
        prop_assert_eq!(overlap(&b, &a), overlap_found);
    }

    #[test]
    fn matching_agrees_with_globset(glob in glob()) {
        let paths = paths();
        let compiled = Glob::parse(&glob).unwrap();
        let ours: Vec<String> = paths.iter().filter(|path| compiled.matches(path.as_bytes())).cloned().collect();
        prop_assert_eq!(ours, matched(&glob, &paths));
    }

    #[test]
    fn no_text_panics(a in ".{0,40}", b in r"[a/*?{},\\\[\]!-]{0,30}") {
        let _ = overlap(&a, &b);
    }
}

#[test]
fn a_directory_overlaps_what_lies_beneath_it() {
    assert!(overlap("src/foo/**", "src/foo"));
    assert!(overlap("src/foo", "src/foo/bar.rs"));
    assert!(overlap("src/foo/", "src/foo/bar.rs"));
    assert!(overlap("src", "src/a/*.rs"));
    assert!(!overlap("src/foo/**", "src/foobar"));
    assert!(!overlap("src/foo", "src/foo.rs"));
}

#[test]
fn files_that_do_not_exist_overlap_too() {
    assert!(overlap("a*c", "ab*"));
    assert!(overlap("**/new.rs", "src/*.rs"));
    assert!(overlap("{src,tests}/**", "tests/x"));
    assert!(overlap("{src/**,docs/*.md}", "docs/a.md"));
    assert!(!overlap("*.rs", "*.md"));
    assert!(!overlap("src/*.rs", "src/a/b.rs"));
    assert!(!overlap("a/*/b", "a//b"));
    assert!(!overlap("[ab].rs", "[!ab].rs"));
}

#[test]
fn e22_characters_are_not_bytes() {
    assert!(Glob::parse("文?.md").unwrap().matches("文档.md".as_bytes()));
    assert!(Glob::parse("a?").unwrap().matches(b"a\xff"));
    assert!(Glob::parse("[一-龥].md").unwrap().matches("文.md".as_bytes()));
    assert!(!overlap("文.md", "档.md"));
    assert!(Glob::parse(r"a\*").unwrap().matches(b"a*") && !Glob::parse(r"a\*").unwrap().matches(b"ab"));
}

#[test]
fn covering_includes_what_lies_beneath() {
    let glob = Glob::parse("src/*").unwrap();
    assert!(glob.covers(b"src/a/b/c.rs") && glob.covers(b"src/a") && !glob.covers(b"src"));
    assert!(!glob.matches(b"src/a/b/c.rs"));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the stopwatch of this test")]
fn hostile_globs_cost_little() {
    let directories = "**/*a/".repeat(50);
    let stars = "*a".repeat(50);
    let choices = "{a,aa,a*}".repeat(50);
    let started = Instant::now();
    assert!(overlap(&directories, &directories));
    assert!(!overlap(&format!("{stars}b"), &format!("{stars}c")));
    assert!(!overlap(&format!("{choices}b"), &format!("{choices}c")));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn texts_that_are_no_globs_say_why() {
    let error = |glob: &str| Glob::parse(glob).unwrap_err();
    assert_eq!(error(""), Error::Empty);
    assert_eq!(error("a[b"), Error::UnclosedClass);
    assert_eq!(error("[z-a]"), Error::BackwardRange('z', 'a'));
    assert_eq!(error("{a,b"), Error::UnpairedBrace);
    assert_eq!(error("a}b"), Error::UnpairedBrace);
    assert_eq!(error(&"{".repeat(20)), Error::TooDeep);
    assert_eq!(error("{a/**,b}/c"), Error::DirectoriesInChoice);
    assert_eq!(error(r"a\"), Error::DanglingEscape);
    assert_eq!(error(&"a".repeat(2000)), Error::TooLong(2000));
    assert!(overlap("a[b", "c"));
}

proptest! {
    /// The quick look may only ever say what the full reading says.
    #[test]
    fn a_quick_look_agrees_with_the_full_reading(a in r"[ab/*?\[{}\\]{0,8}", b in r"[ab/*?\[{}\\]{0,8}") {
        if plainly_apart(&a, &b) {
            let (a, b) = (Glob::parse(&a).unwrap(), Glob::parse(&b).unwrap());
            prop_assert!(!a.overlaps(&b));
        }
    }
}
