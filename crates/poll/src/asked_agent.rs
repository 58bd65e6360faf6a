//! A device that is asked request by request, over a socket of its own.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::time::Duration;

use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::mrtg_cfg::{Host, Keyring, Session};
use kymo_wire::snmp::{Ask, ErrorStatus, ObjectValue, Oid, Response};

use crate::engine::Empty;
use crate::engine::ids::Ids;
use crate::engine::security::{Envelope, Opened, Security};
use crate::engine::walk::{Next, Walk, place_of};
use crate::news::reason;
use crate::poller::random;

/// Neighbours of a device that are read.
pub(crate) const ROWS_MAX: usize = 512;
/// Requests of a column, for an agent that answers with few rows.
const REQUESTS_MAX: usize = 1024;
/// Rows of a GETBULK.
const REPETITIONS: u16 = 20;
/// Longest wait for an answer, and most attempts, whatever the session has.
const TIMEOUT_MAX: Duration = Duration::from_secs(5);
const ATTEMPTS_MAX: u32 = 3;
/// Most reports of an engine of SNMPv3 after which a request is sent again.
const AGAIN_MAX: u32 = 4;

/// A device with its socket.
pub struct AskedAgent<'s> {
    session: &'s Session,
    security: Security,
    keyring: Keyring,
    ids: Ids,
    socket: UdpSocket,
    packet: Vec<u8>,
    plain: Vec<u8>,
}

impl<'s> AskedAgent<'s> {
    /// Resolves the device's name. The error is a line without the name.
    pub fn connect(session: &'s Session) -> Result<AskedAgent<'s>, String> {
        let address = resolved(session).ok_or_else(|| reason(&Empty::NoAddress))?;
        let own = match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = UdpSocket::bind(own).and_then(|socket| {
            socket.connect(address)?;
            Ok(socket)
        });
        Ok(AskedAgent {
            security: Security::new(session),
            session,
            keyring: Keyring::default(),
            ids: Ids::new(random),
            socket: socket.map_err(|error| format!("cannot be asked: {error}"))?,
            packet: vec![0; 1 << 16],
            plain: Vec::new(),
        })
    }

    /// Gets an object; `None`: the device has none, or `take` refuses its value.
    pub fn get<T>(
        &mut self,
        name: &Oid,
        take: impl Fn(ObjectValue) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.ask(Ask::Get, name, |response| {
            let first = response.varbinds.clone().next();
            let first = first.filter(|_| response.status == ErrorStatus::NO_ERROR);
            first.and_then(|varbind| take(varbind.ok()?.1))
        })
    }

    /// Walks a column; `each` gets the place of a row and its value, of at most `rows_max`.
    pub(crate) fn walk(
        &mut self,
        column: Oid,
        rows_max: usize,
        mut each: impl FnMut(Vec<u32>, ObjectValue),
    ) -> Result<(), String> {
        let repetitions = match self.security.has_bulk(self.session) {
            true => REPETITIONS,
            false => 0,
        };
        let (mut walk, mut rows) = (Walk::new(column, repetitions), 0);
        for _ in 0..REQUESTS_MAX {
            let ask = match walk.repetitions {
                0 => Ask::GetNext,
                max_repetitions => Ask::GetBulk {
                    non_repeaters: 0,
                    max_repetitions,
                },
            };
            let at = walk.at().clone();
            let next = self.ask(ask, &at, |response| {
                walk.take(response, |behind, value| {
                    if let Some(place) = place_of(behind) {
                        each(place, value);
                    }
                    rows += 1;
                    rows < rows_max
                })
            })?;
            match next {
                Next::More => {}
                Next::End => return Ok(()),
                Next::Looped | Next::Broken => {
                    return Err("has a table that breaks off".into());
                }
            }
        }
        Ok(())
    }

    /// Asks until there is an answer, or the attempts are used up.
    fn ask<T>(
        &mut self,
        ask: Ask,
        name: &Oid,
        mut take: impl FnMut(&Response) -> T,
    ) -> Result<T, String> {
        let name = std::slice::from_ref(name);
        let mut request = self.security.prepare(self.session, ask, name);
        let (mut attempts, mut again) = (0, 0);
        while attempts < self.session.attempts.clamp(1, ATTEMPTS_MAX) && again < AGAIN_MAX {
            let number = self.ids.number();
            let now = RealClock.now();
            let sealed = self.security.seal(&mut request, number, &mut self.ids, now);
            let id = sealed.id;
            // A port without an agent answers by an error of the next call.
            let _ = self.socket.send(sealed.bytes);
            match self.receive(id, &mut take)? {
                Received::Answer(answer) => return Ok(answer),
                Received::Again => again += 1,
                Received::Nothing => attempts += 1,
            }
        }
        Err(reason(&Empty::silence(&self.security, false)))
    }

    /// Receives the answer to a request.
    fn receive<T>(
        &mut self,
        id: i32,
        take: &mut impl FnMut(&Response) -> T,
    ) -> Result<Received<T>, String> {
        let timeout = Duration::try_from_secs_f64(self.session.timeout_s);
        let timeout = timeout.unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX);
        let sent_ns = RealClock.mono_ns();
        loop {
            let passed = Duration::from_nanos(RealClock.mono_ns().saturating_sub(sent_ns));
            let left = timeout.saturating_sub(passed);
            if left.is_zero() || self.socket.set_read_timeout(Some(left)).is_err() {
                return Ok(Received::Nothing);
            }
            let size = match self.socket.recv(&mut self.packet) {
                Ok(size) => size,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // The port is closed: the rest of the time is for an agent that starts.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    std::thread::sleep(left.min(Duration::from_millis(100)));
                    return Ok(Received::Nothing);
                }
                Err(_) => return Ok(Received::Nothing),
            };
            let Ok(envelope) = Envelope::decode(&self.packet[..size]) else {
                continue;
            };
            if envelope.id() != id {
                continue;
            }
            let came = RealClock.now();
            let (session, plain) = (self.session, &mut self.plain);
            let opened = self
                .security
                .open(session, &envelope, plain, &mut self.keyring, came);
            match opened {
                Opened::Response(response) => return Ok(Received::Answer(take(&response))),
                Opened::Again(_) => return Ok(Received::Again),
                Opened::Report(report) => return Err(reason(&Empty::Refusal(report))),
                Opened::Refused => {}
            }
        }
    }
}

/// The result of a request.
enum Received<T> {
    Answer(T),
    Again,
    Nothing,
}

fn resolved(session: &Session) -> Option<SocketAddr> {
    match &session.host {
        Host::V6(address) => Some(SocketAddr::from(((*address)?, session.port))),
        Host::Name(name) => {
            let mut found = (&**name, session.port).to_socket_addrs().ok()?;
            found.find(|address| address.is_ipv4() || !session.ipv4_only)
        }
    }
}
