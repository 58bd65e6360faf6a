//! The vertical axis of a graph, as MRTG's program rateup chooses it, and the ways to bend it.

use super::style::GraphStyle;

/// A vertical axis.
pub(super) struct Axis {
    /// Value at its top, in the unit of the curves.
    pub top: f64,
    /// Numbers written at its tics differ by this.
    pub tic: f64,
    /// Prefix of the unit, such as `k`.
    pub prefix: String,
}

impl Axis {
    /// An axis for values up to `max`.
    pub(super) fn new(max: i64, style: &GraphStyle) -> Axis {
        let quarter = (max as f64 / style.tics as f64).ceil().trunc();
        let shown = quarter * style.tics_factor;
        let last = style.prefixes.len().saturating_sub(1);
        let is_skipped = |at: usize| style.prefixes.get(at).is_some_and(|p| p.starts_with('-'));
        let (mut thousands, mut number) = (0, shown);
        while thousands < last && (number >= 1000.0 || is_skipped(thousands)) {
            number /= 1000.0;
            thousands += 1;
        }
        let digits = match shown >= 1.0 {
            true => shown.log10().trunc(),
            false => 0.0,
        };
        let ten = |exponent: f64| 10f64.powf(exponent);
        let tens = (shown / ten(digits)).trunc();
        let hundreds = (shown / ten(digits - 1.0)).trunc();
        let same = hundreds * ten(digits - 1.0);
        let next_ten = (tens + 1.0) * ten(digits);
        let rounded = if next_ten <= 1.1 * quarter * style.tics_factor {
            next_ten
        } else if shown == same {
            same
        } else {
            (hundreds + 1.0) * ten(digits - 1.0)
        };
        let tic = rounded / ten(thousands as f64 * 3.0);
        let unit = (style.kilo as f64).powf(thousands as f64);
        Axis {
            top: ((tic / style.tics_factor) * style.tics as f64 * unit).max(1.0),
            tic,
            prefix: style.prefixes.get(thousands).cloned().unwrap_or_default(),
        }
    }
}

/// Moves a height of `0..=top` to where a logarithmic axis has it.
pub(super) fn logarithmic(height: f64, top: f64) -> f64 {
    let height = height * (top - 1.0) / top + 1.0;
    (height.ln() / top.ln() * top).clamp(0.0, top)
}

/// Moves a height of `0..=top` to where an exponential axis has it.
pub(super) fn exponential(height: f64, top: f64) -> f64 {
    let height = (height / top * top.ln()).exp();
    (height - 1.0) * top / (top - 1.0)
}
