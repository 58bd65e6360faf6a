//! Open connections and their states. If there are too many, the hub closes one: never the newest, and never one of
//! an asker that holds less than another.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::asker::{Asker, Origin};

/// Most connections at a time.
const CONNECTIONS_MAX: usize = 512;
/// Most live streams among them.
const STREAMS_MAX: usize = 64;
/// Longest time for a request's head, and then for its body.
pub(crate) const ASK_TIME: Duration = Duration::from_secs(10);
/// Time after which a client that reads nothing of an answer is cut off.
const STALL_TIME: Duration = Duration::from_secs(10);
/// Time between two checks for that.
const LOOK: Duration = Duration::from_secs(2);

/// Activity of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// The connection is new, or the body of its request is still missing.
    Asks,
    /// An answer is being made or sent.
    IsAnswered,
    /// The answer is a live stream, which does not end.
    Follows,
    /// All answers are sent.
    Rests,
}

/// One connection.
pub(crate) struct Connection {
    /// The origin of the connection.
    pub(crate) origin: Origin,
    state: Mutex<State>,
    leave: Notify,
}

struct State {
    asker: Asker,
    doing: Doing,
    since: Instant,
    /// Time since which the client reads nothing of the bytes for it.
    stalled: Option<Instant>,
}

impl Connection {
    pub(crate) fn new(origin: Origin) -> Connection {
        Connection {
            origin,
            state: Mutex::new(State {
                asker: Asker::from(origin),
                doing: Doing::Asks,
                since: Instant::now(),
                stalled: None,
            }),
            leave: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new activity.
    pub(crate) fn does(&self, doing: Doing) {
        let mut state = self.state();
        (state.doing, state.since) = (doing, Instant::now());
    }

    /// Records the asker of a request on this connection.
    pub(crate) fn is_of(&self, asker: Asker) {
        self.state().asker = asker;
    }

    /// Ends the connection.
    pub(crate) fn send_away(&self) {
        self.leave.notify_one();
    }

    /// Notes that a write succeeded, or that the client did not read.
    pub(crate) fn took(&self, something: bool) {
        let mut state = self.state();
        match something {
            true => state.stalled = None,
            false => drop(state.stalled.get_or_insert_with(Instant::now)),
        }
    }

    /// Returns when the connection has to end: to make room, or because it is too slow.
    pub(crate) async fn ends(&self) {
        tokio::select! {
            () = self.leave.notified() => {}
            () = self.lags() => {}
        }
    }

    async fn lags(&self) {
        while !self.is_late() {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn is_late(&self) -> bool {
        let state = self.state();
        let asks_long = state.doing == Doing::Asks && state.since.elapsed() > ASK_TIME;
        asks_long
            || state
                .stalled
                .is_some_and(|since| since.elapsed() > STALL_TIME)
    }

    fn seen(&self) -> Seen {
        let state = self.state();
        let doing = match state.doing {
            // The client has not read the last of its answer yet.
            Doing::Rests if state.stalled.is_some() => Doing::IsAnswered,
            doing => doing,
        };
        Seen {
            asker: state.asker,
            doing,
            since: state.since,
        }
    }
}

/// All connections, oldest first.
#[derive(Default)]
pub(crate) struct Connections(Mutex<VecDeque<Arc<Connection>>>);

impl Connections {
    fn list(&self) -> MutexGuard<'_, VecDeque<Arc<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. True if another one was ended, because there were too many.
    pub(crate) fn enter(&self, origin: Origin) -> (Arc<Connection>, bool) {
        let connection = Arc::new(Connection::new(origin));
        let mut list = self.list();
        let full = list.len() >= CONNECTIONS_MAX;
        if full {
            send_away(&mut list, |_| true);
        }
        list.push_back(connection.clone());
        (connection, full)
    }

    /// Ends one connection to make room.
    pub(crate) fn make_room(&self) {
        send_away(&mut self.list(), |_| true);
    }

    /// Notes a live stream. If there are too many, ends another one.
    pub(crate) fn follows(&self, connection: &Connection) {
        let mut list = self.list();
        let streams = list
            .iter()
            .filter(|connection| connection.seen().doing == Doing::Follows);
        if streams.count() >= STREAMS_MAX {
            send_away(&mut list, |seen| seen.doing == Doing::Follows);
        }
        connection.does(Doing::Follows);
    }

    /// Removes a connection that has ended.
    pub(crate) fn leave(&self, connection: &Arc<Connection>) {
        self.list().retain(|known| !Arc::ptr_eq(known, connection));
    }
}

/// Ends one of the connections that may go.
fn send_away(list: &mut VecDeque<Arc<Connection>>, may_go: impl Fn(&Seen) -> bool) {
    let seen: Vec<(usize, Seen)> = list
        .iter()
        .map(|connection| connection.seen())
        .enumerate()
        .collect();
    let those = seen.into_iter().filter(|(_, seen)| may_go(seen)).collect();
    if let Some(connection) = who_goes(those).and_then(|index| list.remove(index)) {
        connection.send_away();
    }
}

/// State of a connection at one moment.
#[derive(Clone, Copy, Debug)]
struct Seen {
    asker: Asker,
    doing: Doing,
    since: Instant,
}

/// Chooses a connection of the asker with most of them: an idle one first; then one that asks or one that is being
/// answered, of the kind with more connections, so that neither kind drives out the other; streams last, because
/// they have a limit of their own. Within a kind the oldest goes.
fn who_goes(mut those: Vec<(usize, Seen)>) -> Option<usize> {
    let mut held: HashMap<Asker, usize> = HashMap::new();
    for (_, seen) in &those {
        *held.entry(seen.asker).or_default() += 1;
    }
    let most = held.values().copied().max()?;
    those.retain(|(_, seen)| held.get(&seen.asker) == Some(&most));
    let count = |doing| those.iter().filter(|(_, seen)| seen.doing == doing).count();
    let busy = match count(Doing::Asks) >= count(Doing::IsAnswered) {
        true => Doing::Asks,
        false => Doing::IsAnswered,
    };
    let order = [Doing::Rests, busy, Doing::Follows];
    let goes = order.into_iter().find(|doing| count(*doing) > 0)?;
    let of_these = those.iter().filter(|(_, seen)| seen.doing == goes);
    of_these
        .min_by_key(|(_, seen)| seen.since)
        .map(|(index, _)| *index)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Index of the connection that goes. Connections are listed oldest first: a letter for the asker, and a mark
    /// for the activity.
    fn goes(connections: &str) -> Option<usize> {
        let start = Instant::now();
        let connection = |(n, word): (usize, &str)| {
            let from = word.as_bytes()[0];
            let doing = match &word[1..] {
                "?" => Doing::Asks,
                "!" => Doing::IsAnswered,
                "~" => Doing::Follows,
                "." => Doing::Rests,
                other => panic!("{other}"),
            };
            let since = start + Duration::from_secs(n as u64);
            let asker = Asker::from(Origin::User(from.into()));
            (
                n,
                Seen {
                    asker,
                    doing,
                    since,
                },
            )
        };
        who_goes(
            connections
                .split_whitespace()
                .enumerate()
                .map(connection)
                .collect(),
        )
    }

    #[test]
    fn the_place_that_goes() {
        for (connections, who) in [
            ("", None),
            ("a?", Some(0)),
            ("a? a. a! a.", Some(1)),
            // The first of the larger kind; a stream only if there is nothing else.
            ("a~ a! a? a? a!", Some(2)),
            ("a~ a! a? a! a!", Some(1)),
            ("a~ a~ a!", Some(2)),
            ("a~ a~", Some(0)),
            // A connection of the asker with most of them goes, even if others are idle.
            ("b. b! a? a? a?", Some(2)),
            ("b. a~ a~ c?", Some(1)),
            ("b! a? c.", Some(2)),
        ] {
            assert_eq!(goes(connections), who, "{connections}");
        }
    }

    #[test]
    fn the_last_to_come_stays() {
        let connections = Connections::default();
        let from = Origin::User;
        let (other, _) = connections.enter(from(2));
        let held: Vec<_> = (1..CONNECTIONS_MAX)
            .map(|_| connections.enter(from(1)))
            .collect();
        assert!(held.iter().all(|(_, full)| !full));
        let is_here = |connection: &Arc<Connection>| {
            connections
                .list()
                .iter()
                .any(|known| Arc::ptr_eq(known, connection))
        };
        for (old, _) in &held {
            let (new, full) = connections.enter(from(1));
            assert!(full && is_here(&new) && !is_here(old));
        }
        assert!(
            is_here(&other),
            "a user who holds one connection loses none"
        );
        assert_eq!(connections.list().len(), CONNECTIONS_MAX);
    }

    #[test]
    fn streams_have_a_limit() {
        let connections = Connections::default();
        let all: Vec<_> = (0..2 * STREAMS_MAX)
            .map(|_| connections.enter(Origin::User(1)).0)
            .collect();
        all.iter()
            .for_each(|connection| connections.follows(connection));
        assert_eq!(connections.list().len(), STREAMS_MAX);
        assert!(
            Arc::ptr_eq(&connections.list()[0], &all[STREAMS_MAX]),
            "the oldest ended"
        );
    }
}
