//! The socket to a receiver of datagrams: its address, the protection of packets, and their rate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use kymo_base::errno::strerror;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::{listen, machine};
use kymo_wire::collectd::{encrypt, sign};

use crate::order::{CollectdWay, PacketProtection};

/// Time after which the name is looked up again.
const LOOKED_UP_NS: u64 = 600 * 1_000_000_000;
/// Least time for a refusal of the other machine to come back.
const REFUSAL: Duration = Duration::from_millis(2);

/// A socket that opens when something is to be sent.
pub(super) struct Link {
    way: CollectdWay,
    socket: Option<UdpSocket>,
    opened_ns: u64,
}

impl Link {
    /// A link that is not open.
    pub(super) fn new(way: CollectdWay) -> Link {
        Link {
            way,
            socket: None,
            opened_ns: 0,
        }
    }

    /// Address of the receiver; `None`: it is not known now.
    pub(super) fn peer(&mut self) -> Option<IpAddr> {
        let peer = self.open().ok()?.peer_addr().ok()?;
        Some(peer.ip().to_canonical())
    }

    /// A packet with these parts, with the protection that the receiver wants.
    pub(super) fn protected(&self, payload: &[u8]) -> Vec<u8> {
        let mut packet = Vec::new();
        match &self.way.protection {
            PacketProtection::Plain => packet.extend_from_slice(payload),
            PacketProtection::Signed { user, password } => {
                sign(
                    &mut packet,
                    user.as_bytes(),
                    password.text().as_bytes(),
                    payload,
                );
            }
            PacketProtection::Encrypted { user, password } => {
                let mut iv = [0; 16];
                // The kernel has random numbers as soon as it has a network.
                while machine::random(&mut iv).is_err() {
                    thread::sleep(REFUSAL);
                }
                let (user, password) = (user.as_bytes(), password.text().as_bytes());
                encrypt(&mut packet, user, password, &iv, payload);
            }
        }
        packet
    }

    /// Sends packets, and waits as long as their number takes at the rate. An error says that the network or the other machine
    /// refused one of them.
    pub(super) fn send(&mut self, packets: &[Vec<u8>]) -> Result<(), String> {
        let rate = f64::from(self.way.packets_per_second.max(1));
        let count = u32::try_from(packets.len()).unwrap_or(u32::MAX);
        let pause = Duration::from_secs_f64(f64::from(count) / rate);
        let sent = self.open().and_then(|socket| {
            for packet in packets {
                socket.send(packet)?;
            }
            thread::sleep(pause.max(REFUSAL));
            socket.take_error()?.map_or(Ok(()), Err)
        });
        sent.map_err(|error| {
            self.socket = None;
            format!("cannot send to {}: {}", self.way.address, strerror(&error))
        })
    }

    fn open(&mut self) -> io::Result<&UdpSocket> {
        let now_ns = RealClock.mono_ns();
        if now_ns.saturating_sub(self.opened_ns) > LOOKED_UP_NS {
            self.socket = None;
        }
        let socket = match self.socket.take() {
            Some(socket) => socket,
            None => {
                self.opened_ns = now_ns;
                connected(&self.way)?
            }
        };
        Ok(self.socket.insert(socket))
    }
}

/// A socket to the first of the host's addresses that has a way.
fn connected(way: &CollectdWay) -> io::Result<UdpSocket> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in listen::addresses(&way.address.host, way.address.port)? {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(address)?;
            Ok(socket)
        });
        match socket {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}
