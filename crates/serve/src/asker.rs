//! Askers: limits count for each asker, which is a user of this machine or another network, with the token or without it.
//! An asker that takes all that it can get slows only itself.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use kymo_sys::tcp_owner::{TcpOwners, network_of};

/// The origin of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Origin {
    /// A process of this user on this machine: loopback is one address and many users.
    User(u32),
    /// A network: an IPv4 address, the 2^64 addresses of IPv6 that one host has, or all of loopback.
    Network(IpAddr),
}

impl Origin {
    /// The origin of a connection: its user if the kernel knows it, or else its network.
    pub(crate) fn of(
        peer: SocketAddr,
        own: Option<SocketAddr>,
        owners: Option<&TcpOwners>,
    ) -> Origin {
        let owner = owners
            .zip(own)
            .and_then(|(owners, own)| owners.owner(peer, own));
        owner.map_or(Origin::Network(network_of(peer.ip())), Origin::User)
    }

    /// The client that a trusted proxy on this machine names: the last one of the header, because the client itself may
    /// have sent those before.
    fn behind_proxy(self, headers: &HeaderMap) -> Origin {
        let named = headers.get_all("x-forwarded-for").iter().next_back();
        let last =
            named.and_then(|value| value.to_str().ok()?.rsplit(',').next()?.trim().parse().ok());
        last.map_or(self, |address| Origin::Network(network_of(address)))
    }

    /// The origin in words, for the log.
    pub(crate) fn words(self) -> String {
        match self {
            Origin::User(uid) => format!("user {uid} of this machine"),
            Origin::Network(IpAddr::V6(network)) => format!("{network}/64"),
            Origin::Network(IpAddr::V4(address)) => address.to_string(),
        }
    }
}

/// An owner of a share of limits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Asker {
    pub(crate) origin: Origin,
    /// With the token, an origin is an asker of its own, which goes before the same origin without the token.
    pub(crate) has_token: bool,
}

impl Asker {
    /// An asker without a token.
    pub(crate) fn from(origin: Origin) -> Asker {
        Asker {
            origin,
            has_token: false,
        }
    }
}

/// Trust in the header `X-Forwarded-For`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proxies {
    Trusted,
    Untrusted,
}

/// The origin of a request that came by a connection from `origin`. No token has been read yet.
pub(crate) fn of_request(origin: Origin, headers: &HeaderMap, proxies: Proxies) -> Origin {
    match proxies {
        Proxies::Trusted => origin.behind_proxy(headers),
        Proxies::Untrusted => origin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trusted_proxy_says_who_asks_and_its_client_does_not() {
        let proxy = Origin::User(33);
        let network = |address: &str| Origin::Network(address.parse().expect("an address"));
        for (lines, proxies, origin) in [
            (&[][..], Proxies::Trusted, proxy),
            (&["192.0.2.7"], Proxies::Trusted, network("192.0.2.7")),
            (&["192.0.2.7"], Proxies::Untrusted, proxy),
            (
                &["10.0.0.1, 192.0.2.7"],
                Proxies::Trusted,
                network("192.0.2.7"),
            ),
            (
                &["10.0.0.1", "2001:db8::5"],
                Proxies::Trusted,
                network("2001:db8::"),
            ),
            (&["192.0.2.7, unknown"], Proxies::Trusted, proxy),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().expect("a value"));
            }
            assert_eq!(of_request(proxy, &headers, proxies), origin, "{lines:?}");
        }
    }
}
