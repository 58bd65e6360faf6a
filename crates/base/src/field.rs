//! Fields: the name, rule, unit and meaning of a number. A subsystem's table of fields is the one place where they are declared.

/// How a number moves, and so how two of them make a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Shown as it is.
    Gauge,
    /// Only grows; a smaller value is a reset of all that the row counts.
    Counter64,
    /// Grows and wraps at 2^32; a drop is a wrap when plausible, else a reset.
    Counter32,
    /// A counter that may step back by itself (iowait, idle, steal, sums over parts that come and go). A small drop counts as 0;
    /// a great drop does not make the row's other counters unknown.
    CounterMayStepBack,
}

/// Unit of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Things: requests, packets, processes.
    Count,
    /// Things a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// 1024 bytes.
    Kilobytes,
    /// 1024 bytes a second.
    KilobytesPerSecond,
    /// 512-byte sectors.
    Sectors,
    /// Memory pages.
    Pages,
    /// USER_HZ clock ticks.
    Ticks,
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Hundredths (a number with two decimals, such as a load average).
    Hundredths,
    /// Percent.
    Percent,
    /// Bits a second, in millions.
    MegabitsPerSecond,
    /// Degrees Celsius.
    Celsius,
    /// Revolutions a minute.
    Revolutions,
    /// Volts.
    Volts,
    /// Amperes.
    Amperes,
    /// Watts.
    Watts,
    /// Millions of cycles a second.
    Megahertz,
    /// No unit: an identity, a ratio, a text.
    None,
}

impl Unit {
    /// The unit as it is written in JSON and in the docs.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::PerSecond => "1/s",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::Kilobytes => "KiB",
            Unit::KilobytesPerSecond => "KiB/s",
            Unit::Sectors => "512 B",
            Unit::Pages => "pages",
            Unit::Ticks => "ticks",
            Unit::Seconds => "s",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Nanoseconds => "ns",
            Unit::Hundredths => "0.01",
            Unit::Percent => "%",
            Unit::MegabitsPerSecond => "Mbit/s",
            Unit::Celsius => "°C",
            Unit::Revolutions => "rpm",
            Unit::Volts => "V",
            Unit::Amperes => "A",
            Unit::Watts => "W",
            Unit::Megahertz => "MHz",
            Unit::None => "",
        }
    }
}

/// One raw number of a subsystem.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The kernel's word for it where it has one.
    pub name: &'static str,
    /// How it moves.
    pub rule: Rule,
    /// Unit of the raw number.
    pub unit: Unit,
    /// Meaning and source of the number.
    pub help: &'static str,
}

impl Field {
    /// The value of a raw number. A gauge has a sign, but a size has none: a kernel or a container's file system that computes a
    /// size below 0 makes it 2^64 less something, which is NaN here.
    pub fn value(&self, raw: u64) -> f64 {
        let is_size = matches!(
            self.unit,
            Unit::Bytes | Unit::Kilobytes | Unit::Sectors | Unit::Pages
        );
        match self.rule {
            Rule::Gauge if is_size && raw.cast_signed() < 0 => f64::NAN,
            Rule::Gauge => raw.cast_signed() as f64,
            Rule::Counter64 | Rule::Counter32 | Rule::CounterMayStepBack => raw as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_have_signs_and_sizes_have_none() {
        let below_0 = 5_u64.wrapping_neg();
        for (rule, unit, raw, expect) in [
            (Rule::Gauge, Unit::Celsius, below_0, -5.0),
            (Rule::Gauge, Unit::Kilobytes, 5, 5.0),
            (Rule::Gauge, Unit::Kilobytes, below_0, f64::NAN),
            (Rule::Gauge, Unit::Pages, below_0, f64::NAN),
            (
                Rule::Counter64,
                Unit::Bytes,
                1 << 63,
                9_223_372_036_854_775_808.0,
            ),
            (Rule::Counter32, Unit::Milliseconds, 7, 7.0),
        ] {
            let field = Field {
                name: "n",
                rule,
                unit,
                help: "",
            };
            let value = field.value(raw);
            let same = value == expect || value.is_nan() && expect.is_nan();
            assert!(same, "{rule:?} {unit:?} {raw}: {value}");
        }
    }
}
