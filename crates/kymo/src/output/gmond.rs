//! `--export gexpr`: packets by UDP to a gmond of Ganglia, or to the group that gmonds listen to. Packets that cannot be sent are
//! counted, and reported at most once a minute.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::{Duration, Instant};

use kymo_sys::talk;
use kymo_view::sink::{Sink, To};

const QUIET: Duration = Duration::from_secs(60);

/// Destination of packets.
pub(crate) struct Gmond {
    socket: UdpSocket,
    address: SocketAddr,
    lost: u64,
    reported: Option<Instant>,
}

impl Gmond {
    /// Packets to `HOST:PORT`.
    pub(crate) fn new(text: &str) -> Result<Gmond, String> {
        let cannot =
            |cause: &str| format!("cannot use --export gexpr,{}: {cause}", text.escape_debug());
        if !text.contains(':') || text.contains('=') {
            return Err(cannot("it takes gexpr,HOST:PORT"));
        }
        let found = text.to_socket_addrs();
        let found = found.map_err(|error| cannot(&error.to_string()))?;
        let address = found.into_iter().find(SocketAddr::is_ipv4);
        let address = address.ok_or_else(|| cannot("it has no IPv4 address"))?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0));
        let socket = socket.map_err(|error| cannot(&error.to_string()))?;
        // Sampling has a thread of its own; this thread does not wait for a full queue either.
        let done = socket.set_nonblocking(true);
        done.map_err(|error| cannot(&error.to_string()))?;
        Ok(Gmond {
            socket,
            address,
            lost: 0,
            reported: None,
        })
    }
}

impl Sink for Gmond {
    fn write(&mut self, _: To, packet: &[u8]) -> io::Result<()> {
        if let Err(error) = self.socket.send_to(packet, self.address) {
            self.lost += 1;
            if self
                .reported
                .is_none_or(|reported| reported.elapsed() > QUIET)
            {
                self.reported = Some(Instant::now());
                talk::say(format_args!(
                    "kymo: cannot send to {}: {error}; {} packets are lost so far",
                    self.address, self.lost
                ));
            }
        }
        Ok(())
    }

    fn interval(&mut self) -> io::Result<()> {
        Ok(())
    }
}
