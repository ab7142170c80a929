//! A hermetic place with a repository and the real binary, and what its journal says.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use outlast_core::{Fact, Record};
use outlast_journal::JournalReader;
use outlast_testkit::fixture::{Repo, TestEnv};

/// The longest that anything here may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How often the journal is looked at: nothing that is measured waits for that, since records say when they were written.
const LOOK: Duration = Duration::from_millis(50);

/// One place.
pub(crate) struct Place {
    pub(crate) env: TestEnv,
    pub(crate) repo: Repo,
}

impl Place {
    /// A repository of these files, and a plan.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let env = TestEnv::new().unwrap();
        let repo = env.repo("repo").unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
            repo.git(&["config", key, value]).unwrap();
        }
        for (name, text) in files {
            repo.write(name, text).unwrap();
        }
        repo.write(".gitignore", "outlast.toml\n").unwrap();
        repo.commit("First").unwrap();
        Self { env, repo }
    }

    /// Starts the binary in the repository.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        let output = File::options().create(true).append(true).open(self.output()).unwrap();
        let mut command = self.env.command(env!("CARGO_BIN_EXE_outlast"));
        command.args(arguments).current_dir(self.repo.dir()).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output).spawn().unwrap()
    }

    fn output(&self) -> PathBuf {
        self.env.root().join("output")
    }

    /// The folder of the repository's state.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.env.outlast_home()).unwrap().map(|entry| entry.unwrap().path());
        entries.into_iter().find(|path| path.join("journal.db").is_file())
    }

    /// Follows the journal after its entry `after` until so much of it meets a condition; what was read, with the number of
    /// the last entry.
    pub(crate) fn until(
        &self,
        engine: &mut Child,
        after: u64,
        what: &str,
        met: impl Fn(&[Record]) -> bool,
    ) -> (Vec<Record>, u64) {
        let began = Instant::now();
        let (mut read, mut last) = (Vec::new(), after);
        let mut reader = None;
        loop {
            if reader.is_none() {
                reader = self.home().and_then(|home| JournalReader::open(home.join("journal.db")).ok());
            }
            if let Some(reader) = &reader {
                let taken = reader.replay(last, |seq, entry| {
                    last = seq;
                    read.push(outlast_engine::read_record(&entry)?);
                    Ok::<(), outlast_engine::Error>(())
                });
                taken.unwrap();
            }
            if met(&read) {
                return (read, last);
            }
            let ended = engine.try_wait().unwrap();
            if ended.is_some() || began.elapsed() > LIMIT {
                let said = std::fs::read_to_string(self.output()).unwrap_or_default();
                panic!("never: {what}; the engine: {ended:?}\n{said}");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The processes of agents and of what looks after them: everything here but this one engine.
    pub(crate) fn shims(&self) -> Vec<outlast_process::ShimId> {
        let mut found = Vec::new();
        shims_below(&self.home().unwrap().join("attempts"), &mut found);
        found
    }
}

fn shims_below(folder: &std::path::Path, found: &mut Vec<outlast_process::ShimId>) {
    if let Ok(Some(file)) = outlast_process::files::load_shim(folder)
        && file.shim.is_alive()
    {
        found.push(file.shim);
    }
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map(|entry| entry.unwrap()).filter(|entry| entry.file_type().unwrap().is_dir()) {
        shims_below(&entry.path(), found);
    }
}

/// How many records hold such a fact.
pub(crate) fn count(records: &[Record], is: impl Fn(&Fact) -> bool) -> usize {
    records.iter().filter(|record| is(&record.fact)).count()
}

/// A line of `/proc/PID/smaps_rollup`, in KiB.
pub(crate) fn memory(pid: u32, line: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.split_whitespace().next()?.parse().ok());
    value.unwrap_or(0)
}
