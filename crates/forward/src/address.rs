//! Addresses of receivers that have no URL.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Longest text of an address.
const TEXT_MAX: usize = 300;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPort {
    /// Name or address of the host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl HostPort {
    /// Reads `HOST`, `HOST:PORT`, `[ADDRESS]`, `[ADDRESS]:PORT` or an address of IPv6. The error says why the text is none.
    pub fn parse(text: &str, default_port: u16) -> Result<HostPort, String> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':').unwrap_or("no port"))),
            None => match text.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        let port = port.map_or(Some(default_port), |port| port.parse().ok());
        let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte);
        let is_host = !host.is_empty() && host.len() <= TEXT_MAX && host.bytes().all(is_host_byte);
        match port {
            Some(port) if is_host && port > 0 => Ok(HostPort {
                host: host.into(),
                port,
            }),
            _ => Err(format!("{text:?} is not HOST:PORT")),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Address of a daemon of rrdcached's protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RrdcachedAddress {
    /// A unix socket.
    Unix(PathBuf),
    /// A host and a port.
    Tcp(HostPort),
}

impl RrdcachedAddress {
    /// Reads `unix:/PATH`, `/PATH`, or host and port. The error says why the text is none.
    pub fn parse(text: &str, default_port: u16) -> Result<RrdcachedAddress, String> {
        let path = text.strip_prefix("unix:").unwrap_or(text);
        match path.starts_with('/') {
            true => Ok(RrdcachedAddress::Unix(path.into())),
            false => HostPort::parse(text, default_port)
                .map(RrdcachedAddress::Tcp)
                .map_err(|_| format!("{text:?} is neither /PATH nor HOST:PORT")),
        }
    }
}

impl fmt::Display for RrdcachedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RrdcachedAddress::Unix(path) => path.display().fmt(f),
            RrdcachedAddress::Tcp(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hosts_and_ports() {
        for (text, expected) in [
            ("hub", Some("hub:25826")),
            ("hub.example:7", Some("hub.example:7")),
            ("192.0.2.1", Some("192.0.2.1:25826")),
            ("2001:db8::1", Some("[2001:db8::1]:25826")),
            ("[2001:db8::1]", Some("[2001:db8::1]:25826")),
            ("[fe80::1%eth0]:9", Some("[fe80::1%eth0]:9")),
            ("", None),
            (":9", None),
            ("hub:", None),
            ("hub:0", None),
            ("hub:65536", None),
            ("[::1]9", None),
            ("a b:9", None),
            ("a\u{1b}", None),
            ("http://hub", None),
        ] {
            let read = HostPort::parse(text, 25826).ok().map(|it| it.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("unix:/run/a b", Some("/run/a b")),
            ("/run/a", Some("/run/a")),
            ("hub", Some("hub:42217")),
            ("[::1]:9", Some("[::1]:9")),
            ("unix:run", None),
            ("run/a", None),
        ] {
            let read = RrdcachedAddress::parse(text, 42217);
            let read = read.ok().map(|it| it.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
