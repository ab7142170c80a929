//! Makes room where the machine runs short of memory: agents that wait for a provider take 200 to 500 MB each and need none of
//! it until their limit ends. They are parked, one after another, until there is room again.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::admit::Command;
use outlast_core::record::{EndReason, Fact, Stream};
use outlast_core::{AttemptId, Core, Record};
use sysinfo::System;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::error::Error;

/// How often the memory is looked at while agents wait: nobody tells when it runs short, and what a parked agent had is free
/// within a second.
const LOOK: Duration = Duration::from_secs(2);

/// What the machine has, or the container that this process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Memory {
    bytes: u64,
    free: u64,
}

impl Memory {
    /// As it is now; nothing where the system does not say.
    fn now() -> Option<Self> {
        let mut system = System::new();
        system.refresh_memory();
        let machine = Self { bytes: system.total_memory(), free: system.available_memory() };
        let container =
            system.cgroup_limits().map(|limits| Self { bytes: limits.total_memory, free: limits.free_memory });
        // A container without a limit of its own has the machine's.
        let own = container.filter(|own| own.bytes < machine.bytes && own.free < machine.free);
        Some(own.unwrap_or(machine)).filter(|memory| memory.bytes > 0)
    }

    /// Whether more of it is taken than may be.
    fn is_short(self, percent_max: u32) -> bool {
        let taken = u128::from(self.bytes.saturating_sub(self.free));
        taken * 100 > u128::from(self.bytes) * u128::from(percent_max)
    }
}

/// Looks after the memory until the engine leaves, where it starts any agents.
pub(crate) fn watch(context: Option<&Arc<Context>>, percent_max: u32, leaving: &CancellationToken) {
    let Some(context) = context.cloned() else { return };
    let leaving = leaving.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = leaving.cancelled() => {}
            // It ends with the engine's loop, and then there is nobody to park.
            _ = look_after(&context, percent_max) => {}
        }
    });
}

async fn look_after(context: &Context, percent_max: u32) -> Result<(), Error> {
    let mut records = context.engine.subscribe();
    loop {
        while context.engine.look(Core::is_any_held).await? {
            if let Some(memory) = Memory::now().filter(|memory| memory.is_short(percent_max)) {
                make_room(context, memory).await?;
            }
            tokio::time::sleep(LOOK).await;
        }
        loop {
            match records.recv().await {
                Ok(batch) if !batch.iter().any(|record| matches!(record.fact, Fact::Held { .. })) => {}
                Ok(_) | Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    }
}

/// Parks one agent that waits, where there is any, and tells whoever watches.
async fn make_room(context: &Context, memory: Memory) -> Result<(), Error> {
    let mut records = context.engine.subscribe();
    context.engine.tell(Command::MakeRoom).await?;
    // What came of it is on record by now.
    while let Ok(batch) = records.try_recv() {
        for id in batch.iter().filter_map(parked) {
            let [free, all] = [memory.free, memory.bytes].map(|bytes| bytes >> 20);
            let what =
                format!("the memory is almost full ({free} of {all} MiB are free): it is parked until its limit ends");
            context.note_finding(&id, what);
        }
    }
    Ok(())
}

/// Whom a record parks for a limit.
fn parked(record: &Record) -> Option<AttemptId> {
    match (&record.stream, &record.fact) {
        (Stream::Task(run, task), Fact::AttemptEnding { number, reason: EndReason::Limit { .. } }) => {
            Some(AttemptId { run: run.clone(), task: task.clone(), number: *number })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_where_more_of_it_is_taken_than_may_be() {
        let memory = Memory { bytes: 1000, free: 100 };
        assert_eq!([89, 90, 100].map(|most| memory.is_short(most)), [true, false, false]);
        assert!(Memory { bytes: u64::MAX, free: 0 }.is_short(99));
    }

    #[test]
    fn this_machine_says_what_it_has() {
        let memory = Memory::now().unwrap();
        assert!(memory.bytes >= memory.free && memory.bytes > 1 << 24, "{memory:?}");
    }
}
