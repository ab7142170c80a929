//! `outlast init`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::bench::Bench;

#[test]
fn the_first_plan_is_written_once_and_checks_clean() {
    let mut bench = Bench::new();
    bench.program("claude", "#!/bin/sh\necho 2.1.197\n");
    bench.repo.write("Cargo.toml", "[package]\n").unwrap();
    bench.env.set("ANTHROPIC_API_KEY", "canary-key");
    let head = bench.repo.git(&["status", "--porcelain"]).unwrap();

    let printed = bench.run(&["init", "--print"]).ends(0);
    assert_eq!(bench.repo.git(&["status", "--porcelain"]).unwrap(), head, "--print writes nothing");
    let view = bench.run(&["init", "--json"]).ends(0).json("init");
    let file = bench.repo.dir().join("outlast.toml");
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, printed.stdout);
    assert_eq!((&view["written"], &view["text"]), (&true.into(), &written.as_str().into()));
    assert_eq!(view["path"], file.to_str().unwrap());
    assert!(written.contains("cargo test") && written.contains("kind = \"claude-code\""), "{written}");
    assert_eq!(view["agents"][0]["kind"], "claude-code");
    assert_eq!(view["unused_logins"][0]["place"], "ANTHROPIC_API_KEY");
    assert!(!view.to_string().contains("canary"), "{view:#}");
    bench.run(&["check"]).ends(0);

    // No temporary file is left, and a second time changes nothing.
    let before = bench.files();
    bench.run(&["init"]).ends(3).says("error[init/exists]").says("outlast init --print");
    bench.run(&["init", "--json"]).fails(3, "init/exists");
    before.assert_same(&bench.files(), "nothing is changed");
    let names: Vec<_> = fs::read_dir(bench.repo.dir()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().starts_with(".outlast")), "{names:?}");
}

#[test]
fn the_advice_of_init_is_a_configuration_that_works() {
    let mut bench = Bench::new();
    bench.env.set("ANTHROPIC_API_KEY", "k");
    let view = bench.run(&["init", "--json"]).ends(0).json("init");
    let line = view["unused_logins"][0]["config"].as_str().unwrap();
    assert!(view["next"].to_string().contains(&line.replace('"', "\\\"")), "{view:#}");
    bench.env.write_config(&format!("{line}\n")).unwrap();
    let view = bench.run(&["init", "--print", "--json"]).ends(0).json("init");
    assert_eq!(view["accounts"][0]["provider"], "anthropic");
    assert_eq!(view["unused_logins"].as_array().unwrap().len(), 0, "{view:#}");
}

#[test]
fn a_link_that_leads_nowhere_is_not_written_through() {
    let bench = Bench::new();
    let elsewhere = bench.env.root().join("elsewhere.toml");
    symlink(&elsewhere, bench.repo.dir().join("outlast.toml")).unwrap();
    bench.run(&["init", "--json"]).fails(3, "init/exists");
    assert!(!elsewhere.exists());
}

#[test]
fn a_broken_configuration_is_told_before_anything_is_written() {
    let bench = Bench::new();
    bench.env.write_config("[account.x]\nprovider = \"anthropic\"\n").unwrap();
    bench.run(&["init"]).ends(3).says("error[config/bad-account]");
    assert!(!bench.repo.dir().join("outlast.toml").exists());
}

#[test]
fn an_agent_is_written_that_is_there_and_where_there_is_none_how_to_name_one() {
    let bench = Bench::new();
    let view = bench.run(&["init", "--json"]).ends(0).json("init");
    let text = view["text"].as_str().unwrap();
    let live: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(!live.iter().any(|line| line.contains("claude") || line.starts_with("[agent")), "{text}");
    assert!(
        text.contains("# No agent was found on the PATH. Install one") && text.contains("# [agent.mine]"),
        "{text}"
    );
    assert_eq!(
        view["next"][0],
        "install an agent: claude, codex, opencode, gemini, qwen or kimi; or name any program: see [agent.mine]"
    );
    bench.run(&["check"]).ends(0);
    // A task has nobody to do it then, and that is said with what to do.
    let file = bench.repo.dir().join("outlast.toml");
    fs::write(&file, format!("{text}[[task]]\nid = \"t\"\ngoal = \"g\"\n")).unwrap();
    bench.run(&["check"]).ends(3).shows("error[plan/unknown-agent]").shows("[agent.");

    let bench = Bench::new();
    bench.program("codex", "#!/bin/sh\nexit 0\n");
    bench.run(&["init"]).ends(0);
    let text = fs::read_to_string(bench.repo.dir().join("outlast.toml")).unwrap();
    assert!(text.contains("\n[agent.codex]\n") && text.contains("\nagent = \"codex\"\n"), "{text}");
    assert!(!text.contains("claude") && !text.contains("No agent"), "{text}");
}
