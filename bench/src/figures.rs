//! Medians, percentiles and the formatting of figures. Pure functions.

/// The middle value (the mean of the middle two); 0 if there are none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

/// Least and greatest; zeros if there are none.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let sorted = sorted(values);
    match (sorted.first(), sorted.last()) {
        (Some(&low), Some(&high)) => (low, high),
        _ => (0.0, 0.0),
    }
}

/// Nearest-rank percentile, `share` in 0..=1; 0 if there are none.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let sorted = sorted(values);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    match sorted.get(rank.saturating_sub(1)) {
        Some(&value) => value,
        None => 0.0,
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Seconds with three significant digits.
pub(crate) fn seconds(value: f64) -> String {
    significant(value)
}

/// Three significant digits, no exponent.
pub(crate) fn significant(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    let digits = if value == 0.0 { 0.0 } else { 2.0 - magnitude };
    format!("{value:.*}", digits.clamp(0.0, 9.0) as usize)
}

/// A part of a whole in common notation:
/// `1/39`, or `1.15 ×` from a half on.
pub(crate) fn ratio(part: f64, whole: f64) -> String {
    match part / whole {
        r if !r.is_finite() => "n/a".into(),
        r if r > 0.0 && r < 0.5 => format!("1/{}", significant(1.0 / r)),
        r => format!("{} ×", significant(r)),
    }
}

/// Bytes in decimal kB or MB.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        v if v < 1e6 => format!("{} kB", significant(v / 1e3)),
        v => format!("{} MB", significant(v / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(spread(&[2.0, 9.0, 4.0]), (2.0, 9.0));
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        for (share, want) in [(0.5, 50.0), (0.99, 99.0), (0.999, 100.0), (1.0, 100.0)] {
            assert_eq!(percentile(&hundred, share), want);
        }
        assert_eq!(percentile(&[], 0.99), 0.0);
    }

    #[test]
    fn figures_are_short() {
        for (value, want) in [
            (0.0, "0"),
            (0.12345, "0.123"),
            (5.876, "5.88"),
            (165.2, "165"),
            (12345.6, "12346"),
        ] {
            assert_eq!(significant(value), want);
        }
        assert_eq!(ratio(0.15, 5.9), "1/39.3");
        assert_eq!(ratio(0.15, 0.13), "1.15 ×");
        assert_eq!(ratio(1.0, 0.0), "n/a");
        assert_eq!(bytes(350_000.0), "350 kB");
        assert_eq!(bytes(27_000_000.0), "27.0 MB");
    }
}
