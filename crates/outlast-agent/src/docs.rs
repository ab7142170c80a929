//! The page about agents in the documentation, written from what the adapters say about themselves.

use std::fmt::Write as _;

use crate::launch::Hold;
use crate::project::KNOWN;
use crate::{Kind, adapter};

/// The whole of `docs/agents.md`.
pub fn capability_table() -> String {
    let mut page = String::from(
        "# Agents\n\n\
         Written by the adapters themselves (`outlast_agent::docs`); a test fails when this page differs from them.\n\n\
         ## What each can do\n\n\
         \"Observed\" is the version whose behaviour was seen; `outlast doctor` names the one you have.\n\n\
         | kind | program | observed | speaks | resumes | session id | key as a login | reports tokens | `inherit` |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for kind in Kind::ALL {
        let can = adapter(kind).capabilities();
        let speaks: Vec<_> = can.dialects.iter().map(|dialect| dialect.name()).collect();
        let _ = writeln!(
            page,
            "| `{kind}` | {} | {} | {} | {} | {} | {} | {} | {} |",
            kind.program().map_or("its `command`".to_owned(), |program| format!("`{program}`")),
            can.observed,
            speaks.join(", "),
            yes(can.resume),
            if can.session_id_fixed { "chosen by outlast" } else { "read from its output" },
            yes(can.login_shape),
            yes(can.reports_usage),
            can.inherit,
        );
    }
    page.push_str(
        "\n## What to know about each\n\n\
         Success is never taken from the exit code alone. \"Held\" is what the agent hears while its request waits.\n\n\
         | kind | address and key are set in | exit code | resume | held |\n\
         | --- | --- | --- | --- | --- |\n",
    );
    for kind in Kind::ALL {
        let adapter = adapter(kind);
        let can = adapter.capabilities();
        let held = held(&adapter.hold());
        let _ =
            writeln!(page, "| `{kind}` | {} | {} | {} | {held} |", can.strongest_layer, can.exit_trap, can.resume_trap);
    }
    page.push_str(
        "\n## Files of a repository that agents obey\n\n\
         None of them moves a request or adds a key. `outlast doctor` lists those your repository has, with what they set.\n\n\
         | kind | file | what becomes of it |\n\
         | --- | --- | --- |\n",
    );
    for known in &KNOWN {
        let _ = writeln!(page, "| `{}` | `{}` | {} |", known.kind, known.file, known.outcome);
    }
    page
}

const fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn held(hold: &Hold) -> String {
    let mut text = match hold.headers_wait {
        None => "nothing, for as long as it takes".to_owned(),
        Some(wait) => {
            let what = if hold.keep_alive.starts_with(':') { "a comment" } else { "an empty event" };
            format!("after {} s {what} every {} s", wait.as_secs(), hold.period.as_secs())
        }
    };
    if hold.buffer_whole {
        text.push_str("; answers pass whole, as it dies of a cut");
    }
    text
}
