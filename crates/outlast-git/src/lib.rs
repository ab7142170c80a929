//! Repositories, workspaces, checkpoints, scope diffs, landing.
