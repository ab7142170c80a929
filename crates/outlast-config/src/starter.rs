//! The first `outlast.toml` of a repository: commented, with what was found in it filled in.

use std::fmt::Write as _;

/// What was found in a repository and on the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Commands that make a fresh tree ready.
    pub setup: Vec<String>,
    /// Commands that show that nothing is broken.
    pub verify: Vec<String>,
    /// Files that every change tends to touch.
    pub hot_files: Vec<String>,
    /// Git hook set-ups, by the file or folder that shows them.
    pub hooks: Vec<String>,
    /// Kinds of agents found on the machine, the preferred one first.
    pub agents: Vec<String>,
}

impl Facts {
    /// Draws conclusions from the names in the repository's root and the text of its `package.json`.
    pub fn of(names: &[&str], package_json: Option<&str>) -> Self {
        let mut facts = Self::default();
        let has = |name: &str| names.contains(&name);
        if has("package.json") {
            facts.add_node(names, package_json);
        }
        if has("Cargo.toml") {
            facts.add(&["cargo fetch"], &["cargo test"], &["Cargo.lock"], names);
        }
        if has("uv.lock") {
            facts.add(&["uv sync"], &["uv run pytest -q"], &["uv.lock"], names);
        } else if has("poetry.lock") {
            facts.add(&["poetry install"], &["poetry run pytest -q"], &["poetry.lock"], names);
        } else if has("pyproject.toml") {
            facts.add(
                &["python3 -m venv .venv", ".venv/bin/pip install -e ."],
                &[".venv/bin/python -m pytest -q"],
                &[],
                names,
            );
        } else if has("requirements.txt") {
            facts.add(
                &["python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt"],
                &[".venv/bin/python -m pytest -q"],
                &[],
                names,
            );
        }
        if has("go.mod") {
            facts.add(&["go mod download"], &["go test ./..."], &["go.sum"], names);
        }
        let hooks = [".husky", ".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml"];
        facts.hooks = hooks.into_iter().filter(|name| has(name)).map(str::to_owned).collect();
        facts
    }

    fn add(&mut self, setup: &[&str], verify: &[&str], hot_files: &[&str], names: &[&str]) {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        self.setup.extend(owned(setup));
        self.verify.extend(owned(verify));
        self.hot_files.extend(owned(hot_files).into_iter().filter(|file| names.contains(&file.as_str())));
    }

    fn add_node(&mut self, names: &[&str], package_json: Option<&str>) {
        const TOOLS: [(&str, &str, &str); 5] = [
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile", "pnpm"),
            ("yarn.lock", "yarn install --frozen-lockfile", "yarn"),
            ("bun.lock", "bun install --frozen-lockfile", "bun run"),
            ("bun.lockb", "bun install --frozen-lockfile", "bun run"),
            ("package-lock.json", "npm ci", "npm"),
        ];
        let found = TOOLS.into_iter().find(|(lock, ..)| names.contains(lock));
        let (lock, setup, tool) = found.unwrap_or(("", "npm install", "npm"));
        let verify = format!("{tool} test");
        let verify = if has_test_script(package_json) { vec![verify.as_str()] } else { Vec::new() };
        self.add(&[setup], &verify, &[lock], names);
    }
}

/// Whether `package.json` has a test script other than the one that npm writes into a new one.
fn has_test_script(package_json: Option<&str>) -> bool {
    let package: Option<serde_json::Value> = package_json.and_then(|text| serde_json::from_str(text).ok());
    let script = package.as_ref().and_then(|package| package["scripts"]["test"].as_str());
    script.is_some_and(|script| !script.contains("no test specified"))
}

/// Writes the file.
pub fn starter(facts: &Facts) -> String {
    let mut text = String::from(HEAD);
    list(&mut text, "setup", &facts.setup, "commands that make a fresh tree ready, run once per base", "npm ci");
    list(&mut text, "hot_files", &facts.hot_files, "files that only one task at a time may change", "Cargo.lock");
    if !facts.hooks.is_empty() {
        let hooks = facts.hooks.join(", ");
        let _ = writeln!(
            text,
            "# Git hooks found here: {hooks}. They run within `verify`, in its sandbox, when a task lands."
        );
    }
    let known = ["claude-code", "codex", "opencode", "gemini", "qwen", "kimi"];
    let agents: Vec<&str> = facts.agents.iter().map(String::as_str).filter(|kind| known.contains(kind)).collect();
    for kind in &agents {
        let name = kind.strip_suffix("-code").unwrap_or(kind);
        let _ = write!(text, "\n[agent.{name}]\nkind = {}\n", quoted(kind));
    }
    text.push_str(if agents.is_empty() { NO_AGENT } else { OF_AGENT });
    let first = agents.first().map(|kind| quoted(kind.strip_suffix("-code").unwrap_or(kind)));
    let first = first.map_or_else(|| "# agent = \"claude\"".to_owned(), |name| format!("agent = {name}"));
    let _ = write!(text, "\n[defaults]\n{first}\ntimeout = \"20m\"\nidle_timeout = \"5m\"\nretries = 2\n");
    list(&mut text, "verify", &facts.verify, "commands that show that nothing is broken", "make test");
    text.push_str(TAIL);
    text
}

/// A list that was found, or a comment that shows what it would look like.
fn list(text: &mut String, key: &str, items: &[String], comment: &str, example: &str) {
    let shown: Vec<String> = items.iter().map(|item| quoted(item)).collect();
    let _ = match shown.as_slice() {
        [] => writeln!(text, "# {key} = [{}]  # {comment}", quoted(example)),
        shown => writeln!(text, "{key} = [{}]  # {comment}", shown.join(", ")),
    };
}

/// A TOML string; JSON's escapes are TOML's.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const HEAD: &str = "\
# The plan of this repository: what holds for every batch of tasks.
# `outlast check` reads it; `outlast run` runs the tasks in it, `outlast run NAME` those of plans/NAME.toml on top of it.

[run]
# target = \"outlast/{run}\"  # the branch results land on
concurrency = \"auto\"       # or a number
land = \"review\"            # or \"auto\": land each task as soon as it is verified
";

const OF_AGENT: &str = "\
# model = \"…\"       # else the program's own choice
# accounts = [\"…\"]  # else every account of your config.toml that fits
";

const NO_AGENT: &str = "
# No agent was found on the PATH. Install one (claude, codex, opencode, gemini, qwen or kimi) and name it here,
# [agent.claude]
# kind = \"claude-code\"  # claude-code, codex, opencode, gemini, qwen or kimi
# or take any program:
# [agent.mine]
# kind = \"command\"
# command = [\"my-agent\", \"{goal_file}\"]  # exit 0: done, 75: try later, anything else: failed
";

const TAIL: &str = "
# A task. Move tasks to plans/NAME.toml, or to one Markdown file each in plans/NAME/, when there are many.
# [[task]]
# id = \"payment-client\"
# goal = \"Move src/payment/client.py from requests to httpx.\"
# writes = [\"src/payment/client.py\", \"tests/payment/**\"]
# needs = []
# verify = [\"pytest -q tests/payment\"]  # replaces that of the defaults
# [task.steps]                            # in order; a command that succeeds shows that a step is done
# imports = \"! grep -q 'import requests' src/payment/client.py\"
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Code, PlanFiles, Severity, Source, read_plan};

    fn check(text: &str) -> crate::Checked {
        let project = Some(Source::new("outlast.toml", text));
        read_plan(&PlanFiles { name: "p".into(), project, batch: Batch::None, ignored: Vec::new() }, None)
    }

    #[test]
    fn a_starter_holds_no_error_and_neither_does_its_example() {
        let everything = [
            "package.json",
            "pnpm-lock.yaml",
            "Cargo.toml",
            "Cargo.lock",
            "pyproject.toml",
            "go.mod",
            "go.sum",
            ".husky",
        ];
        let package = r#"{"scripts":{"test":"vitest"}}"#;
        let mut rich = Facts::of(&everything, Some(package));
        rich.agents = vec!["codex".into(), "unknown \"kind\"".into(), "claude-code".into()];
        for facts in [Facts::default(), rich] {
            let text = starter(&facts);
            let checked = check(&text);
            assert!(checked.findings.iter().all(|f| f.severity != Severity::Error), "{text}\n{:?}", checked.findings);
            assert!(checked.plan.unwrap().tasks.is_empty());
            let (head, example) = text.split_at(text.find("# [[task]]").unwrap());
            let bare = |line: &str| line.strip_prefix("# ").unwrap_or(line).to_owned() + "\n";
            // What is proposed where no agent was found is one.
            let words = ["# [agent.mine]", "# kind = \"command\"", "# command = "];
            let head = words.iter().fold(head.to_owned(), |head, word| head.replace(word, &word[2..]));
            let live = head + &example.lines().map(bare).collect::<String>();
            let plan = check(&live).plan.expect(&live);
            assert_eq!(plan.tasks[0].steps.len(), 1);
            assert_eq!(plan.run.setup, facts.setup);
            assert_eq!(plan.run.hot_files, facts.hot_files);
        }
    }

    #[test]
    fn what_is_found_decides_what_is_proposed() {
        let node = Facts::of(&["package.json", "package-lock.json"], Some(r#"{"scripts":{"test":"jest"}}"#));
        assert_eq!((node.setup, node.verify), (vec!["npm ci".to_owned()], vec!["npm test".to_owned()]));
        let fresh =
            Facts::of(&["package.json"], Some(r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#));
        assert_eq!((fresh.setup, fresh.verify), (vec!["npm install".to_owned()], vec![]));
        assert_eq!(Facts::of(&["package.json"], Some("{")).verify, Vec::<String>::new());
        let rust = Facts::of(&["Cargo.toml", ".pre-commit-config.yaml"], None);
        assert_eq!((rust.hot_files, rust.hooks), (vec![], vec![".pre-commit-config.yaml".to_owned()]));
        assert_eq!(Facts::of(&[], None), Facts::default());
    }

    #[test]
    fn a_project_without_tasks_is_no_error() {
        let checked = check(&starter(&Facts::default()));
        assert!(checked.findings.iter().any(|finding| finding.code == Code::NoTasksYet));
    }
}
