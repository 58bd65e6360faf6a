//! Polled devices: the poller's stored values of each, and their state.

use kymo_base::label_set::Labels;
use kymo_wire::keeper::{Range, Rows};

/// Seconds before now that count.
const SPAN_S: i64 = 900;
/// Most rows of this time: enough that values are not merged.
const ROWS_MAX: u32 = 900;
/// Round trip from which on a device is slow, in milliseconds. A guess, between links to other continents and a loaded
/// agent.
const SLOW_MS: f64 = 400.0;

/// Intervals without an answer after which a device is dead. The newest row of a device that answers may be the last but
/// one, and up to two intervals old.
const SILENT: f64 = 3.0;

/// A device.
pub(crate) struct Device {
    /// Host and port; empty: targets of commands.
    pub(crate) name: String,
    /// Number of its targets.
    pub(crate) targets: u32,
}

/// State of a device; NaN: unknown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DeviceState {
    /// Time of the last answer, in seconds since 1970.
    pub(crate) seen: f64,
    /// Duration of a round trip.
    pub(crate) rtt_ms: f64,
    /// Attempts without an answer, in the last quarter of an hour.
    pub(crate) lost: f64,
    /// Repeated requests, in the same time.
    pub(crate) retries: f64,
    /// Delay of its poll in seconds.
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

/// Health in a word, worst first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Health {
    /// The device does not answer.
    Dead,
    /// The device answers late or not always.
    Slow,
    /// The device answers.
    Good,
    /// The device was not asked yet.
    Unknown,
}

impl Health {
    /// Word for the health.
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
    /// Name of its series in the keeper; empty for commands.
    pub(super) fn series(&self) -> Vec<u8> {
        let labels = [("device", self.name.as_bytes()), ("job", b"poll")];
        let labels = Labels::new(labels).ok().filter(|_| !self.name.is_empty());
        labels.map_or_else(Vec::new, |labels| labels.text().to_vec())
    }
}

impl DeviceState {
    /// The question to the keeper.
    pub(super) fn question(names: Vec<Vec<u8>>, now: i64) -> Range {
        Range {
            names,
            from: now - SPAN_S,
            thru: now,
            rows_max: ROWS_MAX,
        }
    }

    /// State by the rows of an answer.
    pub(super) fn of(rows: &Rows) -> DeviceState {
        // Values with the times at which their rows end.
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

    /// Health of a device at a time; the device is asked each `interval_s` and has these rates.
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

/// Number of targets with known rates, and of targets whose rates are missing.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rates {
    pub(crate) known: u32,
    pub(crate) missing: u32,
}
