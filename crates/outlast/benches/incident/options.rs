//! What to measure, and at which size.

use std::fmt;

use clap::{Parser, ValueEnum};
use outlast_testkit::provider::{Closing, RefusalKind, Says};

use super::agents::Cli;
use super::work::TURNS;

/// A way to run a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runner {
    /// The real binary, and nobody who watches.
    Outlast,
    /// A semaphore, a timeout, and a person who looks in now and then and resubmits what failed.
    Naive,
    /// Fixed session ids, and a person who is there all the time and resumes what failed at the reset to the second.
    Savvy,
}

impl fmt::Display for Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Outlast => "outlast",
            Self::Naive => "naive",
            Self::Savvy => "savvy",
        })
    }
}

/// A batch of agents whose provider closes three times: outlast, the naive and the savvy runner
#[derive(Debug, Clone, Parser)]
#[command(name = "incident")]
pub(crate) struct Options {
    /// The agents, in turns: `scripted`, or `claude` and `codex` out of $OUTLAST_REAL_AGENTS
    #[arg(long, value_enum, value_delimiter = ',', default_value = "scripted")]
    pub(crate) agents: Vec<Cli>,
    /// How many tasks; 449, or 24 with real agents
    #[arg(long)]
    tasks: Option<u32>,
    /// How many at once; 20, or 6 with real agents
    #[arg(long)]
    at_once: Option<u32>,
    /// How long the model thinks in each turn
    #[arg(long, default_value_t = 2_000)]
    pub(crate) latency_ms: u64,
    /// The runners
    #[arg(long, value_enum, value_delimiter = ',', default_value = "outlast,naive,savvy")]
    pub(crate) runners: Vec<Runner>,
    /// How long the first closing lasts: 403, the quota of this billing cycle, no reset stated
    #[arg(long, default_value_t = 60.0)]
    pub(crate) quota_seconds: f64,
    /// How long the second one lasts: 429 with retry-after
    #[arg(long, default_value_t = 90.0)]
    pub(crate) limit_seconds: f64,
    /// How long the third one lasts: 529, no end stated
    #[arg(long, default_value_t = 60.0)]
    pub(crate) storm_seconds: f64,
    /// A quota window that ends after every third of the turns (403), in place of the three closings: the provider of the
    /// field's own figures
    #[arg(long)]
    pub(crate) windows: bool,
    /// Kills so many agents with SIGKILL, evenly spread over the work
    #[arg(long, default_value_t = 0)]
    pub(crate) kill_agents: u32,
    /// Kills outlast itself with SIGKILL so often, and has a person type `outlast resume`
    #[arg(long, default_value_t = 0)]
    pub(crate) kill_orchestrator: u32,
    /// How long that person takes
    #[arg(long, default_value_t = 2.0)]
    pub(crate) away_seconds: f64,
    /// How long after the end of a batch the naive runner's person looks in; 1.5 times the longest closing
    #[arg(long)]
    look_seconds: Option<f64>,
    /// The naive runner's fixed timeout for one agent
    #[arg(long, default_value_t = 1_800)]
    pub(crate) timeout_seconds: u64,
    /// Ends a runner that has not come to its end by then
    #[arg(long, default_value_t = 7_200)]
    pub(crate) limit_total_seconds: u64,
    /// Of the moments and the victims of kills
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// What `cargo bench` says to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

impl Options {
    /// How many tasks.
    pub(crate) fn tasks(&self) -> u32 {
        self.tasks.unwrap_or(if self.is_real() { 24 } else { 449 })
    }

    /// How many agents at once.
    pub(crate) fn at_once(&self) -> u32 {
        self.at_once.unwrap_or(if self.is_real() { 6 } else { 20 })
    }

    fn is_real(&self) -> bool {
        self.agents.iter().any(|cli| *cli != Cli::Scripted)
    }

    /// Which agent does which task.
    pub(crate) fn cast(&self) -> Vec<Cli> {
        self.agents.iter().copied().cycle().take(self.tasks() as usize).collect()
    }

    /// How many accounts outlast uses: each one has to find out for itself that its provider is closed.
    pub(crate) fn accounts(&self) -> usize {
        let is_of_openai = |cli: &Cli| *cli == Cli::Codex;
        let openai = self.agents.iter().any(is_of_openai);
        let anthropic = self.agents.iter().any(|cli| !is_of_openai(cli));
        usize::from(openai) + usize::from(anthropic)
    }

    /// How many turns the whole batch needs.
    pub(crate) fn turns(&self) -> u64 {
        u64::from(self.tasks()) * u64::from(TURNS)
    }

    /// The three closings, after a quarter, half and three quarters of the turns; or the ends of three windows.
    pub(crate) fn closings(&self) -> Vec<Closing> {
        if self.windows {
            let end = |third: u64| Closing {
                name: format!("403-{third}"),
                after_requests: self.turns() * third / 3,
                seconds: self.quota_seconds,
                reason: RefusalKind::BillingCycle,
                says: Says::Nothing,
            };
            return (1..=3).map(end).collect();
        }
        let closing = |quarter: u64, name: &str, seconds, reason, says| Closing {
            name: name.to_owned(),
            after_requests: self.turns() * quarter / 4,
            seconds,
            reason,
            says,
        };
        vec![
            closing(1, "403", self.quota_seconds, RefusalKind::BillingCycle, Says::Nothing),
            closing(2, "429", self.limit_seconds, RefusalKind::MinuteLimit, Says::Reset),
            closing(3, "529", self.storm_seconds, RefusalKind::Overload, Says::Nothing),
        ]
    }

    /// After how long the naive runner's person looks in again.
    pub(crate) fn look_seconds(&self) -> f64 {
        let longest = self.closings().iter().map(|closing| closing.seconds).fold(0.0, f64::max);
        self.look_seconds.unwrap_or(longest * 1.5)
    }
}
