//! Numbers with their display units: KiB become MiB, counts k and M, milliseconds µs. Ticks are
//! round in the display unit.

use kymo_base::field::Unit;

/// A display unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Shown {
    /// Size in the recorded unit.
    pub size: f64,
    /// Name of the unit.
    pub name: &'static str,
}

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = MIB * KIB;
const TIB: f64 = GIB * KIB;

/// The display units of a recorded unit, smallest first. The one of size 1 stands for 0.
fn ladder(unit: Unit) -> &'static [(f64, &'static str)] {
    match unit {
        Unit::Bytes => &[
            (1.0, "B"),
            (KIB, "KiB"),
            (MIB, "MiB"),
            (GIB, "GiB"),
            (TIB, "TiB"),
        ],
        Unit::Kilobytes => &[
            (1.0 / KIB, "B"),
            (1.0, "KiB"),
            (KIB, "MiB"),
            (MIB, "GiB"),
            (GIB, "TiB"),
        ],
        Unit::BytesPerSecond => &[(1.0, "B/s"), (KIB, "KiB/s"), (MIB, "MiB/s"), (GIB, "GiB/s")],
        Unit::KilobytesPerSecond => &[
            (1.0 / KIB, "B/s"),
            (1.0, "KiB/s"),
            (KIB, "MiB/s"),
            (MIB, "GiB/s"),
        ],
        Unit::Count => &[(1.0, ""), (1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")],
        Unit::PerSecond => &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s"), (1e9, "G/s")],
        Unit::Seconds => &[(1e-6, "µs"), (1e-3, "ms"), (1.0, "s")],
        Unit::Milliseconds => &[(1e-3, "µs"), (1.0, "ms"), (1e3, "s")],
        Unit::Microseconds => &[(1.0, "µs"), (1e3, "ms"), (1e6, "s")],
        Unit::Nanoseconds => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
        Unit::MegabitsPerSecond => &[(1e-3, "kbit/s"), (1.0, "Mbit/s"), (1e3, "Gbit/s")],
        Unit::Percent => &[(1.0, "%")],
        Unit::Sectors => &[(1.0, "sectors")],
        Unit::Pages => &[(1.0, "pages")],
        Unit::Ticks => &[(1.0, "ticks")],
        Unit::Celsius => &[(1.0, "°C")],
        Unit::Revolutions => &[(1.0, "rpm")],
        Unit::Volts => &[(1.0, "V")],
        Unit::Amperes => &[(1.0, "A")],
        Unit::Watts => &[(1.0, "W")],
        Unit::Megahertz => &[(1.0, "MHz"), (1e3, "GHz")],
        Unit::Hundredths | Unit::None => &[(1.0, "")],
    }
}

/// The display unit for a value: the largest one in which the value is at least 1.
pub(crate) fn shown(unit: Unit, value: f64) -> Shown {
    let ladder = ladder(unit);
    // Without this factor, 1023.996 KiB would be written as 1024.00 KiB.
    let enough = |size: f64| value.abs() * 1.00001 >= size;
    let own = ladder.iter().find(|(size, _)| *size == 1.0);
    let largest = ladder.iter().rev().find(|(size, _)| enough(*size));
    let found = match value == 0.0 || !value.is_finite() {
        true => own,
        false => largest,
    };
    let &(size, name) = found.or(ladder.first()).unwrap_or(&(1.0, ""));
    Shown { size, name }
}

/// A value for people: number and unit. A missing value is a dash.
pub(super) fn number(unit: Unit, value: f64) -> (String, &'static str) {
    if !value.is_finite() {
        return ("–".into(), "");
    }
    let shown = shown(unit, value);
    let value = value / shown.size;
    match value.abs() {
        large if large >= 1e6 => (format!("{value:.1e}"), shown.name),
        _ => (format!("{value:.2}").replace("-0.00", "0.00"), shown.name),
    }
}

/// Least upper end of an axis.
const LEAST: f64 = 1e-6;

/// A vertical axis from 0 up.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// Upper end in the recorded unit; above 0.
    pub top: f64,
    /// Display unit of the ticks.
    pub name: &'static str,
    /// Ticks: value in the recorded unit, and label.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis with about `want` round steps that reaches `most` or a little more.
    pub(super) fn new(unit: Unit, most: f64, want: usize) -> Axis {
        let most = if most.is_finite() && most > 0.0 {
            most
        } else {
            1.0
        };
        // Beyond these limits ticks and positions are inexact, and labels long.
        let most = most.clamp(LEAST, 1e30);
        let shown = shown(unit, most);
        let scaled = most / shown.size;
        let step = round_step(scaled / want.max(1) as f64);
        let count = (scaled / step - 1e-6).ceil().max(1.0) as usize;
        Axis::of(shown, step, count)
    }

    /// An axis that ends exactly at `top`, a round value.
    pub(super) fn fixed(unit: Unit, top: f64, want: usize) -> Axis {
        let mut axis = Axis::new(unit, top, want);
        let top = top.max(LEAST);
        axis.ticks.retain(|(value, _)| *value <= top * 1.000_001);
        axis.top = top;
        axis
    }

    fn of(shown: Shown, step: f64, count: usize) -> Axis {
        let decimals = (-step.log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
        let tick = |n: usize| {
            let value = n as f64 * step;
            let label = match value >= 1e6 {
                true => format!("{value:.1e}"),
                false => format!("{value:.decimals$}"),
            };
            (value * shown.size, if n == 0 { "0".into() } else { label })
        };
        Axis {
            top: step * count as f64 * shown.size,
            name: shown.name,
            ticks: (0..=count.min(100)).map(tick).collect(),
        }
    }
}

/// The next number of 1, 2, 5, 10, ... that is at least `least`.
pub(super) fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 5.0].iter().map(|n| n * power);
    let found = found.into_iter().find(|step| *step >= least * 0.999_999);
    found.unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_a_fitting_unit() {
        for (unit, value, expect) in [
            (Unit::KilobytesPerSecond, 0.0, "0.00 KiB/s"),
            (Unit::KilobytesPerSecond, 0.5, "512.00 B/s"),
            (Unit::KilobytesPerSecond, 1023.9, "1023.90 KiB/s"),
            (Unit::KilobytesPerSecond, 1023.999, "1.00 MiB/s"),
            (Unit::KilobytesPerSecond, 5e6, "4.77 GiB/s"),
            (Unit::Bytes, 1536.0, "1.50 KiB"),
            (Unit::Kilobytes, 24_000_000.0, "22.89 GiB"),
            (Unit::PerSecond, 12_345.0, "12.35 k/s"),
            (Unit::Count, 7.0, "7.00 "),
            (Unit::Count, 2.5e6, "2.50 M"),
            (Unit::Milliseconds, 0.25, "250.00 µs"),
            (Unit::Milliseconds, 1500.0, "1.50 s"),
            (Unit::Percent, 12.345, "12.35 %"),
            (Unit::Percent, 1e9, "1.0e9 %"),
            (Unit::None, 0.001, "0.00 "),
            (Unit::None, -0.001, "0.00 "),
            (Unit::None, -2.0, "-2.00 "),
            (Unit::None, f64::NAN, "– "),
            (Unit::Count, f64::INFINITY, "– "),
        ] {
            let (number, name) = number(unit, value);
            assert_eq!(format!("{number} {name}"), expect, "{unit:?} {value}");
        }
    }

    #[test]
    fn ticks_are_round_in_what_is_shown() {
        for (unit, most, want, expect) in [
            (Unit::Percent, 100.0, 5, "0 20 40 60 80 100 %"),
            (Unit::Percent, 0.07, 4, "0 0.02 0.04 0.06 0.08 %"),
            (
                Unit::KilobytesPerSecond,
                900.0,
                5,
                "0 200 400 600 800 1000 KiB/s",
            ),
            (Unit::KilobytesPerSecond, 1500.0, 4, "0 0.5 1.0 1.5 MiB/s"),
            (Unit::KilobytesPerSecond, 0.7, 4, "0 200 400 600 800 B/s"),
            (Unit::PerSecond, 25_000.0, 5, "0 5 10 15 20 25 k/s"),
            (Unit::Kilobytes, 24_684_084.0, 5, "0 5 10 15 20 25 GiB"),
            (Unit::None, 2.3, 5, "0 0.5 1.0 1.5 2.0 2.5 "),
            (Unit::Count, 0.0, 2, "0 0.5 1.0 "),
            (Unit::Count, f64::NAN, 1, "0 1 "),
            (Unit::Milliseconds, 0.3, 3, "0 100 200 300 µs"),
        ] {
            let axis = Axis::new(unit, most, want);
            let labels: Vec<&str> = axis.ticks.iter().map(|(_, label)| &label[..]).collect();
            let got = format!("{} {}", labels.join(" "), axis.name);
            assert_eq!(got, expect, "{unit:?} {most} {want}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_axis_holds_what_is_drawn(most in proptest::num::f64::ANY, want in 0usize..20) {
            let axis = Axis::new(Unit::KilobytesPerSecond, most, want);
            assert!(axis.top > 0.0 && axis.top.is_finite(), "{axis:?}");
            assert!(!(most.is_finite() && (1e-6..1e30).contains(&most)) || axis.top >= most * 0.99999, "{axis:?}");
            assert!(axis.ticks.len() >= 2 && axis.ticks.len() <= want.max(1) * 2 + 2, "{axis:?}");
        }
    }
}
