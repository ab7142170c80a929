//! The engine as a whole: opened over a home and a repository, it goes on with whatever the journal says is undone.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_config::Hours;
use outlast_core::admit::Command;
use outlast_core::driver::Driver;
use outlast_core::pace::Limits;
use outlast_core::{AccountId, Core, RunId};
use outlast_gateway::{Dialect, Gateway, Upstream, reckon};
use outlast_git::UserRepo;
use outlast_journal::{Journal, JournalReader, Ledger};
use outlast_process::{Spawner, socket};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use crate::admission::{EngineAdmission, ledger_row};
use crate::allowance::{Allowance, Terms};
use crate::api;
use crate::asks::{AccountInfo, Asks};
use crate::context::{Context, Trouble};
use crate::effects::EngineEffects;
use crate::error::Error;
use crate::held_up;
use crate::home::{GATEWAY_SOCKET, Holder, Home, HomeLock, RepoHome};
use crate::keys::RunSecret;
use crate::memory;
use crate::passed::PassedRefusals;
use crate::repositories::Repositories;
use crate::results_again;
use crate::room;
use crate::state_loop::{LoopHandle, Running, is_behind, now, run, try_all};
use crate::store::{JournalStore, replay};

/// How long answers under way may take to end when the engine leaves by itself.
const GATEWAY_GRACE: Duration = Duration::from_secs(2);

/// What an engine is opened with.
pub struct Setup {
    /// Where state is kept.
    pub home: Home,
    /// The user's repository; none for a gateway alone.
    pub repository: Option<UserRepo>,
    /// The process that forks shims.
    pub spawner: Spawner,
    /// Who may be billed, in the user's order of preference.
    pub accounts: Vec<Account>,
    /// Whether tasks are started: a command that only lands or parks something leaves that to the next `run` or `resume`.
    pub starts: bool,
    /// How full the machine's memory may be, in percent, before agents that wait are parked.
    pub memory_percent: u32,
    /// For a gateway alone: where it listens, and the key that its clients show.
    pub clients: Option<(SocketAddr, String)>,
}

/// An account at a provider.
#[derive(Debug)]
pub struct Account {
    /// Where its requests go and what they are paid with.
    pub upstream: Upstream,
    /// Whether it is a subscription's login, and not a key.
    pub login: bool,
    /// The models that it is for; empty means any. See [`outlast_config::is_for_model`].
    pub models: Vec<String>,
    /// What may be asked of it.
    pub limits: Limits,
    /// The hours in which it may be used; always where this is absent.
    pub hours: Option<Hours>,
}

/// A living engine. Dropping it without [`Engine::close`] is like a crash: everything goes on with the next one.
pub struct Engine {
    handle: LoopHandle,
    context: Option<Arc<Context>>,
    home: RepoHome,
    gateway_addr: Option<SocketAddr>,
    leaving: CancellationToken,
    gateway: tokio::task::JoinHandle<usize>,
    the_loop: Running,
    holder: Holder,
    // Released last: whoever takes it next finds nothing of this engine at work.
    lock: HomeLock,
}

impl Engine {
    /// Takes the home's lock, replays the journal, and goes on with what it says is undone.
    ///
    /// # Errors
    /// [`Error::EngineRunning`]; where the journal is damaged or cannot be written; where a socket cannot be bound.
    pub async fn open(setup: Setup) -> Result<Self, Error> {
        let Setup { home, repository, spawner, accounts, starts, memory_percent, clients } = setup;
        let place = repository.as_ref().map_or_else(|| home.gateway(), |r| r.common_dir().to_owned());
        if let Some(repository) = &repository {
            if starts {
                room::check_file_size()?;
            }
            home.keep_apart(repository)?;
        }
        let mut lock = home.lock(&place)?;
        let home = home.repository(&place);
        home.create()?;
        // What the engine before this one tried is tried anew.
        held_up::save(&home.tried(), &[]).map_err(|source| Error::at(&home.tried(), source))?;
        let journal = Journal::open(home.journal())?;
        let reader = journal.reader()?;
        let core = replay(&reader)?;
        let ledger = ledger(&journal, &accounts)?;
        // Whoever starts an engine has done something about it, or hears of it again.
        let shut = core.accounts.keys().filter(|account| core.is_shut(account)).cloned().map(Command::OpenAccount);
        let is_late = reader.last_at()?.is_some_and(|last| is_behind(now(), last));
        let late = if is_late { try_all(&core) } else { Vec::new() };
        let first = uncounted(&core, &reader)?.into_iter().chain(shut).chain(late).collect();

        let (handle, receiver) = LoopHandle::channel(home.root());
        let infos: Vec<AccountInfo> = accounts.iter().map(info).collect();
        let (address, client_key) = clients.map_or((None, None), |(address, key)| (Some(address), Some(key)));
        let secrets = home.clone();
        let terms = accounts.iter().map(terms).collect();
        let allowance = Allowance::new(terms, jiff::tz::TimeZone::system(), &core);
        let secret = move |run: &RunId| RunSecret::load_or_create(&secrets.run_secret(run)).ok();
        let passed = Arc::new(PassedRefusals::default());
        let asks = Asks::new(infos.clone(), allowance, client_key, Arc::clone(&passed), secret);

        let upstreams = accounts.into_iter().map(|account| account.upstream).collect();
        let context = match repository {
            Some(repository) => {
                let git = Arc::new(Repositories::open(&home, repository)?);
                results_again::mend(&git, &core);
                let passed = Arc::clone(&passed);
                Some(Arc::new(Context::new(handle.clone(), home.clone(), git, spawner, infos, passed)))
            }
            None => None,
        };
        let admission = EngineAdmission::new(handle.clone(), passed, context.clone(), &home);
        let gateway = bind(&home, upstreams, admission, ledger, address).await?;
        let gateway_addr = gateway.tcp_addr();
        // One that only lands has no answers to price.
        if starts && context.is_some() {
            gateway.warm();
        }

        let leaving = CancellationToken::new();
        let token = api::token()?;
        let api = api::serve(handle.clone(), &token, leaving.clone()).await?;
        let holder = Holder {
            pid: std::process::id(),
            repository: place,
            api: Some(api.to_string()),
            token: Some(token),
            ends_with: None,
            is_gateway: context.is_none(),
        };
        lock.describe(&holder)?;
        tracing::info!(version = env!("CARGO_PKG_VERSION"), repository = %holder.repository.display(), "an engine begins");

        memory::watch(context.as_ref().filter(|_| starts), memory_percent, &leaving);
        let leave = leaving.clone();
        let gateway = tokio::spawn(gateway.serve(async move { leave.cancelled().await }));
        let store = JournalStore::new(journal, home.journal(), handle.records());
        // On a thread of its own the loop may wait; among the tasks of a gateway alone it would hold up their answers.
        let store = if context.is_some() { store.holding(handle.held_up().clone()) } else { store };
        let driver = Driver::new(core, store, EngineEffects::new(context.clone(), Handle::current()));
        let driver = if starts { driver } else { driver.without_starts() };
        let work = run(driver, asks, receiver, first);
        let the_loop = if context.is_some() { Running::on_a_thread(work)? } else { Running::as_a_task(work) };
        Ok(Self { handle, context, home, gateway_addr, leaving, gateway, the_loop, holder, lock })
    }

    /// The handle on its loop.
    pub const fn handle(&self) -> &LoopHandle {
        &self.handle
    }

    /// Says in the lock file that this engine ends with a run: whoever has it stopped can wait for that.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn ends_with(&mut self, run: &RunId) -> Result<(), Error> {
        self.holder.ends_with = Some(run.to_string());
        self.lock.describe(&self.holder)
    }

    /// Where its repository's state is kept.
    pub const fn home(&self) -> &RepoHome {
        &self.home
    }

    /// Where a gateway alone listens.
    pub const fn gateway_addr(&self) -> Option<SocketAddr> {
        self.gateway_addr
    }

    pub(crate) fn context(&self) -> Result<&Arc<Context>, Error> {
        self.context.as_ref().ok_or_else(|| Error::Internal("a gateway alone has no repository".to_owned()))
    }

    /// Whatever holds an operation up, from now on.
    pub fn troubles(&self) -> Option<broadcast::Receiver<Trouble>> {
        self.context.as_ref().map(|context| context.troubles())
    }

    /// Whether its loop has ended by itself, which it only does when the journal takes no more records.
    pub fn is_over(&self) -> bool {
        self.the_loop.is_over()
    }

    /// Lets go: living agents go on under their shims, their requests wait for the next engine, which can begin when
    /// this process has ended. Commands of plans are ended: the next engine runs them again.
    ///
    /// # Errors
    /// What ended the loop, where it did not end by itself.
    pub async fn close(self) -> Result<(), Error> {
        self.handle.held_up().leave();
        // A loop that has ended by itself has let go already.
        drop(self.handle.leave(|_| true).await);
        self.handle.at_work().end().await;
        self.leaving.cancel();
        drop(self.gateway.await);
        self.handle.stop();
        let ended = self.the_loop.ended().await;
        self.lock.keep_to_the_end();
        ended
    }
}

/// A new key for the clients of a gateway alone.
///
/// # Errors
/// Where the system has no random bytes.
pub fn client_key() -> Result<String, Error> {
    Ok(format!("sk-outlast-{}", api::token()?))
}

/// What puts on record whatever the ledger has and the records have not: an engine before this one was killed in between.
fn uncounted(core: &Core, reader: &JournalReader) -> Result<Vec<Command>, Error> {
    let mut rows = Vec::new();
    let last = reader.exchanges_after(core.ledger_row(), |row| rows.extend(ledger_row(row)))?;
    Ok(core.recount(rows, last))
}

/// The ledger, once it holds what an engine before this one has left.
fn ledger(journal: &Journal, accounts: &[Account]) -> Result<Ledger, Error> {
    let upstreams = || accounts.iter().map(|account| &account.upstream);
    let (ledger, recovery) = Ledger::open_with(journal, |unfinished| reckon(upstreams(), unfinished))?;
    if !recovery.kept.is_empty() {
        tracing::info!(exchanges = recovery.kept.len(), "what an engine before this one left is in the ledger now");
    }
    for path in recovery.unreadable {
        tracing::error!(path = %path.display(), "an exchange of an engine before this one cannot be read");
    }
    Ok(ledger)
}

pub(crate) fn info(account: &Account) -> AccountInfo {
    let provider = account.upstream.provider();
    let dialects = Dialect::ALL.into_iter().filter(|&dialect| provider.speaks(dialect)).collect();
    let id = account.upstream.account().clone();
    AccountInfo { id, dialects, login: account.login, models: account.models.clone() }
}

fn terms(account: &Account) -> (AccountId, Terms) {
    let Account { upstream, limits, hours, .. } = account;
    (upstream.account().clone(), Terms { tariff: upstream.tariff(), limits: *limits, hours: *hours })
}

async fn bind(
    home: &RepoHome,
    upstreams: Vec<Upstream>,
    admission: EngineAdmission,
    ledger: Ledger,
    address: Option<SocketAddr>,
) -> Result<Gateway, Error> {
    let builder =
        Gateway::builder().upstreams(upstreams).admission(Arc::new(admission)).ledger(ledger).grace(GATEWAY_GRACE);
    let Some(address) = address else {
        let folder = home.sockets();
        let opened = socket::folder(&folder).map_err(|source| Error::at(&folder, source))?;
        return Ok(builder.bind_unix(socket::within(&opened, GATEWAY_SOCKET)).build().await?);
    };
    Ok(builder.bind_tcp(address).build().await?)
}
