//! Boots and time of another engine, and which of its messages are of its present (RFC 3414, 2.3 and 3.2). Moments are those of a
//! clock that counts suspended time too, and that no one sets.

use super::message::UsmMessage;

/// Seconds by which an engine's time may be behind.
pub const WINDOW_S: u32 = 150;
/// An engine that has started this many times has to be set up again.
pub const BOOTS_MAX: u32 = i32::MAX.cast_unsigned();
const SECOND_NS: u64 = 1_000_000_000;

/// Boots and time of an engine by its last message.
pub struct EngineClock {
    /// How many times the engine had started.
    pub boots: u32,
    /// Seconds since the engine's start, at the arrival of that message.
    pub time_s: u32,
    /// Arrival of that message by the clock that counts suspended time too, and that no one sets.
    came_ns: u64,
    /// True once a signed message had them.
    is_proven: bool,
}

impl EngineClock {
    /// The moment of an unsigned message: good for a first attempt.
    pub fn guessed(message: &UsmMessage<'_>, came_ns: u64) -> EngineClock {
        EngineClock {
            is_proven: false,
            ..EngineClock::proven(message.boots, message.time_s, came_ns)
        }
    }

    /// The moment of a signed message.
    pub fn proven(boots: u32, time_s: u32, came_ns: u64) -> EngineClock {
        EngineClock {
            boots,
            time_s,
            came_ns,
            is_proven: true,
        }
    }

    /// The engine's time now.
    pub fn time_s(&self, now_ns: u64) -> u32 {
        let passed_s = now_ns.saturating_sub(self.came_ns) / SECOND_NS;
        let time_s = u64::from(self.time_s) + passed_s;
        u32::try_from(time_s).map_or(BOOTS_MAX, |time_s| time_s.min(BOOTS_MAX))
    }

    /// Takes over what a signed message has.
    pub fn set(&mut self, message: &UsmMessage<'_>, came_ns: u64) {
        *self = EngineClock::proven(message.boots, message.time_s, came_ns);
    }

    /// True if a signed message is of the engine's present. A later moment than the known one is taken over. RFC 3414 would also
    /// take an older message, if only it is newer than the last one.
    pub fn takes(&mut self, message: &UsmMessage<'_>, came_ns: u64) -> bool {
        if message.boots == BOOTS_MAX {
            return false;
        }
        if self.is_proven {
            let is_late = message.time_s.saturating_add(WINDOW_S) < self.time_s(came_ns);
            if message.boots < self.boots || message.boots == self.boots && is_late {
                return false;
            }
        }
        if !self.is_proven || (message.boots, message.time_s) > (self.boots, self.time_s) {
            self.set(message, came_ns);
        }
        true
    }
}
