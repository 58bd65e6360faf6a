//! Room for large answers. Without a limit, askers that do not read their answers would fill the memory. If the room
//! is full, the asker that holds most loses its oldest answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::asker::Asker;
use crate::connections::Connection;
use crate::visitor::Visitor;

/// Most KiB of large answers that are being sent.
const ROOM_KB: usize = 32 << 10;
/// Answers of at least this size count.
pub(crate) const LARGE: usize = 64 << 10;
/// Time for which an answer is safe, unless its asker holds more than half of the room. A guess: a browser reads megabytes in
/// less.
const SAFE: Duration = Duration::from_secs(2);

/// The room.
#[derive(Default)]
pub(crate) struct Room(Mutex<State>);

#[derive(Default)]
struct State {
    /// Oldest first.
    held: Vec<Held>,
    numbered: u64,
}

struct Held {
    number: u64,
    asker: Asker,
    kb: usize,
    since: Instant,
    connection: Arc<Connection>,
}

/// An answer that is being sent; its room is free when the answer is dropped.
pub(crate) struct Unsent {
    bytes: Vec<u8>,
    room: Arc<Room>,
    number: u64,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.held.retain(|held| held.number != self.number);
    }
}

impl Room {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes room for an answer; `None`: there is too little, and no asker with more than this one would have can lose an
    /// answer.
    pub(crate) fn take(self: &Arc<Room>, visitor: &Visitor, bytes: Vec<u8>) -> Option<Unsent> {
        // An answer larger than the room takes the whole room.
        let kb = (bytes.len() >> 10).min(ROOM_KB);
        let (mut state, now) = (self.state(), Instant::now());
        while state.kb() + kb > ROOM_KB {
            let lost = state.who_loses(visitor.asker, kb, now)?;
            state.held.remove(lost).connection.send_away();
        }
        state.numbered += 1;
        let number = state.numbered;
        state.held.push(Held {
            number,
            asker: visitor.asker,
            kb,
            since: now,
            connection: visitor.connection.clone(),
        });
        Some(Unsent {
            bytes,
            room: self.clone(),
            number,
        })
    }
}

impl State {
    fn kb(&self) -> usize {
        self.held.iter().map(|held| held.kb).sum()
    }

    /// Chooses the answer that makes room for `kb` more of `asker`: the oldest of the asker that would then hold
    /// most.
    fn who_loses(&self, asker: Asker, kb: usize, now: Instant) -> Option<usize> {
        let mut by_asker = HashMap::from([(asker, kb)]);
        for held in &self.held {
            *by_asker.entry(held.asker).or_default() += held.kb;
        }
        let (&most, &most_kb) = by_asker.iter().max_by_key(|(_, kb)| **kb)?;
        let at = self.held.iter().position(|held| held.asker == most)?;
        let is_safe = now.duration_since(self.held[at].since) < SAFE;
        let may_lose = !is_safe || most != asker && most_kb > ROOM_KB / 2;
        may_lose.then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asker::Origin;

    /// The answer that makes room for `mb` MiB of `asker`. `held` lists answers, oldest first: a letter for the
    /// asker, MiB, age in seconds.
    fn loses(asker: char, mb: usize, held: &str) -> Option<usize> {
        let now = Instant::now() + Duration::from_secs(100);
        let of = |letter: char| Asker::from(Origin::User(letter as u32));
        let held = held.split_whitespace().map(|word| {
            let mut parts = word[1..]
                .split('/')
                .map(|part| part.parse().expect("a number"));
            Held {
                number: 0,
                asker: of(word.chars().next().expect("a letter")),
                kb: parts.next().map_or(0, |mb: u64| mb as usize) << 10,
                since: now - Duration::from_secs(parts.next().expect("an age")),
                connection: Arc::new(Connection::new(Origin::User(0))),
            }
        });
        let state = State {
            held: held.collect(),
            numbered: 0,
        };
        state.who_loses(of(asker), mb << 10, now)
    }

    #[test]
    fn the_asker_that_holds_most_loses_its_oldest_answer() {
        for (asker, mb, held, lost) in [
            ('b', 1, "a10/9 a10/8 a12/7", Some(0)),
            ('b', 1, "c1/9 a10/8 a20/7", Some(1)),
            // An asker with more than half of the room loses even new answers.
            ('b', 1, "c1/1 a20/1 a11/0", Some(1)),
            ('b', 1, "c15/1 a15/1", None),
            // An asker that would hold most gets no room, or loses its oldest answer if that is old enough.
            ('a', 9, "b8/9 a20/1", None),
            ('a', 9, "b8/9 a20/3", Some(1)),
            ('a', 20, "b15/9", None),
        ] {
            assert_eq!(loses(asker, mb, held), lost, "{asker}{mb} beside {held}");
        }
    }

    #[test]
    fn room_is_free_when_an_answer_is_gone() {
        let room = Arc::new(Room::default());
        let visitor = |user| Visitor {
            asker: Asker::from(Origin::User(user)),
            scopes: crate::access::Scopes::NONE,
            connection: Arc::new(Connection::new(Origin::User(user))),
        };
        let much = || vec![0; 20 << 20];
        let first = room.take(&visitor(1), much()).expect("room");
        assert!(
            room.take(&visitor(1), much()).is_none(),
            "it waits for itself"
        );
        let second = room
            .take(&visitor(2), vec![0; 14 << 20])
            .expect("the first holds more");
        assert_eq!(room.state().held.len(), 1);
        drop((first, second));
        assert_eq!(room.state().kb(), 0);
        assert!(
            room.take(&visitor(1), vec![0; 40 << 20]).is_some(),
            "all of it"
        );
    }
}
