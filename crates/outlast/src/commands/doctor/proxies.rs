//! Proxy variables: neither agents nor the gateway use them, so a network that needs one shows here.

use std::env;
use std::time::Duration;

use tokio::net::TcpStream;

use super::found::Found;

/// A proxy on the way answers within this, or is as good as absent.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// Each is also looked for in lower case.
const VARIABLES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

/// Every proxy that the environment names.
pub(crate) async fn look(offline: bool) -> Vec<Found> {
    let mut named: Vec<(String, String)> = Vec::new();
    for upper in VARIABLES {
        for name in [upper.to_owned(), upper.to_ascii_lowercase()] {
            let value = env::var(&name).unwrap_or_default();
            if !value.is_empty() {
                named.push((name, value));
            }
        }
    }
    let mut found = Vec::new();
    for (name, value) in named {
        found.push(proxy(&name, &value, offline).await);
    }
    found
}

async fn proxy(name: &str, value: &str, offline: bool) -> Found {
    let title = format!("proxy {name}");
    let Some(address) = address(value) else {
        return Found::warning(title, "it names no host; no agent is given it").fix(format!("unset {name}"));
    };
    let unused = "agents are never given it, and the gateway connects without it";
    if offline {
        return Found::warning(title, format!("{address}: {unused}"));
    }
    match tokio::time::timeout(CONNECT_MAX, TcpStream::connect(&address)).await {
        Ok(Ok(_)) => Found::warning(title, format!("{address} answers: {unused}"))
            .fix("nothing, where the round trips succeed; else let this machine reach the provider without a proxy"),
        _ => {
            Found::warning(title, format!("stale: nobody answers at {address}; {unused}")).fix(format!("unset {name}"))
        }
    }
}

/// Host and port of a proxy's URL, without what may be a password.
fn address(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = match scheme {
        "https" => 443,
        "socks4" | "socks5" | "socks5h" => 1080,
        _ => 80,
    };
    match host {
        "" => None,
        host if has_port => Some(host.to_owned()),
        host => Some(format!("{host}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_a_proxy_is_never_shown() {
        assert_eq!(address("http://me:secret@proxy.test:8080/x").as_deref(), Some("proxy.test:8080"));
        assert_eq!(address("socks5://proxy.test").as_deref(), Some("proxy.test:1080"));
        assert_eq!(address("proxy.test:3128").as_deref(), Some("proxy.test:3128"));
        assert_eq!(address("http://[::1]:9").as_deref(), Some("[::1]:9"));
        assert_eq!(address("http://"), None);
    }
}
