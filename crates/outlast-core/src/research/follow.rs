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
        self.fill_in(earlier);
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

        // Where both are of one conversation, this one begins at a text that the earlier one has, and goes on from it.
        let begins = self.decisions.first().and_then(|first| earlier.decisions.iter().position(|text| text == first));
        let before = &earlier.decisions[..begins.unwrap_or(earlier.decisions.len())];
        let mut decisions: Vec<String> = before.iter().filter(|text| !self.decisions.contains(text)).cloned().collect();
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

        let here = std::mem::take(&mut self.left_out);
        self.bound();
        self.left_out = here.joined(&earlier.left_out, &self.left_out);
        self
    }

    /// Puts back what the CLI has cleared from its conversation to save room: old results are the first to go.
    fn fill_in(&mut self, earlier: &Self) {
        for run in self.commands.iter_mut().filter(|run| run.ended == Ended::Unknown && run.tail.is_empty()) {
            if let Some(known) = earlier.commands.iter().find(|known| !run.id.is_empty() && known.id == run.id) {
                run.clone_from(known);
            }
        }
        // Only of one conversation can it be told whether an edit is the one that the earlier state saw.
        let same =
            self.commands.iter().any(|run| !run.id.is_empty() && earlier.commands.iter().any(|e| e.id == run.id));
        let times = |state: &Self, path: &str| state.edits.iter().find(|edit| edit.path == path).map(|edit| edit.times);
        for at in 0..self.read.len() {
            let file = &self.read[at];
            let made = times(self, &file.path);
            if file.text.is_some()
                || file.by.is_some()
                || made.is_some() && !(same && made == times(earlier, &file.path))
            {
                continue;
            }
            let known = earlier.read.iter().find(|known| known.path == file.path && known.text.is_some());
            if let Some(known) = known.filter(|known| !known.outdated) {
                self.read[at] = known.clone();
            }
        }
        for edit in self.edits.iter_mut().filter(|edit| same && edit.hash.is_none()) {
            if let Some(known) = earlier.edits.iter().find(|known| known.path == edit.path && known.times == edit.times)
            {
                edit.clone_from(known);
            }
        }
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
