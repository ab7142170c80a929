//! Waiting for a Unix socket that is not there: the kernel tells when its folder changes, and a slow tick covers the rest.
//!
//! Folder watches are a scarce good of a user: a listener has one at most, and only while somebody waits.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::sync::watch;

use crate::sys::readiness;

/// The first wait after a change: a socket's file is there a moment before it listens.
const FIRST_WAIT: Duration = Duration::from_millis(20);
/// The tick when nothing changes, or when changes cannot be watched.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// One socket path and the shared watch on it.
#[derive(Debug)]
pub(super) struct Absence {
    folder: PathBuf,
    name: OsString,
    shared: Mutex<Weak<Changes>>,
}

/// Where changes are announced; `None` when they cannot be watched.
#[derive(Debug)]
struct Changes(Option<watch::Receiver<()>>);

/// One request's wait.
#[derive(Debug)]
pub(super) struct Vigil {
    changes: Option<watch::Receiver<()>>,
    /// Keeps the shared watch alive for others to join.
    _shared: Arc<Changes>,
    next_wait: Duration,
}

impl Absence {
    pub(super) fn new(socket: &Path) -> Self {
        let folder = socket.parent().unwrap_or(Path::new("/")).to_owned();
        let name = socket.file_name().unwrap_or_default().to_owned();
        Self { folder, name, shared: Mutex::new(Weak::new()) }
    }

    /// Joins the watch, or begins it.
    pub(super) fn begin(&self) -> Vigil {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = shared.upgrade().unwrap_or_else(|| {
            let changes = Arc::new(Changes(watch_folder(&self.folder, &self.name).ok()));
            *shared = Arc::downgrade(&changes);
            changes
        });
        Vigil { changes: changes.0.clone(), _shared: changes, next_wait: FIRST_WAIT }
    }
}

impl Vigil {
    /// From here on a change ends the next wait: called before each try, so that none falls between a try and its wait.
    pub(super) fn mark(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.mark_unchanged();
        }
    }

    /// Waits for a change since the mark, or for the tick.
    pub(super) async fn wait(&mut self) {
        let tick = tokio::time::sleep(self.next_wait);
        self.next_wait = (self.next_wait * 2).min(LONGEST_WAIT);
        let Some(changes) = &mut self.changes else { return tick.await };
        tokio::select! {
            () = tick => {}
            changed = changes.changed() => match changed {
                Ok(()) => self.next_wait = FIRST_WAIT,
                Err(_) => self.changes = None,
            },
        }
    }
}

fn watch_folder(folder: &Path, name: &OsStr) -> io::Result<watch::Receiver<()>> {
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
    let appears = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_ATTRIB;
    inotify.add_watch(folder, appears)?;
    let twin = inotify.as_fd().try_clone_to_owned()?;
    let watched = readiness::watch(twin)?;
    let (announce, changes) = watch::channel(());
    let name = name.to_owned();
    drop(tokio::spawn(async move {
        loop {
            tokio::select! {
                () = announce.closed() => return,
                ready = watched.readable() => {
                    let Ok(mut ready) = ready else { return };
                    ready.clear_ready();
                }
            }
            while let Ok(events) = inotify.read_events() {
                if events.iter().any(|event| event.name.as_deref() == Some(name.as_os_str())) {
                    announce.send_replace(());
                }
            }
        }
    }));
    Ok(changes)
}
