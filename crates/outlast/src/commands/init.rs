//! `outlast init`: the first outlast.toml of a repository, and what agents and logins there are to work with.
//!
//! It never writes over a file, and runs nothing.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use outlast_agent::discover::{Found, discover};
use outlast_api::{Diagnostic, ExitCode, schema};
use outlast_config::load::PROJECT_FILE;
use outlast_config::{Facts, UserConfig, starter};
use serde::Serialize;

use crate::args::Init;
use crate::commands::doctor::logins::{self, Credential, provider_name};
use crate::commands::{Given, print, print_json, say};
use crate::failure::Failure;
use crate::text::{BOLD, DIM, styled};

/// What was written and found: `outlast/init/v1`.
#[derive(Serialize)]
struct View {
    schema: String,
    /// Where the file is, or would be.
    path: String,
    /// Whether it was written.
    written: bool,
    /// What is, or would be, in it.
    text: String,
    agents: Vec<AgentView>,
    accounts: Vec<AccountView>,
    /// Keys and logins that no account uses.
    unused_logins: Vec<LoginView>,
    /// What to do next: commands and sentences, in order.
    next: Vec<String>,
}

#[derive(Serialize)]
struct AgentView {
    kind: &'static str,
    program: String,
}

#[derive(Serialize)]
struct AccountView {
    name: String,
    provider: &'static str,
    login: bool,
}

#[derive(Serialize)]
struct LoginView {
    provider: &'static str,
    login: bool,
    place: String,
    config: &'static str,
}

pub(crate) fn perform(given: &Given, init: &Init) -> Result<ExitCode, Failure> {
    let repository = given.places.repository()?;
    // A configuration that cannot be read is told before anything is written.
    let user = given.places.user_config()?;
    let agents = discover(&std::env::var("PATH").unwrap_or_default());
    let file = repository.root().join(PROJECT_FILE);
    let text = starter(&facts(repository.root(), &agents)?);
    if !init.print {
        write(&file, &text)?;
    }
    let view = view(given, &file, text, !init.print, &agents, &user);
    if given.json {
        print_json(&view)?;
    } else if init.print {
        print(&view.text)?;
    } else {
        tell(&view)?;
    }
    Ok(ExitCode::Ok)
}

/// What the repository's root and the machine show.
fn facts(root: &Path, agents: &[Found]) -> Result<Facts, Failure> {
    let cannot = |error: io::Error| cannot(root, &error);
    let mut names = Vec::new();
    for entry in fs::read_dir(root).map_err(cannot)? {
        names.extend(entry.map_err(cannot)?.file_name().into_string());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let package = fs::read_to_string(root.join("package.json")).ok();
    let mut facts = Facts::of(&names, package.as_deref());
    facts.agents = agents.iter().map(|agent| agent.kind.name().to_owned()).collect();
    Ok(facts)
}

/// Puts the file there whole, or not at all where one of this name is already.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = tempfile::Builder::new()
        .prefix(".outlast-")
        // What a new file of the user's gets: the mask takes away from it.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .and_then(|mut temp| temp.write_all(text.as_bytes()).and_then(|()| temp.as_file().sync_all()).map(|()| temp));
    match written.map(|temp| temp.persist_noclobber(file)) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(refused)) if refused.error.kind() == io::ErrorKind::AlreadyExists => {
            let what = format!("`{}` is there already", file.display());
            Err(Diagnostic::error("init/exists", ExitCode::Plan, what)
                .because("a plan is never written over")
                .fix("outlast init --print    # shows what would be written")
                .fix("outlast check    # checks the one that is there")
                .into())
        }
        Ok(Err(refused)) => Err(cannot(file, &refused.error)),
        Err(error) => Err(cannot(file, &error)),
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    Diagnostic::error("host/cannot", ExitCode::Host, format!("{}: {error}", path.display())).into()
}

fn view(given: &Given, file: &Path, text: String, written: bool, agents: &[Found], user: &UserConfig) -> View {
    let unused: Vec<Credential> =
        logins::found().into_iter().filter(|credential| !logins::is_used(credential, user)).collect();
    let mut next = Vec::new();
    if agents.is_empty() {
        let any = "or name any program: see [agent.mine]";
        next.push(format!("install an agent: claude, codex, opencode, gemini, qwen or kimi; {any}"));
    }
    if user.accounts.is_empty() {
        let config = given.places.config.display();
        let example =
            unused.first().map_or("account.NAME = { provider = \"…\", key_env = \"…\" }", |found| found.config);
        next.push(format!("name an account in {config}: {example}"));
    }
    next.push(format!("add a [[task]] to {PROJECT_FILE}"));
    next.push("outlast check".to_owned());
    next.push("outlast run".to_owned());
    View {
        schema: schema("init"),
        path: file.display().to_string(),
        written,
        text,
        agents: agents.iter().map(agent_view).collect(),
        accounts: user
            .accounts
            .iter()
            .map(|(name, account)| AccountView {
                name: name.to_string(),
                provider: provider_name(account.provider),
                login: account.login.is_some(),
            })
            .collect(),
        unused_logins: unused.into_iter().map(login_view).collect(),
        next,
    }
}

fn agent_view(found: &Found) -> AgentView {
    AgentView { kind: found.kind.name(), program: found.entry.display().to_string() }
}

fn login_view(found: Credential) -> LoginView {
    let Credential { provider, login, place, config } = found;
    LoginView { provider: provider_name(provider), login, place, config }
}

/// Lists what there is; the file itself is where it says.
fn tell(view: &View) -> Result<(), Failure> {
    say(&format!("{} is written", view.path));
    let title = |text: &str| styled(BOLD, text);
    let nothing = |what: &str| format!("  {}\n", styled(DIM, what));
    let mut lines = format!("{}\n", title("agents on the PATH"));
    for agent in &view.agents {
        lines.push_str(&format!("  {:<12} {}\n", agent.kind, agent.program));
    }
    if view.agents.is_empty() {
        lines.push_str(&nothing("none"));
    }
    lines.push_str(&format!("{}\n", title("accounts that outlast may use")));
    for account in &view.accounts {
        let kind = if account.login { "login" } else { "key" };
        lines.push_str(&format!("  {:<12} {} ({kind})\n", account.name, account.provider));
    }
    if view.accounts.is_empty() {
        lines.push_str(&nothing("none"));
    }
    if !view.unused_logins.is_empty() {
        lines.push_str(&format!("{}\n", title("found here and not used by outlast")));
    }
    for login in &view.unused_logins {
        lines.push_str(&format!("  {:<12} {}  {}\n", login.provider, login.place, styled(DIM, login.config)));
    }
    lines.push_str(&format!("{}\n", title("next")));
    for (number, step) in view.next.iter().enumerate() {
        lines.push_str(&format!("  {}. {step}\n", number + 1));
    }
    print(&lines)
}
