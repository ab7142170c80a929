//! What a gateway is built from.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_journal::Ledger;
use rustls::pki_types::CertificateDer;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Gateway, Shared, Timeouts, listen};
use crate::Error;
use crate::admission::Admission;
use crate::client::{self, Roots};
use crate::stage::account::Accounts;
use crate::stage::backlog::Backlog;
use crate::upstream::Upstream;

/// The longest request body that is taken, unless set: twice what the largest provider takes.
const REQUEST_BYTES_MAX: usize = 64 << 20;
/// How long answers under way may take to end after a shutdown, unless set.
const GRACE: Duration = Duration::from_secs(10);

/// Describes a [`Gateway`]; upstreams, admission, ledger and one listener must be given.
#[derive(Default)]
pub struct Builder {
    upstreams: Vec<Upstream>,
    admission: Option<Arc<dyn Admission>>,
    ledger: Option<Ledger>,
    unix: Option<PathBuf>,
    tcp: Option<SocketAddr>,
    roots: Roots,
    timeouts: Timeouts,
    request_bytes_max: Option<usize>,
    grace: Option<Duration>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("upstreams", &self.upstreams)
            .field("tcp", &self.tcp)
            .field("unix", &self.unix)
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// The accounts that may be granted.
    #[must_use]
    pub fn upstreams(mut self, upstreams: Vec<Upstream>) -> Self {
        self.upstreams = upstreams;
        self
    }

    /// Who says which requests may go.
    #[must_use]
    pub fn admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Where exchanges are kept.
    #[must_use]
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// Listens on a Unix socket that only this user can open; a socket that nobody serves any more is replaced.
    #[must_use]
    pub fn bind_unix(mut self, path: impl AsRef<Path>) -> Self {
        self.unix = Some(path.as_ref().to_owned());
        self
    }

    /// Listens on a loopback address; port 0 lets the system choose.
    #[must_use]
    pub fn bind_tcp(mut self, addr: SocketAddr) -> Self {
        self.tcp = Some(addr);
        self
    }

    /// Trusts these root certificates beside the system's own.
    #[must_use]
    pub fn extra_roots(mut self, roots: Vec<CertificateDer<'static>>) -> Self {
        self.roots = Roots { extra: roots };
        self
    }

    /// How long providers are waited for.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// The longest request body that is taken, in bytes.
    #[must_use]
    pub fn request_bytes_max(mut self, bytes: usize) -> Self {
        self.request_bytes_max = Some(bytes);
        self
    }

    /// How long answers under way may take to end after a shutdown.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// Checks the description and binds the listeners. Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// [`Error::Incomplete`], [`Error::DuplicateAccount`], [`Error::NotLoopback`], [`Error::Roots`] for a description
    /// that cannot be served; [`Error::Bind`] and [`Error::BindUnix`] when an address is taken.
    pub async fn build(self) -> Result<Gateway, Error> {
        let admission = self.admission.ok_or(Error::Incomplete("admission"))?;
        let ledger = self.ledger.ok_or(Error::Incomplete("ledger"))?;
        if self.tcp.is_none() && self.unix.is_none() {
            return Err(Error::Incomplete("listener"));
        }
        let needs_tls = self.upstreams.iter().any(Upstream::is_tls);
        let mut accounts = Accounts::new();
        for upstream in self.upstreams {
            let account = upstream.account.clone();
            if accounts.insert(account.clone(), Arc::new(upstream)).is_some() {
                return Err(Error::DuplicateAccount(account));
            }
        }
        let client = client::build(&self.roots, needs_tls, self.timeouts.connect)?;
        let tcp = match self.tcp {
            Some(addr) => Some(listen::tcp(addr).await?),
            None => None,
        };
        let unix = match &self.unix {
            Some(path) => Some(listen::unix(path).await?),
            None => None,
        };
        let shared = Arc::new(Shared {
            accounts,
            admission,
            ledger,
            client,
            timeouts: self.timeouts,
            request_bytes_max: self.request_bytes_max.unwrap_or(REQUEST_BYTES_MAX),
            tasks: TaskTracker::new(),
            backlog: Backlog::default(),
            stopping: CancellationToken::new(),
        });
        Ok(Gateway { shared, tcp, unix, grace: self.grace.unwrap_or(GRACE) })
    }
}
