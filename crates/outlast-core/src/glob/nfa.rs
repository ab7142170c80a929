//! The automaton of a glob, and the walk of two automata along one path.

use super::parse::Part;
use super::set::{SLASH, Set, Symbol, symbols};

type StateId = usize;

#[derive(Debug, Clone, Default)]
struct State {
    /// Moves that read one symbol of the set.
    reads: Vec<(Set, StateId)>,
    /// Moves that read nothing.
    jumps: Vec<StateId>,
}

/// A non-deterministic automaton over the symbols of a path.
#[derive(Debug, Clone)]
pub(super) struct Nfa {
    states: Vec<State>,
    start: StateId,
    /// Reached when the glob names the path.
    named: StateId,
    /// Reached when the glob names a directory above the path.
    beneath: StateId,
}

impl Nfa {
    pub(super) fn of(parts: &[Part]) -> Self {
        let mut nfa = Self { states: vec![State::default()], start: 0, named: 0, beneath: 0 };
        nfa.named = nfa.sequence(parts, 0);
        let below = nfa.read(nfa.named, Set::one('/'));
        nfa.beneath = nfa.beneath_of(below);
        nfa
    }

    fn add(&mut self) -> StateId {
        self.states.push(State::default());
        self.states.len() - 1
    }

    fn read(&mut self, from: StateId, set: Set) -> StateId {
        let to = self.add();
        self.states[from].reads.push((set, to));
        to
    }

    fn beneath_of(&mut self, from: StateId) -> StateId {
        let to = self.read(from, Set::any());
        self.states[to].reads.push((Set::any(), to));
        to
    }

    fn sequence(&mut self, parts: &[Part], from: StateId) -> StateId {
        parts.iter().fold(from, |from, part| self.part(part, from))
    }

    fn part(&mut self, part: &Part, from: StateId) -> StateId {
        match part {
            Part::One(set) => self.read(from, set.clone()),
            Part::Star => {
                let to = self.add();
                self.states[to].reads.push((Set::not_slash(), to));
                self.states[from].jumps.push(to);
                to
            }
            Part::Directories => {
                let inside = self.beneath_of(from);
                let to = self.read(inside, Set::one('/'));
                self.states[from].jumps.push(to);
                to
            }
            Part::Beneath => self.beneath_of(from),
            Part::Choice(choices) => {
                let to = self.add();
                for choice in choices {
                    let first = self.add();
                    self.states[from].jumps.push(first);
                    let end = self.sequence(choice, first);
                    self.states[end].jumps.push(to);
                }
                to
            }
        }
    }

    /// Tells whether the glob names the path or, with `beneath`, a directory above it.
    pub(super) fn accepts(&self, path: &[u8], beneath: bool) -> bool {
        let mut live = vec![false; self.states.len()];
        self.enter(&mut live, self.start);
        for symbol in symbols(path) {
            live = self.advance(&live, symbol);
        }
        live[self.named] || beneath && live[self.beneath]
    }

    fn advance(&self, live: &[bool], symbol: Symbol) -> Vec<bool> {
        let mut next = vec![false; self.states.len()];
        let states = self.states.iter().zip(live).filter_map(|(state, live)| live.then_some(state));
        for (_, to) in states.flat_map(|state| &state.reads).filter(|(set, _)| set.has(symbol)) {
            self.enter(&mut next, *to);
        }
        next
    }

    fn enter(&self, live: &mut [bool], state: StateId) {
        let mut todo = vec![state];
        while let Some(state) = todo.pop() {
            if !std::mem::replace(&mut live[state], true) {
                todo.extend(&self.states[state].jumps);
            }
        }
    }

    fn ends(&self, state: StateId) -> bool {
        state == self.named || state == self.beneath
    }

    /// Tells whether some path is accepted by both, each naming it or a directory above it.
    ///
    /// A pair of states is visited at most twice, at and after the start of a segment, because no path has an empty
    /// segment: `a/*/b` and `a//b` share none.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let width = other.states.len();
        let mut seen = vec![false; self.states.len() * width * 2];
        let mut todo = vec![(self.start, other.start, true)];
        while let Some((a, b, segment_start)) = todo.pop() {
            if std::mem::replace(&mut seen[(a * width + b) * 2 + usize::from(segment_start)], true) {
                continue;
            }
            if !segment_start && self.ends(a) && other.ends(b) {
                return true;
            }
            let (at_a, at_b) = (&self.states[a], &other.states[b]);
            todo.extend(at_a.jumps.iter().map(|&to| (to, b, segment_start)));
            todo.extend(at_b.jumps.iter().map(|&to| (a, to, segment_start)));
            for (set_a, to_a) in &at_a.reads {
                for (set_b, to_b) in &at_b.reads {
                    if set_a.meets(set_b) {
                        todo.push((*to_a, *to_b, false));
                    }
                    if !segment_start && set_a.has(SLASH) && set_b.has(SLASH) {
                        todo.push((*to_a, *to_b, true));
                    }
                }
            }
        }
        false
    }
}
