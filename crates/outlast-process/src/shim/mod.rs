//! The shim: parent of one program, forked from the spawner without exec, alive until the program's tree is empty.
//!
//! It knows files, processes and times, and never what the program is. Nothing here may start a thread.

mod capture;
mod control;
mod deadlines;
mod prepare;
mod program;
mod supervise;
mod tree;

pub(crate) use prepare::run;
