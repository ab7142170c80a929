//! The signals by which a person, or the end of their terminal, asks for the end.

use std::fs;
use std::future::pending;
use std::io;

use outlast_api::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Where the kernel says which signals this process ignores.
const STATUS: &str = "/proc/self/status";

/// What is listened to.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where it is ignored from the start: `nohup` means that the end of the terminal changes nothing.
    hang_up: Option<Signal>,
}

impl Signals {
    /// Listens from here on: none of them ends the process by itself any more.
    pub(crate) fn listen() -> io::Result<Self> {
        // Asked before anything listens, which would end the ignoring.
        let is_ignored = fs::read_to_string(STATUS).is_ok_and(|status| ignores_hang_up(&status));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: if is_ignored { None } else { Some(signal(SignalKind::hangup())?) },
        })
    }

    /// Waits for one of them; gives the exit code of whoever ends by it.
    pub(crate) async fn next(&mut self) -> ExitCode {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => ExitCode::Interrupted,
            _ = self.terminate.recv() => ExitCode::Terminated,
            _ = hang_up => ExitCode::HungUp,
        }
    }
}

/// Whether SIGHUP, the first signal, is among those that are ignored.
fn ignores_hang_up(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::ignores_hang_up;

    #[test]
    fn what_is_ignored_from_the_start_is_read_from_the_kernels_mask() {
        assert!(ignores_hang_up("Name:\toutlast\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hang_up("Name:\toutlast\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hang_up(""));
    }
}
