//! A hermetic place for one batch: a repository, a provider, and an environment that ends what was started in it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use outlast_testkit::fixture::TestEnv;
use outlast_testkit::provider::{Background, Closing, Latency, Provider, Script};

use super::agents::Cli;
use super::work::{self, CHECK, MODULE};

/// The key that the provider takes.
pub(crate) const KEY: &str = "sk-incident";

/// By how much turns differ: agents that were started together are soon at different turns.
const SPREAD: f64 = 0.5;

/// outlast itself: what cargo has just built, or another build in `$OUTLAST_BENCH_BINARY`.
pub(crate) fn binary() -> PathBuf {
    let given = std::env::var_os("OUTLAST_BENCH_BINARY");
    given.map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_outlast")), PathBuf::from)
}

/// One place.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    /// The folder of the repository.
    pub(crate) repo: PathBuf,
    pub(crate) provider: Background,
    /// Which agent does which task.
    pub(crate) cast: Vec<Cli>,
    latency: Latency,
}

impl World {
    pub(crate) fn new(cast: Vec<Cli>, closings: &[Closing], latency_ms: u64) -> Self {
        let mut env = TestEnv::new().unwrap();
        if cast.iter().any(|cli| *cli != Cli::Scripted) {
            let agents = std::env::var_os("OUTLAST_REAL_AGENTS").map(PathBuf::from);
            let agents = agents.expect("OUTLAST_REAL_AGENTS names the folder of the real agents");
            env.prepend_path(&agents).unwrap();
        }
        let script =
            Script { latency_ms, latency_spread: SPREAD, closing: closings.to_vec(), ..work::script(cast.len()) };
        let latency = script.latency();
        let provider = Provider::start_in_background(script.with_keys([KEY])).unwrap();
        let repo = env.repo("repo").unwrap();
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.invalid")] {
            repo.git(&["config", key, value]).unwrap();
        }
        repo.write("check.sh", CHECK).unwrap();
        repo.write("module.txt", MODULE).unwrap();
        repo.write("parts/README.md", "The parts.\n").unwrap();
        repo.write(".gitignore", "outlast.toml\n").unwrap();
        repo.commit("First").unwrap();
        Self { env, repo: repo.dir().to_owned(), provider, cast, latency }
    }

    /// What outlast needs beside the repository: the user's configuration and the plan.
    pub(crate) fn for_outlast(&self, at_once: u32) {
        let key_file = self.env.root().join("key");
        fs::write(&key_file, format!("{KEY}\n")).unwrap();
        let account = |name: &str, path: &str| {
            let url = self.provider.url();
            format!("[account.{name}]\nprovider = \"{name}\"\nbase_url = \"{url}{path}\"\nkey_file = {key_file:?}\n\n")
        };
        self.env.write_config(&[account("anthropic", ""), account("openai", "/v1")].concat()).unwrap();
        fs::write(self.repo.join("outlast.toml"), work::plan(&self.cast, at_once)).unwrap();
    }

    /// How many of the batch's processes are left once what ends by itself has had the time to.
    pub(crate) fn left_after(&self, patience: Duration) -> usize {
        let until = Instant::now() + patience;
        loop {
            let left = self.env.processes().len();
            if left == 0 || Instant::now() >= until {
                return left;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// How long the model thinks in all the turns of a task.
    pub(crate) fn thinks(&self, number: u32) -> Duration {
        let id = work::id(number);
        (1..=work::TURNS).map(|step| self.latency.of(&id, step as usize)).sum()
    }

    /// How many turns have been answered so far.
    pub(crate) fn answered(&self) -> u64 {
        self.provider.bill().total.answered
    }
}
