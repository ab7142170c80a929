//! Bugs that can be planted in the core, to prove that the simulator finds such bugs.
//!
//! Without debug assertions [`planted`] is the constant `false`, and nothing of this is left in the program. (A feature
//! would have every crate compiled twice: with the simulator's tests, and without.)

/// A bug that can be planted. Those that the simulator once found for real are marked so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// One task more than the run's concurrency is worked on.
    OneTooMany,
    /// Tasks with overlapping scopes are worked on at once.
    ScopesIgnored,
    /// Tasks start while all their accounts are closed.
    QuotaIgnored,
    /// A failure of the world counts as a try of the task.
    WorldsFaultCounts,
    /// News of an attempt that was given up is taken for news of the living one.
    StaleNewsTaken,
    /// A task lands before what it needs.
    LandsBeforeNeeds,
    /// Operations that are no longer wanted go on.
    CancelForgotten,
    /// What could not be made durable takes effect all the same.
    AppliesUnwritten,
    /// A command is admitted without regard to what came before it in its batch. Found for real.
    BatchBlind,
    /// Tasks start from a result that is given up. Found for real.
    DiscardIgnored,
    /// Only the next task after one without a result is blocked, not those that need that one.
    BlocksOnlyTheNext,
    /// Nobody is woken for a task that is tried again later.
    RetryForgotten,
    /// A task behind one whose change was in the target already never lands. Found for real.
    EmptyBlocks,
    /// Resuming a run leaves parked tasks parked.
    ParkedStay,
    /// What a crash kept from being put on record stays forgotten.
    SpendForgotten,
    /// What is on record is put there again after a crash.
    SpendCountedTwice,
    /// Requests go out whatever is left of the budget.
    BudgetIgnored,
    /// Tasks start although the budget is reached.
    ReachedIgnored,
    /// A task that a person has tried again has no more tries than before.
    RetryKeepsTries,
    /// What was blocked by a task that is tried again stays blocked.
    RetryFreesNobody,
    /// The end of a limit that an agent reports is not waited for.
    StatedIgnored,
    /// Tasks start while all their accounts wait for a person.
    ShutIgnored,
    /// A task whose agents change nothing is tried again for as long as it has tries.
    EmptyAgain,
    /// An attempt is over once it is to be ended, before anybody has seen that nothing of it lives.
    EndsUnproven,
    /// The end of an attempt before it is taken for the living one's own.
    StaleEndTaken,
}

/// Whether this bug is planted in this thread.
#[cfg(not(debug_assertions))]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}

#[cfg(debug_assertions)]
pub use self::garden::*;

#[cfg(debug_assertions)]
mod garden {
    use std::cell::Cell;

    use super::Bug;

    thread_local! {
        static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
    }

    /// Plants one bug in this thread in place of any other, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.set(bug);
    }

    /// Whether this bug is planted in this thread.
    pub(crate) fn planted(bug: Bug) -> bool {
        PLANTED.get() == Some(bug)
    }

    impl Bug {
        /// Every bug that can be planted.
        pub const ALL: [Self; 25] = [
            Self::OneTooMany,
            Self::ScopesIgnored,
            Self::QuotaIgnored,
            Self::WorldsFaultCounts,
            Self::StaleNewsTaken,
            Self::LandsBeforeNeeds,
            Self::CancelForgotten,
            Self::AppliesUnwritten,
            Self::BatchBlind,
            Self::DiscardIgnored,
            Self::BlocksOnlyTheNext,
            Self::RetryForgotten,
            Self::EmptyBlocks,
            Self::ParkedStay,
            Self::SpendForgotten,
            Self::SpendCountedTwice,
            Self::BudgetIgnored,
            Self::ReachedIgnored,
            Self::RetryKeepsTries,
            Self::RetryFreesNobody,
            Self::StatedIgnored,
            Self::ShutIgnored,
            Self::EmptyAgain,
            Self::EndsUnproven,
            Self::StaleEndTaken,
        ];
    }
}
