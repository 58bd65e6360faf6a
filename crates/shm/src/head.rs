//! The words of a slot's head: owner and state of the slot.

use crate::layout::{GENERATION, HEAD_WORDS, OWNER, START, STATE};

/// Kind of a command's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SQL: recorded without its literals.
    Sql,
    /// Anything else: recorded up to its first blank.
    Plain,
    /// Not even in the file: only its length is.
    Secret,
}

impl Kind {
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Kind::Sql => 1,
            Kind::Plain => 2,
            Kind::Secret => 3,
        }
    }

    /// Kind of a byte; an unknown byte is [`Kind::Secret`], whose text goes nowhere.
    pub(crate) const fn of(byte: u8) -> Kind {
        match byte {
            1 => Kind::Sql,
            2 => Kind::Plain,
            _ => Kind::Secret,
        }
    }
}

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing was said yet, or something that this version does not know.
    None,
    /// Waits for a command.
    Idle,
    /// Executes one.
    Active,
    /// Waits, in an open transaction.
    IdleInTransaction,
    /// Waits, in a failed transaction.
    IdleInAbortedTransaction,
    /// The process gave the slot back.
    Gone,
}

impl State {
    /// As it stands in the file, and in the keeper's protocol.
    pub const fn byte(self) -> u8 {
        match self {
            State::None => 0,
            State::Idle => 1,
            State::Active => 2,
            State::IdleInTransaction => 3,
            State::IdleInAbortedTransaction => 4,
            State::Gone => 5,
        }
    }

    pub(crate) const fn of(byte: u8) -> State {
        match byte {
            1 => State::Idle,
            2 => State::Active,
            3 => State::IdleInTransaction,
            4 => State::IdleInAbortedTransaction,
            5 => State::Gone,
            _ => State::None,
        }
    }

    /// The word that says so of a generation.
    pub(crate) const fn word(self, generation: u64) -> u64 {
        generation << 8 | self.byte() as u64
    }
}

/// The clock of a publisher's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampClock {
    /// There are no stamps.
    None,
    /// Nanoseconds since 1970-01-01 UTC.
    Realtime,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic,
    /// Microseconds since 2000-01-01 UTC, as PostgreSQL's.
    Postgres,
}

/// From 1970-01-01 to 2000-01-01, in microseconds.
const POSTGRES_EPOCH_US: u64 = 946_684_800_000_000;

impl StampClock {
    pub(crate) const fn number(self) -> u32 {
        match self {
            StampClock::None => 0,
            StampClock::Realtime => 1,
            StampClock::Monotonic => 2,
            StampClock::Postgres => 3,
        }
    }

    pub(crate) const fn of(number: u32) -> StampClock {
        match number {
            1 => StampClock::Realtime,
            2 => StampClock::Monotonic,
            3 => StampClock::Postgres,
            _ => StampClock::None,
        }
    }

    /// A stamp in nanoseconds since 1970-01-01 UTC. `boot_ns` is what CLOCK_MONOTONIC was 0 at by that count. `None` of a stamp of 0,
    /// of no clock, or that is out of range.
    pub fn unix_ns(self, stamp: u64, boot_ns: u64) -> Option<u64> {
        match self {
            _ if stamp == 0 => None,
            StampClock::None => None,
            StampClock::Realtime => Some(stamp),
            StampClock::Monotonic => boot_ns.checked_add(stamp),
            StampClock::Postgres => stamp.checked_add(POSTGRES_EPOCH_US)?.checked_mul(1000),
        }
    }
}

/// The process that has a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// In the publisher's namespace of processes.
    pub pid: u32,
    /// In clock ticks from boot; 0: unknown.
    pub start: u64,
    /// How often the slot was taken, with this time: no two owners of a slot have the same number.
    pub taken: u32,
}

/// A slot's head, as it was read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Head(pub(crate) [u64; HEAD_WORDS]);

impl Head {
    pub(crate) fn owner(&self) -> Option<Owner> {
        let [pid, taken] = halves(self.0[OWNER]);
        (pid != 0).then_some(Owner {
            pid,
            start: self.0[START],
            taken,
        })
    }

    /// The state that was stored, if it is of the newest generation.
    pub(crate) fn state(&self) -> Option<State> {
        let (generation, word) = (self.0[GENERATION], self.0[STATE]);
        (word >> 8 == generation & (u64::MAX >> 8)).then(|| State::of(word.to_le_bytes()[0]))
    }
}

/// The lower and the upper 32 bits.
pub(crate) const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

pub(crate) const fn word_of(lower: u32, upper: u32) -> u64 {
    lower as u64 | (upper as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps() {
        assert_eq!(
            StampClock::Postgres.unix_ns(1, 0),
            Some(946_684_800_000_001_000)
        );
        assert_eq!(StampClock::Postgres.unix_ns(u64::MAX, 0), None);
        assert_eq!(StampClock::Monotonic.unix_ns(5, 100), Some(105));
        assert_eq!(StampClock::Realtime.unix_ns(5, 100), Some(5));
        assert_eq!(StampClock::Realtime.unix_ns(0, 100), None);
        assert_eq!(StampClock::None.unix_ns(5, 100), None);
    }

    #[test]
    fn a_state_holds_for_its_generation_alone() {
        let mut head = Head::default();
        head.0[GENERATION] = u64::MAX;
        head.0[STATE] = State::Idle.word(u64::MAX);
        assert_eq!(head.state(), Some(State::Idle));
        head.0[GENERATION] = 0;
        assert_eq!(head.state(), None);
    }
}
