//! The engine's side of a shim's control socket.

use std::io::ErrorKind;
use std::path::Path;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::error::{Error, Result};
use crate::protocol::{Command, Event};
use crate::{files, socket};

/// How long what a shim says mostly is, in bytes: a connection to each is open for as long as its agent works.
const LINE_LEN: usize = 512;

/// A connection to one shim: what it says, and commands to it.
#[derive(Debug)]
pub struct ShimClient {
    events: Lines<BufReader<OwnedReadHalf>>,
    commands: OwnedWriteHalf,
}

impl ShimClient {
    /// Connects to the shim of an attempt's folder; the first event is [`Event::State`].
    ///
    /// # Errors
    /// [`Error::File`] when nobody listens there: the shim has left, or was killed.
    pub async fn connect(attempt_dir: &Path) -> Result<Self> {
        let failed = Error::file("connect to the shim in", attempt_dir);
        let connected = async {
            let folder = socket::folder(attempt_dir)?;
            UnixStream::connect(socket::within(&folder, files::CONTROL)).await
        };
        let stream = connected.await.map_err(failed)?;
        let (reader, commands) = stream.into_split();
        Ok(Self { events: BufReader::with_capacity(LINE_LEN, reader).lines(), commands })
    }

    /// The next event; `None` once the shim has left. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Control`] when the connection breaks or what is said is not understood.
    pub async fn next_event(&mut self) -> Result<Option<Event>> {
        let failed = |why: String| Error::Control { why };
        let line = match self.events.next_line().await {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            // A shim that leaves while a client knocks.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        serde_json::from_str(&line).map(Some).map_err(|error| failed(format!("{error} in {line:?}")))
    }

    /// Begins the kill ladder; [`Event::Exited`] follows when the tree is empty.
    ///
    /// # Errors
    /// [`Error::Control`] when the shim has left.
    pub async fn kill(&mut self, reason: &str) -> Result<()> {
        self.send(&Command::Kill { reason: reason.to_owned() }).await
    }

    /// Asks for an [`Event::State`].
    ///
    /// # Errors
    /// [`Error::Control`] when the shim has left.
    pub async fn request_status(&mut self) -> Result<()> {
        self.send(&Command::Status).await
    }

    async fn send(&mut self, command: &Command) -> Result<()> {
        let mut line = serde_json::to_vec(command).map_err(|error| Error::Control { why: error.to_string() })?;
        line.push(b'\n');
        self.commands.write_all(&line).await.map_err(|error| Error::Control { why: error.to_string() })
    }
}
