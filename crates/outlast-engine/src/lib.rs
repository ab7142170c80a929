//! The driver: owns the state, commits records, performs operations, serves the local API.
//!
//! Policy is the core's: nothing here decides who starts, who is tried again or what lands. What it knows is the world:
//! workspaces, processes, the gateway, branches.

mod abandon;
mod admission;
mod advice;
mod allowance;
mod api;
mod ask;
mod asks;
mod at_work;
mod context;
mod damaged_store;
mod diagnose;
mod effects;
mod emptied_refs;
mod engine;
mod error;
mod fault;
mod fill;
mod held_up;
mod home;
mod ignored;
mod kept;
mod keys;
mod left_out;
mod loops;
mod memory;
mod moves;
mod named;
mod notes;
mod obstacle;
mod ops;
mod outputs;
mod passed;
mod plans;
mod programs;
mod put_away;
mod replay;
mod repositories;
mod research;
mod results_again;
mod room;
mod runs;
mod same;
mod start;
mod state_loop;
mod store;
mod toolchain;
mod turns;
mod views;

pub use api::perform;
pub use context::Trouble;
pub use diagnose::{diagnostic, is_held_up, landed_anew, not_all_kept, nothing_on_record, refusal, store_damaged};
pub use emptied_refs::{needed, over};
pub use engine::{Account, Engine, Setup, client_key};
pub use error::Error;
pub use fault::POINTS;
pub use home::{Holder, Home, RepoHome};
pub use kept::{Changed, Kept, Room};
pub use left_out::left_out;
pub use named::run_anew;
pub use obstacle::{DISK_FULL, Obstacle, PLAN_DAMAGED, REPOSITORY_GONE, STORE_GONE, checkout};
pub use outputs::last_lines;
pub use plans::{keep_plan, load_plan};
pub use programs::{AbsentProgram, Lack, Starts, absent_programs, program_files};
pub use put_away::put_away;
pub use room::{Full, NoSpace, Space, full};
pub use runs::{
    Rest, leave_at_rest, leave_waiting, only_waits, others_at_work, park_waiting, unless_full, until_held_up,
    until_parked, until_settled, until_tasks_settled,
};
pub use same::earlier;
pub use start::{Start, assigned, start, unable_agents};
pub use state_loop::LoopHandle;
pub use store::{record as read_record, replay};
pub use toolchain::Toolchain;
pub use views::{TRIED_AGAIN, first_reset, landed_with, left_undone, run_line, state, status};
