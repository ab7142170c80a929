//! Finding and reading a plan's files on disk.

use super::*;

fn repository(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn names(files: &PlanFiles) -> Vec<&str> {
    let batch: Vec<&Source> = match &files.batch {
        Batch::None => Vec::new(),
        Batch::File(source) => vec![source],
        Batch::Folder(sources) => sources.iter().collect(),
    };
    files.project.iter().chain(batch).map(Source::name).collect()
}

#[test]
fn a_plan_is_found_by_name_and_by_path() {
    let root = repository(&[
        ("outlast.toml", b""),
        ("plans/migrate.toml", b""),
        ("plans/docs/b.md", b""),
        ("plans/docs/a.md", b""),
        ("plans/docs/notes.txt", b""),
        ("plans/docs/sub/c.md", b""),
        ("sub/other.toml", "\u{feff}".as_bytes()),
        ("文档/任务 一.md", b""),
    ]);
    let root = root.path();
    let load = |which| load_plan(root, root, Some(which)).unwrap();
    assert_eq!(
        (load("migrate").name.as_str(), names(&load("migrate"))),
        ("migrate", vec!["outlast.toml", "plans/migrate.toml"])
    );
    assert_eq!(names(&load("docs")), ["outlast.toml", "plans/docs/a.md", "plans/docs/b.md"]);
    assert_eq!(load("docs").ignored, ["notes.txt", "sub"]);
    assert_eq!(names(&load("sub/other.toml")), ["outlast.toml", "sub/other.toml"]);
    assert_eq!(
        names(&load_plan(root, &root.join("sub"), Some("other.toml")).unwrap()),
        ["outlast.toml", "sub/other.toml"]
    );
    assert_eq!(names(&load("文档/任务 一.md")), ["outlast.toml", "文档/任务 一.md"]);
    assert!(load("文档").name.starts_with("t-"));
    assert_eq!(names(&load("outlast.toml")), ["outlast.toml"]);
    assert_eq!(load_plan(root, root, None).unwrap().batch, Batch::None);
}

#[test]
fn what_cannot_be_read_is_named() {
    let root = repository(&[
        ("plans/migrate.toml", b""),
        ("plans/both.toml", b""),
        ("plans/both/a.md", b""),
        ("plans/empty/x.txt", b""),
        ("plans/latin.toml", b"a = 'caf\xe9'"),
        ("x.json", b""),
    ]);
    let root = root.path();
    let error = |which| load_plan(root, root, which).unwrap_err();
    assert!(matches!(error(None), Error::NoPlan { .. }));
    let text = error(Some("migrat")).to_string();
    assert!(text.contains("did you mean `migrate`?"), "{text}");
    assert!(matches!(error(Some("both")), Error::TwoPlans { .. }));
    assert!(matches!(error(Some("empty")), Error::EmptyFolder { .. }));
    assert!(matches!(error(Some("latin")), Error::NotText { offset: 8, .. }));
    assert!(matches!(error(Some("x.json")), Error::UnknownForm { .. }));
    assert!(matches!(error(Some("")), Error::NoSuchPlan { .. }));
}

#[test]
fn a_user_without_configuration_is_no_error() {
    let root = repository(&[("config.toml", b"[ceiling]\n")]);
    assert_eq!(load_user(&root.path().join("absent.toml")).unwrap(), None);
    let loaded = load_user(&root.path().join("config.toml")).unwrap().unwrap();
    assert_eq!(loaded.text(), "[ceiling]\n");
    assert!(matches!(load_user(root.path()), Err(Error::UnknownForm { .. })));
}

#[test]
fn e23_a_plans_name_is_lower_case_whatever_its_file_is() {
    let root = repository(&[("plans/Migrate.toml", b""), ("plans/a b/t.md", b"")]);
    let root = root.path();
    for which in ["Migrate", "a b"] {
        let name = load_plan(root, root, Some(which)).unwrap().name;
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
    }
}
