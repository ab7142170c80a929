//! Each place where a text may stand, with a NUL and too long.

use super::*;
use crate::{Batch, Checked, PlanFiles, Source, read_plan, read_user};

fn project(text: &str) -> Checked {
    let project = Some(Source::new("outlast.toml", text));
    read_plan(&PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() }, None)
}

fn markdown(text: &str) -> Checked {
    let project = Some(Source::new("outlast.toml", "[agent.a]\nkind = \"claude-code\"\n"));
    let batch = Batch::Folder(vec![Source::new("plans/p/t.md", text)]);
    read_plan(&PlanFiles { name: "p".into(), project, batch, ignored: Vec::new() }, None)
}

/// Where the errors stand, and their messages.
fn errors(checked: &Checked) -> Vec<(u32, u32, String)> {
    assert_eq!(checked.plan, None);
    let errors = checked.findings.iter().filter(|finding| finding.is_error());
    errors
        .map(|e| e.at.as_ref().map_or((0, 0, e.message.clone()), |at| (at.line, at.column, e.message.clone())))
        .collect()
}

/// A plan in which every text is given, one of them with `{}` in it.
fn plan(id: usize, with: &str) -> Option<String> {
    let lines = [
        "[run]",
        "target = \"out{}\"",
        "hot_files = [\"Cargo.lock{}\"]",
        "setup = [\"true{}\"]",
        "[defaults]",
        "model = \"m{}\"",
        "verify = [\"true{}\"]",
        "reads = [\"docs/{}\"]",
        "[agent.a]",
        "kind = \"command\"",
        "command = [\"prog\", \"x{}\"]",
        "accounts = [\"max{}\"]",
        "inherit = [\"mcp:x{}\"]",
        "env = { A = \"x{}\" }",
        "[[task]]",
        "id = \"t{}\"",
        "goal = \"Do it.{}\"",
        "writes = [\"src/{}\"]",
        "needs = [\"u{}\"]",
        "example = \"docs/e{}\"",
        "output = { path = \"r{}\" }",
        "[task.steps]",
        "\"one{}\" = \"true\"",
        "two = \"true{}\"",
        "[[task]]",
        "id = \"u\"",
        "goal = \"Do it.\"",
    ];
    lines.get(id)?;
    let fill = |(at, line): (usize, &&str)| line.replace("{}", if at == id { with } else { "" }) + "\n";
    Some(lines.iter().enumerate().map(fill).collect())
}

#[test]
fn a_nul_is_refused_where_it_stands() {
    let (mut id, mut seen) = (0, 0);
    while let Some(text) = plan(id, "\\u0000") {
        id += 1;
        if text.contains("\\u0000") {
            seen += 1;
            let errors = errors(&project(&text));
            let nul: Vec<_> = errors.iter().filter(|(.., message)| message.contains("holds a NUL")).collect();
            assert_eq!(nul.len(), 1, "line {id}: {errors:?}");
            assert_eq!(usize::try_from(nul[0].0).unwrap(), id, "{errors:?}");
            assert!(!errors.iter().any(|(.., message)| message.contains('\0')), "{errors:?}");
        }
    }
    assert_eq!(seen, 18);
    // As it is without.
    assert_eq!(project(&plan(0, "").unwrap()).findings.iter().filter(|finding| finding.is_error()).count(), 0);
}

#[test]
fn a_nul_in_a_task_file_is_refused_where_it_stands() {
    let nul = |text: &str| errors(&markdown(text));
    assert_eq!(nul("---\nid: t\n---\nDo\nit\0 now.\n"), [(5, 3, "the text holds a NUL".to_owned())]);
    assert_eq!(nul("---\nid: t\nverify: [\"true\\0\"]\n---\nDo it.\n"), [(3, 10, "`verify` holds a NUL".to_owned())]);
    assert_eq!(nul("---\nid: t\n---\nDo it.\n- [ ] one: `true\0`\n"), [(5, 17, "the text holds a NUL".to_owned())]);
}

#[test]
fn a_nul_in_the_users_configuration_is_refused() {
    let text = "[account.a]\nprovider = \"anthropic\"\nkey_command = [\"pass\", \"x\\u0000\"]\n";
    let checked = read_user(&Source::new("config.toml", text));
    assert_eq!(checked.config, None);
    assert_eq!(checked.findings[0].message, "`key_command` holds a NUL");
}

#[test]
fn what_is_too_long_for_one_argument_is_refused_where_it_stands() {
    let long = "x".repeat(LEN_MAX);
    let command = |command: &str, env: &str, goal: &str, verify: &str| {
        project(&format!(
            "[agent.a]\nkind = \"command\"\ncommand = [\"prog\", \"{command}\"]\nenv = {{ A = \"{env}\" }}\n[[task]]\nid = \"t\"\n\
             goal = \"{goal}\"\nverify = [\"{verify}\"]\n"
        ))
    };
    let is_fine = |checked: Checked| checked.plan.is_some();
    assert!(is_fine(command(&long, "x", "x", &long)));
    assert!(is_fine(command("{goal}", "x", &long, "true")));
    assert!(is_fine(command("{goal_file}", "x", &format!("{long}{long}"), "true")));
    let place = |checked: Checked| {
        let errors = errors(&checked);
        assert_eq!(errors.len(), 1, "{errors:?}");
        (errors[0].0, errors[0].1)
    };
    let longer = format!("{long}x");
    assert_eq!(place(command(&longer, "x", "x", "true")), (3, 20));
    assert_eq!(place(command("x", "x", "x", &longer)), (8, 11));
    assert_eq!(place(command("{goal}", "x", &longer, "true")), (3, 20));
    // The name counts with the value.
    assert_eq!(place(command("x", "{goal}", &long, "true")), (4, 13));
    let step = format!("---\nid: t\n---\nDo it.\n- [ ] one: `{longer}`\n");
    assert_eq!(place(markdown(&step)), (5, 1));
    assert!(is_fine(markdown(&format!("---\nid: t\n---\nDo it. {longer}\n"))));
}
