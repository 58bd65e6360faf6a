//! Clients on a unix socket with a thread each. There are few seats for them, and users share them, so that no user keeps others
//! out with idle connections.

use std::collections::HashMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kymo_sys::listen::{self, Peer};
use kymo_sys::machine;

use crate::listener::StopSignal;
use crate::log::{Log, Severity};

/// Most connections at a time.
const SEATS_MAX: usize = 16;
/// Pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Longest sleep. Its length matters for nothing else.
const NAP: Duration = Duration::from_secs(3600);

/// A service for clients that have seats.
pub(crate) trait SeatedService: Sync {
    /// True if a client may have a seat.
    fn admits(&self, client: &OwnedFd) -> bool;

    /// Answers a client until the client leaves or all ends.
    fn answer(&self, stream: UnixStream, seat: &Seat);

    /// Ends what clients wait for: the last call.
    fn end(&self);
}

/// Gives the clients of a listening socket seats, and a thread each, until `stop`.
pub(crate) fn serve_seated(
    service: &impl SeatedService,
    socket: &OwnedFd,
    stop: &StopSignal,
    log: &Log,
) -> io::Result<()> {
    let seats = &Seats::default();
    thread::scope(|scope| {
        loop {
            let ready = machine::wait_readable(&[stop.as_fd(), socket.as_fd()], NAP);
            if ready.first() == Some(&true) {
                service.end();
                return Ok(());
            }
            if ready.get(1) != Some(&true) {
                continue;
            }
            let Some(client) = accept(socket, log).filter(|client| service.admits(client)) else {
                continue;
            };
            let stream = UnixStream::from(client);
            let Some(seat) = seats.take(&stream) else {
                continue;
            };
            let answer = move || service.answer(stream, &seat);
            let named = thread::Builder::new().name("answers".into());
            if let Err(error) = named.spawn_scoped(scope, answer) {
                let text = format!("cannot answer a client: {error}");
                log(Severity::Error, &text);
            }
        }
    })
}

fn accept(socket: &OwnedFd, log: &Log) -> Option<OwnedFd> {
    match listen::accept(socket) {
        Ok(client) => client,
        Err(error) => {
            let text = format!("cannot accept a connection: {error}");
            log(Severity::Error, &text);
            thread::sleep(PAUSE);
            None
        }
    }
}

/// All seats.
#[derive(Clone, Default)]
pub(crate) struct Seats(Arc<Mutex<Seated>>);

#[derive(Default)]
struct Seated {
    numbered: u64,
    list: Vec<Taken>,
}

struct Taken {
    number: u64,
    peer: Option<Peer>,
    stream: UnixStream,
    is_busy: bool,
    /// Number of the change to this state: smaller is earlier.
    since: u64,
}

/// The seat of one connection; dropping it frees the seat.
pub(crate) struct Seat {
    seats: Seats,
    number: u64,
}

/// Marks a seat as busy while a request is answered.
pub(crate) struct Busy<'a>(&'a Seat);

impl Seats {
    fn seated(&self) -> MutexGuard<'_, Seated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a seat. If all are taken, closes a connection of the user with most seats. `None`: the only candidates
    /// are answering.
    pub(crate) fn take(&self, stream: &UnixStream) -> Option<Seat> {
        let (peer, stream) = (listen::peer(stream), stream.try_clone().ok()?);
        let mut seated = self.seated();
        if seated.list.len() >= SEATS_MAX {
            let goes = seated.who_goes(peer)?;
            let ended = seated.list.remove(goes);
            // The thread of the connection notices and ends.
            let _gone = ended.stream.shutdown(Shutdown::Both);
        }
        seated.numbered += 1;
        let number = seated.numbered;
        seated.list.push(Taken {
            number,
            peer,
            stream,
            is_busy: false,
            since: number,
        });
        Some(Seat {
            seats: self.clone(),
            number,
        })
    }
}

impl Seated {
    /// Picks the longest idle connection of the users who would have most seats. A user with more seats than `peer`
    /// would have can also lose a busy one.
    fn who_goes(&self, peer: Option<Peer>) -> Option<usize> {
        let mut held = HashMap::from([(peer, 1)]);
        for connection in &self.list {
            *held.entry(connection.peer).or_insert(0) += 1;
        }
        let most = held.values().copied().max()?;
        let is_more = Some(&most) > held.get(&peer);
        let may_go = |(_, each): &(usize, &Taken)| {
            held.get(&each.peer) == Some(&most) && (!each.is_busy || is_more)
        };
        let may_go = self.list.iter().enumerate().filter(may_go);
        let goes = may_go.min_by_key(|(_, each)| (each.is_busy, each.since));
        goes.map(|(at, _)| at)
    }
}

impl Seat {
    /// Marks the seat as busy until the answer ends.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.set(true);
        Busy(self)
    }

    /// Waits within an answer. Meanwhile the seat counts as idle, so that another client may get it.
    pub(crate) fn rest_while<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.set(false);
        let waited = wait();
        self.set(true);
        waited
    }

    fn set(&self, is_busy: bool) {
        let mut seated = self.seats.seated();
        seated.numbered += 1;
        let now = seated.numbered;
        let mut all = seated.list.iter_mut();
        // A closed connection has no seat.
        if let Some(own) = all.find(|each| each.number == self.number) {
            (own.is_busy, own.since) = (is_busy, now);
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seated = self.seats.seated();
        seated.list.retain(|each| each.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::time::Duration;

    /// Sixteen idle connections kept all others out for ever.
    #[test]
    fn idle_connections_keep_nobody_out() {
        let seats = Seats::default();
        let pairs: Vec<_> = (0..SEATS_MAX + 1)
            .map(|_| UnixStream::pair().unwrap())
            .collect();
        let mut held: Vec<Seat> = pairs[..SEATS_MAX]
            .iter()
            .map(|(ours, _)| seats.take(ours).unwrap())
            .collect();
        let busy = held[0].busy();
        assert!(seats.take(&pairs[SEATS_MAX].0).is_some());
        assert_eq!(
            seats.seated().list.len(),
            SEATS_MAX - 1,
            "it has gone at once"
        );
        let mut ended = &pairs[1].1;
        ended
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        assert_eq!(
            ended.read(&mut [0; 1]).unwrap(),
            0,
            "the longest idle one was ended"
        );
        drop(busy);
        held.clear();
        assert!(seats.seated().list.is_empty());
    }

    #[test]
    fn the_user_with_most_seats_makes_room() {
        // Seats are letters of their users, `!` marks a busy seat; then the user of a new connection and the seat
        // that is freed.
        for (seated, comes, goes) in [
            ("a a b", 'c', Some(0)),
            ("a! a b", 'c', Some(1)),
            ("a! a! b", 'c', Some(0)),
            ("a! a! b", 'a', None),
            ("b a! a", 'a', Some(2)),
            ("a b c", 'd', Some(0)),
        ] {
            let list = (0..).zip(seated.split(' ')).map(|(number, word)| Taken {
                number,
                peer: Some(Peer::User(word.as_bytes()[0].into())),
                stream: UnixStream::pair().unwrap().0,
                is_busy: word.ends_with('!'),
                since: number,
            });
            let seated = Seated {
                numbered: 0,
                list: list.collect(),
            };
            let peer = Some(Peer::User(comes as u32));
            assert_eq!(seated.who_goes(peer), goes, "{comes} comes");
        }
    }
}
