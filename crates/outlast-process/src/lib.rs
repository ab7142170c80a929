//! Spawner, attempt shim, process-tree containment, file sandbox.
