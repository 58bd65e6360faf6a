//! Rates as a page writes them: `12.3 kb/s (4.5%)`.

use super::style::GraphStyle;
use kymo_wire::mrtg_cfg::{Choice, Options};

/// Prefixes without `kMG`.
const PREFIXES: [&str; 4] = ["", "k", "M", "G"];

/// Form of a target's rates.
#[derive(Clone, Debug)]
pub(super) struct AmountStyle {
    units: Vec<String>,
    /// Rates are multiplied by this.
    factor: f64,
    kilo: f64,
    decimals: usize,
    has_percent: bool,
}

impl AmountStyle {
    /// `legend` is ShortLegend, `own_prefixes` those of kMG.
    pub(super) fn new(
        style: &GraphStyle,
        legend: Option<&str>,
        own_prefixes: Option<&[String]>,
        factor: f64,
    ) -> AmountStyle {
        let options = style.options;
        let has_bits = options.has(Choice::Bits);
        // As in MRTG, ShortLegend beside kMG is a unit of its own, and bytes stay bytes.
        let is_own_unit = own_prefixes.is_some() && legend.is_some();
        let unit = legend.map_or_else(|| unit(options), String::from);
        let units = match own_prefixes {
            Some(prefixes) => prefixes
                .iter()
                .map(|prefix| format!("{prefix}{unit}"))
                .collect(),
            None => PREFIXES.map(|prefix| format!("{prefix}{unit}")).to_vec(),
        };
        AmountStyle {
            units,
            factor: if has_bits && !is_own_unit {
                8.0 * factor
            } else {
                factor
            },
            kilo: style.kilo as f64,
            decimals: usize::from(!options.has(Choice::Integer)),
            has_percent: !options.has(Choice::Nopercent),
        }
    }

    /// A rate, of which `max` is 100 %.
    pub(super) fn text(&self, rate: Option<i64>, max: u64) -> String {
        let Some(rate) = rate else {
            return "?????".into();
        };
        let rate = rate as f64;
        let (mut value, mut place) = (rate * self.factor, 0);
        let last = self.units.len().saturating_sub(1);
        let is_skipped = |place: usize| {
            self.units
                .get(place)
                .is_some_and(|unit| unit.starts_with('-'))
        };
        while place < last && (value >= 10.0 * self.kilo || is_skipped(place)) {
            value /= self.kilo;
            place += 1;
        }
        let unit = self.units.get(place).map_or("", String::as_str);
        let amount = format!("{value:.*} {unit}", self.decimals);
        let percent = match max {
            0 => 0.0,
            max => 100.0 / max as f64 * rate,
        };
        match self.has_percent {
            true => format!("{amount} ({percent:.1}%)"),
            false => amount,
        }
    }
}

fn unit(options: Options) -> String {
    let of = if options.has(Choice::Bits) { "b" } else { "B" };
    let time = match () {
        () if options.has(Choice::Perminute) => "min",
        () if options.has(Choice::Perhour) => "h",
        () => "s",
    };
    format!("{of}/{time}")
}
