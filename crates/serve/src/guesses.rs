//! Wrong tokens by origin: the hub counts and logs them, and answers each one later than the last. It never delays a
//! right token, because one address may be many users behind a proxy. So this does not protect the token, of which
//! there are 2^128; it shows guesses to the operator, and slows the guesser alone.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::asker::Origin;

/// Wrong tokens without delay. A page with an expired session asks several questions at once.
const FREE: u32 = 10;
/// Time after which one more wrong token has no delay.
const EACH: Duration = Duration::from_secs(1);
/// Longest delay of a refusal.
const LATEST: Duration = Duration::from_secs(10);
/// Most origins; beyond it the origin that was silent for longest is forgotten.
const ORIGINS_MAX: usize = 1024;
/// Shortest time between two lines of the log about one origin.
const SAID_EACH: Duration = Duration::from_secs(60);

/// Wrong tokens since the start.
#[derive(Default)]
pub(crate) struct Guesses(Mutex<State>);

#[derive(Default)]
struct State {
    total: u64,
    origins: HashMap<Origin, Guesser>,
}

struct Guesser {
    wrong: u64,
    last: Instant,
    /// End of the delays for the tokens beyond the free ones.
    paid: Instant,
    reported: Option<Instant>,
    /// Guesses since the last log line about the origin.
    unsaid: u64,
}

/// The answer to a wrong token.
#[derive(Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Delay of the refusal; zero while the origin has free guesses left.
    pub(crate) wait: Duration,
    /// The line for the log, if one is due.
    pub(crate) say: Option<String>,
}

/// An origin that has guessed.
pub(crate) struct Guessed {
    pub(crate) origin: Origin,
    pub(crate) wrong: u64,
    pub(crate) age: Duration,
}

impl Guesses {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a wrong token.
    pub(crate) fn wrong(&self, origin: Origin, now: Instant) -> Verdict {
        let mut state = self.state();
        state.total += 1;
        state.make_room(origin);
        let guesser = state.origins.entry(origin).or_insert(Guesser {
            wrong: 0,
            last: now,
            paid: now,
            reported: None,
            unsaid: 0,
        });
        guesser.wrong(origin, now)
    }

    /// The number of wrong tokens, and their origins, most guesses first.
    pub(crate) fn all(&self) -> (u64, Vec<Guessed>) {
        let state = self.state();
        let guessed = state.origins.iter().map(|(&origin, guesser)| Guessed {
            origin,
            wrong: guesser.wrong,
            age: guesser.last.elapsed(),
        });
        let mut guessed: Vec<Guessed> = guessed.collect();
        guessed.sort_by_key(|guessed| std::cmp::Reverse(guessed.wrong));
        (state.total, guessed)
    }
}

impl State {
    fn make_room(&mut self, origin: Origin) {
        if self.origins.len() < ORIGINS_MAX || self.origins.contains_key(&origin) {
            return;
        }
        let silent = self.origins.iter().min_by_key(|(_, guesser)| guesser.last);
        if let Some(origin) = silent.map(|(&origin, _)| origin) {
            self.origins.remove(&origin);
        }
    }
}

impl Guesser {
    fn wrong(&mut self, origin: Origin, now: Instant) -> Verdict {
        let latest = now + EACH * FREE + LATEST;
        (self.wrong, self.last) = (self.wrong + 1, now);
        self.paid = (self.paid.max(now) + EACH).min(latest);
        self.unsaid += 1;
        let is_due = self
            .reported
            .is_none_or(|reported| now.duration_since(reported) >= SAID_EACH);
        let say = is_due.then(|| {
            self.reported = Some(now);
            let count = std::mem::take(&mut self.unsaid);
            let from = origin.words();
            format!(
                "refused wrong tokens of {from}: {count} more, {} so far",
                self.wrong
            )
        });
        Verdict {
            wait: self.paid.saturating_duration_since(now + EACH * FREE),
            say,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Origin = Origin::User(65534);

    #[test]
    fn a_guesser_waits_ever_longer_and_nobody_else_does() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        let wait = |origin, ms| {
            let now = start + Duration::from_millis(ms);
            guesses.wrong(origin, now).wait.as_millis()
        };
        let waits: Vec<u128> = (0..30).map(|_| wait(USER, 0)).collect();
        assert!(waits[..10].iter().all(|&ms| ms == 0), "{waits:?}");
        assert_eq!(waits[10..14], [1000, 2000, 3000, 4000]);
        assert_eq!(waits[29], 10_000);
        assert_eq!(wait(Origin::User(0), 0), 0);
        assert_eq!(wait(USER, 15_000), 0, "some are free again");
        assert_eq!(guesses.all().0, 32);
        assert_eq!(guesses.all().1[0].wrong, 31);
    }

    #[test]
    fn each_origin_is_logged_once_a_minute() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        let reported = |second| guesses.wrong(USER, start + Duration::from_secs(second)).say;
        let line = "refused wrong tokens of user 65534 of this machine: ";
        assert_eq!(reported(0), Some(format!("{line}1 more, 1 so far")));
        assert_eq!((1..60).filter_map(reported).count(), 0);
        assert_eq!(reported(60), Some(format!("{line}60 more, 61 so far")));
    }

    #[test]
    fn origins_are_bounded() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        for n in 0..2 * ORIGINS_MAX as u32 {
            guesses.wrong(Origin::User(n), start + Duration::from_millis(n.into()));
        }
        assert_eq!(guesses.state().origins.len(), ORIGINS_MAX);
        assert!(!guesses.state().origins.contains_key(&Origin::User(0)));
    }
}
