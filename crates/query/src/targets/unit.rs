//! Numbers of a target as MRTG writes them: bits of bytes, per minute or hour, `Factor`, `kilo` and the prefixes of `kMG`.

use kymo_wire::targets::DescribedTarget;

/// MRTG's prefixes, as `kMG` writes them.
const PREFIXES: &str = ",k,M,G,T,P";
/// Kilos from which on a number gets the next prefix.
const TURN: f64 = 10.0;
/// Prefixes at most.
const PREFIXES_MAX: usize = 16;

/// How a target's rates are written.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetUnit {
    /// Factor of a stored rate.
    pub scale: f64,
    /// Further factor of the numbers below a graph.
    pub factor: f64,
    /// Further factor of the numbers beside a graph.
    pub tics_factor: f64,
    /// Factor between two prefixes.
    pub kilo: f64,
    /// Prefixes, the one of 1 first; each next one is `kilo` times as large. `None`: the prefix is skipped.
    pub prefixes: Vec<Option<String>>,
    /// `b/s`
    pub name: String,
    /// `Bits per Second`
    pub axis: String,
    /// Without decimals.
    pub whole: bool,
    /// True if rates are bytes a second, so that a time has an amount.
    pub counts: bool,
}

impl TargetUnit {
    /// Unit of a target.
    pub fn of(target: &DescribedTarget) -> TargetUnit {
        let bits = target.has("bits");
        let (seconds, short, long) = per(target);
        let (letter, word) = if bits { ("b", "Bits") } else { ("B", "Bytes") };
        let prefixes = target.kmg.as_deref().filter(|kmg| !kmg.is_empty());
        // Empty ones at the end are none, as in Perl.
        let prefixes = prefixes.unwrap_or(PREFIXES).trim_end_matches(',');
        let prefixes = prefixes.split(',').take(PREFIXES_MAX);
        let prefix = |word: &str| Some(word.trim().to_string()).filter(|_| !word.starts_with('-'));
        let name = target.short_legend.clone();
        let axis = target.y_legend.clone().filter(|legend| !legend.is_empty());
        TargetUnit {
            scale: seconds * if bits { 8.0 } else { 1.0 },
            factor: target.factor.unwrap_or(1.0),
            tics_factor: target.y_tics_factor.unwrap_or(1.0),
            kilo: target.kilo.unwrap_or(1000.0),
            prefixes: prefixes.map(prefix).collect(),
            name: name.unwrap_or_else(|| format!("{letter}/{short}")),
            axis: axis.unwrap_or_else(|| format!("{word} per {long}")),
            whole: target.has("integer"),
            counts: is_counter(target) && target.short_legend.is_none(),
        }
    }

    /// A stored rate as it stands below a graph; a dash: it is not known.
    pub fn text(&self, rate: f64) -> String {
        if !rate.is_finite() {
            return "–".into();
        }
        let (number, prefix) = self.prefixed(rate * self.scale * self.factor, TURN);
        let number = rounded(number, usize::from(!self.whole));
        format!("{number} {prefix}{}", self.name).trim_end().into()
    }

    /// A stored amount, such as bytes; a dash: the target does not count, or the amount is not known.
    pub fn amount(&self, amount: f64) -> String {
        if !self.counts || !amount.is_finite() {
            return "–".into();
        }
        let (number, prefix) = self.prefixed(amount * self.factor, TURN);
        format!("{} {prefix}B", rounded(number, 1))
    }

    /// Text of a number beside a graph; `value` is multiplied with `scale` already.
    pub fn tick(&self, value: f64) -> String {
        let (number, prefix) = self.prefixed(value * self.tics_factor, 1.0);
        let number = (number * 1e4).round() / 1e4 + 0.0;
        format!("{number} {prefix}").trim_end().into()
    }

    /// A number and its prefix: the next prefix begins at `turn` kilos.
    fn prefixed(&self, number: f64, turn: f64) -> (f64, &str) {
        let (mut number, mut at) = (number, 0);
        while at + 1 < self.prefixes.len()
            && (number.abs() >= turn * self.kilo || self.prefixes[at].is_none())
        {
            (number, at) = (number / self.kilo, at + 1);
        }
        let prefix = self.prefixes.get(at).and_then(Option::as_deref);
        (number, prefix.unwrap_or_default())
    }
}

/// A number with some decimals. A zero has no sign.
fn rounded(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let digits = text.strip_prefix('-');
    let zero = digits.filter(|digits| digits.bytes().all(|byte| b"0.".contains(&byte)));
    zero.map(String::from).unwrap_or(text)
}

fn is_counter(target: &DescribedTarget) -> bool {
    let mut others = ["gauge", "absolute", "derive"].iter();
    !others.any(|kind| target.has(kind))
}

/// Seconds per unit of the rate's name, and the short and the long name. A target that is no counter keeps its values.
fn per(target: &DescribedTarget) -> (f64, &'static str, &'static str) {
    let seconds = |seconds: f64| if is_counter(target) { seconds } else { 1.0 };
    match (target.has("perhour"), target.has("perminute")) {
        (true, _) => (seconds(3600.0), "h", "Hour"),
        (false, true) => (seconds(60.0), "min", "Minute"),
        (false, false) => (1.0, "s", "Second"),
    }
}

/// A rate of MaxBytes in percent; NaN: one of them is not known.
pub fn percent(rate: f64, max_bytes: u64) -> f64 {
    match max_bytes {
        0 => f64::NAN,
        max_bytes => rate / max_bytes as f64 * 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(words: &[&str]) -> DescribedTarget {
        DescribedTarget {
            options: words.iter().map(|word| word.to_string()).collect(),
            ..DescribedTarget::default()
        }
    }

    #[test]
    fn numbers_are_those_of_mrtg() {
        let text = |text: &str| Some(text.to_string());
        let plain = target(&[]);
        let bits = target(&["bits"]);
        let minute = target(&["bits", "perminute"]);
        let gauge = DescribedTarget {
            short_legend: text("°C"),
            kmg: text(","),
            ..target(&["gauge", "perhour", "integer"])
        };
        let factor = DescribedTarget {
            factor: Some(0.5),
            kilo: Some(1024.0),
            ..target(&[])
        };
        let skips = DescribedTarget {
            kmg: text("-,-,M"),
            short_legend: text(""),
            ..target(&[])
        };
        for (target, rate, expect) in [
            (&plain, 0.0, "0.0 B/s"),
            (&plain, -0.0, "0.0 B/s"),
            (&plain, -0.04, "0.0 B/s"),
            (&plain, -0.06, "-0.1 B/s"),
            (&plain, 9999.0, "9999.0 B/s"),
            (&plain, 10_000.0, "10.0 kB/s"),
            (&plain, 12_345_678.0, "12.3 MB/s"),
            (&plain, f64::NAN, "–"),
            (&bits, 1250.0, "10.0 kb/s"),
            (&bits, 1e18, "8000.0 Pb/s"),
            (&minute, 1.0, "480.0 b/min"),
            (&gauge, 41.6, "42 °C"),
            (&gauge, -0.4, "0 °C"),
            (&gauge, 41_600.0, "41600 °C"),
            (&factor, 20_480.0, "10.0 kB/s"),
            (&skips, 1_234_567.0, "1.2 M"),
        ] {
            assert_eq!(
                TargetUnit::of(target).text(rate),
                expect,
                "{target:?} {rate}"
            );
        }
        assert_eq!(TargetUnit::of(&plain).amount(-0.0), "0.0 B");
        assert_eq!(TargetUnit::of(&gauge).amount(7.0), "–");
        assert_eq!(TargetUnit::of(&bits).axis, "Bits per Second");
        assert_eq!(TargetUnit::of(&target(&["perhour"])).axis, "Bytes per Hour");
        assert_eq!(percent(625_000.0, 1_250_000), 50.0);
        assert!(percent(1.0, 0).is_nan());
    }
}
