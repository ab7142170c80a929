//! The gateway as it stands alone: one account, one key, the ledger on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt, ready};
use outlast_core::AccountId;
use outlast_gateway::{
    Admission, Ask, Credentials, Denied, Gateway, Grant, Provider, Refusal, Ruling, Secret, Settled, Shape, Source,
    Upstream,
};
use outlast_journal::{Journal, Ledger};
use tokio::io::AsyncReadExt;

use crate::Outcome;

pub(crate) fn main(folder: &Path, upstream: &str) -> Outcome<()> {
    // One thread for all requests, as nginx has one worker here; the ledger writes on its own.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let journal = Journal::open(folder.join("journal.db"))?;
        let (ledger, _) = Ledger::open(&journal)?;
        let credentials = Credentials::new(Shape::Key, Source::Text(Secret::new("upstream-key")));
        let account = Upstream::new(AccountId::from("bench"), Provider::Anthropic, upstream, credentials)?;
        let gateway = Gateway::builder()
            .upstreams(vec![account])
            .admission(Arc::new(Everyone::default()))
            .ledger(ledger)
            .bind_tcp("127.0.0.1:0".parse()?)
            .build()
            .await?;
        println!("{}", gateway.tcp_addr().ok_or("not listening")?);
        let input_ends = async {
            drop(tokio::io::stdin().read(&mut [0_u8; 1]).await);
        };
        gateway.serve(input_ends).await;
        Ok(())
    })
}

/// Lets every request with the right key pass.
#[derive(Debug, Default)]
struct Everyone {
    exchanges: AtomicU64,
}

impl Admission for Everyone {
    fn admit(&self, ask: Ask) -> BoxFuture<'_, Result<Grant, Denied>> {
        if ask.key != "bench-key" {
            return ready(Err(Denied::UnknownKey)).boxed();
        }
        let number = self.exchanges.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Grant {
            exchange_id: format!("x{number}"),
            attempt: None,
            account: AccountId::from("bench"),
            turn: 0,
        }))
        .boxed()
    }

    fn settle(&self, _settled: Settled) {}

    fn refused(&self, _refusal: Refusal) -> BoxFuture<'_, Ruling> {
        ready(Ruling::Pass).boxed()
    }
}
