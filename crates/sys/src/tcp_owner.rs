//! Owners of TCP connections on this machine: the kernel names the user of the socket at the other end (sock_diag(7),
//! one exact question of some microseconds). Connections from other machines have no owner here.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::listen::{self, Peer};

/// <linux/socket.h>.
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const QUESTION: usize = 16 + 56;
const QUESTION_LEN: u32 = 16 + 56;
/// Bytes of an answer's head, and of the answer.
const HEAD: usize = 16;
const ANSWER: usize = HEAD + 72;
/// SOCK_DIAG_BY_FAMILY of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST of linux/netlink.h.
const REQUEST: u16 = 1;
const TCP: u8 = 6;
/// Offsets of the addresses, the user and the inode in a `struct inet_diag_msg`.
const ID: usize = HEAD + 4;
const UID: usize = HEAD + 64;
const INODE: usize = HEAD + 68;
/// Bytes of the addresses: both ports, both addresses.
const ADDRESSES: usize = 36;

/// The client that limits count for: a user of this machine, because loopback is one address of many users; else a network,
/// because a host has 2^64 addresses of IPv6. `None`: the other end has gone.
pub fn share(connection: impl AsFd, owners: Option<&TcpOwners>) -> Option<Peer> {
    let connection = connection.as_fd();
    match listen::peer(connection)? {
        Peer::User(user) => Some(Peer::User(user)),
        Peer::Address(address) => {
            let addresses = |owners: &TcpOwners| {
                let peer = rustix::net::getpeername(connection)
                    .ok()??
                    .try_into()
                    .ok()?;
                let own = rustix::net::getsockname(connection).ok()?.try_into().ok()?;
                owners.owner(peer, own)
            };
            let user = owners.and_then(addresses).map(Peer::User);
            Some(user.unwrap_or(Peer::Address(network_of(address))))
        }
    }
}

/// An IPv4 address, the network of an IPv6 address, or loopback.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        address if address.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// Asks the kernel for the owners of connections.
#[derive(Debug)]
pub struct TcpOwners(OwnedFd);

impl TcpOwners {
    /// Opens the socket that the kernel is asked on: before this process gives up making any.
    pub fn open() -> io::Result<TcpOwners> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = rustix::net::socket_with(family, kind, flags, Some(netlink::SOCK_DIAG))?;
        Ok(TcpOwners(socket))
    }

    /// The user of the process whose socket at `peer` is connected to `own`. `None`: no process of this machine has
    /// it any more, or the kernel does not say.
    pub fn owner(&self, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
        let addresses = addresses(peer, own)?;
        // An unread answer to an earlier question has other addresses, and does not pass for this one.
        let question = question(peer.ip().to_canonical().is_ipv4(), &addresses);
        rustix::net::send(&self.0, &question, SendFlags::empty()).ok()?;
        for _ in 0..4 {
            let mut answer = [0; 512];
            let (_, length) =
                rustix::net::recv(&self.0, &mut answer[..], RecvFlags::empty()).ok()?;
            let answer = answer.get(..length)?;
            if answer.get(ID..ID + ADDRESSES) == Some(&addresses[..]) {
                return read_owner(answer);
            }
            if is_refusal(answer) {
                return None;
            }
        }
        None
    }
}

/// Ports and addresses in the order of `struct inet_diag_sockid`: the peer's own, then those of its other end.
fn addresses(peer: SocketAddr, own: SocketAddr) -> Option<[u8; ADDRESSES]> {
    let mut bytes = [0; ADDRESSES];
    bytes[..2].copy_from_slice(&peer.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&own.port().to_be_bytes());
    match (peer.ip().to_canonical(), own.ip().to_canonical()) {
        (IpAddr::V4(peer), IpAddr::V4(own)) => {
            bytes[4..8].copy_from_slice(&peer.octets());
            bytes[20..24].copy_from_slice(&own.octets());
        }
        (IpAddr::V6(peer), IpAddr::V6(own)) => {
            bytes[4..20].copy_from_slice(&peer.octets());
            bytes[20..].copy_from_slice(&own.octets());
        }
        _ => return None,
    }
    Some(bytes)
}

/// A `struct nlmsghdr` and a `struct inet_diag_req_v2`.
fn question(is_ipv4: bool, addresses: &[u8; ADDRESSES]) -> [u8; QUESTION] {
    let mut bytes = [0; QUESTION];
    bytes[..4].copy_from_slice(&QUESTION_LEN.to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&REQUEST.to_ne_bytes());
    bytes[HEAD] = if is_ipv4 { AF_INET } else { AF_INET6 };
    bytes[HEAD + 1] = TCP;
    // Any state.
    bytes[HEAD + 4..HEAD + 8].fill(0xff);
    bytes[HEAD + 8..HEAD + 8 + ADDRESSES].copy_from_slice(addresses);
    // Any interface, any cookie.
    bytes[QUESTION - 8..].fill(0xff);
    bytes
}

fn is_refusal(answer: &[u8]) -> bool {
    answer.get(4..6) != Some(&BY_FAMILY.to_ne_bytes()[..])
}

/// A socket that no process has any more has no inode, and on older kernels root for its owner.
fn read_owner(answer: &[u8]) -> Option<u32> {
    if answer.len() < ANSWER || is_refusal(answer) {
        return None;
    }
    let number = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    number(INODE).filter(|&inode| inode != 0)?;
    number(UID)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_of_this_process_is_its_users() {
        let owners = TcpOwners::open().unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else {
                continue; // A machine without IPv6.
            };
            let own = listener.local_addr().unwrap();
            let client = TcpStream::connect(own).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(owners.owner(peer, local), Some(user), "{address}");
            assert_eq!(share(&server, Some(&owners)), Some(Peer::User(user)));
            let network = Peer::Address(Ipv4Addr::LOCALHOST.into());
            assert_eq!(share(&server, None), Some(network));
            let nobody = SocketAddr::new(peer.ip(), own.port());
            assert_eq!(
                owners.owner(nobody, local),
                None,
                "nobody is connected from there"
            );
            drop(client);
            assert_eq!(owners.owner(peer, local), None, "it was closed");
        }
    }

    #[test]
    fn networks() {
        for (address, network) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
            ("::1", "127.0.0.1"),
            ("127.4.5.6", "127.0.0.1"),
        ] {
            assert_eq!(network_of(address.parse().unwrap()).to_string(), network);
        }
    }

    #[test]
    fn a_cut_answer_says_nothing() {
        let mut answer = [1; ANSWER];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        assert!(read_owner(&answer).is_some());
        for length in 0..ANSWER {
            assert_eq!(read_owner(&answer[..length]), None, "{length}");
        }
    }
}
