//! Adapters: how each agent CLI is launched, read and judged.
