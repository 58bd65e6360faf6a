//! Turns: the hub answers few questions at a time, and serves waiting askers in turn, whatever the number of their
//! questions. Each kind of question has a lane of its own, so that no question waits for slower kinds.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::asker::Asker;

/// Turns of a lane at a time. The last turn is for an asker without one, so that an asker that fills a lane leaves a
/// turn to the next asker. Each turn may take a hundred megabytes, so there are few.
const TURNS_MAX: usize = 3;
/// Turns for questions to the keeper, each with a connection of its own. The keeper answers 16 connections.
pub(crate) const KEEPER_TURNS_MAX: usize = 4;
/// Turns for questions of Prometheus' clients, each with a connection to the keeper.
pub(crate) const SERIES_TURNS_MAX: usize = 3;
/// Turns for requests of senders, each with a connection to the keeper, which takes one request after the other.
pub(crate) const PUSH_TURNS_MAX: usize = 3;
/// Askers with the token go before those without, but for each turn of this number, so that none waits for ever.
const TOKENLESS_EACH: u32 = 4;

/// Kinds of questions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// Some milliseconds of this machine's newest samples.
    Short,
    /// All other questions about recordings.
    Long,
    /// Questions to the keeper, which may hang.
    Keeper,
    /// Questions of Prometheus' clients, which ask many at once.
    Series,
    /// Requests of senders, which the keeper writes.
    Push,
}

/// Threads that all lanes need.
pub(crate) const THREADS: usize =
    2 * TURNS_MAX + KEEPER_TURNS_MAX + SERIES_TURNS_MAX + PUSH_TURNS_MAX;

/// All lanes.
pub(crate) struct Lanes {
    short: Arc<Turns>,
    long: Arc<Turns>,
    keeper: Arc<Turns>,
    series: Arc<Turns>,
    push: Arc<Turns>,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes {
            short: Turns::new(TURNS_MAX),
            long: Turns::new(TURNS_MAX),
            keeper: Turns::new(KEEPER_TURNS_MAX),
            series: Turns::new(SERIES_TURNS_MAX),
            push: Turns::new(PUSH_TURNS_MAX),
        }
    }
}

impl Lanes {
    /// The lane of a kind.
    pub(crate) fn of(&self, lane: Lane) -> &Arc<Turns> {
        match lane {
            Lane::Short => &self.short,
            Lane::Long => &self.long,
            Lane::Keeper => &self.keeper,
            Lane::Series => &self.series,
            Lane::Push => &self.push,
        }
    }
}

/// The turns of a lane.
pub(crate) struct Turns(Mutex<State>);

#[derive(Default)]
struct State {
    turns: usize,
    /// Number of turns of each asker.
    held: HashMap<Asker, usize>,
    /// Waiting askers, the next one first; each has at least one question.
    waiting: VecDeque<(Asker, VecDeque<oneshot::Sender<Turn>>)>,
    granted: u32,
}

/// An asker's turn. Dropping it ends the turn.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    asker: Asker,
}

impl Turns {
    fn new(turns: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State {
            turns,
            ..State::default()
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the asker's turn. A question whose client has gone loses its place.
    pub(crate) async fn wait(self: &Arc<Turns>, asker: Asker) -> Option<Turn> {
        let (grant, granted) = oneshot::channel();
        self.state().wait(asker, grant);
        self.go_on();
        granted.await.ok()
    }

    /// Gives all turns that may be given.
    fn go_on(self: &Arc<Turns>) {
        loop {
            // A turn that is not taken any more ends at once, and must not find the lock held.
            let Some((asker, grant)) = self.state().next() else {
                return;
            };
            let turns = self.clone();
            drop(grant.send(Turn { turns, asker }));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.state().end(self.asker);
        self.turns.go_on();
    }
}

impl State {
    fn wait(&mut self, asker: Asker, grant: oneshot::Sender<Turn>) {
        match self.waiting.iter_mut().find(|(known, _)| *known == asker) {
            Some((_, grants)) => grants.push_back(grant),
            None => self.waiting.push_back((asker, [grant].into())),
        }
    }

    fn end(&mut self, asker: Asker) {
        if let Some(held) = self.held.get_mut(&asker) {
            *held -= 1;
            if *held == 0 {
                self.held.remove(&asker);
            }
        }
    }

    /// Takes the next waiting question and counts its turn.
    fn next(&mut self) -> Option<(Asker, oneshot::Sender<Turn>)> {
        for (_, grants) in &mut self.waiting {
            grants.retain(|grant| !grant.is_closed());
        }
        self.waiting.retain(|(_, grants)| !grants.is_empty());
        let first = (self.granted + 1).is_multiple_of(TOKENLESS_EACH);
        let may = |of: &dyn Fn(&Asker) -> bool| {
            let mut waiting = self.waiting.iter();
            waiting.position(|(asker, _)| of(asker) && self.may_have(asker))
        };
        let at = may(&|asker| asker.has_token != first).or_else(|| may(&|_| true))?;
        let (asker, mut grants) = self.waiting.remove(at)?;
        let grant = grants.pop_front()?;
        if !grants.is_empty() {
            self.waiting.push_back((asker, grants));
        }
        self.granted = self.granted.wrapping_add(1);
        *self.held.entry(asker).or_default() += 1;
        Some((asker, grant))
    }

    fn may_have(&self, asker: &Asker) -> bool {
        let free = self.turns.saturating_sub(self.held.values().sum());
        free > 1 || free == 1 && !self.held.contains_key(asker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asker::Origin;

    fn asker(letter: char) -> Asker {
        Asker {
            origin: Origin::User(u32::from(letter.to_ascii_lowercase())),
            has_token: letter.is_ascii_uppercase(),
        }
    }

    /// The order of turns for askers that come one after the other (`first`), and then for askers that come while all
    /// turns are taken (`then`); the oldest turn ends first. Capital letters have the token.
    fn served(first: &str, then: &str) -> String {
        let (mut order, mut answers) = (String::new(), Vec::new());
        let mut state = State {
            turns: TURNS_MAX,
            ..State::default()
        };
        let mut held = VecDeque::new();
        let mut grant = |state: &mut State, held: &mut VecDeque<Asker>| {
            while let Some((asker, _)) = state.next() {
                let Origin::User(letter) = asker.origin else {
                    unreachable!("BUG: users only");
                };
                let letter = char::from_u32(letter).expect("a letter");
                order.push(match asker.has_token {
                    true => letter.to_ascii_uppercase(),
                    false => letter,
                });
                held.push_back(asker);
            }
        };
        for letter in first.chars().chain(then.chars()) {
            let (sender, answer) = oneshot::channel();
            answers.push(answer);
            state.wait(asker(letter), sender);
            grant(&mut state, &mut held);
        }
        while let Some(ended) = held.pop_front() {
            state.end(ended);
            grant(&mut state, &mut held);
        }
        assert!(state.waiting.is_empty() && state.held.is_empty());
        order
    }

    #[test]
    fn askers_take_turns() {
        for (first, then, order) in [
            ("", "", ""),
            ("a", "a", "aa"),
            // An asker has two turns at most, so the next asker finds one.
            ("aaaa", "b", "aabaa"),
            ("aaaaaa", "bbb", "aabababaa"),
            // Two askers have all turns: a third one is next.
            ("aabbb", "c", "aabcbb"),
            // Askers with the token go first; every fourth turn is for others.
            ("aab", "cCCCC", "aabcCCCC"),
            ("aabc", "deC", "aabcCde"),
        ] {
            assert_eq!(served(first, then), order, "{first} {then}");
        }
    }

    #[test]
    fn a_question_of_a_client_that_has_gone_is_skipped() {
        let mut state = State {
            turns: TURNS_MAX,
            ..State::default()
        };
        let (gone, answer) = oneshot::channel();
        state.wait(asker('a'), gone);
        drop(answer);
        let (sender, _answer) = oneshot::channel();
        state.wait(asker('b'), sender);
        assert_eq!(state.next().map(|(asker, _)| asker), Some(asker('b')));
        assert!(state.waiting.is_empty());
    }

    /// A turn ends where it is dropped, also a turn that was not taken.
    #[test]
    fn a_turn_that_is_dropped_is_the_next_ones() {
        let turns = Turns::new(TURNS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            for _ in 0..3 * TURNS_MAX {
                assert!(turns.wait(asker('a')).await.is_some());
            }
            let (_one, _two) = (turns.wait(asker('a')).await, turns.wait(asker('a')).await);
            let third = turns.wait(asker('a'));
            let other = turns.wait(asker('b'));
            tokio::select! {
                biased;
                _ = third => panic!("the last turn is for an asker without one"),
                turn = other => assert!(turn.is_some()),
            }
        });
    }
}
