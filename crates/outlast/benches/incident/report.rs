//! The table, the formulas with their numbers, and which of outlast's targets were met.

use outlast_testkit::provider::Says;

use super::figures::Figures;
use super::options::{Options, Runner};
use super::yardstick::Yardstick;

/// The first pause of outlast after a refusal that states no end, in seconds.
const PROBE_FIRST: f64 = 1.0;

/// What is printed, as it becomes known.
pub(crate) struct Report {
    options: Options,
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { latency_ms, quota_seconds, limit_seconds, storm_seconds, .. } = options;
        let closed = if options.windows {
            format!("a window of a third of the turns, then closed for {quota_seconds} s (403)")
        } else {
            format!("closed for {quota_seconds} s (403), {limit_seconds} s (429), {storm_seconds} s (529)")
        };
        let agents: Vec<&str> = options.agents.iter().map(|cli| cli.name()).collect();
        println!(
            "incident: {} tasks of {}, {} at once, {} ms per turn; {closed}; kills: {} agents, {} of outlast; seed {}",
            options.tasks(),
            agents.join(" and "),
            options.at_once(),
            latency_ms,
            options.kill_agents,
            options.kill_orchestrator,
            options.seed
        );
        Self { options: options.clone() }
    }

    /// Tells what one task takes.
    pub(crate) fn yardstick(&self, yardstick: &Yardstick) {
        for alone in &yardstick.alone {
            println!(
                "one {} alone: {:.2} s and what the model thinks, {:.2} s of cpu, {} tokens by hand, {} below outlast",
                alone.cli.name(),
                alone.own.as_secs_f64(),
                alone.cpu.as_secs_f64(),
                alone.tokens(Runner::Naive),
                alone.tokens(Runner::Outlast)
            );
        }
    }

    /// Prints the runners side by side; whether outlast met every target.
    pub(crate) fn print(&self, figures: &[Figures]) -> bool {
        table(figures);
        figures.iter().for_each(workings);
        let ours = figures.iter().filter(|figures| figures.runner == Runner::Outlast);
        // Every line is printed, also after the first that is not met.
        let missed: usize = ours.map(|figures| self.targets(figures)).sum();
        missed == 0
    }

    /// Prints what outlast must do, and whether it did; how many it missed.
    fn targets(&self, of: &Figures) -> usize {
        let is_killed = of.orchestrator_killed > 0;
        let tokens_max = if is_killed { 1.05 } else { 1.02 };
        let refusals_max = self.refusals_max(of);
        let mut lines = vec![
            (of.done == of.tasks, format!("all done: {} of {}", of.done, of.tasks)),
            (of.from_scratch == 0, format!("none from scratch: {}", of.from_scratch)),
            (of.tokens_ratio() <= tokens_max, format!("tokens at most {tokens_max}: {:.3}", of.tokens_ratio())),
            (of.refused as f64 <= refusals_max, format!("refusals at most {refusals_max:.1}: {}", of.refused)),
            (of.wall_ratio_known() <= 1.15, format!("wall at most 1.15 of ideal: {:.3}", of.wall_ratio_known())),
            (of.left == 0, format!("nothing left running: {}", of.left)),
            (of.redone == 0, format!("no finished task redone: {}", of.redone)),
        ];
        if is_killed || of.agents_killed > 0 {
            let most = of.billed_again_max();
            let text = format!("at most the {most} answers that a kill cut off billed again: {}", of.billed_again);
            lines.push((of.billed_again <= most, text));
        }
        println!();
        for (is_met, line) in &lines {
            println!("{}  {line}", if *is_met { "PASS" } else { "FAIL" });
        }
        lines.iter().filter(|(is_met, _)| !is_met).count()
    }

    /// What was in flight when each closing began, and the probes: one per account where the end is stated, else
    /// log2(length / first pause) + 1.
    pub(crate) fn refusals_max(&self, of: &Figures) -> f64 {
        let says =
            |name: &str| self.options.closings().into_iter().find(|closing| closing.name == name).map(|c| c.says);
        let accounts = self.options.accounts() as f64;
        let of_one = |closing: &outlast_testkit::provider::ClosingTally| {
            let length = closing.ends_at_ms.saturating_sub(closing.began_at_ms) as f64 / 1000.0;
            let probes = match says(&closing.name) {
                Some(Says::Reset) => 1.0,
                _ => (length / PROBE_FIRST).log2().max(0.0) + 1.0,
            };
            closing.in_flight as f64 + accounts * probes
        };
        of.closings.iter().map(of_one).sum()
    }
}

fn table(figures: &[Figures]) {
    let heads = [
        "runner",
        "done",
        "scratch",
        "resumed",
        "untouched",
        "refused",
        "into closed",
        "tokens",
        "wall",
        "left",
        "redone",
    ];
    let rows = figures.iter().map(|of| {
        [
            of.runner.to_string(),
            format!("{}/{}", of.done, of.tasks),
            of.from_scratch.to_string(),
            of.resumed.to_string(),
            of.untouched.to_string(),
            of.refused.to_string(),
            of.into_closed.to_string(),
            format!("{:.3}", of.tokens_ratio()),
            format!("{:.2}", of.wall_ratio()),
            of.left.to_string(),
            of.redone.to_string(),
        ]
    });
    println!();
    for row in std::iter::once(heads.map(str::to_owned)).chain(rows) {
        let padded = |(cell, head): (&String, &str)| format!("{cell:>0$}", head.len().max(8));
        let cells: Vec<String> = row.iter().zip(heads).map(padded).collect();
        println!("{}", cells.join("  "));
    }
}

/// The numbers behind the ratios.
fn workings(of: &Figures) {
    let Figures { runner, tokens_billed, tokens_needed, half_gaps, ideal, billed_again, .. } = of;
    let wall = of.wall.as_secs_f64();
    println!("\n{runner}");
    println!("  tokens: {tokens_billed} billed / {tokens_needed} needed; {billed_again} turns billed again");
    println!("  wall:   {wall:.1} s, of which {half_gaps:.1} s are half the last pauses before an unstated end");
    println!("  ideal:  {ideal}");
    for closing in &of.closings {
        let after = |at: u64| at.saturating_sub(closing.began_at_ms) as f64 / 1000.0;
        println!(
            "  {}: {:.1} s; {} in flight, {} refused, the last after {:.1} s; taken again after {}",
            closing.name,
            after(closing.ends_at_ms),
            closing.in_flight,
            closing.refused,
            after(closing.last_refused_at_ms),
            closing.taken_again_at_ms.map_or_else(|| "-".to_owned(), |at| format!("{:.1} s", after(at)))
        );
    }
    let Figures { agents_killed, orchestrator_killed, cut_off, .. } = of;
    if agents_killed + orchestrator_killed > 0 {
        println!(
            "  killed: {agents_killed} agents, outlast {orchestrator_killed} times with {cut_off} answers on their way"
        );
    }
}
