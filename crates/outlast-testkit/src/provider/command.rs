//! The provider as a program: `outlast __provider --script FILE --addr 127.0.0.1:0 --log FILE`.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use super::{Provider, Script};
use crate::error::Attempt;
use crate::{Error, Result};

/// A scripted provider of model answers, on loopback.
#[derive(Debug, Parser)]
#[command(name = "provider", about = "A scripted provider of model answers, on loopback")]
struct Options {
    /// The script (TOML or JSON); without one, only scripts inside goals are answered
    #[arg(long)]
    script: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    addr: SocketAddr,
    /// Appends each finished exchange as a JSON line
    #[arg(long)]
    log: Option<PathBuf>,
}

/// Runs the provider until stdin closes or SIGTERM comes. Prints one JSON line with its address when it is ready.
///
/// `args` are the arguments after the subcommand's name. Exit code 2 for usage, 1 for anything else that fails.
pub fn main(args: &[std::ffi::OsString]) -> ExitCode {
    let options = match Options::try_parse_from(std::iter::once("provider".into()).chain(args.iter().cloned())) {
        Ok(options) => options,
        Err(error) => return crate::usage(&error),
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("provider: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let script = options.script.as_deref().map(Script::load).transpose()?.unwrap_or_default();
    let log = match &options.log {
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            Some(file.attempting(|| format!("opening {}", path.display()))?)
        }
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.attempting(|| "starting the runtime".to_owned())?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).attempting(|| "waiting for SIGTERM".to_owned())?;
        let running = Provider::start_logged(script, options.addr, log).await?;
        println!("{}", serde_json::json!({"addr": running.addr, "url": running.url()}));
        tokio::select! {
            _ = terminated.recv() => {}
            () = end_of_stdin() => {}
        }
        Ok(())
    })
}

/// Waits until whoever started the provider closes its stdin or dies.
async fn end_of_stdin() {
    let (ended, end) = tokio::sync::oneshot::channel();
    // A thread of its own: a read of stdin cannot be cancelled.
    std::thread::spawn(move || {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        // The receiver is gone once SIGTERM has come first.
        ended.send(()).unwrap_or_default();
    });
    end.await.unwrap_or_default();
}
