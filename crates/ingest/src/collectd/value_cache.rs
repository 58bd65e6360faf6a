//! The newest values of each series, and the rates that collectd's cache has of them, for GETVAL and LISTVAL. Kept only where
//! somebody may ask for them.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_wire::collectd::{Cdtime, DataSource, Value};

/// Series at most, with some 250 bytes each. Series beyond them have no values to ask for.
const SERIES_MAX: usize = 1 << 18;
/// Intervals without values after which a series is forgotten: collectd's Timeout.
const TIMEOUT: u64 = 2;
const SUFFIX: &[u8] = b".rrd";

/// The newest values of one series.
#[derive(Debug)]
struct Newest {
    time: Cdtime,
    values: Box<[Value]>,
    /// A rate for each count, the value itself for a gauge; NaN: unknown.
    rates: Box<[f64]>,
    /// When the series is forgotten, by a clock that does not go back.
    until_ns: u64,
}

/// Values of one series as they come in.
pub(super) struct Arrived<'a> {
    /// Path of the series' file: its name, as collectd spells it, and a suffix.
    pub path: &'a [u8],
    pub time: Cdtime,
    pub interval: Cdtime,
    pub values: &'a [Value],
    /// Sources of the series' type, with the limits of their rates; empty: unknown.
    pub sources: &'a [DataSource],
}

impl Arrived<'_> {
    fn name(&self) -> &[u8] {
        self.path.strip_suffix(SUFFIX).unwrap_or(self.path)
    }
}

/// Names of series, each with the time of its newest values.
pub(super) type ListedSeries = Vec<(Arc<[u8]>, Cdtime)>;

/// The newest values of all series, by their names.
#[derive(Debug, Default)]
pub(super) struct ValueCache(HashMap<Arc<[u8]>, Newest>);

impl ValueCache {
    /// Notes values, if they are newer than those that are known.
    pub(super) fn note(&mut self, arrived: &Arrived, now_ns: u64) {
        let patience_ns = arrived.interval.nanoseconds().saturating_mul(TIMEOUT);
        let until_ns = now_ns.saturating_add(patience_ns);
        let known = self.0.get_mut(arrived.name());
        let is_same = |known: &&mut Newest| {
            known.until_ns > now_ns && known.values.len() == arrived.values.len()
        };
        match known.filter(is_same) {
            Some(known) if arrived.time <= known.time => {}
            Some(known) => {
                let elapsed_s = Cdtime(arrived.time.0 - known.time.0).seconds_f64();
                let pairs = known.values.iter().zip(arrived.values);
                known.rates = pairs
                    .map(|(before, value)| rate(*before, *value, elapsed_s))
                    .collect();
                limit(&mut known.rates, arrived.sources);
                known.values = arrived.values.into();
                (known.time, known.until_ns) = (arrived.time, until_ns);
            }
            None => self.begin(arrived, until_ns, now_ns),
        }
    }

    fn begin(&mut self, arrived: &Arrived, until_ns: u64, now_ns: u64) {
        if self.0.len() >= SERIES_MAX && !self.0.contains_key(arrived.name()) {
            self.forget_silent(now_ns);
            if self.0.len() >= SERIES_MAX {
                return;
            }
        }
        let interval_s = arrived.interval.seconds_f64();
        let rates = arrived
            .values
            .iter()
            .map(|value| first_rate(*value, interval_s));
        let mut rates: Box<[f64]> = rates.collect();
        limit(&mut rates, arrived.sources);
        let newest = Newest {
            time: arrived.time,
            values: arrived.values.into(),
            rates,
            until_ns,
        };
        self.0.insert(arrived.name().into(), newest);
    }

    /// Rates of the newest values of a series; `None`: it is unknown or has fallen silent.
    pub(super) fn rates(&self, name: &[u8], now_ns: u64) -> Option<&[f64]> {
        let known = self.0.get(name).filter(|known| known.until_ns > now_ns)?;
        Some(&known.rates)
    }

    /// All series, in any order. Forgets silent ones.
    pub(super) fn list(&mut self, now_ns: u64) -> ListedSeries {
        self.forget_silent(now_ns);
        let all = self.0.iter();
        all.map(|(name, newest)| (Arc::clone(name), newest.time))
            .collect()
    }

    fn forget_silent(&mut self, now_ns: u64) {
        self.0.retain(|_, newest| newest.until_ns > now_ns);
    }
}

/// The rate between two values.
fn rate(before: Value, value: Value, elapsed_s: f64) -> f64 {
    match (before, value) {
        (Value::Counter(before), Value::Counter(value)) => {
            counter_growth(before, value) as f64 / elapsed_s
        }
        (Value::Derive(before), Value::Derive(value)) => {
            value.wrapping_sub(before) as f64 / elapsed_s
        }
        (_, Value::Absolute(value)) => value as f64 / elapsed_s,
        (_, Value::Gauge(value)) => value,
        (_, Value::Counter(_) | Value::Derive(_)) => f64::NAN,
    }
}

/// The growth of a counter; one that is smaller than before has wrapped at 32 bits if it fitted into them, else at 64.
fn counter_growth(before: u64, value: u64) -> u64 {
    match u32::try_from(before) {
        Ok(before) if value < u64::from(before) => u64::from(u32::MAX - before) + value + 1,
        Ok(_) | Err(_) => value.wrapping_sub(before),
    }
}

/// The rate of the first value of a series.
fn first_rate(value: Value, interval_s: f64) -> f64 {
    match value {
        Value::Gauge(value) => value,
        Value::Absolute(value) if interval_s > 0.0 => value as f64 / interval_s,
        Value::Counter(_) | Value::Derive(_) | Value::Absolute(_) => f64::NAN,
    }
}

/// Rates outside of the limits of types.db are unknown.
fn limit(rates: &mut [f64], sources: &[DataSource]) {
    if rates.len() != sources.len() {
        return;
    }
    for (rate, source) in rates.iter_mut().zip(sources) {
        let is_less = source.min.is_some_and(|min| *rate < min);
        let is_more = source.max.is_some_and(|max| *rate > max);
        if is_less || is_more {
            *rate = f64::NAN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::collectd::TypesDb;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Notes these values of a type, ten seconds after each other; returns the last rate.
    fn last_rate(type_name: &str, values: &[Value]) -> Option<f64> {
        let types = TypesDb::embedded();
        let mut cache = ValueCache::default();
        for (at, value) in (1..).zip(values) {
            let arrived = Arrived {
                path: b"h/p/t.rrd",
                time: Cdtime::from_seconds(10 * at),
                interval: Cdtime::from_seconds(10),
                values: &[*value],
                sources: types.sources(type_name.as_bytes()).unwrap(),
            };
            cache.note(&arrived, 10 * at * SECOND_NS);
        }
        let rates = cache.rates(b"h/p/t", 10 * values.len() as u64 * SECOND_NS)?;
        rates.first().copied().filter(|rate| !rate.is_nan())
    }

    #[test]
    fn rates_are_collectds() {
        use Value::*;
        let wrap_32 = u64::from(u32::MAX);
        for (type_name, values, expected) in [
            ("gauge", &[Gauge(5.0)][..], Some(5.0)),
            ("counter", &[Counter(5)], None),
            ("counter", &[Counter(5), Counter(25)], Some(2.0)),
            ("counter", &[Counter(wrap_32 - 4), Counter(5)], Some(1.0)),
            ("counter", &[Counter(u64::MAX - 4), Counter(5)], Some(1.0)),
            ("derive", &[Derive(5), Derive(25)], Some(2.0)),
            // types.db allows no negative rate of this type.
            ("derive", &[Derive(25), Derive(5)], None),
            ("absolute", &[Absolute(5)], Some(0.5)),
            ("absolute", &[Absolute(5), Absolute(20)], Some(2.0)),
            ("percent", &[Gauge(101.0)], None),
            ("gauge", &[Gauge(1.0), Gauge(f64::NAN)], None),
            // A series that changes its kind has no rate until the second value.
            ("counter", &[Gauge(1.0), Counter(5)], None),
        ] {
            assert_eq!(last_rate(type_name, values), expected, "{values:?}");
        }
    }

    #[test]
    fn old_values_change_nothing_and_silent_series_are_forgotten() {
        let mut cache = ValueCache::default();
        let mut note = |second: u64, value: f64, now_s: u64| {
            let arrived = Arrived {
                path: b"h/p/t.rrd",
                time: Cdtime::from_seconds(second),
                interval: Cdtime::from_seconds(10),
                values: &[Value::Gauge(value)],
                sources: &[],
            };
            cache.note(&arrived, now_s * SECOND_NS);
            cache
                .rates(b"h/p/t", now_s * SECOND_NS)
                .map(|rates| rates[0])
        };
        assert_eq!(note(100, 1.0, 0), Some(1.0));
        assert_eq!(note(100, 2.0, 1), Some(1.0), "not newer");
        assert_eq!(note(90, 3.0, 19), Some(1.0), "older");
        assert_eq!(
            note(90, 4.0, 20),
            Some(4.0),
            "older, but the series was silent"
        );
        assert_eq!(cache.list(39 * SECOND_NS).len(), 1);
        assert!(cache.rates(b"h/p/t", 40 * SECOND_NS).is_none());
        assert!(cache.list(40 * SECOND_NS).is_empty());
    }

    #[test]
    fn the_number_of_series_has_a_limit() {
        let mut cache = ValueCache::default();
        let mut note = |name: &str, now_s: u64| {
            let arrived = Arrived {
                path: name.as_bytes(),
                time: Cdtime::from_seconds(now_s),
                interval: Cdtime::from_seconds(10),
                values: &[Value::Gauge(1.0)],
                sources: &[],
            };
            cache.note(&arrived, now_s * SECOND_NS);
            cache.rates(name.as_bytes(), now_s * SECOND_NS).is_some()
        };
        for at in 0..SERIES_MAX {
            assert!(note(&at.to_string(), 1), "{at}");
        }
        assert!(!note("one more", 1));
        assert!(note("7", 11));
        assert!(note("one more", 21), "silent series make room");
    }
}
