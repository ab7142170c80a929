//! Plans that are refused: told with what, why and what to do, before anything is made or changed.

use crate::bench::Bench;

/// An agent that needs no account, for plans in which something else is wrong.
const AGENT: &str = "[agent.a]\nkind = \"command\"\ncommand = [\"true\"]\n";

/// What is wrong, the plan, the code it is told with, and a word of the message.
fn refused() -> Vec<(&'static str, String, &'static str, &'static str)> {
    let task = |id: &str, rest: &str| format!("[[task]]\nid = \"{id}\"\ngoal = \"g\"\n{rest}\n");
    vec![
        ("unknown key", format!("{AGENT}{}", task("t", "verfy = [\"true\"]")), "config/unknown-key", "verify"),
        ("later key", format!("{AGENT}{}", task("t", "for_each = \"*.rs\"")), "config/not-supported-yet", "for_each"),
        (
            "cycle",
            format!("{AGENT}{}{}", task("t", "needs = [\"u\"]"), task("u", "needs = [\"t\"]")),
            "plan/cycle",
            "t",
        ),
        ("unknown need", format!("{AGENT}{}", task("t", "needs = [\"gone\"]")), "plan/unknown-need", "gone"),
        ("unknown agent", format!("{AGENT}{}", task("t", "agent = \"nobody\"")), "plan/unknown-agent", "nobody"),
        ("two of one id", format!("{AGENT}{}{}", task("t", ""), task("t", "")), "plan/duplicate-task", "t"),
        (
            "scope outside",
            format!("{AGENT}{}", task("t", "writes = [\"../other/**\"]")),
            "plan/outside-repository",
            "../other/**",
        ),
        (
            "account in a project file",
            format!("{AGENT}{}[account.x]\nprovider = \"anthropic\"\nkey_env = \"X\"\n", task("t", "")),
            "config/user-only",
            "account",
        ),
        (
            "unknown account",
            format!("[agent.a]\nkind = \"codex\"\naccounts = [\"gone\"]\n{}", task("t", "")),
            "plan/unknown-account",
            "gone",
        ),
        (
            "NUL",
            format!("{AGENT}{}", task("t", "").replace("\"g\"", "\"g\\u0000\"")),
            "config/bad-value",
            "`goal` holds a NUL",
        ),
        (
            "too long",
            format!("{AGENT}{}", task("t", &format!("verify = [\"true {}\"]", "x".repeat(128 * 1024)))),
            "config/bad-value",
            "131077 bytes long",
        ),
        ("broken text", "[run\n".to_owned(), "config/syntax", "outlast.toml"),
    ]
}

#[test]
fn a_bad_plan_is_refused_by_check_and_run_and_nothing_is_changed() {
    for (what, text, code, word) in refused() {
        let bench = Bench::new();
        bench.plan(&text);
        let before = bench.files();

        let check = bench.run(&["check", "--json"]).ends(3).json("check");
        let findings = check["findings"].as_array().unwrap();
        assert!(
            findings.iter().any(|finding| finding["code"] == code && finding["severity"] == "error"),
            "{what}: {findings:#?}"
        );
        assert_eq!((&check["runnable"], &check["approval"]), (&false.into(), &serde_json::Value::Null));

        let run = bench.run(&["run", "--yes", "--json"]);
        run.fails(3, "plan/refused");
        let told = run.says(&format!("error[{code}]")).says("because: ").says("do: ");
        assert!(told.stderr.contains(word), "{what}: {told:#?}");
        before.assert_same(&bench.files(), what);
    }
}

#[test]
fn a_key_with_a_slip_is_told_with_the_one_that_is_meant_and_where_it_stands() {
    let bench = Bench::new();
    bench.plan(&format!("{AGENT}[[task]]\nid = \"t\"\ngoal = \"g\"\nverfy = [\"true\"]\n"));
    let check = bench.run(&["--json", "check"]).ends(3).json("check");
    bench.run(&["check"]).ends(3).shows("error[config/unknown-key]").shows("outlast.toml:7:1").shows("because: ");
    let finding = &check["findings"][0];
    assert_eq!(
        (&finding["file"], &finding["line"], &finding["column"]),
        (&"outlast.toml".into(), &7.into(), &1.into())
    );
    assert!(finding["fix"].as_str().unwrap().contains("`verify`"), "{finding:#}");
}

#[test]
fn a_plan_that_nobody_approved_is_not_run_and_nothing_is_made() {
    let bench = Bench::new();
    bench.plan(&format!("{AGENT}[[task]]\nid = \"t\"\ngoal = \"g\"\nverify = [\"touch ran\"]\n"));
    let before = bench.files();
    bench.run(&["run"]).ends(3).says("error[plan/not-approved]").says("outlast run --yes");
    bench.run(&["run", "--json"]).fails(3, "plan/not-approved");
    before.assert_same(&bench.files(), "nothing is changed");
}

#[test]
fn a_plan_that_is_not_there_is_told_with_how_to_write_one() {
    let bench = Bench::new();
    for command in ["check", "run"] {
        bench.run(&[command]).ends(3).says("outlast init");
        bench.repo.write("plans/migrate.toml", "").unwrap();
        bench.run(&[command, "migrat"]).ends(3).says("migrate");
        std::fs::remove_dir_all(bench.repo.dir().join("plans")).unwrap();
    }
    // A project without a task is no plan yet.
    bench.plan(AGENT);
    bench.run(&["run", "--yes", "--json"]).fails(3, "plan/empty");
}

#[test]
fn a_plan_with_crlf_and_a_byte_order_mark_runs() {
    let bench = Bench::new();
    let text = "[run]\nland = \"auto\"\n[agent.a]\nkind = \"command\"\n\
                command = [\"sh\", \"-c\", \"cp \\\"$OUTLAST_GOAL_FILE\\\" '文 本.txt'\"]\n\
                [[task]]\nid = \"文.1\"\ngoal = \"写。\"\nwrites = [\"文 本.txt\"]\nverify = [\"test -s '文 本.txt'\"]\n";
    bench.plan(&format!("\u{feff}{}", text.replace('\n', "\r\n")));
    bench.run(&["check"]).ends(0).shows("1 task");
    bench.run(&["run", "--yes"]).ends(0);
    let status = bench.run(&["status", "--json"]).ends(0).json("status");
    assert_eq!((&status["tasks"][0]["id"], &status["tasks"][0]["state"]), (&"文.1".into(), &"landed".into()));
    // What the agent was given is what `check` shows, to the byte.
    let shown = bench.run(&["check", "--prompt", "文.1"]).ends(0);
    let target = status["target"].as_str().unwrap();
    let landed = bench.repo.git(&["show", &format!("{target}:文 本.txt")]).unwrap();
    assert_eq!(shown.stdout.as_bytes(), landed, "{shown:#?}");
    assert!(shown.stdout.contains("写。"));
}

#[test]
fn k13_a_folder_of_another_tools_task_files_is_a_plan() {
    let bench = Bench::new();
    bench.plan(AGENT);
    let file = |needs: &str, text: &str| {
        format!(
            "---\nname: Trigger UI\nstatus: open\ncreated: 2026-02-18T20:28:23Z\ngithub: \"\"\ndepends_on: [{needs}]\n\
             parallel: false\nconflicts_with: []\n---\n\n# Task\n\n{text}\n"
        )
    };
    for (name, text) in [
        ("PizzaPi-huz.1.md", file("", "Begin.")),
        ("PizzaPi-huz.11.md", file("PizzaPi-huz.1", "Go on.\n\n## Dependencies\n- [ ] Task 005 is done")),
        ("epic.md", "---\nname: epic\nstatus: open\nprogress: 0%\n---\n\n# Epic\n".to_owned()),
        ("execution-status.md", "# Status\n".to_owned()),
    ] {
        bench.repo.write(format!("plans/x/{name}"), text).unwrap();
    }
    let view = bench.run(&["check", "x", "--json"]).ends(0).json("check");
    assert_eq!(view["waves"], serde_json::json!([["PizzaPi-huz.1"], ["PizzaPi-huz.11"]]));
    let told = bench.run(&["check", "x"]).ends(0).shows("hint[plan/foreign-key]").shows("`parallel`, `conflicts_with`");
    let told =
        told.shows("speaks of `005`, which is not in its `needs`").shows("`plans/x/epic.md` is not read as a task");
    assert!(!told.stdout.contains("error["), "{told:#?}");
}

#[test]
fn the_command_of_a_step_is_taken_from_a_markdown_plan_as_people_write_it() {
    let bench = Bench::new();
    bench.plan(AGENT);
    let steps = "- [ ] one: `test -e one`\n- [ ] two \u{2014} `test -e two`\n- [ ] three (`test -e three`)\n- [ ] **four**\n  \
                 `test -e four`\n1. [ ] five is there when `test -e five` holds\n- [ ] six\n  ```sh\n  test -e six\n  ```\n\
                 - [ ] rename `seven` to `eight`\n";
    bench.repo.write("plans/p/t.md", format!("---\nwrites: [\"*\"]\n---\nDo it.\n\n{steps}")).unwrap();
    let view = bench.run(&["check", "p", "--json"]).ends(0).json("check");
    let commands: Vec<&str> = view["commands"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    let wanted = ["one", "two", "three", "four", "five", "six"].map(|file| format!("test -e {file}"));
    assert_eq!(commands[1..], wanted);
    bench.run(&["check", "p"]).ends(0).shows("hint[plan/step-command]: `eight` in step").shows("name: `eight`");
    let prompt = bench.run(&["check", "p", "--prompt", "t"]).ends(0);
    assert!(!prompt.stdout.contains("```sh"), "what is a step is no part of the goal: {prompt:#?}");
}
