//! The thread with the clients' sockets. It waits for events of all of them, and never for a single client.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kymo_sys::listen::{self, Peer};
use kymo_sys::ready::{self, Bell, Interest};
use kymo_sys::talk;
use kymo_sys::tcp_owner::{self, TcpOwners};

/// Most clients at a time.
const CLIENTS_MAX: usize = 64;
/// A client with more unread bytes at the end of an interval is dropped. A guess: an hour of one line a second, or a few seconds
/// of a thousand processes.
const PENDING_MAX: usize = 1 << 20;
/// Time after which a client that reads nothing is dropped.
const STALL: Duration = Duration::from_secs(60);
/// Time at the end for clients to read the rest.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Shortest time between two messages about dropped clients.
const QUIET: Duration = Duration::from_secs(60);
/// Longest wait while nothing happens.
const LONG: Duration = Duration::from_secs(3600);
/// Bytes of a client's input that are read at a time; the input means nothing.
const PIECE: usize = 4096;

/// Output of an interval.
pub(super) struct Batch {
    /// Head for clients that have not seen anything yet.
    pub(super) head: Arc<[u8]>,
    /// Lines of the interval.
    pub(super) bytes: Arc<[u8]>,
}

/// State that the view and the thread share.
pub(super) struct Shared {
    bell: Bell,
    inbox: Mutex<Inbox>,
    clients: AtomicUsize,
}

#[derive(Default)]
struct Inbox {
    batches: Vec<Batch>,
    ends: bool,
}

impl Shared {
    pub(super) fn new() -> std::io::Result<Shared> {
        Ok(Shared {
            bell: Bell::new()?,
            inbox: Mutex::default(),
            clients: AtomicUsize::new(usize::MAX),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an interval to the thread. Returns the number of clients at its last look.
    pub(super) fn send(&self, batch: Batch) -> usize {
        self.lock().batches.push(batch);
        self.bell.ring();
        self.clients.load(Ordering::Relaxed)
    }

    /// Ends the output.
    pub(super) fn end(&self) {
        self.lock().ends = true;
        self.bell.ring();
    }
}

/// A client, and its unread bytes.
struct Subscriber {
    file: File,
    /// The client that the limits count for.
    peer: Option<Peer>,
    /// Time at which the client last read something, or had nothing to read.
    took: Instant,
    pending: Vec<u8>,
    sent: usize,
    is_new: bool,
}

/// State of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    Gone,
    Slow,
}

impl Subscriber {
    fn new(socket: OwnedFd, peer: Option<Peer>) -> Subscriber {
        Subscriber {
            file: File::from(socket),
            peer,
            took: Instant::now(),
            pending: Vec::new(),
            sent: 0,
            is_new: true,
        }
    }

    fn left(&self) -> usize {
        self.pending.len() - self.sent
    }

    fn take(&mut self, batch: &Batch) -> Health {
        if self.left() > PENDING_MAX || self.is_stalled() {
            return Health::Slow;
        }
        self.pending.drain(..self.sent);
        self.sent = 0;
        if std::mem::take(&mut self.is_new) {
            self.pending.extend_from_slice(&batch.head);
        }
        self.pending.extend_from_slice(&batch.bytes);
        self.flush()
    }

    fn is_stalled(&self) -> bool {
        self.left() > 0 && self.took.elapsed() > STALL
    }

    fn flush(&mut self) -> Health {
        while self.left() > 0 {
            match (&self.file).write(&self.pending[self.sent..]) {
                Ok(count) if count > 0 => {
                    self.sent += count;
                    self.took = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Health::Well,
                _ => return Health::Gone,
            }
        }
        self.took = Instant::now();
        Health::Well
    }

    /// Reads a client's input, which means nothing, and notices if the client is gone. One piece at a time, so that a client that
    /// sends without end holds up no other.
    fn listen(&mut self) -> Health {
        match (&self.file).read(&mut [0; PIECE]) {
            Ok(0) => Health::Gone,
            Err(error)
                if ![ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) =>
            {
                Health::Gone
            }
            _ => Health::Well,
        }
    }
}

/// State of the thread.
pub(super) struct Hub {
    shared: Arc<Shared>,
    listeners: Vec<OwnedFd>,
    owners: Option<TcpOwners>,
    clients: Vec<Subscriber>,
    dropped: u64,
    refused: u64,
    reported: Option<Instant>,
}

impl Hub {
    pub(super) fn new(shared: Arc<Shared>, listeners: Vec<OwnedFd>, clients: Vec<OwnedFd>) -> Hub {
        shared.clients.store(clients.len(), Ordering::Relaxed);
        Hub {
            shared,
            listeners,
            owners: TcpOwners::open().ok(),
            clients: clients
                .into_iter()
                .map(|socket| Subscriber::new(socket, None))
                .collect(),
            dropped: 0,
            refused: 0,
            reported: None,
        }
    }

    /// Serves until the view ends.
    pub(super) fn run(mut self) {
        loop {
            let ready = self.wait(LONG);
            let (bell, rest) = ready.split_first().unwrap_or((&false, &[]));
            let (doors, clients) = rest.split_at(self.listeners.len().min(rest.len()));
            self.talk(clients);
            if doors.contains(&true) {
                self.accept();
            }
            if *bell {
                self.shared.bell.hear();
                let inbox = std::mem::take(&mut *self.shared.lock());
                for batch in &inbox.batches {
                    self.each(|client| client.take(batch));
                }
                if inbox.ends {
                    return self.end();
                }
            }
        }
    }

    fn wait(&self, at_most: Duration) -> Vec<bool> {
        let own = std::iter::once(self.shared.bell.as_fd());
        let doors = self.listeners.iter().map(|socket| socket.as_fd());
        let clients = self.clients.iter().map(|client| {
            let interest = match client.left() {
                0 => Interest::Read,
                _ => Interest::ReadOrWrite,
            };
            (client.file.as_fd(), interest)
        });
        let files: Vec<(BorrowedFd, Interest)> = own
            .chain(doors)
            .map(|file| (file, Interest::Read))
            .chain(clients)
            .collect();
        ready::wait(&files, at_most)
    }

    fn talk(&mut self, ready: &[bool]) {
        let mut ready = ready.iter().copied().chain(std::iter::repeat(false));
        self.each(|client| match ready.next() {
            Some(true) => match client.listen() {
                Health::Well => client.flush(),
                other => other,
            },
            _ => Health::Well,
        });
    }

    fn accept(&mut self) {
        for at in 0..self.listeners.len() {
            // A limited number, so that existing clients are served as well.
            for _ in 0..CLIENTS_MAX {
                let Ok(Some(socket)) = listen::accept(&self.listeners[at]) else {
                    break;
                };
                self.admit(socket);
            }
        }
        self.count();
    }

    /// Gives a client a place. If all are taken, a client of the user with most places makes room.
    fn admit(&mut self, socket: OwnedFd) {
        let peer = tcp_owner::share(&socket, self.owners.as_ref());
        if self.clients.len() >= CLIENTS_MAX {
            self.refused += 1;
            self.say();
            let Some(goes) = who_goes(&self.clients, peer) else {
                return;
            };
            self.clients.remove(goes);
        }
        self.clients.push(Subscriber::new(socket, peer));
    }

    /// Calls `act` for each client, and drops clients that are gone or slow.
    fn each(&mut self, mut act: impl FnMut(&mut Subscriber) -> Health) {
        let before = self.dropped;
        let dropped = &mut self.dropped;
        self.clients.retain_mut(|client| {
            let health = act(client);
            *dropped += u64::from(health == Health::Slow);
            health == Health::Well
        });
        if self.dropped > before {
            self.say();
        }
        self.count();
    }

    fn count(&self) {
        let count = self.clients.len();
        self.shared.clients.store(count, Ordering::Relaxed);
    }

    fn say(&mut self) {
        if self
            .reported
            .is_some_and(|reported| reported.elapsed() < QUIET)
        {
            return;
        }
        self.reported = Some(Instant::now());
        self.say_now();
    }

    fn say_now(&self) {
        if self.dropped > 0 {
            talk::say(format_args!(
                "kymo: dropped clients that did not read what was sent: {} so far",
                self.dropped
            ));
        }
        if self.refused > 0 {
            talk::say(format_args!(
                "kymo: let clients go, as {CLIENTS_MAX} are served: {} so far",
                self.refused
            ));
        }
    }

    /// Gives clients a moment to read the rest.
    fn end(&mut self) {
        let begin = Instant::now();
        self.listeners.clear();
        while self.clients.iter().any(|client| client.left() > 0) {
            let left = LAST_PATIENCE.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            let ready = self.wait(left);
            self.talk(ready.get(1..).unwrap_or_default());
        }
    }
}

/// The client that makes room for one of `peer`: of the users with most places, the client that has read nothing for
/// longest. A client that reads goes only if its user has more places than `peer` would have.
fn who_goes(clients: &[Subscriber], peer: Option<Peer>) -> Option<usize> {
    let held = |of: Option<Peer>| {
        let theirs = clients.iter().filter(|client| client.peer == of).count();
        theirs + usize::from(of == peer)
    };
    let most = clients.iter().map(|client| held(client.peer)).max()?;
    let is_more = most > held(peer);
    let may_go = |(_, client): &(usize, &Subscriber)| {
        held(client.peer) == most && (client.left() > 0 || is_more)
    };
    let may_go = clients.iter().enumerate().filter(may_go);
    let goes = may_go.min_by_key(|(_, client)| (client.left() == 0, client.took));
    goes.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn batch(head: &str, bytes: &[u8]) -> Batch {
        Batch {
            head: head.as_bytes().into(),
            bytes: bytes.into(),
        }
    }

    fn pair() -> (Subscriber, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        (Subscriber::new(ours.into(), None), theirs)
    }

    #[test]
    fn who_comes_sees_the_head_first_and_once() {
        let (mut client, mut theirs) = pair();
        for line in ["a\n", "b\n"] {
            assert!(client.take(&batch("#\n", line.as_bytes())) == Health::Well);
        }
        drop(client);
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "#\na\nb\n");
    }

    #[test]
    fn who_does_not_read_is_slow_whatever_an_interval_takes() {
        let (mut client, _theirs) = pair();
        let much = vec![b'x'; 3 * PENDING_MAX];
        // One large interval does not make a client slow.
        assert!(client.take(&batch("", &much)) == Health::Well);
        assert!(client.take(&batch("", b"y\n")) == Health::Slow);
        let (mut client, theirs) = pair();
        drop(theirs);
        assert!(client.take(&batch("", b"y\n")) == Health::Gone);
    }

    /// 64 clients that read nothing once held all places for as long as they wanted.
    #[test]
    fn the_user_with_most_places_makes_room() {
        let start = Instant::now();
        // Clients are letters of their users, `!` marks a client that reads nothing; then the user of the new client and the
        // client that goes.
        for (clients, comes, goes) in [
            ("a a a b", 'c', Some(0)),
            ("a a! a b", 'c', Some(1)),
            ("a a! b", 'b', Some(1)),
            ("a a b", 'b', None),
            ("a! a b", 'a', Some(0)),
            ("a a! b", 'a', Some(1)),
            ("a a b", 'a', None),
            ("a b c", 'd', None),
        ] {
            let mut others = Vec::new();
            let clients: Vec<Subscriber> = (0..)
                .zip(clients.split(' '))
                .map(|(n, word)| {
                    let (mut client, theirs) = pair();
                    others.push(theirs);
                    client.peer = Some(Peer::User(word.as_bytes()[0].into()));
                    client.took = start + Duration::from_secs(n);
                    client.pending.resize(word.len() - 1, b'x');
                    client
                })
                .collect();
            let peer = Some(Peer::User(comes as u32));
            assert_eq!(who_goes(&clients, peer), goes, "{comes} comes");
        }
    }

    #[test]
    fn a_client_that_reads_nothing_is_dropped_after_a_while() {
        let (mut client, _theirs) = pair();
        client.pending.resize(10, b'x');
        assert!(!client.is_stalled());
        client.took = Instant::now() - STALL - Duration::from_secs(1);
        assert!(client.take(&batch("", b"y\n")) == Health::Slow);
        client.pending.clear();
        assert!(
            client.take(&batch("", b"y\n")) == Health::Well,
            "there was nothing to take"
        );
    }
}
