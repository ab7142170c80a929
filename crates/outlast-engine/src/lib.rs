//! The driver: owns the state, commits records, reconciles operations, serves the local API.
