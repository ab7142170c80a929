//! Why a gateway cannot be built or cannot serve. What goes wrong with a single request is answered to its client.

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast_core::AccountId;

/// One variant per remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An account's address cannot be used: correct `base_url` in the user's configuration.
    #[error("account {account}: base_url {url}: {why}")]
    BaseUrl {
        /// The account.
        account: AccountId,
        /// Its address, without any password in it.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two accounts of one name.
    #[error("account {0} is given twice")]
    DuplicateAccount(AccountId),
    /// The gateway was given nothing to listen on, or lacks one of its ports.
    #[error("the gateway has no {0}")]
    Incomplete(&'static str),
    /// The gateway would be reachable from other machines.
    #[error("address {0} is not a loopback address")]
    NotLoopback(SocketAddr),
    /// The TCP address cannot be bound.
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The system's own account.
        source: std::io::Error,
    },
    /// The socket cannot be bound.
    #[error("cannot listen on {path}: {source}", path = .path.display())]
    BindUnix {
        /// The socket.
        path: PathBuf,
        /// The system's own account.
        source: std::io::Error,
    },
    /// There is no usable root certificate for an `https` account.
    #[error("no root certificates: {0}")]
    Roots(String),
}
