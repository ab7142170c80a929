//! A task is given to another agent, of another kind and provider if need be: its work stays, its session does not.

use crate::admit::{Rejection, illegal, on_task};
use crate::core::Core;
use crate::ids::{RunId, TaskId};
use crate::record::{Assigned, Fact, Record};
use crate::run::{Index, Run};
use crate::task::Phase;
use crate::time::Timestamp;

impl Core {
    /// Only what nobody works on can be given to another.
    pub(crate) fn admit_assigning(
        &self,
        now: Timestamp,
        run: RunId,
        task: TaskId,
        assigned: Assigned,
    ) -> Result<Vec<Record>, Rejection> {
        let found = self.find(&run, &task)?;
        match &found.phase {
            Phase::Pending
            | Phase::Ready
            | Phase::Waiting { .. }
            | Phase::Parked
            | Phase::Failed
            | Phase::Blocked { .. } => {}
            Phase::Live(_) | Phase::Verifying { .. } => {
                return Err(illegal(found, "be given to another agent while it is worked on: pause it first"));
            }
            _ => return Err(illegal(found, "be given to another agent")),
        }
        let is_the_same = found.spec.agent == assigned.agent && found.spec.accounts == assigned.accounts;
        Ok(if is_the_same { Vec::new() } else { vec![on_task(now, run, task, Fact::Assigned(assigned))] })
    }
}

/// What a session knows only its own agent can go on with; the next one is handed a note.
pub(crate) fn assigned(run: &mut Run, index: Index, to: &Assigned) {
    let task = &mut run.tasks[index as usize];
    let is_another = task.spec.agent != to.agent;
    task.spec.agent.clone_from(&to.agent);
    task.spec.accounts.clone_from(&to.accounts);
    task.spec.needs_quota = to.needs_quota;
    if is_another {
        task.session = None;
        // What its last agent was parked for is not what the next one meets.
        (task.parked_for, task.parked_until) = (None, None);
    }
    run.same_accounts_changed(index);
}

#[cfg(test)]
mod tests {
    use crate::admit::Command;
    use crate::record::Assigned;
    use crate::testing::{core, run, show};
    use crate::{Core, Timestamp};

    fn assign(core: &Core) -> String {
        let assigned = Assigned { agent: "codex".into(), accounts: vec!["api".into()], needs_quota: true };
        let command = Command::Assign { run: run(), task: "a".into(), assigned };
        match core.admit(Timestamp::EPOCH, command) {
            Ok(records) => show(&records).join("; "),
            Err(rejection) => rejection.to_string(),
        }
    }

    #[test]
    fn what_nobody_works_on_is_given_to_another_agent_and_starts_from_a_note() {
        let failed = "run\n task a quota=max\n task b quota=max\n a session 1 s\n a fails crash";
        assert_eq!(assign(&core(failed)), "a assigned codex api");
        let given = format!("{failed}\n a assigned codex api");
        assert_eq!(assign(&core(&given)), "", "it is its already");
        let again = core(&format!("{given}\n a retry\n account max closed overload 9000"));
        let decided = show(&again.decide(Timestamp::EPOCH)).join("; ");
        assert_eq!(decided, "a start 2 handover", "its own account is open, and its session is another's");
    }

    #[test]
    fn what_is_worked_on_or_over_is_not() {
        let begun = "run\n task a\n a start 1";
        assert!(assign(&core(begun)).contains("pause it first"));
        assert!(assign(&core("run\n task a\n a done")).contains("is done: cannot be given"));
    }
}
