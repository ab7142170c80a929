//! The real agent CLIs through the whole of outlast: the built binary, its gateway, shims and sandbox, against the
//! scripted provider on loopback.
//!
//! Needs `OUTLAST_REAL_AGENTS`, a folder with `claude`, `codex`, `opencode`, `gemini`, `qwen` and `kimi`; says so aloud
//! and does nothing without it.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests may fail loudly")]

#[path = "real_agents/bench.rs"]
mod bench;
#[path = "real_agents/canary.rs"]
mod canary;
#[path = "real_agents/edited.rs"]
mod edited;
#[path = "real_agents/evil.rs"]
mod evil;
#[path = "real_agents/gate.rs"]
mod gate;
#[path = "real_agents/hold.rs"]
mod hold;
#[expect(dead_code, reason = "what an earlier attempt leaves in a home is tested where the homes are written")]
#[path = "../../outlast-agent/tests/real_agents/hostile.rs"]
mod hostile;
#[path = "real_agents/kill.rs"]
mod kill;
#[path = "real_agents/processes.rs"]
mod processes;
#[path = "real_agents/readopt.rs"]
mod readopt;
#[path = "real_agents/takeover.rs"]
mod takeover;
#[path = "real_agents/tree.rs"]
mod tree;
#[path = "real_agents/work.rs"]
mod work;
