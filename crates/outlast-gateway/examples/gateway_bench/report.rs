//! The figures side by side, with what each is allowed to be.

use std::time::Duration;

use crate::load::Slice;
use crate::processes::{Placement, Target};
use crate::shapes::Shape;

/// Connections at once in the second half of every round.
pub(crate) const CONNECTIONS: usize = 50;

/// All rounds of one shape.
pub(crate) struct Table {
    shape: Shape,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    p50: Vec<f64>,
    p99: Vec<f64>,
    together: Vec<f64>,
    per_second: Vec<f64>,
    many_p50: Vec<f64>,
    cpu_micros: Vec<f64>,
    resident_kb: u64,
}

impl Table {
    pub(crate) fn new(shape: Shape, targets: &[Target]) -> Self {
        let row = |target: &Target| Row {
            name: target.name.clone(),
            p50: Vec::new(),
            p99: Vec::new(),
            together: Vec::new(),
            per_second: Vec::new(),
            many_p50: Vec::new(),
            cpu_micros: Vec::new(),
            resident_kb: 0,
        };
        Self { shape, rows: targets.iter().map(row).collect() }
    }

    pub(crate) fn alone(&mut self, index: usize, placement: Placement, slice: &Slice) {
        let row = &mut self.rows[index];
        if placement == Placement::Together {
            row.together.push(slice.percentile(50));
            return;
        }
        row.p50.push(slice.percentile(50));
        row.p99.push(slice.percentile(99));
    }

    pub(crate) fn many(&mut self, index: usize, slice: &Slice, cpu: Duration, resident_kb: u64) {
        let row = &mut self.rows[index];
        row.per_second.push(slice.per_second());
        row.many_p50.push(slice.percentile(50));
        row.cpu_micros.push(cpu.as_secs_f64() * 1e6 / slice.micros.len() as f64);
        row.resident_kb = row.resident_kb.max(resident_kb);
    }

    pub(crate) fn print(&self) {
        println!("\n{} (medians over {} rounds)", self.shape.title(), self.rows[0].p50.len());
        println!(
            "{:<10}{:>12}{:>12}{:>12}{:>14}{:>14}{:>14}{:>12}{:>10}",
            "", "c=1 p50 us", "p99 us", "added us", "one core us", "c=50 req/s", "c=50 p50 us", "cpu us", "RSS MB"
        );
        let direct = median(&self.rows[0].p50);
        for row in &self.rows {
            let p50 = median(&row.p50);
            println!(
                "{:<10}{:>12.0}{:>12.0}{:>12.0}{:>14.0}{:>14.0}{:>14.0}{:>12.0}{:>10.1}",
                row.name,
                p50,
                median(&row.p99),
                p50 - direct,
                median(&row.together),
                median(&row.per_second),
                median(&row.many_p50),
                median(&row.cpu_micros),
                row.resident_kb as f64 / 1024.0,
            );
        }
        let [_, nginx, gateways @ ..] = self.rows.as_slice() else { return };
        for gateway in gateways {
            let added = (median(&gateway.p50) - direct) / (median(&nginx.p50) - direct);
            let direct = median(&self.rows[0].together);
            let together = (median(&gateway.together) - direct) / (median(&nginx.together) - direct);
            let through = median(&gateway.per_second) / median(&nginx.per_second);
            println!(
                "{} adds at p50 {added:.2} x nginx (at most 2.50; {together:.2} x where all share a core)   req/s at {CONNECTIONS}: {through:.2} x nginx (at least 0.25)   RSS: {:.1} MB (below 30)",
                gateway.name,
                gateway.resident_kb as f64 / 1024.0
            );
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
