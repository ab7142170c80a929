//! Which tasks wait for which, and why; what can run at once, and what takes longest.

use std::collections::BTreeMap;

use outlast_core::TaskId;
use outlast_core::glob::Glob;
use outlast_core::plan::{Plan, Task};
use serde::Serialize;

use crate::graph::Graph;

/// Why one task goes before another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Reason {
    /// The later one names the earlier one in `needs`.
    Needs,
    /// Both may change one file; the two globs that meet.
    Scope {
        /// Of the earlier one.
        from: String,
        /// Of the later one.
        to: String,
    },
    /// Both may change a hot file.
    HotFile {
        /// The hot file's glob.
        file: String,
    },
    /// The later one reads what the earlier one may change; told, not enforced.
    Reads {
        /// What the earlier one may change.
        from: String,
        /// What the later one reads.
        to: String,
    },
}

/// One task goes before another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// The earlier one.
    pub from: TaskId,
    /// The later one.
    pub to: TaskId,
    /// Why.
    pub reason: Reason,
}

/// What a plan's tasks have to do with each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// Every pair with an order and the first reason for it, by the order of the later one.
    pub edges: Vec<Edge>,
    /// Tasks that can run at once, wave by wave, if there were no limit of concurrency.
    pub waves: Vec<Vec<TaskId>>,
    /// The longest chain of tasks that wait for each other.
    pub critical_path: Vec<TaskId>,
    /// Whether every pair was looked at; with too many that meet, waves and path are those of the pairs seen.
    pub complete: bool,
}

/// Comparisons of scopes beyond this number are not made: a plan of wide scopes has as many as its size squared.
const COMPARED_MAX: usize = 4_000_000;
/// Pairs that meet beyond this number are not kept.
const MEETING_MAX: usize = 200_000;

/// Analyses a plan without circles; one with circles has no order, and the analysis is empty.
pub fn analyse(plan: &Plan) -> Analysis {
    let Some(mut links) = Links::by_needs(plan) else {
        return Analysis::default();
    };
    let scopes = Scopes::of(plan, |task| &task.writes);
    links.add_scopes(plan, &scopes);
    let waves = Waves::of(&links);
    links.add_reads(&scopes, &Scopes::of(plan, |task| &task.reads));
    let id = |rank: usize| plan.tasks[links.order[rank]].id.clone();
    let edge =
        |(&(to, from), reason): (&(usize, usize), &Reason)| Edge { from: id(from), to: id(to), reason: reason.clone() };
    Analysis {
        edges: links.reasons.iter().map(edge).collect(),
        waves: waves.levels.iter().map(|wave| wave.iter().map(|&rank| id(rank)).collect()).collect(),
        critical_path: waves.longest.iter().map(|&rank| id(rank)).collect(),
        complete: links.complete,
    }
}

/// Pairs of tasks that have to do with each other, by rank: the place in an order that needs allow.
struct Links {
    graph: Graph,
    order: Vec<usize>,
    rank: Vec<usize>,
    /// Why the second goes before the first.
    reasons: BTreeMap<(usize, usize), Reason>,
    complete: bool,
}

impl Links {
    fn by_needs(plan: &Plan) -> Option<Self> {
        let positions: BTreeMap<&TaskId, usize> =
            plan.tasks.iter().enumerate().map(|(i, task)| (&task.id, i)).collect();
        let needs = |task: &Task| task.needs.iter().filter_map(|need| positions.get(need).copied()).collect();
        let graph = Graph::new(plan.tasks.iter().map(needs).collect());
        let order = graph.order()?;
        let mut rank = vec![0; order.len()];
        for (i, &task) in order.iter().enumerate() {
            rank[task] = i;
        }
        let mut reasons = BTreeMap::new();
        for &task in &order {
            reasons.extend(graph.needs(task).iter().map(|&need| ((rank[task], rank[need]), Reason::Needs)));
        }
        Some(Self { graph, order, rank, reasons, complete: true })
    }

    fn add_scopes(&mut self, plan: &Plan, scopes: &Scopes<'_>) {
        let hot: Vec<(&String, Glob)> =
            plan.run.hot_files.iter().filter_map(|text| Some((text, Glob::parse(text).ok()?))).collect();
        let pairs = self.meeting(scopes, scopes);
        let pairs = pairs.into_iter().map(|(a, b)| match self.rank[a.task] < self.rank[b.task] {
            true => (a, b),
            false => (b, a),
        });
        for (from, to) in self.unordered(pairs.collect()) {
            let reason = match hot.iter().find(|(_, glob)| glob.overlaps(&from.glob) && glob.overlaps(&to.glob)) {
                Some((file, _)) => Reason::HotFile { file: (*file).clone() },
                None => Reason::Scope { from: from.text.to_owned(), to: to.text.to_owned() },
            };
            self.reasons.entry((self.rank[to.task], self.rank[from.task])).or_insert(reason);
        }
    }

    fn add_reads(&mut self, writes: &Scopes<'_>, reads: &Scopes<'_>) {
        let pairs = self.meeting(writes, reads);
        for (from, to) in self.unordered(pairs) {
            let reason = Reason::Reads { from: from.text.to_owned(), to: to.text.to_owned() };
            self.reasons.entry((self.rank[to.task], self.rank[from.task])).or_insert(reason);
        }
    }

    fn meeting<'s, 'p>(&mut self, a: &'s Scopes<'p>, b: &'s Scopes<'p>) -> Vec<Pair<'s, 'p>> {
        let mut compared = 0;
        let candidates = a.candidates(b).take(COMPARED_MAX).inspect(|_| compared += 1);
        let meeting = candidates.filter(|(a, b)| a.task != b.task && a.glob.overlaps(&b.glob));
        let pairs: Vec<Pair<'s, 'p>> = meeting.take(MEETING_MAX).collect();
        self.complete &= compared < COMPARED_MAX && pairs.len() < MEETING_MAX;
        pairs
    }

    /// Keeps the pairs whose order no chain of needs decides.
    fn unordered<'s, 'p>(&self, mut pairs: Vec<Pair<'s, 'p>>) -> Vec<Pair<'s, 'p>> {
        let later = |(a, b): &Pair<'_, '_>| self.rank[a.task].max(self.rank[b.task]);
        pairs.sort_by_key(later);
        let mut before = (usize::MAX, Vec::new());
        pairs.retain(|pair| {
            let (a, b) = (pair.0.task, pair.1.task);
            let rank = later(pair);
            if before.0 != rank {
                before = (rank, self.graph.before(self.order[rank]));
            }
            !before.1[a] && !before.1[b]
        });
        pairs
    }
}

/// Two globs that can name one path.
type Pair<'s, 'p> = (&'s Scope<'p>, &'s Scope<'p>);

/// A glob of a task.
struct Scope<'p> {
    task: usize,
    text: &'p str,
    /// The text before the first wildcard.
    literal: &'p str,
    glob: Glob,
}

/// Globs, sorted by the text before their first wildcard.
struct Scopes<'p>(Vec<Scope<'p>>);

impl<'p> Scopes<'p> {
    fn of(plan: &'p Plan, globs: impl Fn(&'p Task) -> &'p [String]) -> Self {
        let mut scopes = Vec::new();
        for (task, globs) in plan.tasks.iter().map(globs).enumerate() {
            for text in globs {
                scopes.extend(Glob::parse(text).ok().map(|glob| Scope { task, text, literal: literal(text), glob }));
            }
        }
        scopes.sort_by_key(|scope| scope.literal);
        Self(scopes)
    }

    /// Every pair of globs, one from each side, that could name one path.
    ///
    /// Two globs can only meet when the text before the first wildcard of one begins with that of the other, and those
    /// that begin with a text stand together; so tasks in different folders are never compared.
    fn candidates<'s>(&'s self, other: &'s Self) -> impl Iterator<Item = Pair<'s, 'p>> {
        let longer_there = |a: &'s Scope<'p>| other.beginning_with(a.literal).iter().map(move |b| (a, b));
        let longer_here = |b: &'s Scope<'p>| {
            let here = self.beginning_with(b.literal).iter();
            here.filter(|a| a.literal != b.literal).map(move |a| (a, b))
        };
        self.0.iter().flat_map(longer_there).chain(other.0.iter().flat_map(longer_here))
    }

    fn beginning_with(&self, text: &str) -> &[Scope<'p>] {
        let from = self.0.partition_point(|scope| scope.literal < text);
        let len = self.0[from..].partition_point(|scope| scope.literal.starts_with(text));
        &self.0[from..from + len]
    }
}

/// The text of a glob before its first special character.
fn literal(glob: &str) -> &str {
    &glob[..glob.find(['*', '?', '[', '{', '\\']).unwrap_or(glob.len())]
}

/// Levels of a graph whose nodes are already in order.
struct Waves {
    levels: Vec<Vec<usize>>,
    longest: Vec<usize>,
}

impl Waves {
    fn of(links: &Links) -> Self {
        let mut level = vec![0; links.order.len()];
        let mut after: Vec<Option<usize>> = vec![None; links.order.len()];
        // Links are sorted by the later task, and a link's earlier task has a smaller rank: its level is final.
        for &(to, from) in links.reasons.keys() {
            if level[from] + 1 > level[to] {
                level[to] = level[from] + 1;
                after[to] = Some(from);
            }
        }
        let mut levels = vec![Vec::new(); level.iter().max().map_or(0, |max| max + 1)];
        for (rank, &level) in level.iter().enumerate() {
            levels[level].push(rank);
        }
        let mut longest: Vec<usize> =
            std::iter::successors(levels.last().and_then(|wave| wave.first().copied()), |&rank| after[rank]).collect();
        longest.reverse();
        Self { levels, longest }
    }
}

#[cfg(test)]
mod tests;
