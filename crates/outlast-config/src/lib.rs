//! Plan, project and user configuration as text, read into the core's model with findings.
