//! `outlast gateway`: the gateway alone, for any client that is given its address and key.

use std::time::Duration;

use outlast_api::{Diagnostic, ExitCode};
use outlast_engine::{Engine, Full, Setup, diagnostic, full};
use serde_json::json;

use crate::args::Gateway;
use crate::commands::{Given, print_json, say};
use crate::failure::Failure;
use crate::session::{accounts, block_on_one_thread};
use crate::signals::Signals;

pub(crate) fn perform(given: Given, gateway: &Gateway) -> Result<ExitCode, Failure> {
    if !gateway.listen.ip().is_loopback() {
        return Err(Diagnostic::error(
            "gateway/not-loopback",
            ExitCode::Usage,
            format!("{} is no loopback address", gateway.listen),
        )
        .because("whoever reaches the gateway and has its key spends your accounts")
        .fix("outlast gateway --listen 127.0.0.1:8080")
        .into());
    }
    let key = match &gateway.key_env {
        Some(name) => std::env::var(name).ok().filter(|key| !key.is_empty()).ok_or_else(|| {
            Failure::from(Diagnostic::error("gateway/no-key", ExitCode::Usage, format!("{name} is not set")))
        })?,
        None => outlast_engine::client_key()?,
    };
    let shown = gateway.key_env.is_none().then(|| key.clone());
    let listen = gateway.listen;
    let session = given.session()?;
    let accounts = accounts(&session.user)?;
    if accounts.is_empty() {
        return Err(Diagnostic::error("config/no-account", ExitCode::Plan, "no account is configured")
            .fix(format!("add [account.NAME] to {}", session.places.config.display()))
            .into());
    }
    let setup = Setup {
        home: session.places.home,
        repository: None,
        spawner: session.spawner,
        accounts,
        starts: false,
        memory_percent: 100,
        clients: Some((listen, key)),
    };
    block_on_one_thread(async move {
        let engine = Engine::open(setup).await.map_err(|error| of_a_gateway(&error))?;
        let address = engine.gateway_addr().map(|address| address.to_string()).unwrap_or_default();
        print_json(&json!({"schema": "outlast/gateway/v1", "address": address, "key": shown}))?;
        say(&format!("ANTHROPIC_BASE_URL=http://{address}  OPENAI_BASE_URL=http://{address}/v1"));
        let failed =
            |error: std::io::Error| Failure::from(Diagnostic::error("host/cannot", ExitCode::Host, error.to_string()));
        let mut signals = Signals::listen().map_err(failed)?;
        tokio::select! {
            _ = signals.next() => {}
            () = until_over(&engine) => {}
        }
        let over = engine.is_over();
        engine.close().await.map_err(|error| of_a_gateway(&error))?;
        Ok(if over { ExitCode::Host } else { ExitCode::Ok })
    })
}

/// How often it is looked whether the disk has room: nobody tells.
const LOOKED_AT: Duration = Duration::from_secs(2);

/// Tells of a full disk, on which requests wait, for as long as the engine goes on.
async fn until_over(engine: &Engine) {
    let folder = engine.home().root();
    let mut waits = false;
    while !engine.is_over() {
        let now = full(folder);
        let was = std::mem::replace(&mut waits, now.is_some());
        match (now, was) {
            (Some(Full { free, floor, .. }), false) => say(&format!(
                "the disk is full: {free} are free in {}; requests wait, and go on by themselves when {floor} are",
                folder.display()
            )),
            (None, true) => say("there is room again: requests go on"),
            _ => {}
        }
        tokio::time::sleep(LOOKED_AT).await;
    }
}

/// An engine that has no run is begun again, and goes on with none.
fn of_a_gateway(error: &outlast_engine::Error) -> Failure {
    let mut told = diagnostic(error);
    told.fix.iter_mut().for_each(|fix| *fix = fix.replace("outlast resume", "outlast gateway"));
    told.into()
}
