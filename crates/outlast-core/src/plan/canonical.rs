//! One text per meaning: canonical JSON of a plan, the input of content hashes.
//!
//! Keys are sorted, there is no white space, and places in files are left out, so that moving a task within its file
//! changes no hash. Hashing itself is the caller's: the core holds no cryptography.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::{AgentSpec, Plan};

/// The canonical JSON of everything a plan says.
pub fn content(plan: &Plan) -> String {
    let mut value = json(plan);
    for task in value["tasks"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = task.as_object_mut() {
            fields.remove("source");
        }
    }
    text(&value)
}

/// Everything in a plan that makes this machine run something, each command once.
///
/// Adding a task that runs nothing new leaves it as it is; changing one letter of a command does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Executable<'a> {
    /// Setup commands, in the order they run.
    pub setup: &'a [String],
    /// Verify commands of all tasks.
    pub verify: BTreeSet<&'a str>,
    /// Commands of all steps.
    pub steps: BTreeSet<&'a str>,
    /// What the agents that tasks name would start: kind, inherited settings, command, environment.
    pub agents: Vec<AgentProgram<'a>>,
}

/// The executable part of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AgentProgram<'a> {
    kind: &'a str,
    inherit: &'a [String],
    command: &'a [String],
    env: Vec<(&'a str, &'a str)>,
}

impl<'a> AgentProgram<'a> {
    fn of(agent: &'a AgentSpec) -> Self {
        Self {
            kind: &agent.kind,
            inherit: &agent.inherit,
            command: &agent.command,
            env: agent.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        }
    }
}

impl<'a> Executable<'a> {
    /// Collects what `plan` would run.
    pub fn of(plan: &'a Plan) -> Self {
        let agents: BTreeSet<_> = plan.agents.values().map(AgentProgram::of).collect();
        let steps = plan.tasks.iter().flat_map(|task| &task.steps);
        Self {
            setup: &plan.run.setup,
            verify: plan.tasks.iter().flat_map(|task| &task.verify).map(String::as_str).collect(),
            steps: steps.filter_map(|step| step.command.as_deref()).collect(),
            agents: agents.into_iter().collect(),
        }
    }

    /// The canonical JSON an approval is bound to.
    pub fn canonical(&self) -> String {
        text(&json(self))
    }
}

#[expect(clippy::expect_used, reason = "plain data with text keys always has a JSON form")]
fn json(data: &impl Serialize) -> Value {
    serde_json::to_value(data).expect("plain data has a JSON form")
}

/// JSON with sorted keys and no white space.
///
/// The order is made here: whether serde_json's own map keeps insertion order depends on which features other crates
/// of the build ask for.
fn text(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort_unstable();
            let parts: Vec<String> =
                keys.into_iter().map(|key| format!("{}:{}", Value::from(key.as_str()), text(&fields[key]))).collect();
            format!("{{{}}}", parts.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RunSettings, Span, Step, Task};
    use super::*;

    fn plan() -> Plan {
        let mut task = Task::new("a", "goal", "cmd");
        task.verify = vec!["make test".into()];
        task.steps = vec![Step { name: "s".into(), command: Some("make s".into()) }];
        let mut agent = AgentSpec::new("command");
        agent.command = vec!["prog".into(), "{goal_file}".into()];
        Plan { run: RunSettings::new("p"), agents: [("cmd".into(), agent)].into(), tasks: vec![task] }
    }

    fn approval(plan: &Plan) -> String {
        Executable::of(plan).canonical()
    }

    #[test]
    fn where_a_task_is_written_is_no_content() {
        let (mut moved, plan) = (plan(), plan());
        moved.tasks[0].source = Some(Span { file: "x".into(), line: 9, column: 1 });
        assert_eq!(content(&moved), content(&plan));
        moved.tasks[0].goal.push('!');
        assert_ne!(content(&moved), content(&plan));
    }

    #[test]
    fn every_executable_part_changes_the_approval_and_nothing_else_does() {
        let before = approval(&plan());
        let agent = |p: &mut Plan, change: fn(&mut AgentSpec)| p.agents.values_mut().for_each(change);
        let mut changed = [(); 6].map(|()| plan());
        changed[0].run.setup.push("x".into());
        changed[1].tasks[0].verify[0].push(' ');
        changed[2].tasks[0].steps[0].command = Some("rm".into());
        agent(&mut changed[3], |a| a.command.push("-x".into()));
        agent(&mut changed[4], |a| {
            a.env = [("A".into(), "1".into())].into();
        });
        agent(&mut changed[5], |a| a.inherit.push("hooks".into()));
        for (which, changed) in changed.iter().enumerate() {
            assert_ne!(approval(changed), before, "change {which}");
        }
        let mut same = plan();
        same.tasks[0].goal = "another".into();
        same.tasks.push(Task { id: "b".into(), ..same.tasks[0].clone() });
        assert_eq!(approval(&same), before);
    }

    #[test]
    fn keys_are_sorted_whatever_the_map_does() {
        let value: Value = serde_json::from_str(r#"{"b":[{"z":1,"a":"\""}],"a":null}"#).unwrap();
        assert_eq!(text(&value), r#"{"a":null,"b":[{"a":"\"","z":1}]}"#);
    }
}
