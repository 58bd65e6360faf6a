//! Names that came once. Anybody can make up names, so an unsigned name costs the store nothing until its sender
//! repeats it: its first value waits here, in memory of a fixed size.
//!
//! Names wait for each sender group apart, so that no sender repeats or spoils names of another. A secret draws
//! groups into lots, and lots share the room. When the room is full, the oldest name of the largest lot goes; if no
//! lot has more than its share, as with forged addresses, the oldest of all names goes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::mem::take;

use kymo_wire::collectd::Cdtime;

use super::fifo::{Fifo, Link, at};
use crate::sender_group::SenderGroup;

/// Most bytes of all waiting names, as [`weight`] counts them: 200,000 names with short values.
const BYTES_MAX: usize = 28 << 20;
/// A lot of at most this size gives no room to others.
const SHARE_BYTES: usize = BYTES_MAX / 256;
/// Bytes of a name without its value, with empty places of tables.
const NAME_BYTES: usize = 112;
/// Number of lots.
const LOTS: u32 = 8192;
/// Intervals of a name for which it waits: collectd keeps values back for up to one, and a datagram may be lost.
const INTERVALS: u64 = 3;
/// Seconds that a name without an interval waits.
const UNSAID_S: u64 = 600;
/// Most seconds that any name waits.
const WAITS_MAX_S: u64 = 86_400;

/// A name's place in the table.
pub(super) type Id = u32;

/// A value with a new name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer<'a> {
    /// The path of its file.
    pub path: &'a [u8],
    pub group: SenderGroup,
    /// The socket's place, and the number of the sender's account there.
    pub account: (usize, u16),
    pub time: Cdtime,
    /// The interval that the sender gave; zero: none.
    pub interval: Cdtime,
    /// The kinds of its values, as packets spell them.
    pub codes: &'a [u8],
    /// The value as the store reads it.
    pub text: &'a [u8],
}

/// The first value of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct First {
    pub account: (usize, u16),
    pub time: Cdtime,
    codes: u8,
    /// Kinds of the values, then the value as the store reads it.
    bytes: Box<[u8]>,
}

impl First {
    /// Kinds of the values.
    pub(super) fn codes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.codes)]
    }

    /// Number of values.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.codes)
    }

    /// The value as the store reads it.
    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[usize::from(self.codes)..]
    }
}

/// State of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    /// The name is new and waits from now on.
    Begins,
    /// The name waits, and this value is not newer than its first one.
    Late,
    /// The sender has repeated the name: [`Probation::release`] takes it out.
    Repeated(Id),
}

#[derive(Debug)]
struct WaitingName {
    print: u64,
    lot: u32,
    /// End of the wait in seconds, by a clock that does not go back.
    until_s: u64,
    first: First,
}

/// The names of the sender groups of one lot.
#[derive(Debug, Default)]
struct Lot {
    bytes: usize,
    names: Fifo,
}

/// All waiting names.
#[derive(Default)]
pub(super) struct Probation {
    keys: RandomState,
    by_print: HashMap<u64, Id>,
    waiting: Vec<Option<WaitingName>>,
    free: Vec<Id>,
    by_age: Fifo,
    /// Links of each name: by age, and within its lot.
    age_links: Vec<Link>,
    lot_links: Vec<Link>,
    lots: Vec<Lot>,
    /// Lots by their bytes.
    by_bytes: BTreeSet<(usize, u32)>,
    bytes: usize,
    /// Values of dropped names, by account.
    gone: BTreeMap<(usize, u16), u64>,
}

impl Probation {
    /// Takes a value with a name that the store does not have.
    pub(super) fn take(&mut self, newcomer: &Newcomer, now_s: u64) -> Trial {
        let print = self.keys.hash_one((newcomer.path, newcomer.group));
        if let Some(&id) = self.by_print.get(&print)
            && let Some(Some(waiting)) = self.waiting.get(at(id))
        {
            if now_s <= waiting.until_s {
                return match newcomer.time.seconds() > waiting.first.time.seconds() {
                    true => Trial::Repeated(id),
                    false => Trial::Late,
                };
            }
            self.lose(id);
        }
        self.begin(print, newcomer, now_s);
        Trial::Begins
    }

    /// Removes a repeated name. Returns its first value.
    pub(super) fn release(&mut self, id: Id) -> Option<First> {
        let waiting = self.waiting.get_mut(at(id))?.take()?;
        self.free.push(id);
        self.by_print.remove(&waiting.print);
        self.by_age.remove(id, &mut self.age_links);
        if let Some(lot) = self.lots.get_mut(at(waiting.lot)) {
            lot.names.remove(id, &mut self.lot_links);
        }
        self.weigh(waiting.lot, |bytes| bytes - weight(&waiting.first));
        if self.by_print.is_empty() {
            // The memory of a flood is freed, too.
            *self = Probation {
                keys: self.keys.clone(),
                gone: take(&mut self.gone),
                ..Probation::default()
            };
        }
        Some(waiting.first)
    }

    /// Drops names that were not repeated in time.
    pub(super) fn sweep(&mut self, now_s: u64) {
        let all = (0..).zip(&self.waiting);
        let is_over = |waiting: &WaitingName| now_s > waiting.until_s;
        let over = all.filter(|(_, waiting)| waiting.as_ref().is_some_and(is_over));
        let over: Vec<Id> = over.map(|(id, _)| id).collect();
        over.into_iter().for_each(|id| self.lose(id));
    }

    /// True if no name waits.
    pub(super) fn is_empty(&self) -> bool {
        self.by_print.is_empty()
    }

    /// Number of values of each sender of a socket that were dropped since the last call.
    pub(super) fn take_gone(&mut self, socket: usize) -> Vec<(u16, u64)> {
        let of_socket = self.gone.range((socket, 0)..=(socket, u16::MAX));
        let gone: Vec<(u16, u64)> = of_socket.map(|(key, count)| (key.1, *count)).collect();
        for (sender, _) in &gone {
            self.gone.remove(&(socket, *sender));
        }
        gone
    }

    fn begin(&mut self, print: u64, newcomer: &Newcomer, now_s: u64) {
        let first = First {
            account: newcomer.account,
            time: newcomer.time,
            codes: u8::try_from(newcomer.codes.len()).unwrap_or(u8::MAX),
            bytes: [newcomer.codes, newcomer.text].concat().into(),
        };
        let bytes = weight(&first);
        while self.bytes + bytes > BYTES_MAX {
            let Some(id) = self.who_goes() else { return };
            self.lose(id);
        }
        let lot = self.keys.hash_one(newcomer.group) % u64::from(LOTS);
        let lot = u32::try_from(lot).unwrap_or(0);
        let id = self.free.pop().unwrap_or(self.waiting.len() as Id);
        let waiting = WaitingName {
            print,
            lot,
            until_s: now_s + patience_s(newcomer.interval),
            first,
        };
        match self.waiting.get_mut(at(id)) {
            Some(place) => *place = Some(waiting),
            None => self.waiting.push(Some(waiting)),
        }
        self.by_print.insert(print, id);
        self.by_age.push(id, &mut self.age_links);
        if self.lots.is_empty() {
            self.lots.resize_with(at(LOTS), Lot::default);
        }
        if let Some(lot) = self.lots.get_mut(at(lot)) {
            lot.names.push(id, &mut self.lot_links);
        }
        self.weigh(lot, |before| before + bytes);
    }

    /// Changes the bytes of a lot.
    fn weigh(&mut self, number: u32, change: impl FnOnce(usize) -> usize) {
        let Some(lot) = self.lots.get_mut(at(number)) else {
            return;
        };
        let before = lot.bytes;
        lot.bytes = change(before);
        self.bytes = self.bytes - before + lot.bytes;
        self.by_bytes.remove(&(before, number));
        if lot.bytes > 0 {
            self.by_bytes.insert((lot.bytes, number));
        }
    }

    fn who_goes(&self) -> Option<Id> {
        let (bytes, number) = self.by_bytes.last()?;
        match *bytes > SHARE_BYTES {
            true => self.lots.get(at(*number))?.names.oldest(),
            false => self.by_age.oldest(),
        }
    }

    /// Drops a name that was not repeated.
    fn lose(&mut self, id: Id) {
        if let Some(first) = self.release(id) {
            *self.gone.entry(first.account).or_default() += first.count();
        }
    }
}

/// Bytes that a waiting name needs.
fn weight(first: &First) -> usize {
    // The allocator's rounding and overhead.
    NAME_BYTES + first.bytes.len().next_multiple_of(16) + 8
}

/// Seconds that a name waits.
fn patience_s(interval: Cdtime) -> u64 {
    match interval {
        Cdtime::ZERO => UNSAID_S,
        interval => (INTERVALS * (interval.seconds() + 1)).min(WAITS_MAX_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const SECOND: u64 = 1_700_000_000;

    fn from(number: u32) -> SenderGroup {
        SenderGroup::of(IpAddr::from((0x0a00_0000 + number).to_be_bytes()))
    }

    fn newcomer(path: &[u8], group: SenderGroup, second: u64) -> Newcomer<'_> {
        Newcomer {
            path,
            group,
            account: (0, 1),
            time: Cdtime::from_seconds(SECOND + second),
            interval: Cdtime::from_seconds(10),
            codes: &[1],
            text: b"1700000000:0.25",
        }
    }

    /// True if a name that came at second 0 is known at `second`.
    fn is_known(interval_s: u64, second: u64) -> bool {
        let mut probation = Probation::default();
        let mut value = newcomer(b"a", from(1), 0);
        value.interval = Cdtime::from_seconds(interval_s);
        assert_eq!(probation.take(&value, 0), Trial::Begins);
        value.time = Cdtime::from_seconds(SECOND + second);
        matches!(probation.take(&value, second), Trial::Repeated(_))
    }

    #[test]
    fn a_name_waits_for_a_few_of_its_intervals() {
        for (interval_s, last) in [(1, 6), (10, 33), (300, 903), (0, 600), (1 << 34, 86_400)] {
            assert!(is_known(interval_s, last), "{interval_s}");
            assert!(!is_known(interval_s, last + 1), "{interval_s}");
        }
    }

    #[test]
    fn a_repeated_name_has_its_first_value() {
        let mut probation = Probation::default();
        let (own, other) = (from(1), from(2));
        assert_eq!(probation.take(&newcomer(b"a", own, 0), 0), Trial::Begins);
        // Neither the same value nor a value of another sender repeats the name.
        assert_eq!(probation.take(&newcomer(b"a", own, 0), 0), Trial::Late);
        assert_eq!(
            probation.take(&newcomer(b"a", other, 10), 10),
            Trial::Begins
        );
        let Trial::Repeated(id) = probation.take(&newcomer(b"a", own, 10), 10) else {
            panic!("it is known");
        };
        let first = probation.release(id).unwrap();
        assert_eq!(
            (first.codes(), first.text()),
            (&[1][..], &b"1700000000:0.25"[..])
        );
        assert_eq!(first.time, Cdtime::from_seconds(SECOND));
        assert_eq!(probation.take(&newcomer(b"a", own, 20), 20), Trial::Begins);
        probation.sweep(1000);
        assert!(probation.is_empty());
        assert_eq!(probation.take_gone(0), [(1, 2)]);
        assert_eq!(probation.take_gone(0), []);
    }

    /// Ten million names in ten minutes: of one group, of 4,096 groups, of a new group each, and of one group with long
    /// values. The names of a host that sends every ten seconds are known again, and memory stays within its limit.
    #[test]
    fn a_flood_of_names_has_its_bound_and_others_are_known_again() {
        let long = [b'1'; 1000];
        for (groups, text) in [
            (1, &b"1:2"[..]),
            (4096, b"1:2"),
            (u32::MAX, b"1:2"),
            (1, &long),
        ] {
            let mut probation = Probation::default();
            let mut known = 0;
            let names = kymo_sys::effort::effort(1_000_000) as u32;
            for n in 0..names {
                let now_s = u64::from(n) / 16_667;
                let name = n.to_be_bytes();
                let flood = Newcomer {
                    text,
                    ..newcomer(&name, from(1000 + n % groups), now_s)
                };
                assert_eq!(probation.take(&flood, now_s), Trial::Begins);
                if n % 166_670 == 0 {
                    known += (0..70u32)
                        .filter(|series| {
                            let name = [b"good", &series.to_be_bytes()[..]].concat();
                            let value = newcomer(&name, from(1), now_s);
                            match probation.take(&value, now_s) {
                                Trial::Repeated(id) => probation.release(id).is_some(),
                                _ => false,
                            }
                        })
                        .count();
                }
                assert!(probation.bytes <= BYTES_MAX);
            }
            let rounds = names.div_ceil(166_670) as usize;
            assert_eq!(known, 70 * (rounds / 2), "{groups} groups");
        }
    }
}
