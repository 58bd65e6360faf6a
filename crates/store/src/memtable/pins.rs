//! The pins that hold journal files while backups copy them. Each ends by itself, so that a backup that was killed does not make
//! the journal grow for ever.

use std::time::Duration;

/// Time after which a pin ends by itself, as the journal grows meanwhile.
const PIN_LASTS: Duration = Duration::from_secs(3600);
/// Most pins at a time; another one takes the place of the oldest.
const PINS_MAX: usize = 4;

/// The pins that hold journal files.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Numbers, each with the monotonic nanoseconds of its end, oldest first.
    held: Vec<(u64, u64)>,
    last: u64,
}

impl Pins {
    /// Begins a pin, and returns its number.
    pub(crate) fn hold(&mut self, now_ns: u64) -> u64 {
        self.held.retain(|(_, until_ns)| *until_ns > now_ns);
        if self.held.len() == PINS_MAX {
            self.held.remove(0);
        }
        self.last += 1;
        let lasts_ns = u64::try_from(PIN_LASTS.as_nanos()).unwrap_or(u64::MAX);
        self.held.push((self.last, now_ns.saturating_add(lasts_ns)));
        self.last
    }

    /// Ends a pin; false if it has ended before.
    pub(crate) fn release(&mut self, pin: u64) -> bool {
        let before = self.held.len();
        self.held.retain(|(held, _)| *held != pin);
        self.held.len() < before
    }

    /// Returns true if journal files have to stay.
    pub(crate) fn hold_journal(&self, now_ns: u64) -> bool {
        self.held.iter().any(|(_, until_ns)| *until_ns > now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_ends_by_itself_or_when_it_is_released() {
        let mut pins = Pins::default();
        assert!(!pins.hold_journal(0));
        let lasts_ns = u64::try_from(PIN_LASTS.as_nanos()).unwrap();
        let first = pins.hold(5);
        assert!(pins.hold_journal(4 + lasts_ns) && !pins.hold_journal(5 + lasts_ns));
        assert!(pins.release(first) && !pins.release(first) && !pins.hold_journal(6));
        for _ in 0..10 * PINS_MAX {
            pins.hold(10);
        }
        assert_eq!(pins.held.len(), PINS_MAX);
        pins.hold(11 + lasts_ns);
        assert_eq!(pins.held.len(), 1, "those that have ended go");
    }
}
