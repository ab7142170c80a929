//! The user's configuration: accounts, ceilings, and what is refused.

use super::*;

fn read(text: &str) -> UserChecked {
    read_user(&Source::new("config.toml", text))
}

#[test]
fn the_contracts_example_is_read_whole() {
    let text = "[account.max]\nlogin = \"claude\"\npriority = 1\n[account.api]\nprovider = \"anthropic\"\nkey_env = \"ANTHROPIC_API_KEY\"\n\
        [account.local]\nprovider = \"openai-compatible\"\nbase_url = \"http://127.0.0.1:11434/v1/\"\nkey_command = [\"pass\", \"show\", \"x\"]\nmodels = [\"m\"]\n\
        hours = \"22:00-08:00\"\nlimits = { requests_per_minute = 50, tokens_per_minute = 100000, concurrent = 4 }\n\
        [ceiling]\nconcurrency = 20\nbudget = { usd = 100.0, tokens = 5_000_000 }\n";
    let checked = read(text);
    assert_eq!(checked.findings, []);
    insta::assert_debug_snapshot!(checked.config.unwrap());
}

#[test]
fn accounts_that_cannot_work_are_refused() {
    let text = "[account.a]\nprovider = \"anthropic\"\n[account.b]\nlogin = \"claude\"\nprovider = \"openai\"\n[account.c]\nkey_env = \"K\"\n\
        [account.d]\nprovider = \"openai-compatible\"\nkey_env = \"K\"\nkey_file = \"f\"\n[account.e]\nprovider = \"gemini\"\nkey_env = \"\"\nkey = \"sk-1\"\n\
        [account.f]\nprovider = \"openai\"\nkey_env = \"K\"\nbase_url = \"ftp://x\"\nhours = \"8-9\"\n[account]\ng = 1\n[notify]\n[ceiling]\nsandbox = \"min\"\n";
    let checked = read(&text.replace("[account]\ng = 1\n", ""));
    assert_eq!(checked.config, None);
    insta::assert_snapshot!(checked.findings.iter().map(|finding| format!("{finding}\n")).collect::<String>());
}

#[test]
fn what_needs_windows_is_refused_while_there_are_none() {
    let account = "[account.a]\nlogin = \"claude\"\n";
    for (text, key) in [
        (format!("{account}reserve = \"30%\"\n"), "`reserve` in `[account.a]`"),
        (format!("{account}[ceiling]\nbudget = {{ window = \"80%\" }}\n"), "`window` in `budget`"),
    ] {
        let checked = read(&text);
        assert_eq!(checked.config, None, "{text}");
        let told: Vec<_> = checked.findings.iter().map(|f| (f.code, f.message.as_str())).collect();
        assert_eq!(told, [(Code::NotSupportedYet, format!("{key} is not supported yet").as_str())]);
    }
}

#[test]
fn an_unencrypted_address_is_warned_of_and_loopback_is_not() {
    let warned = |url: &str| {
        let text = format!("[account.a]\nprovider = \"openai\"\nkey_env = \"K\"\nbase_url = \"{url}\"\n");
        let checked = read(&text);
        (checked.config.is_some(), checked.findings.len())
    };
    for fine in ["https://api.example.com/v1", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:80/v1"] {
        assert_eq!(warned(fine), (true, 0), "{fine}");
    }
    for plain in ["http://10.0.0.1", "http://127.0.0.1.evil.example", "http://localhost.evil.example"] {
        assert_eq!(warned(plain), (true, 1), "{plain}");
    }
    for bad in ["http://", "https://a b", "https://user:pass@host", "//host"] {
        assert_eq!(warned(bad), (false, 1), "{bad}");
    }
}
