//! From an error of the engine to what a person is told: what happened, why, what to do, and the exit code.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use outlast_api::{Diagnostic, ExitCode};
use outlast_core::admit::Rejection;
use outlast_core::run::Run;
use outlast_core::{Core, RunId, TaskId};
use outlast_git::{quoted, word};
use outlast_journal::JournalReader;

use crate::error::Error;
use crate::held_up::Why;
use crate::home::{Holder, Home, RepoHome};
use crate::named::{run_again, run_anew};
use crate::obstacle::{NOTHING_LOST, Obstacle, checkout};
use crate::room::NoSpace;
use crate::store::replay;

/// The diagnostic of an error.
pub fn diagnostic(error: &Error) -> Diagnostic {
    let what = error.to_string();
    let plain = |code: &str, exit| Diagnostic::error(code, exit, what.clone());
    let mut told = match error {
        Error::EngineRunning(holder) => running(plain("host/engine-running", ExitCode::Host), holder.as_ref()),
        Error::Journal(error) => journal(error),
        Error::Unreadable { .. } => plain("journal/damaged", ExitCode::Journal)
            .fix("update outlast, or restore journal.db from a backup; nothing was changed"),
        Error::File { path, .. } | Error::NoRoom { folder: path, .. } if error.is_no_space() => {
            no_space(&what, path, "outlast resume")
        }
        Error::Git(outlast_git::Error::Io { path, .. }) if error.is_no_space() => {
            no_space(&what, path, "outlast resume")
        }
        Error::Git(_) if error.is_no_space() => {
            plain(DISK_FULL, ExitCode::Host).fix(NoSpace::Room.help("outlast resume"))
        }
        Error::FileSize { .. } => plain(FILE_SIZE, ExitCode::Host).fix(NoSpace::FileSize(0).help(SAME_AGAIN)),
        Error::Git(error) => git(error),
        Error::Rejected(rejection) => rejected(rejection),
        Error::File { .. }
        | Error::NoRoom { .. }
        | Error::Process(_)
        | Error::Agent(_)
        | Error::Alive { .. }
        | Error::Unshown { .. } => plain("host/cannot", ExitCode::Host),
        Error::RepositoryGone { .. } => {
            plain(REPOSITORY_GONE, ExitCode::Repository).fix("put it back, then: outlast resume")
        }
        Error::PlanDamaged { path, .. } => plain(PLAN_DAMAGED, ExitCode::Host)
            .because("it was made when the run began, so that edits of the plan change nothing under way")
            .fix(format!("put {} back from a backup, then: outlast resume", quoted(&path.display().to_string())))
            .fix("outlast run --again    # starts its tasks anew; what has landed stays"),
        Error::StoreGone { .. } => plain(STORE_GONE, ExitCode::Host).fix("put it back, then: outlast resume"),
        Error::HomeGone { .. } => plain("host/home-gone", ExitCode::Host).fix("outlast run    # starts anew"),
        Error::JournalGone { path } => journal_gone(plain("journal/damaged", ExitCode::Journal), path),
        Error::AgentMissing { program } => plain("host/agent-missing", ExitCode::Host)
            .fix(format!("install `{program}`, or name another agent with --agent"))
            .fix("outlast doctor"),
        Error::AgentUnknown { .. } => plain("plan/no-agent", ExitCode::Usage),
        Error::ModelMissing { agent, .. } => {
            plain("plan/no-model", ExitCode::Plan).fix(format!("add model = \"…\" to [agent.{agent}]"))
        }
        Error::ModelNotAllowed { model, accounts, .. } => {
            plain("plan/model-not-allowed", ExitCode::Plan).because(accounts.clone()).fix(format!(
                "add \"{model}\" to `models` of one of them in your own config.toml, or name another `model`"
            ))
        }
        Error::NoAccount { .. } => plain("config/no-account", ExitCode::Plan)
            .because("only your own config.toml may name an account")
            .fix("add [account.NAME] with provider and key_env (or login) to it; `outlast doctor` says where it is"),
        Error::Gateway(_) => plain("gateway/unreachable", ExitCode::Provider),
        Error::Stopped | Error::Ended | Error::Busy => plain("engine/stopped", ExitCode::Host).fix("outlast resume"),
        Error::Internal(_) => plain("outlast/defect", ExitCode::Defect),
    };
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if cause_text != told.what {
            told = told.because(cause_text);
        }
        source = cause.source();
    }
    told
}

/// How to get past an engine that has a home to itself: by its run, which is found from anywhere, or beside it.
fn running(told: Diagnostic, holder: Option<&Holder>) -> Diagnostic {
    let told = told.because("there is one engine per state folder, whatever the repository");
    let told = match holder {
        Some(Holder { pid, is_gateway: true, .. }) => told.fix(format!("kill {pid}    # ends the gateway")),
        Some(Holder { ends_with: Some(run), .. }) => told
            .fix(format!("outlast status {run}"))
            .fix(format!("outlast stop {run}    # from any folder: parks its work and ends it")),
        _ => told.fix("outlast status").fix(
            "outlast    # lists every run; `outlast stop RUN` parks its work and ends its engine, from any folder",
        ),
    };
    told.fix("outlast run --home DIR    # a second engine beside it, with a state of its own")
}

/// The code of whatever a full disk keeps from being done.
pub(crate) const DISK_FULL: &str = "host/disk-full";
/// The code of whatever a limit of this process on how large files may be keeps from being done.
pub(crate) const FILE_SIZE: &str = "host/file-size-limit";
/// What is to be done again where nothing is on record yet.
const SAME_AGAIN: &str = "the same again";
/// The code of whatever waits for the user's repository.
pub(crate) const REPOSITORY_GONE: &str = "repository/gone";
/// The code of whatever waits for our own store.
pub(crate) const STORE_GONE: &str = "host/store-gone";
/// The code of whatever waits for the copy of a plan.
const PLAN_DAMAGED: &str = "plan/damaged";
/// The code of a repository that is another one.
const ANOTHER: &str = "repository/another";
/// The code of what is missed in our own store.
const STORE_DAMAGED: &str = "host/store-damaged";
/// The code of whatever else is tried again and again.
const TRIED_AGAIN: &str = "host/tried-again";

/// Whether this is said because something waits that nobody need wait for who wants to leave.
pub fn is_held_up(told: &Diagnostic) -> bool {
    is_obstacle(told) || matches!(told.code.as_str(), PLAN_DAMAGED | ANOTHER | TRIED_AGAIN | STORE_DAMAGED)
}

/// Whether this is said of what is in the way of everything.
pub(crate) fn is_obstacle(told: &Diagnostic) -> bool {
    matches!(told.code.as_str(), DISK_FULL | FILE_SIZE | REPOSITORY_GONE | STORE_GONE)
}

/// Why an operation of a run came to nothing.
pub(crate) fn why(error: &Error, run: &RunId, home: &RepoHome) -> Why {
    let certain = |told| Why { told, is_certain: true };
    if error.is_no_space() {
        return certain(not_all_kept(home.root()));
    }
    if let Some(obstacle) = Obstacle::gone(home) {
        return certain(obstacle.told(Some(run), None));
    }
    let goes_on = format!("outlast resume {run}    # goes on where it was");
    match error {
        Error::RepositoryGone { .. } => {
            return certain(diagnostic(error).because(NOTHING_LOST).about(run.to_string()).fix(goes_on));
        }
        Error::PlanDamaged { .. } => return certain(diagnostic(error).because(NOTHING_LOST).about(run.to_string())),
        _ => {}
    }
    if let (Error::Git(_), Some(place)) = (error, another_repository(run, home)) {
        return certain(another(run, &place));
    }
    if let (Error::Git(_), Ok(files)) = (error, outlast_git::emptied(&home.store()))
        && !files.is_empty()
    {
        let told = store_damaged(&files).because(NOTHING_LOST).about(run.to_string());
        return Why { told, is_certain: is_lost(error, &files) };
    }
    let lock = lock_of(error);
    // Git has waited for the lock of a ref as long as any other git may hold it: to wait again would show nothing new.
    let is_waited_for = lock.is_some_and(outlast_git::is_waited_for);
    let what = in_short(error);
    let tried = if is_waited_for {
        "it was waited for, and is tried again"
    } else {
        "it was tried again and again, and came to nothing each time"
    };
    let mut told = Diagnostic::error(TRIED_AGAIN, ExitCode::Host, what)
        .because(tried)
        .because(NOTHING_LOST)
        .about(run.to_string());
    if let Error::Git(outlast_git::Error::Refused(refusal)) = error {
        told = told.fix(refusal.fix());
    }
    if let Some(lock) = lock {
        told = told.fix(format!("rm {}    # once no git is at work there", quoted(lock)));
    }
    Why { told: told.fix(goes_on), is_certain: is_waited_for }
}

/// What came to nothing, in a line: the log has all that git said.
pub(crate) fn in_short(error: &Error) -> String {
    match lock_of(error) {
        Some(lock) => format!("the lock {lock} is held by another git, or was left by one that was killed"),
        None => error.to_string().lines().next().unwrap_or_default().to_owned(),
    }
}

/// The lock that git did not get.
fn lock_of(error: &Error) -> Option<&str> {
    match error {
        Error::Git(outlast_git::Error::Git { stderr, .. }) => held_lock(stderr),
        _ => None,
    }
}

/// Where a run's repository was and another one is: it does not hold the commit that the run started from.
fn another_repository(run: &RunId, home: &RepoHome) -> Option<PathBuf> {
    let common_dir = home.lender()?;
    let core = replay(&JournalReader::open(home.journal()).ok()?).ok()?;
    let base = &core.run(run)?.spec.base;
    (outlast_git::has_object(&common_dir, base) == Some(false)).then(|| checkout(&common_dir).to_owned())
}

/// What is said of that: it would be tried in vain until the right one is back.
fn another(run: &RunId, place: &Path) -> Diagnostic {
    let what = format!("another repository is at {}, where that of run `{run}` was", place.display());
    let word = quoted(&place.display().to_string());
    let aside = quoted(&format!("{}.other", place.display()));
    Diagnostic::error(ANOTHER, ExitCode::Repository, what)
        .because("it does not hold the commit that the run started from")
        .because(NOTHING_LOST)
        .about(run.to_string())
        .fix(format!("mv {word} {aside} && mv WHERE_IT_IS_NOW {word}    # a repository is known by where it is"))
        .fix(format!("outlast resume {run}    # once it is back: goes on where it was"))
}

/// Whether something came to nothing for an object that is lost: whoever opened the store has looked for it everywhere.
fn is_lost(error: &Error, files: &[PathBuf]) -> bool {
    let Error::Git(outlast_git::Error::Object { oid, .. }) = error else { return false };
    let Some((fan_out, rest)) = oid.split_at_checked(2) else { return false };
    files.iter().any(|file| file.ends_with(Path::new(fan_out).join(rest)))
}

/// What is said of files of our store that hold no byte, that are damaged or gone, of which there is one at least.
pub fn store_damaged(files: &[PathBuf]) -> Diagnostic {
    let first = files.first().map(|file| file.display().to_string()).unwrap_or_default();
    let is_garbage = |file: &PathBuf| file.metadata().is_ok_and(|facts| facts.len() > 0);
    let what = match files {
        [file] if is_garbage(file) => format!("a file of our store holds garbage: {first}"),
        [] | [_] => format!("a file of our store is gone or holds no byte: {first}"),
        many => {
            let how = if many.iter().any(is_garbage) { "are damaged or gone" } else { "are gone or hold no byte" };
            format!("{} files of our store {how}, the first of them {first}", many.len())
        }
    };
    let told = Diagnostic::error(STORE_DAMAGED, ExitCode::Host, what)
        .because("a power cut or a full disk leaves files so; what agents did last is in their workspaces, too");
    if ["/HEAD", "/alternates"].iter().any(|name| first.ends_with(name)) || first.contains("/refs/outlast/") {
        return told.fix("outlast clean    # makes it anew, as does every other command that opens the store");
    }
    told.fix("outlast resume    # puts back what workspaces and the repository still hold of it")
        .fix("outlast clean    # looks all of it through, as well, and forgets what no task needs any more")
        .fix(format!("put {} back from a backup, then: outlast resume", quoted(&first)))
        .fix("outlast run --only TASK --again    # does a task anew that goes on with neither")
}

/// The lock file that git could not make because it is there.
pub(crate) fn held_lock(stderr: &str) -> Option<&str> {
    let (_, rest) = stderr.split_once("Unable to create '")?;
    let (path, _) = rest.split_once("': File exists")?;
    path.ends_with(".lock").then_some(path)
}

/// What is said where a file at `path` cannot be written for want of room.
fn no_space(what: &str, path: &Path, then: &str) -> Diagnostic {
    let lack = match what.contains("No space left on device") || what.contains("quota") {
        true => NoSpace::Room,
        false => NoSpace::of(path.parent().unwrap_or(path)),
    };
    let told = match lack {
        NoSpace::Room => Diagnostic::error(lack.code(), ExitCode::Host, what),
        NoSpace::FileSize(_) => {
            let what = format!("{} cannot become as large as it has to", path.display());
            Diagnostic::error(lack.code(), ExitCode::Host, what).because(lack.words())
        }
    };
    told.fix(lack.help(then))
}

/// What is said where a run is at rest but for what the disk with its state in `folder` has no room for.
pub fn not_all_kept(folder: &Path) -> Diagnostic {
    let lack = NoSpace::of(folder);
    let why = lack.words();
    let what = format!("{why}: what its agents did last is in their workspaces, and cannot be kept beside them yet");
    Diagnostic::error(lack.code(), ExitCode::Host, what)
        .because("nothing is lost, no task has failed and no try is used")
        .fix(lack.help("outlast resume"))
}

/// What is said where the journal in `folder` has no room for what is asked.
pub fn nothing_on_record(folder: &Path) -> Diagnostic {
    let lack = NoSpace::of(folder);
    let why = lack.words();
    let what = format!("{why}: nothing can be put on record, and what was asked for is done when there is room");
    let told = Diagnostic::error("journal/full", ExitCode::Host, what)
        .because("agents wait with their next request; nothing is lost");
    let told = match lack {
        NoSpace::Room => told.fix("free some space: everything goes on by itself then"),
        NoSpace::FileSize(_) => told.fix(lack.help("outlast resume")),
    };
    told.fix("Ctrl-C where the run was started leaves it at once; go on with: outlast resume")
}

/// What is left of runs whose journal is gone, and how to go on without it.
fn journal_gone(told: Diagnostic, path: &Path) -> Diagnostic {
    let folder = path.parent().unwrap_or(path).display().to_string();
    told.because(format!(
        "what had landed is in the repository; what had not is in {folder}/workspaces and {folder}/store.git"
    ))
    .fix(format!("put {} back from a backup, then: outlast resume", quoted(&path.display().to_string())))
    .fix(format!(
        "mv {} {} && outlast run    # starts anew; take over by hand what had not landed",
        quoted(&folder),
        quoted(&format!("{folder}.old"))
    ))
}

/// Whether it is the host that refuses a file, and no defect of ours.
fn is_of_the_host(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{
        IsADirectory, NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem, ResourceBusy,
        StaleNetworkFileHandle,
    };
    // Too many open files, in this process and on this host, have no kind of their own.
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EMFILE | Errno::ENFILE | Errno::EIO))
        || matches!(
            error.kind(),
            IsADirectory
                | NotADirectory
                | NotFound
                | PermissionDenied
                | ReadOnlyFilesystem
                | ResourceBusy
                | StaleNetworkFileHandle
        )
}

fn journal(error: &outlast_journal::Error) -> Diagnostic {
    use outlast_journal::Error as Journal;
    let (code, exit, fix) = match error {
        Journal::Damaged { .. } => {
            ("journal/damaged", ExitCode::Journal, "restore the file from a backup; it was not changed")
        }
        Journal::Newer { .. } => ("journal/newer", ExitCode::Journal, "update outlast"),
        Journal::Missing { .. } => ("run/none", ExitCode::NotFound, "outlast run"),
        Journal::Locked { path, pid } => return locked(error, path, *pid),
        Journal::NoSpace { path } => {
            // Until it has its name, there is no run to go on with.
            let is_new = path.extension().is_some_and(|extension| extension == "new");
            return no_space(&error.to_string(), path, if is_new { SAME_AGAIN } else { "outlast resume" });
        }
        Journal::Stopped { .. } => ("journal/stopped", ExitCode::Host, "outlast resume"),
        Journal::Io { source, .. } if is_of_the_host(source) => {
            return Diagnostic::error("host/cannot", ExitCode::Host, error.to_string());
        }
        Journal::Sqlite { .. } if error.is_of_the_host() => {
            return Diagnostic::error("host/cannot", ExitCode::Host, error.to_string());
        }
        _ => return Diagnostic::error("outlast/defect", ExitCode::Defect, error.to_string()),
    };
    Diagnostic::error(code, exit, error.to_string()).fix(fix)
}

/// How to get past somebody who has a journal: by the lock of its home, where that names them, or else by their process.
fn locked(error: &outlast_journal::Error, path: &Path, pid: Option<u32>) -> Diagnostic {
    let told = Diagnostic::error("host/engine-running", ExitCode::Host, error.to_string());
    // The folder may be reached by way of a link, from a home of another engine.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let root = real.parent().and_then(Path::parent).unwrap_or(&real);
    let holder = Home::new(root).engine().filter(|holder| pid.is_none_or(|pid| pid == holder.pid));
    let home = quoted(&root.display().to_string());
    match (holder, pid) {
        (Some(Holder { pid, is_gateway: true, .. }), _) => told.fix(format!("kill {pid}    # ends the gateway")),
        (Some(Holder { ends_with: Some(run), .. }), _) => {
            told.fix(format!("outlast stop {run} --home {home}    # parks its work and ends it"))
        }
        (_, Some(pid)) => told
            .fix(format!("kill {pid}    # as Ctrl-C there does: its work is parked, and goes on with: outlast resume")),
        (_, None) => told
            .because("who has it has not said so yet, or could not")
            .fix(format!("fuser -v {}    # names the process", quoted(&format!("{}.lock", path.display())))),
    }
}

fn git(error: &outlast_git::Error) -> Diagnostic {
    match error {
        outlast_git::Error::Refused(refusal) => {
            let code = format!("repository/{}", refusal.code());
            Diagnostic::error(code, ExitCode::Repository, refusal.to_string()).because(refusal.why()).fix(refusal.fix())
        }
        outlast_git::Error::InsideRepository { path, root } => {
            let what = format!("`{}` lies inside the repository `{}`", path.display(), root.display());
            Diagnostic::error("host/home-in-repository", ExitCode::Host, what)
                .because("`git add`, test runners and indexers would take the workspaces of agents for the project's own files")
                .fix("set OUTLAST_HOME to a folder outside of it")
        }
        error @ outlast_git::Error::Object { .. } => Diagnostic::error("git/failed", ExitCode::Host, error.to_string())
            .fix("outlast clean    # looks our store through and puts back what workspaces and the repository still hold of it")
            .fix("outlast doctor    # names what is damaged or lost, and what helps"),
        error => Diagnostic::error("git/failed", ExitCode::Host, error.to_string()),
    }
}

/// The diagnostic of what cannot be done with a task of a run, with what can be done in its place.
pub fn refusal(rejection: &Rejection, core: &Core, home: &RepoHome, run: &Run) -> Diagnostic {
    let told = Diagnostic { fix: Vec::new(), ..rejected(rejection) };
    let id = &run.id;
    let status = format!("outlast status {id}");
    match rejection {
        Rejection::NeedNotLanded { need, .. } => told.fix(format!("outlast land --run {id} {}", word(need.as_str()))),
        Rejection::NeedWithoutResult { need, .. } => {
            told.fix(format!("outlast retry --run {id} {}", word(need.as_str())))
        }
        // What is given up comes back in another run: in this one it is somebody's decision.
        Rejection::Illegal { task, state: "stale" | "discarded", .. } => {
            let anew = run_anew(core, home, run, None, &[task]);
            told.fix(format!("{anew}    # anew, with what it needs, in a run of its own")).fix(status)
        }
        Rejection::Illegal { task, state: "landed", .. } => told.fix(landed_anew(home, run, task)).fix(status),
        Rejection::Illegal { task, state: "done", .. } => {
            let task = word(task.as_str());
            told.fix(format!("outlast land --run {id} {task}")).fix(format!("outlast discard --run {id} {task}"))
        }
        _ => told.fix(status),
    }
}

/// The command that does a task anew that has landed.
pub fn landed_anew(home: &RepoHome, run: &Run, task: &TaskId) -> String {
    let anew = run_again(home, run, task);
    format!("{anew}    # does it anew, with what it needs, in a run of its own: paid for again")
}

fn rejected(rejection: &Rejection) -> Diagnostic {
    let what = rejection.to_string();
    match rejection {
        Rejection::NoRun(_) => {
            Diagnostic::error("run/none", ExitCode::NotFound, what).fix("outlast    # lists every run")
        }
        Rejection::NoTask(run, _) => {
            Diagnostic::error("task/none", ExitCode::NotFound, what).fix(format!("outlast status {run}"))
        }
        Rejection::NeedNotLanded { need, .. } => Diagnostic::error("task/need-not-landed", ExitCode::Conflict, what)
            .fix(format!("outlast land {}", word(need.as_str()))),
        Rejection::NeedWithoutResult { need, .. } => {
            Diagnostic::error("task/need-without-result", ExitCode::TasksFailed, what)
                .fix(format!("outlast retry {}", word(need.as_str())))
        }
        Rejection::RunExists(_) | Rejection::Stale(..) => Diagnostic::error("outlast/defect", ExitCode::Defect, what),
        Rejection::Illegal { .. } => Diagnostic::error("task/state", ExitCode::Usage, what).fix("outlast status"),
    }
}
