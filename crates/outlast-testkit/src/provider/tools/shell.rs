//! Actions as shell commands, for agents that have a shell and nothing better. Texts arrive unchanged: all are quoted.

use crate::script::LocalStep;

/// Single quotes for `sh`; the text arrives there unchanged.
pub(super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Writes a whole file, with its folder.
pub(super) fn write_command(path: &str, text: &str) -> String {
    let (path, text) = (quote(path), quote(text));
    format!("mkdir -p -- \"$(dirname -- {path})\" && printf %s {text} > {path}")
}

/// Replaces the first occurrence of a text with awk, which every system with a shell has.
pub(super) fn edit_command(path: &str, old: &str, new: &str) -> String {
    let program = r#"BEGIN { RS = "\001" } { i = index($0, ENVIRON["OLD"]); if (!i) exit 1; printf "%s%s%s", substr($0, 1, i - 1), ENVIRON["NEW"], substr($0, i + length(ENVIRON["OLD"])) }"#;
    let path = quote(path);
    format!(
        "edited=$(OLD={} NEW={} awk '{program}' {path} && echo x) && printf %s \"${{edited%x}}\" > {path}",
        quote(old),
        quote(new),
    )
}

/// What a misbehaviour looks like for an agent that only has a shell.
pub(super) fn local_command(step: &LocalStep) -> Result<String, String> {
    let command = match step {
        LocalStep::Die(_) => "kill -9 $PPID".to_owned(),
        LocalStep::Hang => "sleep 2147483".to_owned(),
        LocalStep::Spin => "while :; do :; done".to_owned(),
        LocalStep::ForkDetached(command) => format!("setsid sh -c {} </dev/null >/dev/null 2>&1 &", quote(command)),
        LocalStep::Flood(bytes) => format!("head -c {bytes} /dev/zero | tr '\\0' x"),
        LocalStep::ReadStdin => "cat >/dev/null".to_owned(),
        LocalStep::Sleep(seconds) => format!("sleep {seconds}"),
        LocalStep::FromAttempt { attempt, command } => {
            format!("if [ \"${{OUTLAST_ATTEMPT##*.}}\" -ge {attempt} ]; then {command}\nfi")
        }
        LocalStep::Exit(_) | LocalStep::IgnoreTerm | LocalStep::Linger | LocalStep::FailFirst { .. } => {
            return Err(format!("`{step}` needs the scripted agent; this one offers no tool for it"));
        }
    };
    Ok(command)
}
