//! Binding the listeners, on loopback and in the file system only.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::Error;

/// Listens on a loopback address.
pub(super) async fn tcp(addr: SocketAddr) -> Result<TcpListener, Error> {
    if !addr.ip().is_loopback() {
        return Err(Error::NotLoopback(addr));
    }
    TcpListener::bind(addr).await.map_err(|source| Error::Bind { addr, source })
}

/// Listens on a socket that only this user can open.
pub(super) async fn unix(path: &Path) -> Result<UnixListener, Error> {
    let fail = |source| Error::BindUnix { path: path.to_owned(), source };
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path).await => {
            fs::remove_file(path).map_err(fail)?;
            UnixListener::bind(path)
        }
        bound => bound,
    };
    let listener = listener.map_err(fail)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(fail)?;
    Ok(listener)
}

/// Whether the file is a socket whose server has ended.
async fn is_abandoned(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    is_socket && UnixStream::connect(path).await.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

/// Waits out a refused accept: the process is out of file descriptors, which only time or an end of answers cures.
pub(super) async fn after_refused_accept(error: &io::Error) {
    tracing::warn!(%error, "a connection cannot be accepted");
    tokio::time::sleep(Duration::from_millis(50)).await;
}
