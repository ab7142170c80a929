//! Why a run was left without answers: keys that are refused, accounts that cannot pay, providers that nobody reaches.

use outlast_api::{Diagnostic, ExitCode, Status, TaskView};

use crate::text::count;

/// Where the exit code says that no provider answers: which accounts that is about, what was said, and what helps.
pub(crate) fn told(status: &Status) -> Vec<Diagnostic> {
    KINDS.iter().filter_map(|kind| of(status, kind)).collect()
}

/// A cause of tasks, the code it is told by, and what it means for an account.
struct Kind {
    cause: &'static str,
    code: &'static str,
    what: &'static str,
    mend: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        cause: "auth",
        code: "account/refused",
        what: "a key or login is not taken",
        mend: "outlast doctor    # tries each account; mend its key or login first",
    },
    Kind {
        cause: "billing",
        code: "account/unpaid",
        what: "an account cannot pay",
        mend: "outlast doctor    # tries each account; pay, or name another one first",
    },
    Kind {
        cause: "network",
        code: "provider/unreachable",
        what: "a provider cannot be reached",
        mend: "outlast doctor    # tries each provider",
    },
];

fn of(status: &Status, kind: &Kind) -> Option<Diagnostic> {
    let is_it = |task: &&TaskView| task.cause.as_deref() == Some(kind.cause);
    let (failed, waiting): (Vec<&TaskView>, Vec<&TaskView>) =
        status.tasks.iter().filter(is_it).partition(|task| task.state == "failed");
    let first = failed.first().or(waiting.first())?;
    let is_closed_for = |account: &&outlast_api::AccountView| {
        account.windows.iter().any(|window| window.state != "open" && window.kind.as_deref() == Some(kind.cause))
    };
    let accounts: Vec<String> =
        status.accounts.iter().filter(is_closed_for).map(|account| format!("`{}`", account.name)).collect();
    let is_past = accounts.is_empty() && waiting.is_empty();
    let what = match accounts.as_slice() {
        [] if is_past => {
            format!("{} failed by this before: {}, as it was told then", count(failed.len(), "task"), kind.what)
        }
        [] => kind.what.to_owned(),
        accounts => format!("{}: account {}", kind.what, accounts.join(", ")),
    };
    let mut told = Diagnostic::error(kind.code, ExitCode::Provider, what);
    if let Some(detail) = &first.detail {
        told = told.because(format!("{}: {detail}", first.id));
    }
    let then = if is_past { "" } else { "then: " };
    if !is_past {
        told = told.fix(kind.mend);
    }
    if !failed.is_empty() {
        let retry = format!("outlast retry --run {} state:failed", status.run);
        told = told.fix(format!("{retry}    # {then}goes on with what failed by it"));
    }
    if !waiting.is_empty() {
        told = told.fix(format!("outlast resume {}    # then: goes on with what waits", status.run));
    }
    Some(told)
}
