//! The listener process: one thread, one runtime, one task per connection of the program.

use std::convert::Infallible;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::sys::prctl;

use crate::error::{Error, Result};
use crate::spec::Listener;
use crate::sys::{fork, lifeline};

use super::exchange::Line;

/// Before accepting again when this process has no descriptor left.
const FULL_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the shim is gone; returns only on failure.
pub(super) fn run(listener: &Listener, socket: TcpListener, reports: OwnedFd) -> Error {
    match detach(&socket, &reports).and_then(|()| serve(listener, socket, reports)) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn detach(socket: &TcpListener, reports: &OwnedFd) -> Result<()> {
    fork::close_others(&[socket.as_fd(), reports.as_fd()]).map_err(Error::system("close descriptors"))?;
    prctl::set_name(c"outlast-listen").map_err(Error::system("name the process"))?;
    lifeline::follow_parent(reports).map_err(Error::system("follow the shim"))
}

fn serve(listener: &Listener, socket: TcpListener, reports: OwnedFd) -> Result<Infallible> {
    let failed = |error: std::io::Error| Error::Prepare { message: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
    runtime.block_on(async {
        socket.set_nonblocking(true).map_err(failed)?;
        let socket = tokio::net::TcpListener::from_std(socket).map_err(failed)?;
        let line = Arc::new(Line::new(listener, reports));
        loop {
            let Ok((stream, _)) = socket.accept().await else {
                // Out of descriptors: the program has too many connections open; those that end make room.
                tokio::time::sleep(FULL_PAUSE).await;
                continue;
            };
            // Frames of a streamed answer are small and urgent.
            drop(stream.set_nodelay(true));
            let line = Arc::clone(&line);
            drop(tokio::spawn(async move {
                let service = service_fn(|request| Arc::clone(&line).answer(request));
                let mut server = http1::Builder::new();
                server
                    .timer(TokioTimer::new())
                    .header_read_timeout(None)
                    .preserve_header_case(true)
                    .auto_date_header(false);
                // An error here is a program that hung up, or an answer that was cut on purpose.
                drop(server.serve_connection(TokioIo::new(stream), service).await);
            }));
        }
    })
}
