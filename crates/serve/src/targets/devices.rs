//! Devices that are polled: what the poller stores of each, and what that says of it.

use kymo_base::label_set::Labels;
use kymo_wire::keeper::{Range, Rows};

/// Seconds that are looked at.
const SPAN_S: i64 = 900;
/// Rows of them at most: values as they were sent are put together no further.
const ROWS_MAX: u32 = 900;
/// A round trip that takes longer is slow, in milliseconds: a guess, between what links to other continents take and what
/// a loaded agent does.
const SLOW_MS: f64 = 400.0;

/// Intervals without an answer after which a device is dead. What is known of one that answers is of the row before this
/// one, and up to two intervals old.
const SILENT: f64 = 3.0;

/// A device.
pub(crate) struct Device {
    /// Host and port; empty: commands.
    pub(crate) name: String,
    /// How many targets it has.
    pub(crate) targets: u32,
}

/// How it is; NaN is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceState {
    /// When it last answered, seconds since 1970.
    pub(crate) seen: f64,
    /// How long a round trip took.
    pub(crate) rtt_ms: f64,
    /// Attempts without an answer, in the last quarter of an hour.
    pub(crate) lost: f64,
    /// Requests that were sent again, in the same time.
    pub(crate) retries: f64,
    /// How late its poll was.
    pub(crate) late_s: f64,
}

impl Default for DeviceState {
    fn default() -> DeviceState {
        DeviceState {
            seen: f64::NAN,
            rtt_ms: f64::NAN,
            lost: f64::NAN,
            retries: f64::NAN,
            late_s: f64::NAN,
        }
    }
}

/// In a word, the worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Health {
    /// It does not answer.
    Dead,
    /// It answers late or not always.
    Slow,
    /// It answers.
    Good,
    /// It has not been asked yet.
    Unknown,
}

impl Health {
    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Health::Dead => "dead",
            Health::Slow => "slow",
            Health::Good => "good",
            Health::Unknown => "unknown",
        }
    }
}

impl Device {
    /// The name of its series in the keeper; of commands there is none.
    pub(super) fn series(&self) -> Vec<u8> {
        let labels = [("device", self.name.as_bytes()), ("job", b"poll")];
        let labels = Labels::new(labels).ok().filter(|_| !self.name.is_empty());
        labels.map_or_else(Vec::new, |labels| labels.text().to_vec())
    }
}

impl DeviceState {
    /// What the keeper is asked.
    pub(super) fn question(names: Vec<Vec<u8>>, now: i64) -> Range {
        Range {
            names,
            from: now - SPAN_S,
            thru: now,
            rows_max: ROWS_MAX,
        }
    }

    /// Of rows that were asked for.
    pub(super) fn of(rows: &Rows) -> DeviceState {
        // With the moments at which rows end.
        let known = |name: &[u8]| {
            let column = rows.columns.iter().position(|column| column == name);
            let cells = rows.mean.chunks_exact(rows.columns.len().max(1));
            let ends = (1..).map(|n: i64| rows.start + n * i64::from(rows.step));
            let cells = ends.zip(cells);
            let cells = cells.filter_map(move |(end, row)| Some((end, row[column?])));
            cells.filter(|(_, cell)| !cell.is_nan())
        };
        let last = |name: &[u8]| known(name).last().map_or(f64::NAN, |(_, cell)| cell);
        let sum = |name: &[u8]| known(name).map(|(_, cell)| cell).reduce(|a, b| a + b);
        let unseen = known(b"unseen_s").last();
        DeviceState {
            seen: unseen.map_or(f64::NAN, |(end, unseen_s)| end as f64 - unseen_s),
            rtt_ms: last(b"round_trip_s") * 1e3,
            lost: sum(b"losses").unwrap_or(f64::NAN),
            retries: sum(b"retries").unwrap_or(f64::NAN),
            late_s: last(b"late_s"),
        }
    }

    /// In a word, at a moment, of a device that is asked each `interval_s` and has these rates.
    pub(crate) fn health(&self, now: i64, interval_s: u32, rates: Rates) -> Health {
        let silent_s = now as f64 - self.seen;
        if silent_s > SILENT * f64::from(interval_s) {
            return Health::Dead;
        }
        if self.seen.is_nan() && self.lost > 0.0 {
            return Health::Dead;
        }
        if self.seen.is_nan() {
            return match rates {
                Rates {
                    known: 0,
                    missing: 0,
                } => Health::Unknown,
                Rates { known: 0, .. } => Health::Dead,
                Rates { .. } => Health::Good,
            };
        }
        match self.rtt_ms > SLOW_MS || self.lost > 0.0 || self.late_s > f64::from(interval_s) / 2.0
        {
            true => Health::Slow,
            false => Health::Good,
        }
    }
}

/// Of how many targets rates are known, and of how many they should be.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rates {
    pub(crate) known: u32,
    pub(crate) missing: u32,
}
