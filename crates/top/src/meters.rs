//! The meters of the header: what stands there as a line over time and as numbers.

use kymo_kernel::subsystem::Subsystem;
use kymo_kernel::subsystem::cpu::CPU;
use kymo_kernel::subsystem::disk::DISK;
use kymo_kernel::subsystem::memory::MEMORY;
use kymo_kernel::subsystem::net::NET;
use kymo_kernel::subsystem::pressure::PRESSURE;

use crate::readings::Readings;

/// Subsystems that the header shows.
pub const SUBSYSTEMS: [&Subsystem; 5] = [&CPU, &MEMORY, &PRESSURE, &DISK, &NET];

/// How the fields of a meter become one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// Their sum.
    Sum,
    /// The greatest.
    Most,
    /// The first without the second.
    Rest,
}

/// The value at which a meter is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// A hundred.
    Percent,
    /// A field of the machine.
    Field(&'static str),
    /// The greatest value in sight.
    Most,
}

/// A line of the header.
#[derive(Debug)]
pub struct Meter {
    /// Name, of three letters.
    pub name: &'static str,
    /// Ids of its fields.
    pub fields: &'static [&'static str],
    /// How they are joined.
    pub join: Join,
    /// When it is full.
    pub full: Full,
}

/// Number of meters.
pub const COUNT: usize = 6;

/// The meters, from above.
pub static METERS: [Meter; COUNT] = [
    Meter {
        name: "CPU",
        fields: &["cpu.total"],
        join: Join::Sum,
        full: Full::Percent,
    },
    Meter {
        name: "Mem",
        fields: &["memory.total", "memory.available"],
        join: Join::Rest,
        full: Full::Field("memory.total"),
    },
    Meter {
        name: "Swp",
        fields: &["memory.swap_used"],
        join: Join::Sum,
        full: Full::Field("memory.swap_total"),
    },
    Meter {
        name: "Psi",
        fields: &[
            "pressure.cpu_some",
            "pressure.memory_some",
            "pressure.io_some",
        ],
        join: Join::Most,
        full: Full::Percent,
    },
    Meter {
        name: "Dsk",
        fields: &["disk.read_kb", "disk.write_kb"],
        join: Join::Sum,
        full: Full::Most,
    },
    Meter {
        name: "Net",
        fields: &["net.rx_kb", "net.tx_kb"],
        join: Join::Sum,
        full: Full::Most,
    },
];

impl Meter {
    /// One value of the values of the fields; NaN where none is known.
    pub fn join(&self, values: impl Iterator<Item = f64>) -> f64 {
        let mut known = values.filter(|value| !value.is_nan());
        match self.join {
            Join::Sum => known.reduce(|sum, value| sum + value),
            Join::Most => known.reduce(f64::max),
            Join::Rest => known
                .next()
                .zip(known.next())
                .map(|(whole, part)| whole - part),
        }
        .unwrap_or(f64::NAN)
    }

    /// The present value.
    pub fn value(&self, readings: &Readings) -> f64 {
        self.join(self.fields.iter().map(|field| readings.number(field)))
    }

    /// The value at which it is full, where that does not depend on its past.
    pub fn full(&self, readings: &Readings) -> Option<f64> {
        match self.full {
            Full::Percent => Some(100.0),
            Full::Field(field) => Some(readings.number(field)).filter(|full| *full > 0.0),
            Full::Most => None,
        }
    }
}

/// The values of all meters.
pub fn values(readings: &Readings) -> [f64; COUNT] {
    let mut values = [f64::NAN; COUNT];
    for (value, meter) in values.iter_mut().zip(&METERS) {
        *value = meter.value(readings);
    }
    values
}

/// A number in at most five characters: `0.42`, `17.3`, `964`, `12.4K`.
pub fn short(value: f64, step: f64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    if value.is_nan() {
        return "-".into();
    }
    let (mut value, mut unit) = (value, 0);
    while value.abs() >= 999.5 && unit + 1 < UNITS.len() {
        value /= step;
        unit += 1;
    }
    let decimals = match (unit, value.abs()) {
        (_, size) if size >= 99.95 || size == 0.0 => 0,
        (0, size) if size < 9.995 => 2,
        _ => 1,
    };
    let text = format!("{value:.decimals$}{}", UNITS[unit]);
    match text.as_str() {
        "-0" | "-0.0" | "-0.00" => "0".into(),
        _ => text,
    }
}

/// Kibibytes in at most six characters.
pub fn bytes(kilobytes: f64) -> String {
    short(kilobytes * 1024.0, 1024.0)
}

/// Percent with one decimal.
pub fn percent(value: f64) -> String {
    match value.is_nan() {
        true => "-".into(),
        false => format!("{value:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, step, expect) in [
            (f64::NAN, 1000.0, "-"),
            (0.0, 1000.0, "0"),
            (0.421, 1000.0, "0.42"),
            (-0.0, 1000.0, "0"),
            (-0.001, 1000.0, "0"),
            (9.996, 1000.0, "10.0"),
            (17.34, 1000.0, "17.3"),
            (999.4, 1000.0, "999"),
            (999.6, 1000.0, "1.0K"),
            (12_400.0, 1000.0, "12.4K"),
            (1024.0 * 1024.0, 1024.0, "1.0M"),
            (1e30, 1000.0, "1000000000000E"),
        ] {
            assert_eq!(short(value, step), expect);
        }
    }

    #[test]
    fn values_join() {
        let meter = |join| Meter {
            name: "",
            fields: &[],
            join,
            full: Full::Most,
        };
        for (join, values, expect) in [
            (Join::Sum, [1.0, 2.0], 3.0),
            (Join::Sum, [f64::NAN, 2.0], 2.0),
            (Join::Most, [1.0, 2.0], 2.0),
            (Join::Rest, [5.0, 2.0], 3.0),
            (Join::Rest, [f64::NAN, 2.0], f64::NAN),
        ] {
            let got = meter(join).join(values.into_iter());
            assert_eq!(got.to_string(), expect.to_string(), "{join:?}");
        }
    }
}
