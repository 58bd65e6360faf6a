//! The sockets of requests and answers: one for each family of addresses, and one for each local address that the configuration
//! names.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, BorrowedFd};

use kymo_sys::datagrams::{Outbox, UdpSocket, bind_udp};
use kymo_wire::mrtg_cfg::{Config, Session};

use crate::engine::Link;

/// Receive buffer of a socket, bytes; the kernel may allow less.
const QUEUE_BYTES: usize = 8 << 20;

/// Local address that packets are sent from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LocalAddress {
    host: Option<Box<str>>,
    port: u16,
    is_v6: bool,
}

struct Open {
    socket: UdpSocket,
    outbox: Outbox,
}

/// Complaint about packets that do not leave this machine. Without it a unit that keeps kymo from the network makes all devices
/// look silent.
const FILTERED: &str = "cannot send to devices: a packet filter of this machine refuses it; for a service it is IPAddressDeny= \
    of its unit, see /usr/share/kymo/connects-out.conf";

/// True if a packet filter refused a packet. (A broadcast that a socket may not send is another error.)
fn is_filter(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error())
}

/// All sockets of the poller.
pub(super) struct Sockets {
    places: HashMap<LocalAddress, usize>,
    open: Vec<Open>,
    /// Socket by session and family; `None`: it could not be opened.
    of_session: HashMap<(usize, bool), Option<usize>>,
    wanted: Vec<LocalAddress>,
    complaints: Vec<String>,
    /// True if [`FILTERED`] was among the complaints.
    is_filtered: bool,
    /// Packets that the kernel did not accept.
    pub(super) unsent: u64,
}

impl Sockets {
    /// Opens the IPv4 socket for the sessions of a configuration. Others open when a session needs them.
    pub(super) fn open(config: &Config) -> io::Result<Sockets> {
        let mut sockets = Sockets {
            places: HashMap::new(),
            open: Vec::new(),
            of_session: HashMap::new(),
            wanted: Vec::new(),
            complaints: Vec::new(),
            is_filtered: false,
            unsent: 0,
        };
        sockets.use_for(config);
        let any = LocalAddress {
            host: None,
            port: 0,
            is_v6: false,
        };
        sockets.open_place(any)?;
        Ok(sockets)
    }

    /// Replaces the sessions.
    pub(super) fn use_for(&mut self, config: &Config) {
        let place = |session: &Session| LocalAddress {
            host: session.local_host.clone(),
            port: session.local_port.unwrap_or(0),
            is_v6: false,
        };
        self.wanted = config.sessions().iter().map(place).collect();
        self.of_session.clear();
    }

    /// The smallest receive buffer of the open sockets, bytes.
    pub(super) fn queue_bytes(&self) -> usize {
        let sizes = self.open.iter().map(|open| open.socket.queue_bytes);
        sizes.min().unwrap_or(QUEUE_BYTES)
    }

    /// File descriptors to wait for answers on.
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.iter().map(|open| open.socket.socket.as_fd())
    }

    /// Number of sockets.
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// File descriptor of one socket.
    pub(super) fn file(&self, number: usize) -> BorrowedFd<'_> {
        self.open[number].socket.socket.as_fd()
    }

    /// Sends the packets of all outboxes; true if there was one.
    pub(super) fn flush(&mut self) -> bool {
        let mut had_some = false;
        for open in &mut self.open {
            if !open.outbox.is_empty() {
                let (refused, why) = open.outbox.send(&open.socket.socket);
                self.unsent += refused as u64;
                had_some = true;
                if !self.is_filtered && why.as_ref().is_some_and(is_filter) {
                    self.is_filtered = true;
                    self.complaints.push(FILTERED.into());
                }
            }
        }
        had_some
    }

    /// Takes one line for each address that could not be opened.
    pub(super) fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    fn number(&mut self, session: usize, is_v6: bool) -> Option<usize> {
        if let Some(known) = self.of_session.get(&(session, is_v6)) {
            return *known;
        }
        let mut place = self.wanted[session].clone();
        place.is_v6 = is_v6;
        let shown = format!(
            "{}:{}",
            place.host.as_deref().unwrap_or("any address"),
            place.port
        );
        let number = match self.open_place(place) {
            Ok(number) => Some(number),
            Err(error) => {
                let line = format!("cannot send from {shown}: {error}");
                self.complaints.push(line);
                None
            }
        };
        self.of_session.insert((session, is_v6), number);
        number
    }

    fn open_place(&mut self, place: LocalAddress) -> io::Result<usize> {
        if let Some(&number) = self.places.get(&place) {
            return Ok(number);
        }
        let socket = bind_udp(address_of(&place)?, QUEUE_BYTES)?;
        socket.stamp_datagrams()?;
        self.open.push(Open {
            socket,
            outbox: Outbox::default(),
        });
        let number = self.open.len() - 1;
        self.places.insert(place, number);
        Ok(number)
    }
}

impl Link for Sockets {
    fn send(&mut self, session: usize, to: SocketAddr, packet: &[u8]) {
        if let Some(number) = self.number(session, to.is_ipv6()) {
            let outbox = &mut self.open[number].outbox;
            outbox.push(to, |bytes| bytes.extend_from_slice(packet));
        }
    }
}

fn address_of(place: &LocalAddress) -> io::Result<SocketAddr> {
    let Some(host) = &place.host else {
        let any = match place.is_v6 {
            true => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            false => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        return Ok(SocketAddr::new(any, place.port));
    };
    let mut found = (&**host, place.port).to_socket_addrs()?;
    let fitting = found.find(|address| address.is_ipv6() == place.is_v6);
    fitting.ok_or_else(|| io::Error::other("it has no address of the device's kind"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// Story: a service whose unit lets no packet out said of each device that it does not answer.
    #[test]
    fn a_packet_filter_differs_from_other_errors() {
        for (errno, filter) in [
            (Errno::PERM, true),
            (Errno::ACCESS, false),
            (Errno::NETUNREACH, false),
            (Errno::AGAIN, false),
        ] {
            let error = io::Error::from_raw_os_error(errno.raw_os_error());
            assert_eq!(is_filter(&error), filter, "{error}");
        }
    }
}
