//! Clients by TCP that send lines. Their number is limited: where all places are taken, the longest silent client of the sender
//! group with most connections makes room. What a client has sent is read before it is closed: scripts connect, send a line and
//! leave, many in the same second.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::Duration;

use kymo_sys::listen::{self, Peer};
use kymo_wire::line_stream::{LineStream, LineTooLong};
use rustix::io::Errno;

use super::troubles::Troubles;
use crate::sender_group::SenderGroup;

/// Connections at a time. Relays keep one each.
const CLIENTS_MAX: usize = 64;
/// Silence after which a connection is closed: ten times the interval of a slow sender.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// Most clients accepted in a row from one socket.
const ACCEPTS_MAX: usize = 64;
/// Pause when a client cannot be accepted; datagrams wait in their sockets meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(5);
/// Bytes read from one client in a row.
const READ_SIZE: usize = 64 << 10;
/// Most readings of a client before another one is accepted.
const READS_MAX: usize = 4;

/// All clients of one protocol.
pub(super) struct LineClients {
    line_max: usize,
    clients: Vec<LineClient>,
    /// Buffer: the beginning of an unfinished line, and the bytes read after it.
    room: Vec<u8>,
    counts: ClientCounts,
}

/// Troubles with clients that are not counted yet.
#[derive(Default)]
struct ClientCounts {
    displaced: u64,
    silent: u64,
    cut_off: u64,
    refused: u64,
}

struct LineClient {
    socket: OwnedFd,
    group: SenderGroup,
    lines: LineStream,
    /// The beginning of an unfinished line.
    begun: Vec<u8>,
    received_ns: u64,
    is_open: bool,
}

/// Result of a reading.
enum Heard {
    Bytes,
    Nothing,
    End,
}

impl LineClients {
    /// No clients yet; `line_max`: most bytes of a line.
    pub(super) fn new(line_max: usize) -> LineClients {
        LineClients {
            line_max,
            clients: Vec::new(),
            room: Vec::new(),
            counts: ClientCounts::default(),
        }
    }

    /// Their sockets, in the order of [`LineClients::read`].
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.clients.iter().map(|client| client.socket.as_fd())
    }

    /// Number of connections.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.clients.len()).unwrap_or(u32::MAX)
    }

    /// The moment at which the longest silent client has been silent for too long.
    pub(super) fn idle_end_ns(&self) -> Option<u64> {
        let received = self.clients.iter().map(|client| client.received_ns);
        received
            .min()
            .map(|received_ns| received_ns + idle_max_ns())
    }

    /// Reads from each ready client, and closes clients that have ended or were silent for too long.
    pub(super) fn read(
        &mut self,
        ready: &[bool],
        now_ns: u64,
        mut take: impl FnMut(SenderGroup, Result<&[u8], LineTooLong>),
    ) {
        for (client, _) in self.clients.iter_mut().zip(ready).filter(|(_, is)| **is) {
            client.read(&mut self.room, now_ns, &mut take);
        }
        for client in &mut self.clients {
            if client.is_open && client.received_ns + idle_max_ns() <= now_ns {
                client.is_open = false;
                self.counts.silent += 1;
            }
        }
        self.forget_closed();
    }

    /// Forgets clients that have ended.
    fn forget_closed(&mut self) {
        let cut_off = |client: &&LineClient| !client.is_open && !client.begun.is_empty();
        let cut_off = self.clients.iter().filter(cut_off).count();
        self.counts.cut_off += u64::try_from(cut_off).unwrap_or(u64::MAX);
        self.clients.retain(|client| client.is_open);
    }

    /// Accepts waiting clients; `take` gets the lines of those that make room.
    pub(super) fn accept(
        &mut self,
        socket: &OwnedFd,
        now_ns: u64,
        mut take: impl FnMut(SenderGroup, Result<&[u8], LineTooLong>),
    ) {
        for _ in 0..ACCEPTS_MAX {
            let client = match listen::accept(socket) {
                Ok(Some(client)) => client,
                Ok(None) => return,
                // The process may have no free file descriptor: the client stays in the queue, and the pause keeps this thread
                // from spinning.
                Err(_) => {
                    self.counts.refused += 1;
                    return thread::sleep(ACCEPT_PAUSE);
                }
            };
            let Some(peer) = listen::peer(&client) else {
                continue;
            };
            if self.clients.len() >= CLIENTS_MAX {
                self.make_room(now_ns, &mut take);
            }
            self.clients.push(LineClient {
                socket: client,
                group: match peer {
                    Peer::User(_) => SenderGroup::THIS_MACHINE,
                    Peer::Address(address) => SenderGroup::of(address),
                },
                lines: LineStream::new(self.line_max),
                begun: Vec::new(),
                received_ns: now_ns,
                is_open: true,
            });
        }
    }

    /// Makes room for a client: reads all others and forgets those that have left, or else closes the most silent one.
    fn make_room(
        &mut self,
        now_ns: u64,
        take: &mut impl FnMut(SenderGroup, Result<&[u8], LineTooLong>),
    ) {
        for client in &mut self.clients {
            for _ in 0..READS_MAX {
                if !matches!(client.read(&mut self.room, now_ns, take), Heard::Bytes) {
                    break;
                }
            }
        }
        self.forget_closed();
        if self.clients.len() >= CLIENTS_MAX
            && let Some(at) = self.most_silent()
        {
            self.clients.remove(at);
            self.counts.displaced += 1;
        }
    }

    /// The longest silent client of the sender group with most connections.
    fn most_silent(&self) -> Option<usize> {
        let mut sizes: HashMap<SenderGroup, usize> = HashMap::new();
        for client in &self.clients {
            *sizes.entry(client.group).or_default() += 1;
        }
        let size = |client: &LineClient| sizes.get(&client.group).copied().unwrap_or(0);
        let clients = self.clients.iter().enumerate();
        let last =
            clients.max_by_key(|(_, client)| (size(client), std::cmp::Reverse(client.received_ns)));
        last.map(|(at, _)| at)
    }

    /// Adds the counts to `troubles`.
    pub(super) fn take_counts(&mut self, troubles: &mut Troubles) {
        let counts = std::mem::take(&mut self.counts);
        troubles.count(
            "a connection closed for another one, as there are 64",
            counts.displaced,
        );
        troubles.count(
            "a connection closed after 10 minutes of silence",
            counts.silent,
        );
        troubles.count("a line without an end in a stream", counts.cut_off);
        troubles.count("a connection that cannot be taken", counts.refused);
    }
}

impl LineClient {
    /// Reads once and passes on the complete lines.
    fn read(
        &mut self,
        room: &mut Vec<u8>,
        now_ns: u64,
        take: &mut impl FnMut(SenderGroup, Result<&[u8], LineTooLong>),
    ) -> Heard {
        room.clear();
        room.append(&mut self.begun);
        room.reserve(READ_SIZE);
        let spare = rustix::buffer::spare_capacity(room);
        let heard = match rustix::io::read(&self.socket, spare) {
            Ok(1..) => Heard::Bytes,
            Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
            Ok(0) | Err(_) => Heard::End,
        };
        match heard {
            Heard::Bytes => self.received_ns = now_ns,
            Heard::Nothing => {}
            Heard::End => self.is_open = false,
        }
        let mut rest = room.as_slice();
        while let Some(line) = self.lines.take(&mut rest) {
            take(self.group, line);
        }
        self.begun.extend_from_slice(rest);
        heard
    }
}

fn idle_max_ns() -> u64 {
    u64::try_from(IDLE_MAX.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::TcpStream;

    fn connect(socket: &OwnedFd) -> TcpStream {
        TcpStream::connect(listen::bound_to(socket).unwrap()).unwrap()
    }

    /// Scripts that send a line and leave: more of them wait than there are places.
    #[test]
    fn who_sends_and_leaves_is_read_before_making_room() {
        let socket = listen::bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = connect(&socket);
        let mut clients = LineClients::new(100);
        clients.accept(&socket, 0, |_, _| panic!("nobody has sent anything"));
        let count = 2 * CLIENTS_MAX;
        for number in 1..count {
            let text = format!("a {number}\nb {number}\n");
            connect(&socket).write_all(text.as_bytes()).unwrap();
        }
        let mut lines = Vec::new();
        for moment in 1..4 {
            clients.accept(&socket, moment, |_, line| {
                lines.push(String::from_utf8(line.unwrap().to_vec()).unwrap());
            });
        }
        while clients.count() > 1 {
            let ready = vec![true; clients.clients.len()];
            clients.read(&ready, 4, |_, line| {
                lines.push(String::from_utf8(line.unwrap().to_vec()).unwrap());
            });
        }
        let sent = |name: char| (1..count).map(move |number| format!("{name} {number}"));
        let mut sent: Vec<String> = sent('a').chain(sent('b')).collect();
        sent.sort();
        lines.sort();
        assert_eq!(lines, sent);
        // A relay that sends each minute keeps its place.
        assert_eq!(clients.count(), 1);
        drop(silent);
        let mut troubles = Troubles::default();
        clients.take_counts(&mut troubles);
        assert_eq!(troubles.take().as_deref(), None);
    }

    #[test]
    fn the_longest_silent_client_makes_room() {
        let socket = listen::bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut clients = LineClients::new(100);
        let mut streams = Vec::new();
        for moment in 0..66 {
            streams.push(connect(&socket));
            clients.accept(&socket, moment, |_, _| panic!("nobody has sent anything"));
        }
        assert_eq!(clients.clients.len(), CLIENTS_MAX);
        // The first two clients are gone, and the third one sends.
        streams[2].write_all(b"one\ntw").unwrap();
        let mut ready = vec![false; CLIENTS_MAX];
        ready[0] = true;
        let mut lines = Vec::new();
        let mut read = |clients: &mut LineClients, ready: &[bool], now_ns| {
            clients.read(ready, now_ns, |group, line| {
                assert_eq!(group, SenderGroup::THIS_MACHINE);
                lines.push(line.unwrap().to_vec());
            });
        };
        read(&mut clients, &ready, 100);
        assert_eq!(clients.idle_end_ns(), Some(3 + idle_max_ns()));
        // Clients that were heard last before the moment 10 go.
        read(&mut clients, &[], 9 + idle_max_ns());
        assert_eq!(clients.clients.len(), CLIENTS_MAX - 7);
        streams[2].write_all(b"o\nthree").unwrap();
        drop(streams.remove(2));
        for _ in 0..3 {
            read(&mut clients, &ready, 200);
        }
        assert_eq!(lines, [b"one".to_vec(), b"two".to_vec()]);
        let mut troubles = Troubles::default();
        clients.take_counts(&mut troubles);
        let expected = "2 x a connection closed for another one, as there are 64; \
                    7 x a connection closed after 10 minutes of silence; \
                    1 x a line without an end in a stream";
        assert_eq!(troubles.take().as_deref(), Some(expected));
    }
}
