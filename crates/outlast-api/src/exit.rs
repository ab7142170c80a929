//! Exit codes: part of the contract, one per kind of ending.

use serde::{Deserialize, Serialize};

/// How a command ended, as its exit code says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCode {
    /// 0: all tasks are done (and landed where the plan says so), or it was stopped or detached as asked.
    Ok,
    /// 1: a defect in outlast.
    Defect,
    /// 2: the command line is not understood.
    Usage,
    /// 3: plan or configuration refused, or not approved.
    Plan,
    /// 4: the repository is refused.
    Repository,
    /// 5: some tasks failed or are blocked.
    TasksFailed,
    /// 6: some tasks are parked or ask a person.
    Waiting,
    /// 7: a budget is reached.
    Budget,
    /// 8: a change does not merge, or the merged tree does not pass.
    Conflict,
    /// 9: no such run or task.
    NotFound,
    /// 10: the journal is damaged.
    Journal,
    /// 11: the gateway or a provider is unreachable, or keys were refused.
    Provider,
    /// 12: this host cannot: disk, missing agent, sandbox level, an engine that runs already.
    Host,
    /// 129: the terminal is gone; the work is saved.
    HungUp,
    /// 130: interrupted; the work is saved.
    Interrupted,
    /// 143: terminated; the work is saved.
    Terminated,
}

/// Of several that apply, the first of these is the one that is told.
const PRECEDENCE: [ExitCode; 10] = [
    ExitCode::Defect,
    ExitCode::Journal,
    ExitCode::Repository,
    ExitCode::Plan,
    ExitCode::Host,
    ExitCode::Provider,
    ExitCode::Budget,
    ExitCode::Conflict,
    ExitCode::TasksFailed,
    ExitCode::Waiting,
];

impl ExitCode {
    /// The number that the shell sees.
    pub const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Defect => 1,
            Self::Usage => 2,
            Self::Plan => 3,
            Self::Repository => 4,
            Self::TasksFailed => 5,
            Self::Waiting => 6,
            Self::Budget => 7,
            Self::Conflict => 8,
            Self::NotFound => 9,
            Self::Journal => 10,
            Self::Provider => 11,
            Self::Host => 12,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The one of several that is told.
    pub fn worst(codes: impl IntoIterator<Item = Self>) -> Self {
        let rank = |code: Self| PRECEDENCE.iter().position(|&known| known == code).unwrap_or(PRECEDENCE.len());
        codes.into_iter().filter(|&code| code != Self::Ok).min_by_key(|&code| rank(code)).unwrap_or(Self::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode::{
        Budget, Conflict, Defect, Host, HungUp, Interrupted, Journal, NotFound, Ok, Plan, Provider, Repository,
        TasksFailed, Terminated, Usage, Waiting,
    };
    use super::*;

    #[test]
    fn numbers_are_the_contracts() {
        let numbers = [
            (Ok, 0),
            (Defect, 1),
            (Usage, 2),
            (Plan, 3),
            (Repository, 4),
            (TasksFailed, 5),
            (Waiting, 6),
            (Budget, 7),
            (Conflict, 8),
            (NotFound, 9),
            (Journal, 10),
            (Provider, 11),
            (Host, 12),
            (HungUp, 129),
            (Interrupted, 130),
            (Terminated, 143),
        ];
        for (code, number) in numbers {
            assert_eq!(code.number(), number);
        }
    }

    #[test]
    fn of_several_codes_the_contract_names_the_one() {
        let order = [Defect, Journal, Repository, Plan, Host, Provider, Budget, Conflict, TasksFailed, Waiting];
        for (i, &first) in order.iter().enumerate() {
            for &other in &order[i..] {
                assert_eq!(ExitCode::worst([Ok, other, first]), first);
                assert_eq!(ExitCode::worst([first, other, Ok]), first);
            }
        }
        assert_eq!(ExitCode::worst([]), Ok);
        assert_eq!(ExitCode::worst([Ok, Ok]), Ok);
        assert_eq!(ExitCode::worst([NotFound]), NotFound);
    }
}
