//! What several tests share: entries, exchanges, and this test program started again as a child.

use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_core::{AccountId, AttemptId, RunId, TaskId, Timestamp};
use outlast_journal::{AnswerHead, Closing, Entry, Error, JournalReader, Opening, Outcome, Usage};

/// Names the folder a child works in.
const FOLDER: &str = "OUTLAST_JOURNAL_TEST_FOLDER";

pub(crate) fn entry(stream: &str, revision: u64) -> Entry {
    Entry {
        stream: stream.to_owned(),
        revision,
        at: Timestamp::from_millis(1_700_000_000_000 + i64::try_from(revision).unwrap()),
        version: 1,
        body: format!(
            r#"{{"type":"turn_ended","attempt":"{stream}.1","turn":{revision},"output":1234,"cache_read":56789}}"#
        ),
    }
}

/// Everything in the journal at `path`, read as any other process would.
pub(crate) fn read_all(path: &Path) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    JournalReader::open(path)?.replay(0, |seq, entry| {
        entries.push(entry);
        assert_eq!(seq, entries.len() as u64);
        Ok::<_, Error>(())
    })?;
    Ok(entries)
}

pub(crate) fn opening(exchange: &str, turn: u32) -> Opening {
    Opening {
        exchange: exchange.to_owned(),
        attempt: Some(AttemptId { run: RunId::from("migrate-7f3a"), task: TaskId::from("文档.Client"), number: 2 }),
        turn,
        dialect: "anthropic".to_owned(),
        model: Some("sonnet".to_owned()),
        account: AccountId::from("max"),
        started_at: Timestamp::from_millis(1_000),
    }
}

pub(crate) fn head() -> AnswerHead {
    let headers = r#"{"request-id":"req_1"}"#.to_owned();
    AnswerHead { status: 200, first_byte_at: Timestamp::from_millis(1_200), headers }
}

pub(crate) fn closing(outcome: Outcome) -> Closing {
    let usage = Usage { input: Some(12), cache_read: Some(3_400), output: Some(56), ..Usage::default() };
    Closing { outcome, ended_at: Timestamp::from_millis(1_900), usage, usd_nanos: Some(789), estimated: false }
}

/// The command that runs one ignored test of this program alone, with `folder` to work in.
pub(crate) fn command(test: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(FOLDER, folder);
    command
}

/// In a child: the folder its parent named.
pub(crate) fn folder() -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("only its parent runs this"))
}

/// Runs `child` where it may mount what nobody else sees, and says whether it succeeded.
///
/// Where the system allows no user namespaces the test cannot run; it says so and passes, but never where it must be able
/// to run (`OUTLAST_OWN_MOUNTS`).
pub(crate) fn in_own_mounts(child: &mut Command) -> bool {
    let probe = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    if !probe.is_ok_and(|status| status.success()) {
        assert!(std::env::var_os("OUTLAST_OWN_MOUNTS").is_none(), "`unshare --user --mount` does not work here");
        eprintln!("SKIPPED: this system allows no mounts of one's own (unshare --user --mount)");
        return true;
    }
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--"]).arg(child.get_program()).args(child.get_args());
    command.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.status().unwrap().success()
}
