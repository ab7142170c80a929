//! Deterministic simulator of the core: seeds, faults, bug base.
