//! A gate at which an agent's command stops until the test has seen it there: a named pipe, opened on both sides.

use std::fs::{File, OpenOptions, create_dir_all};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long an agent may take to get to a gate: the slowest needs 10 s for a start on an idle machine.
pub(crate) const ARRIVAL_MAX: Duration = Duration::from_secs(150);

pub(crate) struct Gate {
    path: PathBuf,
    reached: mpsc::Receiver<File>,
}

impl Gate {
    /// Makes a gate in a folder that agents can read.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        create_dir_all(folder).unwrap();
        let path = folder.join(name);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let (sender, reached) = mpsc::channel();
        let opened = path.clone();
        thread::spawn(move || {
            // This waits until somebody reads.
            let file = OpenOptions::new().write(true).open(opened).unwrap();
            sender.send(file)
        });
        Self { path, reached }
    }

    /// The command that stops at it, the first time it is run for a task.
    pub(crate) fn command(&self) -> String {
        let name = self.path.file_name().unwrap().to_string_lossy();
        format!("test -e $TMPDIR/{name} || {{ touch $TMPDIR/{name}; cat {}; }}", self.path.display())
    }

    /// Waits until a command stands at it; dropping the answer lets the command pass.
    pub(crate) fn reached(&self) -> File {
        self.reached.recv_timeout(ARRIVAL_MAX).expect("the agent's command gets to the gate")
    }
}
