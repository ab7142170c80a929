//! Scripted provider, scripted agent, git fixtures.
