//! Putting research states together: what was known before a conversation began anew, and what sub-agents found out.

use super::state::{CommandRun, Ended, FileRead, ResearchState};

impl ResearchState {
    /// This state and what an earlier one of the same task knows besides, the earlier entries first.
    ///
    /// A request loses what came before it when the CLI sums up its conversation, or when a fresh session takes over.
    /// What both know counts once, as it is known now. A command that the earlier state saw begin and that nothing
    /// here saw end was cut off.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.add_before(earlier);
        let cut_off = earlier.unanswered.iter().filter(|call| call.is_command);
        let mut commands: Vec<CommandRun> = cut_off
            .map(|call| CommandRun {
                id: call.id.clone(),
                command: call.about.clone(),
                ended: Ended::Interrupted,
                ..CommandRun::default()
            })
            .filter(|run| !knows_command(&self.commands, run))
            .filter(|run| self.unanswered.iter().all(|call| call.id != run.id))
            .collect();
        let place = self.commands.iter().filter(|run| knows_command(&earlier.commands, run)).count();
        self.commands.splice(place..place, commands.drain(..));

        let mut decisions: Vec<String> =
            earlier.decisions.iter().filter(|text| !self.decisions.contains(text)).cloned().collect();
        decisions.append(&mut self.decisions);
        self.decisions = decisions;
        if self.todo.is_empty() {
            self.todo = earlier.todo.clone();
        }
        let mut agents: Vec<_> = earlier
            .sub_agents
            .iter()
            .filter(|agent| self.sub_agents.iter().all(|known| known.id != agent.id))
            .cloned()
            .collect();
        agents.append(&mut self.sub_agents);
        self.sub_agents = agents;
        self.bound();
        self
    }

    /// Takes up what a sub-agent knows, under its name; what was known of it before is replaced.
    pub fn absorb(&mut self, agent: &str, part: &Self) {
        let ours = |by: &Option<String>| by.as_deref() != Some(agent);
        self.read.retain(|file| ours(&file.by));
        self.commands.retain(|run| ours(&run.by));
        self.edits.retain(|edit| ours(&edit.by));
        self.lookups.retain(|lookup| ours(&lookup.by));
        let mut part = part.clone();
        let name = Some(agent.to_owned());
        part.read.iter_mut().for_each(|file| file.by = file.by.take().or_else(|| name.clone()));
        part.commands.iter_mut().for_each(|run| run.by = run.by.take().or_else(|| name.clone()));
        part.edits.iter_mut().for_each(|edit| edit.by = edit.by.take().or_else(|| name.clone()));
        part.lookups.iter_mut().for_each(|lookup| lookup.by = lookup.by.take().or_else(|| name.clone()));
        self.add_before(&part);
        self.bound();
    }

    /// Puts files, commands, edits and searches that are not known here in front of those that are.
    fn add_before(&mut self, other: &Self) {
        for edit in &other.edits {
            outdate(&mut self.read, &edit.path, |file| file.by != edit.by && edit.by.is_some());
        }
        let mut read: Vec<FileRead> =
            other.read.iter().filter(|file| self.read.iter().all(|known| known.path != file.path)).cloned().collect();
        for edit in &self.edits {
            outdate(&mut read, &edit.path, |_| true);
        }
        read.append(&mut self.read);
        self.read = read;

        let mut commands: Vec<CommandRun> =
            other.commands.iter().filter(|run| !knows_command(&self.commands, run)).cloned().collect();
        commands.append(&mut self.commands);
        self.commands = commands;

        let mut edits: Vec<_> =
            other.edits.iter().filter(|edit| self.edits.iter().all(|known| known.path != edit.path)).cloned().collect();
        edits.append(&mut self.edits);
        self.edits = edits;

        let mut lookups: Vec<_> =
            other.lookups.iter().filter(|lookup| !self.lookups.contains(lookup)).cloned().collect();
        lookups.append(&mut self.lookups);
        self.lookups = lookups;
    }
}

/// Marks what is known of a file as older than an edit of it.
fn outdate(read: &mut [FileRead], path: &str, also: impl Fn(&FileRead) -> bool) {
    for file in read.iter_mut().filter(|file| file.path == path && also(file)) {
        file.outdated = true;
        file.hash = None;
    }
}

/// Whether a command is among others: by its call, or, where calls have no name, by what it was and said.
fn knows_command(commands: &[CommandRun], run: &CommandRun) -> bool {
    commands.iter().any(|known| {
        if run.id.is_empty() && known.id.is_empty() {
            known.command == run.command && known.tail == run.tail
        } else {
            known.id == run.id
        }
    })
}
