//! What a provider is started with: scenarios, faults, windows and keys, from a TOML or JSON file or built in code.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::closing::Closing;
use super::fault::Rule;
use super::latency::Latency;
use super::window::Window;
use crate::error::Attempt;
use crate::script::Scenario;
use crate::{Error, Result};

/// The script of a provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    /// The keys that are accepted; all when absent.
    pub keys: Option<Vec<String>>,
    /// The models listed by `GET /models`.
    pub models: Vec<String>,
    /// The scenario for goals that name none.
    pub fallback: Option<String>,
    /// Steps by the scenario's name.
    pub scenario: BTreeMap<String, String>,
    /// Faults on cue; the first that strikes counts.
    pub fault: Vec<Rule>,
    /// Quota windows.
    pub window: Vec<Window>,
    /// Times in which nothing is taken from anybody.
    pub closing: Vec<Closing>,
    /// Milliseconds that the model thinks before the first byte of every answer; who leaves meanwhile pays all the same.
    pub latency_ms: u64,
    /// By which share of that it is longer or shorter, turn by turn: 0 to 1.
    pub latency_spread: f64,
    /// Milliseconds before each event of every streamed answer.
    pub frame_delay_ms: u64,
    /// Keeps request bodies in memory for [`crate::provider::Running::body`].
    pub keep_bodies: bool,
}

impl Script {
    /// Reads a script file; a file that begins with `{` is JSON, any other TOML.
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::ScriptFile`] when it has another shape.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).attempting(|| format!("reading {}", path.display()))?;
        let refused = |why: String| Error::ScriptFile { path: path.to_owned(), why };
        if text.trim_start().starts_with('{') {
            return serde_json::from_str(&text).map_err(|error| refused(error.to_string()));
        }
        toml::from_str(&text).map_err(|error| refused(error.to_string()))
    }

    /// Adds a scenario.
    #[must_use]
    pub fn with_scenario(mut self, name: &str, steps: &str) -> Self {
        self.scenario.insert(name.to_owned(), steps.to_owned());
        self
    }

    /// Adds a fault rule.
    #[must_use]
    pub fn with_fault(mut self, rule: Rule) -> Self {
        self.fault.push(rule);
        self
    }

    /// Adds a quota window.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.window.push(window);
        self
    }

    /// How long the model thinks.
    pub fn latency(&self) -> Latency {
        Latency::new(Duration::from_millis(self.latency_ms), self.latency_spread)
    }

    /// Adds a closing.
    #[must_use]
    pub fn with_closing(mut self, closing: Closing) -> Self {
        self.closing.push(closing);
        self
    }

    /// Accepts only these keys.
    #[must_use]
    pub fn with_keys<I: IntoIterator<Item = S>, S: Into<String>>(mut self, keys: I) -> Self {
        self.keys = Some(keys.into_iter().map(Into::into).collect());
        self
    }

    /// Compiles every scenario.
    ///
    /// # Errors
    /// [`Error::Script`] for the first line that is no step; [`Error::Usage`] when `fallback` names no scenario.
    pub(super) fn compile(&self) -> Result<BTreeMap<String, Scenario>> {
        let mut scenarios = BTreeMap::new();
        for (name, steps) in &self.scenario {
            scenarios.insert(name.clone(), Scenario::parse(name.as_str(), steps)?);
        }
        if let Some(name) = self.fallback.as_ref().filter(|name| !scenarios.contains_key(*name)) {
            return Err(Error::Usage(format!("the fallback `{name}` is no scenario of the script")));
        }
        Ok(scenarios)
    }
}
