//! The scripted provider, as the binary ships it: a process of its own, ended with the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::bench::Bench;

/// A living provider.
pub(crate) struct Provider {
    child: Child,
    pub(crate) url: String,
}

impl Provider {
    /// Starts one with a script.
    pub(crate) fn start(bench: &Bench, script: &str) -> Self {
        let file = bench.env.root().join("provider.toml");
        std::fs::write(&file, script).unwrap();
        let mut command = bench.command(&["__provider", "--script"]);
        let mut child = command.arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let ready: Value = serde_json::from_str(&ready).expect("the provider says where it is");
        Self { child, url: ready["url"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // It ends when its standard input does.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}
