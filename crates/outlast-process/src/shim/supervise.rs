//! The shim's life beside the running program: one loop that waits for whatever happens next, and one end.
//!
//! Every turn is started by an event or a limit; nothing is asked for twice. The loop ends when the tree is proven empty.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;

use crate::exit::{ExitReason, ExitRecord};
use crate::files;
use crate::launch_file::LaunchFile;
use crate::listener::{ListenerProcess, Report};
use crate::protocol::{Command, Event, OpenRequest, ShimState};
use crate::shim_id::ShimFile;

use super::capture::Capture;
use super::control::Control;
use super::deadlines::Deadlines;
use super::prepare::now_millis;
use super::program::{Next, Status, take_status};
use super::tree::Tree;

/// Which of the two outputs is standard error.
const STDERR: usize = 1;

/// Everything the shim owns while the program runs.
#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(super) shim: ShimFile,
    /// What the launch's folder says of it; its end is still to be told.
    pub(super) file: LaunchFile,
    pub(super) attempt_dir: PathBuf,
    pub(super) kill_grace: Duration,
    pub(super) deadlines: Deadlines,
    pub(super) signals: SignalFd,
    pub(super) status: Option<OwnedFd>,
    pub(super) tree: Tree,
    /// Standard output, then standard error.
    pub(super) outputs: [Capture; 2],
    pub(super) control: Control,
    pub(super) listener: Option<ListenerProcess>,
    /// Requests without an end, and whether the answer of each has begun.
    pub(super) requests: BTreeMap<u64, bool>,
    pub(super) agent_pid: Option<i32>,
    pub(super) program_end: Option<Status>,
    pub(super) ending: Option<Ending>,
}

/// The kill ladder, once it has begun.
#[derive(Debug)]
pub(super) struct Ending {
    reason: ExitReason,
    detail: Option<String>,
    kill_at: Instant,
    killed: bool,
}

/// What a turn of the loop has to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Signals,
    Status,
    Output(usize),
    Listener,
    Control,
}

impl Supervisor {
    pub(crate) fn shim(&self) -> &ShimFile {
        &self.shim
    }

    /// Watches until nothing of the program is left, then writes its end; the result is the shim's exit code.
    pub(crate) fn run(mut self) -> i32 {
        while !self.tree.is_empty() {
            for source in self.wait() {
                self.attend(source);
            }
            self.climb_ladder(Instant::now());
        }
        self.finish()
    }

    fn wait(&self) -> Vec<Source> {
        let mut watched = vec![(self.signals.as_fd(), Source::Signals, false)];
        watched.extend(self.status.as_ref().map(|channel| (channel.as_fd(), Source::Status, false)));
        for (index, output) in self.outputs.iter().enumerate() {
            watched.extend(output.pipe().map(|pipe| (pipe, Source::Output(index), false)));
        }
        watched.extend(self.listener.as_ref().map(|listener| (listener.reports(), Source::Listener, false)));
        watched.extend(self.control.descriptors().map(|(each, writes)| (each, Source::Control, writes)));
        let flags = |writes| if writes { PollFlags::POLLIN | PollFlags::POLLOUT } else { PollFlags::POLLIN };
        let mut polled: Vec<_> = watched.iter().map(|(each, _, writes)| PollFd::new(*each, flags(*writes))).collect();
        if poll(&mut polled, self.patience()).is_err() {
            return Vec::new();
        }
        let ready = |each: &PollFd<'_>| each.revents().is_some_and(|events| !events.is_empty());
        let mut sources: Vec<_> =
            polled.iter().zip(&watched).filter(|(each, _)| ready(each)).map(|(_, (_, source, _))| *source).collect();
        sources.dedup();
        sources
    }

    /// How long nothing has to be done unless something happens.
    fn patience(&self) -> PollTimeout {
        let now = Instant::now();
        let next = match &self.ending {
            Some(ending) if ending.killed => None,
            Some(ending) => Some(ending.kill_at),
            None => self.deadlines.next(now),
        };
        let Some(next) = next else { return PollTimeout::NONE };
        // Rounded up: waking a moment too early would spin until the limit.
        let wait = next.saturating_duration_since(now).saturating_add(Duration::from_millis(1));
        PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
    }

    fn attend(&mut self, source: Source) {
        match source {
            Source::Signals => self.take_signals(),
            Source::Status => self.take_statuses(),
            Source::Output(index) => {
                if self.outputs[index].drain() > 0 {
                    match index {
                        STDERR => self.deadlines.note_complaint(Instant::now()),
                        _ => self.deadlines.note_activity(Instant::now()),
                    }
                    self.announce_output(true);
                }
            }
            Source::Listener => self.take_reports(),
            Source::Control => {
                let state = self.state();
                for command in self.control.receive(|| state.clone()) {
                    if let Command::Kill { reason } = command {
                        self.begin_ending(ExitReason::Killed, Some(reason));
                    }
                }
                self.announce_output(false);
            }
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            if i32::try_from(signal.ssi_signo) == Ok(Signal::SIGTERM as i32) {
                self.begin_ending(ExitReason::ShimTerminated, None);
            }
        }
        let end = self.tree.reap();
        self.take_statuses();
        // A failure that the child reported says more than its exit code.
        self.program_end = self.program_end.take().or(end);
    }

    fn take_statuses(&mut self) {
        while let Some(channel) = &self.status {
            match take_status(channel) {
                Next::Status(Status::Started(pid)) => self.agent_pid = Some(pid),
                Next::Status(end) => self.program_end = self.program_end.take().or(Some(end)),
                Next::Nothing => break,
                // A closed channel is readable for ever: it must not be watched any longer.
                Next::Closed => self.status = None,
            }
        }
    }

    fn take_reports(&mut self) {
        while let Some(report) = self.listener.as_mut().and_then(ListenerProcess::take_report) {
            let now = Instant::now();
            let event = match report {
                Report::Started(id) => {
                    self.requests.insert(id, false);
                    Some(Event::RequestStarted { id })
                }
                Report::Begun(id) => {
                    self.requests.insert(id, true);
                    Some(Event::AnswerBegun { id })
                }
                Report::Broken(id) => {
                    self.requests.insert(id, false);
                    Some(Event::AnswerLost { id })
                }
                Report::Ended(id) => {
                    self.requests.remove(&id);
                    Some(Event::RequestEnded { id })
                }
                Report::Traffic => None,
                Report::Gone => {
                    if let Some(listener) = self.listener.take() {
                        listener.end();
                    }
                    self.begin_ending(ExitReason::ListenerLost, None);
                    None
                }
            };
            // Released before and held after: the moment of a report always counts as activity.
            self.deadlines.set_held(false, now);
            self.deadlines.note_activity(now);
            self.deadlines.set_held(self.requests.values().any(|begun| !begun), now);
            if let Some(event) = event {
                self.control.announce(&event);
            }
        }
    }

    fn begin_ending(&mut self, reason: ExitReason, detail: Option<String>) {
        if self.ending.is_some() || self.program_end.is_some() {
            return;
        }
        let kill_at = Instant::now() + self.kill_grace;
        self.ending = Some(Ending { reason, detail, kill_at, killed: false });
        self.tree.terminate();
    }

    /// Strikes limits, and kills when asking was in vain or when the program has left others behind.
    fn climb_ladder(&mut self, now: Instant) {
        if self.tree.is_empty() {
            return;
        }
        if self.ending.is_none()
            && self.program_end.is_none()
            && let Some(kind) = self.deadlines.struck(now)
        {
            self.control.announce(&Event::Timeout { kind });
            self.begin_ending(kind.into(), None);
        }
        let overdue = self.ending.as_ref().is_some_and(|ending| ending.kill_at <= now);
        if overdue || self.program_end.is_some() {
            if let Some(ending) = &mut self.ending {
                ending.killed = true;
            }
            self.tree.kill();
        }
    }

    fn announce_output(&mut self, changed: bool) {
        let [stdout_bytes, stderr_bytes] = self.outputs.each_ref().map(Capture::seen);
        self.control.announce_output(&Event::Output { stdout_bytes, stderr_bytes }, changed);
    }

    fn state(&self) -> Event {
        let [stdout_bytes, stderr_bytes] = self.outputs.each_ref().map(Capture::seen);
        let requests = self.requests.iter().map(|(id, begun)| OpenRequest { id: *id, answer_begun: *begun });
        Event::State(Box::new(ShimState {
            shim: self.shim.clone(),
            agent_pid: self.agent_pid,
            stdout_bytes,
            stderr_bytes,
            requests: requests.collect(),
            ending: self.ending.is_some(),
        }))
    }

    fn finish(mut self) -> i32 {
        if let Some(listener) = self.listener.take() {
            listener.end();
        }
        for output in &mut self.outputs {
            output.finish();
        }
        let state = self.state();
        let record = self.record();
        let written = self.file.ended(&record);
        self.control.close(&state, &Event::Exited(record));
        match written {
            Ok(()) => 0,
            Err(error) => {
                files::log(&self.attempt_dir, &error);
                1
            }
        }
    }

    fn record(&mut self) -> ExitRecord {
        let (mut reason, mut detail) = (ExitReason::Exited, None);
        if let Some(ending) = self.ending.take() {
            (reason, detail) = (ending.reason, ending.detail);
        }
        let (code, signal) = match self.program_end.take() {
            Some(Status::Exited(code)) => (Some(code), None),
            Some(Status::Signaled(signal)) => (None, Some(signal)),
            Some(Status::Failed(why)) => {
                (reason, detail) = (ExitReason::LaunchFailed, Some(why));
                (None, None)
            }
            // The first process of the namespace was killed, and the program with it, before it could tell.
            Some(Status::Started(_)) | None => (None, Some(Signal::SIGKILL as i32)),
        };
        let [stdout_bytes, stderr_bytes] = self.outputs.each_ref().map(Capture::seen);
        let capture_error = self.outputs.iter().find_map(Capture::failure).map(str::to_owned);
        let (started_at, ended_at) = (self.shim.started_at, now_millis());
        ExitRecord { code, signal, reason, detail, started_at, ended_at, stdout_bytes, stderr_bytes, capture_error }
    }
}
