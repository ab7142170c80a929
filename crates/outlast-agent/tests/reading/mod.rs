//! Reads what a CLI printed.

use outlast_agent::{Event, Kind, Source, Summary, adapter};

/// The events of an output, and what they amount to.
pub(crate) fn read(kind: Kind, stdout: &[u8], stderr: &[u8]) -> (Vec<Event>, Summary) {
    let mut reader = adapter(kind).reader();
    let mut events = reader.feed(Source::Stdout, stdout);
    events.extend(reader.feed(Source::Stderr, stderr));
    events.extend(reader.finish());
    let mut summary = Summary::default();
    events.iter().for_each(|event| summary.note(event));
    (events, summary)
}
