//! The value of `-A`: a unix socket, TCP on this machine, or with `--insecure` on any address; or, as in collectl, a server to
//! connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use kymo_sys::{listen, machine};

/// collectl's port.
const PORT: u16 = 2655;
/// Seconds that collectl waits for a connection.
const PATIENCE_SECS: u64 = 10;
/// Name of the socket, in the runtime folder of the user.
const SOCKET: &str = "kymo-live.sock";
/// Prefix of an address to connect to.
const CONNECT: &str = "connect:";

/// Other readers of the live view.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Who else gets what is shown live")]
pub(crate) struct Audience {
    /// Send it to clients of a unix socket (a PATH with a / in it; without one kymo-live.sock in $XDG_RUNTIME_DIR, root's in
    /// /run), or by TCP on this machine, without command lines and users; connect:HOST[:PORT] connects instead
    #[arg(short = 'A', long = "address", value_name = "PATH|server[:PORT]|ADDRESS[:PORT]", num_args = 0..=1, default_missing_value = "")]
    pub address: Option<String>,
    /// With -A: other addresses than this machine's own too, which anybody reads who reaches them
    #[arg(long, requires = "address")]
    pub insecure: bool,
}

/// Place of the clients.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A unix socket of this name.
    Unix(PathBuf),
    /// TCP sockets.
    Tcp(Vec<SocketAddr>),
    /// A server to connect to.
    Peer(Peer),
}

/// A server to connect to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    addresses: Vec<SocketAddr>,
    patience: Duration,
}

impl Peer {
    /// Connects to the first address that accepts.
    pub(super) fn connect(&self) -> anyhow::Result<OwnedFd> {
        let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for address in &self.addresses {
            let connected = TcpStream::connect_timeout(address, self.patience);
            match connected.and_then(|stream| stream.set_nonblocking(true).map(|()| stream)) {
                Ok(stream) => return Ok(stream.into()),
                Err(error) => last = error,
            }
        }
        let named: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        Err(last).with_context(|| format!("cannot connect to {}", named.join(" or ")))
    }
}

impl Endpoint {
    /// True if other users may see the output.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self, Endpoint::Unix(_))
    }

    /// True if a socket waits for clients.
    pub(crate) fn is_server(&self) -> bool {
        !matches!(self, Endpoint::Peer(_))
    }
}

impl Audience {
    /// The place of the clients. Under collectl's name an address with a dot is one to connect to.
    pub(crate) fn place(&self, as_collectl: bool) -> Result<Option<Endpoint>, String> {
        let Some(text) = &self.address else {
            return Ok(None);
        };
        let wrong = |cause: String| format!("cannot use -A {}: {cause}", text.escape_debug());
        if text.is_empty() {
            return default_socket().map(Endpoint::Unix).map(Some);
        }
        if text.contains('/') {
            return Ok(Some(Endpoint::Unix(text.into())));
        }
        let peer = match text.strip_prefix(CONNECT) {
            Some(peer) => Some(peer),
            None => Some(text.as_str()).filter(|text| as_collectl && text.contains('.')),
        };
        let place = match peer {
            Some(peer) => self.peer(peer).map(Endpoint::Peer),
            None => self.server(text).map(Endpoint::Tcp),
        };
        place.map(Some).map_err(wrong)
    }

    fn server(&self, text: &str) -> Result<Vec<SocketAddr>, String> {
        // collectl has no use for a third part either.
        if let Some(rest) = text.strip_prefix("server") {
            let mut parts = rest.split(':').skip(1);
            let port = port(parts.next().unwrap_or_default())?;
            let own: [IpAddr; 2] = match self.insecure {
                true => [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
                false => [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            };
            // A port that the kernel chooses would differ between the two addresses.
            let count = if port == 0 { 1 } else { own.len() };
            let addresses = own.iter().take(count);
            return Ok(addresses.map(|&ip| SocketAddr::new(ip, port)).collect());
        }
        let (host, rest) = host_and_rest(text);
        self.checked(host, port(rest)?)
    }

    fn peer(&self, text: &str) -> Result<Peer, String> {
        let (host, rest) = host_and_rest(text);
        let (number, secs) = rest.split_once(':').unwrap_or((rest, ""));
        let secs = match secs {
            "" => PATIENCE_SECS,
            secs => secs.parse().map_err(|_| "not a number of seconds")?,
        };
        let addresses = self.checked(host, port(number)?)?;
        let patience = Duration::from_secs(secs.clamp(1, 3600));
        Ok(Peer {
            addresses,
            patience,
        })
    }

    fn checked(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let addresses = match host {
            "" => Err("it takes a path with a / in it, server or an address".into()),
            host => listen::addresses(host, port).map_err(|error| error.to_string()),
        }?;
        let own = addresses
            .iter()
            .all(|address| address.ip().to_canonical().is_loopback());
        match own || self.insecure {
            true => Ok(addresses),
            false => Err(
                "that is not this machine alone, and whoever reaches it reads along; --insecure says that this is meant"
                    .into(),
            ),
        }
    }
}

/// Splits `HOST[:REST]`, `[IPv6][:REST]`, or a bare IPv6 address.
fn host_and_rest(text: &str) -> (&str, &str) {
    if text.parse::<Ipv6Addr>().is_ok() {
        return (text, "");
    }
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        return (host, rest.strip_prefix(':').unwrap_or(rest));
    }
    text.split_once(':').unwrap_or((text, ""))
}

fn port(text: &str) -> Result<u16, String> {
    match text {
        "" => Ok(PORT),
        text => text.parse().map_err(|_| "not a port".into()),
    }
}

fn default_socket() -> Result<PathBuf, String> {
    if machine::is_root() {
        return Ok(PathBuf::from("/run").join(SOCKET));
    }
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    folder
        .map(|folder| PathBuf::from(folder).join(SOCKET))
        .ok_or_else(|| {
            "cannot use -A: XDG_RUNTIME_DIR is not set; name a path for the socket".into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, insecure: bool, as_collectl: bool) -> Result<Endpoint, String> {
        let audience = Audience {
            address: Some(text.into()),
            insecure,
        };
        audience.place(as_collectl).map(Option::unwrap)
    }

    #[test]
    fn addresses() {
        for (text, insecure, as_collectl, expect) in [
            ("./s", false, false, "unix ./s"),
            ("/run/s", false, true, "unix /run/s"),
            ("server", false, false, "127.0.0.1:2655 [::1]:2655"),
            ("server:99", false, true, "127.0.0.1:99 [::1]:99"),
            ("server", true, false, "0.0.0.0:2655 [::]:2655"),
            ("127.0.0.1", false, false, "127.0.0.1:2655"),
            ("127.0.0.1:0", false, false, "127.0.0.1:0"),
            ("[::1]:7", false, false, "[::1]:7"),
            ("::1", false, false, "[::1]:2655"),
            ("10.0.0.1:7", true, false, "10.0.0.1:7"),
            ("connect:127.0.0.1:7:3", false, false, "to 127.0.0.1:7 3s"),
            ("127.0.0.1::3", false, true, "to 127.0.0.1:2655 3s"),
            ("127.0.0.1", false, true, "to 127.0.0.1:2655 10s"),
            ("10.0.0.1", true, true, "to 10.0.0.1:2655 10s"),
        ] {
            let listed = |all: &[SocketAddr]| {
                let all: Vec<String> = all.iter().map(SocketAddr::to_string).collect();
                all.join(" ")
            };
            let got = match place(text, insecure, as_collectl).unwrap() {
                Endpoint::Unix(path) => format!("unix {}", path.display()),
                Endpoint::Tcp(all) => listed(&all),
                Endpoint::Peer(peer) => {
                    format!("to {} {:?}", listed(&peer.addresses), peer.patience)
                }
            };
            assert_eq!(got, expect, "{text}");
        }
    }

    #[test]
    fn what_is_refused() {
        for (text, as_collectl, cause) in [
            ("0.0.0.0", false, "--insecure"),
            ("10.0.0.1:7", false, "--insecure"),
            ("[::]:7", false, "--insecure"),
            ("::ffff:10.0.0.1", false, "--insecure"),
            ("connect:10.0.0.1", false, "--insecure"),
            ("10.0.0.1", true, "--insecure"),
            ("server:x", false, "not a port"),
            ("127.0.0.1:70000", false, "not a port"),
            ("127.0.0.1:1:x", true, "not a number of seconds"),
            (":7", false, "it takes a path"),
        ] {
            let error = place(text, false, as_collectl).unwrap_err();
            assert!(
                error.starts_with("cannot use -A") && error.contains(cause),
                "{error}"
            );
        }
    }
}
