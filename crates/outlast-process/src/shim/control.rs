//! The shim's side of the control socket: any number of engines one after the other, and a few at once.
//!
//! A client that does not read never delays the shim: it is told the newest totals only, and dropped when it falls far behind.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::sys::stat::{Mode, umask};

use crate::error::{Error, Result};
use crate::files;
use crate::protocol::{Command, Event};
use crate::socket;
use crate::sys::procfs;

const CLIENTS_MAX: usize = 16;
const BACKLOG_BYTES_MAX: usize = 256 * 1024;
const COMMAND_BYTES_MAX: usize = 64 * 1024;
/// How long a leaving shim waits for a client to take its last lines.
const FAREWELL: Duration = Duration::from_secs(1);

/// The listening socket and its clients.
#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    /// New output totals are waiting to be said.
    output_due: bool,
    gone: bool,
}

impl Control {
    /// Listens in `attempt_dir` (mode 0600), in which no earlier shim has left its socket.
    pub(crate) fn bind(attempt_dir: &Path) -> Result<Self> {
        let listen = || -> io::Result<UnixListener> {
            let folder = socket::folder(attempt_dir)?;
            let previous = umask(Mode::from_bits_truncate(0o177));
            let bound = UnixListener::bind(socket::within(&folder, files::CONTROL));
            umask(previous);
            let listener = bound?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(Error::file("listen in", attempt_dir))?;
        Ok(Self { listener, clients: Vec::new() })
    }

    /// What to wait on: the listener, then every client with whether it has something to be written.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = (BorrowedFd<'_>, bool)> {
        let clients = self.clients.iter().map(|client| (client.stream.as_fd(), !client.outgoing.is_empty()));
        std::iter::once((self.listener.as_fd(), false)).chain(clients)
    }

    /// Takes new connections, greeting each with `state`, and returns the commands of all.
    pub(crate) fn receive(&mut self, state: impl Fn() -> Event) -> Vec<Command> {
        self.accept(&state);
        let mut commands = Vec::new();
        for client in &mut self.clients {
            for command in client.read() {
                if command == Command::Status {
                    client.say(&state());
                }
                commands.push(command);
            }
        }
        self.flush();
        commands
    }

    /// Tells everyone.
    pub(crate) fn announce(&mut self, event: &Event) {
        for client in &mut self.clients {
            client.say(event);
        }
        self.flush();
    }

    /// Tells everyone the output totals, as soon as each has taken what was said before.
    pub(crate) fn announce_output(&mut self, totals: &Event, changed: bool) {
        for client in &mut self.clients {
            client.output_due |= changed;
            if client.output_due && client.outgoing.is_empty() {
                client.output_due = false;
                client.say(totals);
            }
        }
        self.flush();
    }

    /// Says the last line, to those too who have just come, and waits a moment for slow readers.
    pub(crate) fn close(mut self, state: &Event, last: &Event) {
        self.accept(&|| state.clone());
        for client in &mut self.clients {
            client.say(last);
            let told =
                client.stream.set_nonblocking(false).and_then(|()| client.stream.set_write_timeout(Some(FAREWELL)));
            if told.is_ok() && !client.gone {
                drop(client.stream.write_all(&client.outgoing));
            }
        }
    }

    fn accept(&mut self, state: &impl Fn() -> Event) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX && is_outside(&stream) && stream.set_nonblocking(true).is_ok() {
                let mut client =
                    Client { stream, incoming: Vec::new(), outgoing: Vec::new(), output_due: false, gone: false };
                client.say(&state());
                self.clients.push(client);
            }
        }
    }

    fn flush(&mut self) {
        for client in &mut self.clients {
            client.write();
        }
        self.clients.retain(|client| !client.gone);
    }
}

impl Client {
    fn say(&mut self, event: &Event) {
        if serde_json::to_writer(&mut self.outgoing, event).is_err() {
            self.gone = true;
        }
        self.outgoing.push(b'\n');
        self.gone |= self.outgoing.len() > BACKLOG_BYTES_MAX;
    }

    fn write(&mut self) {
        while !self.outgoing.is_empty() && !self.gone {
            match self.stream.write(&self.outgoing) {
                Ok(length) => drop(self.outgoing.drain(..length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => self.gone = error.kind() != ErrorKind::Interrupted,
            }
        }
    }

    fn read(&mut self) -> Vec<Command> {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    self.gone = true;
                    break;
                }
                Ok(length) => self.incoming.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => {
                    self.gone = error.kind() != ErrorKind::Interrupted;
                    if self.gone {
                        break;
                    }
                }
            }
            if self.incoming.len() > COMMAND_BYTES_MAX {
                self.gone = true;
                break;
            }
        }
        self.take_commands()
    }

    fn take_commands(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        while let Some(end) = self.incoming.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.incoming.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(command) => commands.push(command),
                // Whoever speaks another language is better cut off than half understood.
                Err(_) => self.gone = true,
            }
        }
        commands
    }
}

/// Whether the peer is none of the programs in our namespaces: an agent must not command a shim.
///
/// The number of nested pid namespaces is readable for any process, hidden memory or not. Under the sub-reaper alone agents
/// cannot be told from engines of the same user.
fn is_outside(stream: &UnixStream) -> bool {
    let depth = |pid: i32| procfs::namespace_depth(pid);
    let peer = getsockopt(stream, PeerCredentials).map_err(io::Error::from).and_then(|peer| depth(peer.pid()));
    match (peer, depth(std::process::id().cast_signed())) {
        (Ok(peer), Ok(own)) => peer <= own,
        // The peer is gone, or there is no such listing.
        _ => false,
    }
}
