//! `outlast doctor`: what it finds, what it never shows, and the exit code of the worst.

use serde_json::Value;

use crate::bench::{Bench, Ran};
use crate::provider::Provider;

/// The checks by name: state, detail and fix in one text.
#[track_caller]
fn check(ran: &Ran, name: &str) -> (String, String) {
    let view = ran.json("doctor");
    let checks = view["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no check {name:?} in {view:#}"));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("state"), format!("{} · {}", text("detail"), text("fix")))
}

#[track_caller]
fn is(ran: &Ran, name: &str, state: &str, says: &str) {
    let (found, text) = check(ran, name);
    assert!(found == state && text.contains(says), "{name} is {found}: {text}\n{ran:#?}");
}

#[test]
fn what_is_well_is_said_to_be_and_nothing_is_made() {
    let bench = Bench::new();
    let before = bench.files();
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(0);
    is(&ran, "git", "ok", "2.");
    is(&ran, "repository", "ok", "Ann <ann@example.invalid>");
    is(&ran, "disk", "ok", "free");
    is(&ran, "plan", "skipped", "outlast init");
    is(&ran, "agents", "warning", "claude");
    is(&ran, "accounts", "warning", "config.toml");
    is(&ran, "sandbox: files", "ok", "Landlock");
    bench.run(&["doctor", "--offline"]).ends(0).shows("0 errors, 2 warnings").shows(" 1. ");
    before.assert_same(&bench.files(), "nothing is changed");
}

#[test]
fn the_exit_code_is_that_of_the_worst() {
    let bench = Bench::new();
    bench.repo.git(&["config", "--unset", "user.name"]).unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(4);
    is(&ran, "repository", "error", "user.name");
    let ran = bench.run_outside(&["doctor", "--offline", "--json"]).ends(4);
    is(&ran, "repository", "error", "git init");

    bench.repo.git(&["config", "user.name", "Ann"]).unwrap();
    let agents = "[agent.a]\nkind = \"codex\"\n[agent.b]\nkind = \"qwen\"\n";
    bench.plan(&format!("{agents}[[task]]\nid = \"t\"\ngoal = \"g\"\nagent = \"a\"\n"));
    bench.env.write_config("[account.x]\nprovider = \"openai\"\nkey_env = \"NOT_SET_ANYWHERE\"\n").unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(12);
    is(&ran, "agent a: program", "error", "`codex`");
    is(&ran, "agent b: program", "warning", "`qwen`");
    is(&ran, "account x", "error", "NOT_SET_ANYWHERE is not set");

    bench.program("codex", "#!/bin/sh\necho codex-cli 0.171.0\n");
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(11);
    is(&ran, "agent codex", "ok", "0.171.0");

    bench.env.write_config("[account.x]\nprovider = \"anthropic\"\nkey_env = \"PATH\"\n").unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(3);
    is(&ran, "agent a: account", "error", "OpenAI Responses");
    bench.env.write_config("[account.x]\nprovider = \"nobody\"\nkey_env = \"PATH\"\n").unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(3);
    is(&ran, "configuration", "error", "not usable");
    bench.plan("[agent\n");
    let ran = bench.run(&["doctor", "--offline", "--json"]).ends(3);
    is(&ran, "plan", "error", "outlast.toml");
}

#[test]
fn what_others_can_write_or_read_is_told() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let key = bench.env.root().join("key");
    std::fs::write(&key, "canary").unwrap();
    set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    bench.env.write_config(&format!("[account.x]\nprovider = \"openai\"\nkey_file = {key:?}\n")).unwrap();
    set_permissions(bench.env.config_file(), Permissions::from_mode(0o666)).unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "configuration", "warning", "chmod go-w");
    is(&ran, "account x", "warning", "chmod 600");
    set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    set_permissions(bench.env.config_file(), Permissions::from_mode(0o644)).unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "configuration", "ok", "config.toml");
    is(&ran, "account x", "ok", "key in ");
}

#[test]
fn which_of_two_credentials_is_billed_is_told_and_neither_is_shown() {
    let mut bench = Bench::new();
    bench.env.set("CLAUDE_CODE_OAUTH_TOKEN", "canary-token");
    bench.env.set("ANTHROPIC_API_KEY", "canary-key");
    bench.env.write_config("[account.max]\nlogin = \"claude\"\n").unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "billing anthropic", "warning", "outlast bills `max` (login); not ANTHROPIC_API_KEY");
    assert!(!format!("{ran:?}").contains("canary"), "{ran:#?}");

    let both = "[account.max]\nlogin = \"claude\"\npriority = 1\n[account.api]\nprovider = \"anthropic\"\nkey_env = \"ANTHROPIC_API_KEY\"\n";
    bench.env.write_config(both).unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "billing anthropic", "ok", "outlast bills `max` (login), then `api` (key)");
}

#[test]
fn an_agent_is_asked_for_its_version_with_none_of_our_environment() {
    let mut bench = Bench::new();
    bench.env.set("ANTHROPIC_API_KEY", "canary-key");
    let script =
        "#!/bin/sh\n[ -z \"$ANTHROPIC_API_KEY$OUTLAST_HOME\" ] && [ -d \"$HOME\" ] && echo '2.1.197 (Claude Code)'\n";
    bench.program("claude", script);
    bench.program("codex", "#!/bin/sh\nexit 7\n");
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "agent claude-code", "ok", "2.1.197");
    is(&ran, "agent codex", "warning", "exit status: 7");
}

#[test]
fn a_kimi_that_cannot_be_used_is_told_with_the_one_that_can() {
    let bench = Bench::new();
    let install = "uv tool install --force kimi-cli==1.51.0";
    bench.program("kimi", "#!/bin/sh\necho 'kimi, version 2.3.0'\n");
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "agent kimi", "warning", "2.3.0");
    is(&ran, "agent kimi", "warning", "is no Python script");
    is(&ran, "agent kimi", "warning", install);

    // A shell under the name that makes a program a Python script.
    bench.program("python3", "#!/bin/sh\nexec /bin/sh \"$@\"\n");
    let kimi = |says: &str| bench.program("kimi", &format!("#!/usr/bin/env python3\n{says}\n"));
    kimi("echo 'kimi, version 1.52.0'; echo 'kimi-cli is no longer maintained. Please use'");
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "agent kimi", "warning", "does nothing but say that it is no longer maintained");
    is(&ran, "agent kimi", "warning", install);
    kimi("echo 'kimi, version 1.51.0'");
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "agent kimi", "ok", "1.51.0");
}

#[test]
fn files_that_would_bypass_the_gateway_are_named_and_their_values_are_not() {
    let bench = Bench::new();
    bench.plan("[agent.c]\nkind = \"claude-code\"\ninherit = [\"hooks\", \"memory\"]\n");
    let claude =
        r#"{"env":{"ANTHROPIC_BASE_URL":"http://canary.test"},"apiKeyHelper":"echo canary","hooks":{"Stop":[]}}"#;
    bench.repo.write(".claude/settings.json", claude).unwrap();
    bench.repo.write(".mcp.json", r#"{"mcpServers":{"db":{"command":"canary"}}}"#).unwrap();
    bench.repo.write(".env", "OPENAI_API_KEY=canary\nDATABASE_URL=canary\n").unwrap();
    bench.repo.write(".codex/config.toml", "model_provider = \"canary\"\n").unwrap();
    bench.repo.write("CLAUDE.md", "canary\n").unwrap();
    bench.repo.write("AGENTS.md", "canary\n").unwrap();
    bench.repo.write(".kimi/AGENTS.md", "canary\n").unwrap();
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(
        &ran,
        "file .claude/settings.json",
        "warning",
        "sets ANTHROPIC_BASE_URL, runs hooks (Stop), runs a command for a key",
    );
    is(&ran, "file .claude/settings.json", "warning", "but for what `inherit` names for c");
    is(&ran, "file .mcp.json", "ok", "starts MCP servers (db)");
    is(&ran, "file .env", "warning", "sets OPENAI_API_KEY;");
    is(&ran, "file .codex/config.toml", "warning", "chooses the provider");
    is(&ran, "file CLAUDE.md", "ok", "read by c;");
    is(&ran, "file AGENTS.md", "ok", "read by no agent");
    is(&ran, "file .kimi/AGENTS.md", "ok", "instructions for kimi: read by no agent");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
}

#[test]
fn a_proxy_that_nobody_answers_is_stale_and_its_password_is_not_shown() {
    let mut bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let alive = listener.local_addr().unwrap();
    bench.env.set("HTTPS_PROXY", format!("http://me:canary@{alive}"));
    // Port 1 of loopback is reserved (RFC 1700) and nobody's here.
    bench.env.set("http_proxy", "http://me:canary@127.0.0.1:1");
    let ran = bench.run(&["doctor", "--json"]);
    is(&ran, "proxy HTTPS_PROXY", "warning", "answers");
    is(&ran, "proxy http_proxy", "warning", "stale");
    assert!(!ran.stdout.contains("canary"), "{ran:#?}");
}

/// A provider that knows one key and one model, and an account for each format.
fn with_accounts(bench: &mut Bench, key: &str, more: &str) -> Provider {
    let script = format!(
        "keys = [\"right-canary\"]\nmodels = [\"model-one\"]\nfallback = \"word\"\n{more}\n[scenario]\nword = \"say ok\"\n"
    );
    let provider = Provider::start(bench, &script);
    bench.env.set("DOCTOR_KEY", key);
    let url = &provider.url;
    let account = |name: &str, provider: &str, base: String| {
        format!(
            "[account.{name}]\nprovider = \"{provider}\"\nkey_env = \"DOCTOR_KEY\"\nbase_url = \"{base}\"\nmodels = [\"model-one\"]\n"
        )
    };
    let config = [
        account("a", "anthropic", url.clone()),
        account("o", "openai", format!("{url}/v1")),
        account("g", "gemini", url.clone()),
    ];
    bench.env.write_config(&config.concat()).unwrap();
    provider
}

const TRIPS: [&str; 4] = [
    "round trip anthropic, account a",
    "round trip openai-responses, account o",
    "round trip openai-chat, account o",
    "round trip gemini, account g",
];

#[test]
fn every_format_makes_a_round_trip_to_the_provider() {
    let mut bench = Bench::new();
    let _provider = with_accounts(&mut bench, "right-canary", "");
    let before = bench.files();
    let ran = bench.run(&["doctor", "--json"]);
    for trip in TRIPS {
        is(&ran, trip, "ok", "model-one answered in ");
    }
    assert!(!format!("{ran:?}").contains("canary"), "{ran:#?}");
    before.assert_same(&bench.files(), "its ledger is thrown away");
    let ran = bench.run(&["doctor", "--offline", "--json"]);
    is(&ran, "round trip a", "skipped", "--offline");
}

#[test]
fn a_wrong_key_and_a_provider_that_is_gone_are_told_apart() {
    let mut bench = Bench::new();
    let provider = with_accounts(&mut bench, "wrong-canary", "");
    let ran = bench.run(&["doctor", "--json"]).ends(11);
    for trip in TRIPS {
        is(&ran, trip, "error", "auth: 401");
    }
    assert!(!format!("{ran:?}").contains("canary"), "{ran:#?}");
    drop(provider);
    let ran = bench.run(&["doctor", "--json"]).ends(11);
    for trip in TRIPS {
        is(&ran, trip, "error", "network: ");
    }
    let checks: Vec<Value> = ran.json("doctor")["checks"].as_array().unwrap().clone();
    assert!(
        checks.iter().filter(|check| check["state"] == "error").all(|check| check["fix"].is_string()),
        "{checks:#?}"
    );
}
