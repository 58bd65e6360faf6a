//! Samples, and the kinds and units of their values.

/// Bits of the NaN that marks the end of a series in Prometheus.
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// A value and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Time, milliseconds since 1970.
    pub t_ms: i64,
    /// The value, which may be NaN.
    pub v: f64,
}

/// The stale marker.
pub fn stale() -> f64 {
    f64::from_bits(STALE_BITS)
}

/// True for the stale marker alone; false for any other NaN.
#[inline]
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE_BITS
}

/// Kinds of series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A counter, which grows and may restart at 0.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Unknown, as the source does not tell.
    #[default]
    Untyped,
    /// The bucket, sum or count of a histogram, all of which are counters.
    Histogram,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 4] = [Kind::Counter, Kind::Gauge, Kind::Untyped, Kind::Histogram];

    /// The kind in Prometheus' text format.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
            Kind::Histogram => "histogram",
        }
    }

    /// True if a falling value means a restart of the counter.
    pub fn counts(self) -> bool {
        match self {
            Kind::Counter | Kind::Histogram => true,
            Kind::Gauge | Kind::Untyped => false,
        }
    }
}

/// Prometheus' base units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// No unit, or an unknown one.
    #[default]
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A fraction of 1.
    Ratio,
    /// Degrees Celsius.
    Celsius,
    /// Volts.
    Volts,
    /// Amperes.
    Amperes,
    /// Joules.
    Joules,
    /// Watts.
    Watts,
    /// Hertz.
    Hertz,
}

impl Unit {
    /// All units.
    pub const ALL: [Unit; 10] = [
        Unit::None,
        Unit::Seconds,
        Unit::Bytes,
        Unit::Ratio,
        Unit::Celsius,
        Unit::Volts,
        Unit::Amperes,
        Unit::Joules,
        Unit::Watts,
        Unit::Hertz,
    ];

    /// The word at the end of a metric's name; empty for no unit.
    pub fn word(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::Ratio => "ratio",
            Unit::Celsius => "celsius",
            Unit::Volts => "volts",
            Unit::Amperes => "amperes",
            Unit::Joules => "joules",
            Unit::Watts => "watts",
            Unit::Hertz => "hertz",
        }
    }

    /// The unit in a metric's name, at its end or before `_total`, `_bucket` or `_sum`.
    pub fn of_name(name: &str) -> Unit {
        let name = ["_total", "_bucket", "_sum"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        let word = name.rsplit('_').next().unwrap_or_default();
        let known = Unit::ALL.into_iter().skip(1);
        known
            .into_iter()
            .find(|unit| unit.word() == word)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_units() {
        for (name, unit) in [
            ("node_cpu_seconds_total", Unit::Seconds),
            ("node_memory_MemFree_bytes", Unit::Bytes),
            ("http_request_duration_seconds_bucket", Unit::Seconds),
            ("http_request_duration_seconds_count", Unit::None),
            ("node_load1", Unit::None),
            ("", Unit::None),
        ] {
            assert_eq!(Unit::of_name(name), unit, "{name}");
        }
    }

    #[test]
    fn the_stale_marker_is_one_nan() {
        assert!(stale().is_nan() && is_stale(stale()));
        assert!(!is_stale(f64::NAN) && !is_stale(0.0));
    }
}
