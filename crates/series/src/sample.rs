//! Samples, and what is known of the numbers in them.

/// Bits of the NaN by which Prometheus says that a series has ended.
pub const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// A value and its moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Milliseconds since 1970.
    pub t_ms: i64,
    /// The value; NaN is a value like others.
    pub v: f64,
}

/// The stale marker.
pub fn stale() -> f64 {
    f64::from_bits(STALE_BITS)
}

/// True for the stale marker, and for no other NaN.
pub fn is_stale(value: f64) -> bool {
    value.to_bits() == STALE_BITS
}

/// How the values of a series move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Grows, and begins again at 0.
    Counter,
    /// Moves both ways.
    Gauge,
    /// Its source does not say.
    #[default]
    Untyped,
    /// A bucket, the sum or the count of a histogram: a counter.
    Histogram,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [Kind::Counter, Kind::Gauge, Kind::Untyped, Kind::Histogram];

    /// The word of Prometheus' text format.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Untyped => "untyped",
            Kind::Histogram => "histogram",
        }
    }

    /// True if a smaller value means that counting began again.
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
    /// None, or not known.
    #[default]
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share of 1.
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
    /// Every unit.
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

    /// The word that a metric's name ends in; empty: none.
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

    /// The unit that a metric's name tells, in front of `_total`, `_bucket`, `_sum` and `_count`.
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
