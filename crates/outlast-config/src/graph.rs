//! Needs as a graph over positions in the plan: circles, an order, and what comes before what.
//!
//! Nothing recurses: a chain of any length is a valid plan.

/// For each task the tasks it needs, by position.
pub(crate) struct Graph {
    needs: Vec<Vec<usize>>,
}

/// More circles than this in one message list help nobody.
const CYCLES_MAX: usize = 20;

impl Graph {
    pub(crate) fn new(needs: Vec<Vec<usize>>) -> Self {
        Self { needs }
    }

    /// An order in which every task comes after its needs, as near to the given one as that allows; `None` with circles.
    pub(crate) fn order(&self) -> Option<Vec<usize>> {
        let (order, _) = self.sort(&vec![true; self.needs.len()]);
        (order.len() == self.needs.len()).then_some(order)
    }

    /// Circles of needs, each beginning with its first task and following `needs`; tasks are in at most one of them.
    pub(crate) fn cycles(&self) -> Vec<Vec<usize>> {
        let mut alive = vec![true; self.needs.len()];
        let mut cycles = Vec::new();
        while cycles.len() < CYCLES_MAX {
            let (_, stuck) = self.sort(&alive);
            let Some(start) = stuck.iter().position(|&stuck| stuck) else {
                break;
            };
            let cycle = self.walk(start, &stuck);
            for &task in &cycle {
                alive[task] = false;
            }
            cycles.push(cycle);
        }
        cycles
    }

    /// Orders the tasks that are alive; the second part marks those that wait for a circle for ever.
    fn sort(&self, alive: &[bool]) -> (Vec<usize>, Vec<bool>) {
        let mut waits: Vec<usize> = vec![0; self.needs.len()];
        let mut needed_by = vec![Vec::new(); self.needs.len()];
        for (task, needs) in self.needs.iter().enumerate().filter(|(task, _)| alive[*task]) {
            for &need in needs.iter().filter(|&&need| alive[need]) {
                waits[task] += 1;
                needed_by[need].push(task);
            }
        }
        let mut ready: std::collections::BTreeSet<usize> =
            (0..self.needs.len()).filter(|&task| alive[task] && waits[task] == 0).collect();
        let mut order = Vec::new();
        let mut stuck = alive.to_vec();
        while let Some(task) = ready.pop_first() {
            stuck[task] = false;
            order.push(task);
            for &next in &needed_by[task] {
                waits[next] -= 1;
                if waits[next] == 0 {
                    ready.insert(next);
                }
            }
        }
        (order, stuck)
    }

    /// Follows needs from a stuck task until one comes again: a stuck task always needs another stuck one.
    fn walk(&self, start: usize, stuck: &[bool]) -> Vec<usize> {
        let mut path = Vec::new();
        let mut position = vec![None; self.needs.len()];
        let mut at = start;
        while position[at].is_none() {
            position[at] = Some(path.len());
            path.push(at);
            match self.needs[at].iter().find(|&&need| stuck[need]) {
                Some(&next) => at = next,
                None => return path,
            }
        }
        let mut cycle = path.split_off(position[at].unwrap_or(0));
        let first = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(i, _)| i);
        cycle.rotate_left(first);
        cycle
    }

    /// What a task needs.
    pub(crate) fn needs(&self, task: usize) -> &[usize] {
        &self.needs[task]
    }

    /// Marks the tasks that come before this one by needs, directly or not.
    pub(crate) fn before(&self, task: usize) -> Vec<bool> {
        let mut before = vec![false; self.needs.len()];
        let mut todo = self.needs[task].clone();
        while let Some(need) = todo.pop() {
            if !std::mem::replace(&mut before[need], true) {
                todo.extend(&self.needs[need]);
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_named_once_and_what_hangs_on_them_is_not() {
        let graph = Graph::new(vec![vec![], vec![3], vec![1], vec![2, 0], vec![3], vec![6], vec![5]]);
        assert_eq!(graph.order(), None);
        assert_eq!(graph.cycles(), [vec![1, 3, 2], vec![5, 6]]);
    }

    #[test]
    fn the_given_order_is_kept_where_needs_allow() {
        let graph = Graph::new(vec![vec![2], vec![], vec![]]);
        assert_eq!(graph.order(), Some(vec![1, 2, 0]));
        assert_eq!(graph.cycles(), Vec::<Vec<usize>>::new());
        assert_eq!(graph.before(0), [false, false, true]);
    }

    #[test]
    fn a_long_chain_overflows_nothing() {
        let chain = (0..100_000).map(|i: usize| i.checked_sub(1).into_iter().collect()).collect();
        assert_eq!(Graph::new(chain).order().unwrap().len(), 100_000);
        let ring = (0..100_000).map(|i| vec![(i + 1) % 100_000]).collect();
        assert_eq!(Graph::new(ring).cycles()[0].len(), 100_000);
    }
}
