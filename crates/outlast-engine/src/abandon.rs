//! A journal that is gone takes everything with it that could ever take up its agents again: they end with the engine.

use outlast_core::Core;
use outlast_process::ShimId;

/// Ends every living agent that is on record. What cannot be ended is not there any more, or is not ours.
pub(crate) fn end_agents(core: &Core) {
    let attempts = core.runs.values().flat_map(|run| run.active()).filter_map(|task| task.attempt());
    for shim in attempts.filter_map(|attempt| attempt.shim.clone()) {
        let pid = i32::try_from(shim.pid).unwrap_or_default();
        let shim = ShimId { pid, start_time: shim.start_time, boot_id: shim.boot_id };
        if let Err(error) = shim.kill() {
            tracing::warn!(pid, %error, "an agent of a journal that is gone does not end");
        }
    }
}
