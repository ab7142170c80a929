//! The page about plans and configuration in the documentation: every key that the readers know, in words.

mod tables;

use std::fmt::Write as _;

use outlast_core::placeholder::PLACEHOLDERS;
use outlast_core::plan::EXIT_TRY_LATER;

use crate::keys;
use tables::Key;

/// The whole of `docs/plan.md`.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    section(&mut page, "[run]", "What holds for the run as a whole.", tables::RUN);
    section(&mut page, "budget", "A part that is not named is no limit.", tables::BUDGET);
    section(
        &mut page,
        "[agent.NAME]",
        "A program that tasks are given to. What each kind can do is in [agents.md](agents.md).",
        tables::AGENT,
    );
    page.push_str(COMMAND);
    page.push_str("\n| placeholder | is replaced by |\n| --- | --- |\n");
    for (name, meaning) in PLACEHOLDERS {
        let _ = writeln!(page, "| `{{{name}}}` | {meaning} |");
    }
    page.push_str("\n| exit code | means |\n| --- | --- |\n");
    let _ = writeln!(
        page,
        "| 0 | it thinks that it is done: its work is checked |\n\
         | {EXIT_TRY_LATER} | try again later (`EX_TEMPFAIL`): 2 s later, then ever later up to 15 min; no try is used up |\n\
         | anything else | it failed: a try is used up, and the next one goes on from what is there |\n\n\
         Where its last line, on standard output or standard error, is nothing but what a provider said (`API Error: 429 …`,\n\
         `You've hit your limit · resets 5pm (UTC)`, `ThrottlingException: …`), that is why it ended, and a limit, an overload or a\n\
         broken connection uses up no try: after a failure, after its time was over, and also after a 0 where it has changed nothing."
    );
    page.push_str(ENVIRONMENT);
    for (name, meaning) in VARIABLES {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
    section(&mut page, "[[task]]", "One piece of work for one agent.", tables::TASK);
    section(&mut page, "output", "The shape of an answer.", tables::OUTPUT);
    page.push_str(COMMANDS);
    for (name, meaning) in COMMAND_VARIABLES {
        let _ = writeln!(page, "| `{name}` | {meaning} |");
    }
    let shared: Vec<String> = keys::DEFAULTS.iter().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(
        page,
        "\n## `[defaults]`\n\nWhat holds for each task that does not say otherwise: {}.",
        shared.join(", ")
    );
    let later: Vec<String> = keys::LATER.iter().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(
        page,
        "\n## Not yet\n\nRefused with \"not supported yet\" wherever they are not named above: {}.",
        later.join(", ")
    );
    page.push_str(USER);
    section(
        &mut page,
        "[account.NAME]",
        "A key or login at a provider; one of `login`, `key_env`, `key_command` and `key_file`.",
        tables::ACCOUNT,
    );
    section(&mut page, "limits", "A part that is not named is not known.", tables::LIMITS);
    section(
        &mut page,
        "[ceiling]",
        "What no plan may go above; a part that is not named is no ceiling.",
        tables::CEILING,
    );
    page
}

fn section(page: &mut String, title: &str, about: &str, keys: &[Key]) {
    let _ =
        write!(page, "\n## `{title}`\n\n{about}\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for key in keys {
        let default = key.default.map_or_else(|| "-".to_owned(), |default| format!("`{default}`"));
        let (name, takes, example, meaning) = (key.name, key.takes.in_words(), key.example, key.meaning);
        let _ = writeln!(page, "| `{name}` | {takes}, as `{example}` | {default} | {meaning} |");
    }
}

/// The variables that every agent is given, beside those of its own program.
pub const VARIABLES: [(&str, &str); 8] = [
    ("OUTLAST_RUN", "the run's id"),
    ("OUTLAST_TASK", "the task's id"),
    (
        "OUTLAST_ATTEMPT",
        "the attempt: a name that no other on this machine has, and that ends in a dot and its number from 1",
    ),
    ("OUTLAST_GOAL_FILE", "the file with what is asked for: what `{goal_file}` names"),
    (
        "OUTLAST_PROGRESS_FILE",
        "a file that it may keep notes in for whoever goes on; `outlast progress` is the better way",
    ),
    ("OUTLAST_HANDOVER_FILE", "the file with what is known of earlier attempts; only where there were some"),
    ("OUTLAST_GATEWAY_URL", "the address that answers for every provider, in place of the provider's own"),
    ("OUTLAST_KEY", "the key to show there; it is of this attempt alone"),
];

/// The variables that each command of `setup`, `verify` and `steps` is given, and no other of the user's.
pub const COMMAND_VARIABLES: [(&str, &str); 10] = [
    ("PATH", "yours, and after it the folder of `outlast` itself where it is not on it"),
    (
        "HOME",
        "an empty folder of the run's; in a workspace that of the task's agent, where its caches are. Never yours: what a \
         program looks for there (`~/.npmrc`, `~/.m2`, `~/.cache`) is not there",
    ),
    ("TMPDIR", "a folder of the run's or the task's"),
    ("TERM", "`dumb`"),
    ("LANG", "`C.UTF-8`"),
    ("OUTLAST_RUN", "the run's id"),
    ("OUTLAST_TASK", "the task's id; for `setup`, that of the first task that starts from the tree"),
    ("OUTLAST_ATTEMPT", "a name of this run of the command that no other on this machine has"),
    ("RUSTUP_HOME", "yours, or `~/.rustup`, where there is such a folder"),
    ("PYENV_ROOT", "yours, or `~/.pyenv`, where there is such a folder"),
];

const HEAD: &str = "\
# Plans and configuration

Every key of a plan and of your own configuration. Written by the readers of both (`outlast_config::reference`); a test
fails when this page, or a type or default on it, differs from what they take.

A plan is `outlast.toml` at the repository's root, alone or with a batch on top of it: `outlast run NAME` takes the tasks of
`plans/NAME.toml`, or of the Markdown files in `plans/NAME/` (one task each: the same keys as YAML front matter, the goal
as the text; in task files of other tools `depends_on` is `needs`, and what means nothing to a run is told); a path works as
well. A batch may hold each of the tables below, and its keys win one by one; the tasks of `outlast.toml` are no part of it.
An unknown key is an error. Paths and globs are relative to the repository's root. A duration is whole numbers with the units `d`, `h`,
`m`, `s`, `ms`, large to small: `\"90s\"`, `\"1h30m\"`.

Commands of a plan (`setup`, `verify`, `steps`, and the `command` of agents) run on your machine, in a sandbox, and only
after you have approved them once: `outlast check` lists them. `check` and `run` refuse a plan of which it can be seen that a
command cannot pass: its program is neither on the `PATH` nor, by its path, in the commit that the run starts from, and neither
`setup`, a needed task nor the task itself may make it. One that turns out not to be there ends its task (`no_program`); no try is
used, and no further agent is paid.
";

const COMMAND: &str = "
## An agent of the kind `command`

Any program, run in the task's workspace. In arguments and in values of `env`, a lower-case word in braces is a placeholder
and has to be one of these; `{{word}}` stands for the text `{word}`, and `${word}` is left to a shell. The program itself
holds none. It has to be on the `PATH`, or in the commit that the run starts from, where it has to be executable; `check` and
`run` refuse a plan where it is neither, unless `setup` or a needed task may make it. The same holds for the script of a
`sh`, `python3`, `node` and the like that is their first argument.
";

const ENVIRONMENT: &str = "
Its environment is built from nothing: `PATH`, `HOME`, `TMPDIR`, the language, its `env`, and

| variable | holds |
| --- | --- |
";

const COMMANDS: &str = "
## What commands are given

Each command of `setup`, `verify` and `steps` is given to `sh -c`, one after the other; the first that does not exit with 0
ends the list. `setup` runs in a fresh tree of ours; `steps` run in the task's workspace, and so does `verify`, which runs a
second time on what would land, in a tree that no agent can write. A command may write there, in its `HOME` and its `TMPDIR`.
`setup` of the commit that the run starts from may reach the network, and fetch what the project needs (`npm ci`, `cargo
fetch`). Once an agent's work is in the tree, no command may make a TCP connection where the system can keep it from that,
`setup` for a task with `needs` and for what would land included: a new dependency has to be in a cache by then, or in the
commit that the run starts from.

A command may take as long as the task's `timeout`, one of `setup` 30 minutes. Its environment is built from nothing: no other
variable of yours, no key, and

| variable | holds |
| --- | --- |
";

const USER: &str = "
# Your own configuration

`$OUTLAST_CONFIG`, else `outlast/config.toml` in `$XDG_CONFIG_HOME` (`~/.config`). Only here can a credential, a provider's
address or a ceiling be named; a plan that names one is refused.
";

#[cfg(test)]
mod tests;
