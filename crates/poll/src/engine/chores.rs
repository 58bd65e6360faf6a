//! Readings that a GET cannot serve: the n-th value of a walk, the number of values of a walk, and the value
//! after a name.

use std::io::Write as _;

use kymo_sys::clock::Stamp;
use kymo_wire::mrtg_cfg::Magic;
use kymo_wire::snmp::Response;

use super::decimal::Decimal;
use super::empty::Empty;
use super::walk::{Next, Walk};
use super::{Engine, Link};

impl Engine {
    /// Starts the device's next chore, or ends its cycle.
    pub(super) fn next_chore(&mut self, number: usize, now: Stamp, link: &mut dyn Link) {
        let Some(&(reading, side)) = self.devices[number].cycle.chores.front() else {
            return self.end_cycle(number, now);
        };
        let Some(oid) = self.chore_oid(number, reading, side) else {
            return self.chore_done(number, Decimal::Unknown, now, link);
        };
        let repetitions = match self.magic(reading, side) {
            Magic::GetNext => 1,
            Magic::Walk(place) => self.repetitions(number).min(place.saturating_add(1)),
            _ => self.repetitions(number),
        };
        let cycle = &mut self.devices[number].cycle;
        cycle.walk = Some(Walk::new(oid, repetitions));
        cycle.counted = 0;
        self.ask_rows(number, now, link);
    }

    /// Takes an answer to the walk of the current chore.
    pub(super) fn chore_rows(
        &mut self,
        number: usize,
        reply: &Response<'_>,
        stamp_ns: i64,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        let Some(&(reading, side)) = self.devices[number].cycle.chores.front() else {
            return;
        };
        let magic = self.magic(reading, side);
        if magic == Magic::GetNext {
            // The next value counts, whether or not it is in the same column.
            let first = reply.varbinds.into_iter().next().and_then(Result::ok);
            let mut text = Vec::new();
            let is_known = first.is_some_and(|(_, value)| value.put_reading(&mut text));
            let value = is_known.then(|| Decimal::of(&text));
            self.outcomes.given(reading).real_ns = stamp_ns;
            return self.chore_done(number, value.unwrap_or_default(), now, link);
        }
        let is_bulk = self.devices[number].security.has_bulk(self.session(number));
        let cycle = &mut self.devices[number].cycle;
        let (mut counted, mut found) = (cycle.counted, None);
        let Some(walk) = &mut cycle.walk else {
            return;
        };
        let next = walk.take(reply, |_, value| {
            let place = counted;
            counted += 1;
            match magic {
                Magic::Walk(wanted) if u32::from(wanted) == place => {
                    let mut text = Vec::new();
                    found = Some(match value.put_reading(&mut text) {
                        true => Decimal::of(&text),
                        false => Decimal::Unknown,
                    });
                    false
                }
                _ => true,
            }
        });
        cycle.counted = counted;
        self.outcomes.given(reading).real_ns = stamp_ns;
        let value = match (found, next, magic) {
            (Some(value), _, _) => value,
            (None, Next::More, _) => {
                debug_assert!(is_bulk || counted > 0);
                return self.ask_rows(number, now, link);
            }
            (None, Next::End, Magic::CountWalk) => {
                let mut text = Vec::new();
                // Writing to memory does not fail.
                let _ = write!(text, "{counted}");
                Decimal::of(&text)
            }
            (None, Next::End | Next::Looped | Next::Broken, _) => Decimal::Unknown,
        };
        self.chore_done(number, value, now, link);
    }

    /// Ends the current chore with its value.
    pub(super) fn chore_done(
        &mut self,
        number: usize,
        value: Decimal,
        now: Stamp,
        link: &mut dyn Link,
    ) {
        let cycle = &mut self.devices[number].cycle;
        cycle.walk = None;
        if let Some((reading, side)) = cycle.chores.pop_front() {
            if value == Decimal::Unknown {
                self.blame(number, reading, Empty::NoNumber);
            }
            self.settle(reading, side, value, now);
        }
        self.next_chore(number, now, link);
    }
}
