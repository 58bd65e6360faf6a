//! Times of scrapes. Each target has a place of its own in the interval, so that all of them are spread over it, and
//! keeps this place when kymo starts again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A scrape that begins no later than this after its time has that time: stamps at even distances take less room.
const TOLERANCE_NS: i64 = 2_000_000;

/// The times at which a target is scraped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    interval_ns: i64,
    offset_ns: i64,
}

impl Beat {
    /// Beats with a place that the texts choose.
    pub(crate) fn new(interval_ms: u64, texts: &[&str]) -> Beat {
        let interval_ns = i64::try_from(interval_ms).unwrap_or(i64::MAX);
        let interval_ns = interval_ns.saturating_mul(1_000_000).max(1);
        let mut hasher = DefaultHasher::new();
        texts.hash(&mut hasher);
        let hash = hasher.finish() >> 1;
        let hash_ms = i64::try_from(hash).unwrap_or(0) % (interval_ns / 1_000_000).max(1);
        Beat {
            interval_ns,
            offset_ns: hash_ms.saturating_mul(1_000_000),
        }
    }

    /// The first beat after a moment, in nanoseconds since 1970.
    pub(crate) fn after(self, now_ns: i64) -> i64 {
        let passed = now_ns
            .saturating_sub(self.offset_ns)
            .rem_euclid(self.interval_ns);
        now_ns.saturating_add(self.interval_ns - passed)
    }

    /// The stamp of a scrape that was due at one moment and begins at another, in milliseconds since 1970.
    pub(crate) fn stamp_ms(due_ns: i64, begun_ns: i64) -> i64 {
        let is_on_time = (0..=TOLERANCE_NS).contains(&begun_ns.saturating_sub(due_ns));
        let stamp_ns = if is_on_time { due_ns } else { begun_ns };
        stamp_ns.div_euclid(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn beats_are_an_interval_apart_at_their_place() {
        let beat = Beat::new(15_000, &["a", "b"]);
        assert!((0..15 * SECOND).contains(&beat.offset_ns));
        let now = 1_700_000_000 * SECOND + 7;
        let first = beat.after(now);
        assert!(first > now && first - now <= 15 * SECOND);
        assert_eq!(beat.after(first), first + 15 * SECOND);
        assert_eq!(beat.after(first - 1), first);
        assert_eq!(
            beat.offset_ns,
            Beat::new(15_000, &["a", "b"]).offset_ns,
            "the same place after a start"
        );
    }

    #[test]
    fn targets_are_spread_over_the_interval() {
        let places = (0..1000).map(|number| Beat::new(10_000, &[&number.to_string()]).offset_ns);
        let mut seconds = [0; 10];
        for place in places {
            seconds[usize::try_from(place / SECOND).unwrap()] += 1;
        }
        assert!(seconds.iter().all(|&count| count > 50), "{seconds:?}");
    }

    #[test]
    fn a_late_scrape_has_its_own_stamp() {
        for (late_ns, stamp_ms) in [(0, 5000), (2_000_000, 5000), (2_000_001, 5002), (-1, 4999)] {
            let due = 5 * SECOND;
            assert_eq!(Beat::stamp_ms(due, due + late_ns), stamp_ms, "{late_ns}");
        }
    }
}
