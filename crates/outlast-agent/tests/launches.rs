//! Golden launches: the whole of what each kind asks for, with the test's own folders named.

#[path = "launches/support.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;

use outlast_agent::{Error, Inherit, KeyShape, Kind, Session, adapter};
use support::{Folders, shown};

#[test]
fn claude_code_fresh() {
    let folders = Folders::new();
    let brief = folders.brief(Kind::ClaudeCode);
    insta::assert_json_snapshot!(shown(&folders, &adapter(Kind::ClaudeCode).launch(&brief).unwrap()));
}

#[test]
fn claude_code_resumed_with_a_login_and_everything_inherited() {
    let folders = Folders::new();
    let mut brief = folders.brief(Kind::ClaudeCode);
    brief.session = Session::Resume { id: "11111111-2222-8333-8444-555555555555".into() };
    brief.key_shape = KeyShape::Login;
    brief.inherit = vec![Inherit::Memory, Inherit::Skills, Inherit::Hooks, Inherit::Mcp("db".into())];
    for (file, text) in [
        ("CLAUDE.md", "repository"),
        (".claude/skills/lint/SKILL.md", "how to lint"),
        (".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"http://elsewhere"},"hooks":{"Stop":[]}}"#),
        (".mcp.json", r#"{"mcpServers":{"db":{"command":"db-server"},"other":{"command":"other"}}}"#),
    ] {
        folders.workspace_file(file, text);
    }
    fs::create_dir_all(folders.user_home().join(".claude")).unwrap();
    fs::write(folders.user_home().join(".claude/CLAUDE.md"), "person\n").unwrap();
    insta::assert_json_snapshot!(shown(&folders, &adapter(Kind::ClaudeCode).launch(&brief).unwrap()));
}

#[test]
fn codex_fresh_and_resumed_with_a_login() {
    let folders = Folders::new();
    let mut brief = folders.brief(Kind::Codex);
    insta::assert_json_snapshot!("codex_fresh", shown(&folders, &adapter(Kind::Codex).launch(&brief).unwrap()));
    brief.key_shape = KeyShape::Login;
    brief.session = Session::Resume { id: "some-thread".into() };
    brief.inherit = vec![Inherit::Memory, Inherit::Skills];
    insta::assert_json_snapshot!("codex_resumed", shown(&folders, &adapter(Kind::Codex).launch(&brief).unwrap()));
}

#[test]
fn opencode_gemini_and_qwen_fresh_and_resumed_with_a_server() {
    let folders = Folders::new();
    for file in ["opencode.json", ".gemini/settings.json", ".qwen/settings.json"] {
        let server =
            r#"{"mcp":{"db":{"command":["db"]}},"mcpServers":{"db":{"command":"db"}},"proxy":"http://elsewhere"}"#;
        folders.workspace_file(file, server);
    }
    for kind in [Kind::OpenCode, Kind::Gemini, Kind::Qwen] {
        let mut brief = folders.brief(kind);
        let name = format!("{kind}_fresh");
        insta::assert_json_snapshot!(name, shown(&folders, &adapter(kind).launch(&brief).unwrap()));
        brief.session = Session::Resume { id: "some-session".into() };
        brief.inherit = vec![Inherit::Memory, Inherit::Skills, Inherit::Mcp("db".into())];
        let name = format!("{kind}_resumed");
        insta::assert_json_snapshot!(name, shown(&folders, &adapter(kind).launch(&brief).unwrap()));
    }
}

#[test]
fn kimi_fresh_and_resumed() {
    let folders = Folders::new();
    let mut brief = folders.brief(Kind::Kimi);
    insta::assert_json_snapshot!("kimi_fresh", shown(&folders, &adapter(Kind::Kimi).launch(&brief).unwrap()));
    fs::create_dir_all(folders.user_home().join(".kimi/skills/lint")).unwrap();
    fs::write(folders.user_home().join(".kimi/skills/lint/SKILL.md"), "how to lint\n").unwrap();
    brief.session = Session::Resume { id: "some-session".into() };
    brief.inherit = vec![Inherit::Memory, Inherit::Skills];
    insta::assert_json_snapshot!("kimi_resumed", shown(&folders, &adapter(Kind::Kimi).launch(&brief).unwrap()));
}

#[test]
fn another_program_of_the_name_is_not_taken_for_the_cli() {
    let folders = Folders::new();
    let mut brief = folders.brief(Kind::Kimi);
    brief.program = folders.root().join("bin/agent.js");
    let refused = adapter(Kind::Kimi).launch(&brief).unwrap_err();
    assert!(matches!(refused, Error::ProgramNotPython { .. }), "{refused}");
}

#[test]
fn what_a_kind_cannot_inherit_is_refused_by_name() {
    let folders = Folders::new();
    for (kind, part) in [
        (Kind::Codex, Inherit::Hooks),
        (Kind::OpenCode, Inherit::Hooks),
        (Kind::Gemini, Inherit::Hooks),
        (Kind::Qwen, Inherit::Hooks),
        (Kind::Kimi, Inherit::Hooks),
        (Kind::Kimi, Inherit::Mcp("db".into())),
    ] {
        let mut brief = folders.brief(kind);
        brief.inherit = vec![part];
        assert!(matches!(adapter(kind).launch(&brief), Err(Error::InheritUnsupported { .. })), "{kind}");
    }
    for kind in [Kind::ClaudeCode, Kind::OpenCode, Kind::Gemini, Kind::Qwen] {
        let mut brief = folders.brief(kind);
        brief.inherit = vec![Inherit::Mcp("absent".into())];
        assert!(matches!(adapter(kind).launch(&brief), Err(Error::McpServerUnknown { .. })), "{kind}");
    }
}

#[test]
fn command_with_every_placeholder() {
    let folders = Folders::new();
    let mut brief = folders.brief(Kind::Command);
    brief.command =
        ["sh", "-c", "{task} {goal_file} {workspace} {model} {attempt} [{resume}] {\"a\": 1} {{x", "{goal}"]
            .map(str::to_owned)
            .to_vec();
    brief.command_env = BTreeMap::from([("OPENAI_MODEL".to_owned(), "{model}".to_owned())]);
    brief.handover_file = Some(folders.home().join("handover.md"));
    insta::assert_json_snapshot!(shown(&folders, &adapter(Kind::Command).launch(&brief).unwrap()));
}

#[test]
fn command_refuses_what_it_cannot_do() {
    let folders = Folders::new();
    let launch = |command: &[&str], env: Option<&str>| {
        let mut brief = folders.brief(Kind::Command);
        brief.command = command.iter().map(|word| (*word).to_owned()).collect();
        brief.command_env = env.map(|name| (name.to_owned(), "x".to_owned())).into_iter().collect();
        adapter(Kind::Command).launch(&brief).unwrap_err()
    };
    assert!(matches!(launch(&[], None), Error::CommandMissing));
    assert!(matches!(launch(&["sh", "{gaol}"], None), Error::PlaceholderUnknown { name, .. } if name == "gaol"));
    assert!(matches!(launch(&["no-such-program"], None), Error::ProgramMissing { .. }));
    for name in ["OUTLAST_KEY", "https_proxy", "PATH"] {
        assert!(matches!(launch(&["sh"], Some(name)), Error::VariableReserved { .. }), "{name}");
    }
}

#[test]
fn no_kind_shows_the_key_in_its_arguments_or_sets_a_proxy_and_every_environment_is_complete() {
    for kind in Kind::ALL {
        for shape in [KeyShape::ApiKey, KeyShape::Login] {
            let folders = Folders::new();
            let mut brief = folders.brief(kind);
            brief.key_shape = shape;
            brief.extra_env = BTreeMap::from([("RUST_LOG".to_owned(), "debug".to_owned())]);
            let launch = adapter(kind).launch(&brief).unwrap();
            assert!(launch.argv.iter().all(|word| !word.contains(support::KEY)), "{kind}: {:?}", launch.argv);
            for (name, value) in &launch.env {
                assert!(!name.to_lowercase().ends_with("_proxy") || value.is_empty(), "{kind}: {name}");
            }
            for name in ["PATH", "HOME", "TMPDIR", "TERM", "LANG", "OUTLAST_ATTEMPT", "OUTLAST_KEY", "RUST_LOG"] {
                assert!(launch.env.contains_key(name), "{kind}: {name}");
            }
        }
    }
}

#[test]
fn no_plan_can_move_a_provider_by_a_variable_it_allows_through() {
    let folders = Folders::new();
    for kind in Kind::ALL {
        for name in [
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_USE_BEDROCK",
            "HTTPS_PROXY",
            "OPENAI_BASE_URL",
            "CODEX_HOME",
            "GOOGLE_GEMINI_BASE_URL",
            "OPENCODE_CONFIG",
            "NODE_OPTIONS",
            "OUTLAST_KEY",
            "LD_PRELOAD",
            "KIMI_BASE_URL",
            "FASTMCP_ENV_FILE",
        ] {
            let mut brief = folders.brief(kind);
            brief.extra_env = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
            let refused = adapter(kind).launch(&brief);
            assert!(matches!(refused, Err(Error::VariableReserved { .. })), "{kind} {name}");
        }
    }
}

#[test]
fn a_prompt_too_long_for_an_argument_or_with_a_port_in_it_goes_through_the_file() {
    let folders = Folders::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Command) {
        for prompt in ["x".repeat(200_000), "listen on {port}".to_owned()] {
            let mut brief = folders.brief(kind);
            brief.prompt = prompt;
            let launch = adapter(kind).launch(&brief).unwrap();
            assert!(launch.argv.iter().all(|word| word.len() < 128 * 1024), "{kind}");
            let prompt_file = launch.files.iter().map(|(_, text)| text);
            let said: Vec<&String> = launch.argv.iter().chain(prompt_file).collect();
            assert!(!said.iter().any(|text| text.contains("listen on")), "{kind}");
            let goal_file = brief.goal_file.to_str().unwrap();
            assert!(said.iter().any(|text| text.contains(goal_file)), "{kind}");
        }
    }
}

/// One way for each kind, the same fresh and resumed: an argument, or a file that ends. A standard input that stays open, on
/// which one CLI hung at a resume, is none of them; the program of a plan's own reads a file by itself.
#[test]
fn h06_every_kind_is_told_in_one_way_and_never_by_an_input_that_stays_open() {
    let folders = Folders::new();
    for kind in Kind::ALL {
        for session in [None, Some("11111111-2222-8333-8444-555555555555")] {
            let mut brief = folders.brief(kind);
            if let Some(id) = session {
                brief.session = Session::Resume { id: id.into() };
            }
            let launch = adapter(kind).launch(&brief).unwrap();
            let by_argument = launch.argv.iter().filter(|argument| argument.contains(&*brief.prompt)).count();
            let by_file = launch.files.iter().filter(|(_, text)| **text == brief.prompt).count();
            let wanted = match kind {
                Kind::Command => (0, 0),
                Kind::OpenCode => (0, 1),
                _ => (1, 0),
            };
            assert_eq!((by_argument, by_file), wanted, "{kind} {session:?}: {:?}", launch.argv);
            let reads_it = launch.argv.iter().any(|argument| argument.contains("< \"$OUTLAST_PROMPT_FILE\""));
            assert_eq!(reads_it, kind == Kind::OpenCode, "{kind}: {:?}", launch.argv);
            let named = session.is_none_or(|id| kind == Kind::Command || launch.argv.iter().any(|a| a.contains(id)));
            assert!(named, "{kind} goes on in its session: {:?}", launch.argv);
        }
    }
}
