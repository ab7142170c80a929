//! What outlast promises, end to end: the real binary, real processes, a real provider over a socket, and everything that
//! can go wrong in between.
//!
//! The longest ones run only with `OUTLAST_LONG_TESTS=1`, and say so otherwise.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test ends at the first surprise")]

#[path = "survive/again.rs"]
mod again;
#[path = "survive/alone.rs"]
mod alone;
#[path = "survive/attacks.rs"]
mod attacks;
#[path = "survive/budget.rs"]
mod budget;
#[path = "survive/cold.rs"]
mod cold;
#[path = "survive/commands.rs"]
mod commands;
#[path = "survive/damage.rs"]
mod damage;
#[path = "survive/detach.rs"]
mod detach;
#[path = "survive/disk.rs"]
mod disk;
#[path = "survive/elsewhere.rs"]
mod elsewhere;
#[path = "survive/fencing.rs"]
mod fencing;
#[path = "survive/filling.rs"]
mod filling;
#[path = "survive/forty.rs"]
mod forty;
#[path = "survive/garbage.rs"]
mod garbage;
#[path = "survive/gone.rs"]
mod gone;
#[path = "survive/halt.rs"]
mod halt;
#[path = "survive/hold.rs"]
mod hold;
#[path = "survive/hostile.rs"]
mod hostile;
#[path = "survive/incident.rs"]
mod incident;
#[path = "survive/kills.rs"]
mod kills;
#[path = "../benches/incident/lab.rs"]
mod lab;
#[path = "survive/landing.rs"]
mod landing;
#[path = "survive/last_words.rs"]
mod last_words;
#[path = "survive/left_out.rs"]
mod left_out;
#[path = "survive/limits.rs"]
mod limits;
#[path = "survive/log.rs"]
mod log;
#[path = "survive/lost.rs"]
mod lost;
#[path = "survive/names.rs"]
mod names;
#[path = "survive/no_program.rs"]
mod no_program;
#[path = "survive/notes.rs"]
mod notes;
#[path = "survive/order.rs"]
mod order;
#[path = "survive/paid_again.rs"]
mod paid_again;
#[path = "survive/processes.rs"]
mod processes;
#[path = "survive/replay.rs"]
mod replay;
#[path = "survive/reported.rs"]
mod reported;
#[path = "survive/review.rs"]
mod review;
#[path = "survive/running.rs"]
mod running;
#[path = "survive/sessions.rs"]
mod sessions;
#[path = "survive/spend.rs"]
mod spend;
#[path = "survive/steps.rs"]
mod steps;
#[path = "survive/trees.rs"]
mod trees;
#[path = "survive/turns.rs"]
mod turns;
#[path = "survive/two_hundred.rs"]
mod two_hundred;
#[path = "survive/unshown.rs"]
mod unshown;
#[path = "survive/user.rs"]
mod user;
#[path = "survive/world.rs"]
mod world;

/// Whether the long tests are wanted; says what is skipped where they are not.
fn long(what: &str) -> bool {
    let wanted = std::env::var_os("OUTLAST_LONG_TESTS").is_some_and(|value| value == "1");
    if !wanted {
        eprintln!("SKIPPED, set OUTLAST_LONG_TESTS=1 to run it: {what}");
    }
    wanted
}
