//! Which attempt this is: from `OUTLAST_ATTEMPT`, else from a counter in the home.

use std::path::Path;

use crate::error::Attempt as _;
use crate::{Result, digest};

/// The number of this attempt at a goal, from 1. Counts once per process and goal when the environment says nothing.
pub(super) fn number(goal: &str, home: &Path) -> Result<u32> {
    let from_environment = std::env::var("OUTLAST_ATTEMPT").ok();
    if let Some(number) = from_environment.and_then(|id| id.rsplit('.').next()?.parse().ok()) {
        return Ok(number);
    }
    let path = home.join(format!("attempts-{}", digest(goal.as_bytes())));
    let before: u32 = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let number = before + 1;
    std::fs::create_dir_all(home).attempting(|| format!("creating {}", home.display()))?;
    std::fs::write(&path, number.to_string()).attempting(|| format!("writing {}", path.display()))?;
    Ok(number)
}
