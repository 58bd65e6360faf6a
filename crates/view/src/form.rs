//! Numbers as text: collectl's shortened numbers, decimals, times. All functions append to the caller's buffer.

use kymo_base::scan;

/// Form of a value in a row; see `kymo_kernel::subsystem::Text`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// An integer; the fraction is cut off.
    Whole,
    /// A fixed number of decimals.
    Decimals(u8),
    /// A count, shortened by thousands.
    Count,
    /// KiB, shortened by 1024.
    Kilobytes,
    /// Bytes, shown as KiB, shortened by 1024.
    Bytes,
    /// A count, shortened by 1024.
    Units,
    /// Seconds as `MM:SS.hh`, or `HH:MM:SS` from one hour on.
    Time,
    /// A text.
    Text,
}

/// Shortening of a number that is too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Shortening {
    /// Divides by the unit and cuts: `12G`.
    #[default]
    Cut,
    /// `-og`: from G on, with the fraction behind the unit: `1g28`.
    Fraction,
    /// `-oG`: from G on, with a decimal if there is room: `1.3G`.
    Decimal,
    /// `-w`: does not shorten.
    Never,
}

/// Stands for a missing number.
const UNKNOWN: &[u8] = b"-";

/// Appends `value` in `form`, shortened to `limit` characters.
pub(crate) fn put(out: &mut Vec<u8>, value: f64, form: Form, limit: usize, shortening: Shortening) {
    if value.is_nan() {
        out.extend_from_slice(UNKNOWN);
        return;
    }
    let mut short = |value: f64, unit: usize, divisor: u64| {
        let scale = Scale { unit, divisor };
        short(out, value, limit, scale, shortening);
    };
    match form {
        Form::Count => return short(value, 0, 1000),
        Form::Kilobytes => return short(value, 1, 1024),
        Form::Bytes => return short(value / 1024.0, 1, 1024),
        Form::Units => return short(value, 0, 1024),
        _ => {}
    }
    match form {
        Form::Whole => whole(out, value),
        Form::Decimals(decimals) => fixed(out, value, decimals),
        Form::Time => time(out, value),
        _ => whole(out, value),
    }
}

/// Appends `value` without its fraction.
pub(crate) fn whole(out: &mut Vec<u8>, value: f64) {
    let cut = value.trunc();
    if cut < 0.0 {
        out.push(b'-');
    }
    scan::put_number(out, cut.abs() as u64, 0, b' ');
}

/// Appends `value` with `decimals` decimals, rounded as C does: from the exact value, and a tie to even.
pub(crate) fn fixed(out: &mut Vec<u8>, value: f64, decimals: u8) {
    const SCALES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];
    let scale = SCALES[usize::from(decimals.min(3))];
    let scaled = value.abs() * scale;
    let rest = scaled.fract();
    // Close to a tie the product is too inexact, so `format!` decides there, which is slower.
    if decimals > 3 || scaled > 1e15 || (rest - 0.5).abs() < 1e-4 || !value.is_finite() {
        out.extend_from_slice(format!("{value:.*}", usize::from(decimals)).as_bytes());
        return;
    }
    let units = scaled.round() as u64;
    if value.is_sign_negative() && units > 0 {
        out.push(b'-');
    }
    let scale = scale as u64;
    scan::put_number(out, units / scale, 0, b' ');
    if decimals > 0 {
        out.push(b'.');
        scan::put_number(out, units % scale, decimals.into(), b'0');
    }
}

/// The unit of a number (0 for ones, 1 for K), and the factor to the next unit.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) unit: usize,
    pub(crate) divisor: u64,
}

/// Appends `value` shortened for `width`. The value is rounded to an integer first, then cut: 2047 KiB are 1M. A
/// value that would become 0 is 1 of its unit.
pub(crate) fn short(
    out: &mut Vec<u8>,
    value: f64,
    width: usize,
    scale: Scale,
    shortening: Shortening,
) {
    const UNITS: &[u8] = b" KMGTPE";
    let (negative, value) = (value < 0.0, value.abs());
    let mut rest = if negative {
        value
    } else {
        (value + 0.5).floor()
    } as u64;
    if rest == 0 {
        out.push(b'0');
        return;
    }
    if negative {
        out.push(b'-');
    }
    let mut unit = scale.unit;
    // As in collectl, the sign counts as a digit here, and only here.
    let taken = scan::digits(rest) + usize::from(negative);
    if unit == 0 && taken <= width || shortening == Shortening::Never {
        scan::put_number(out, rest, 0, b' ');
        return;
    }
    let mut last = 0;
    while scan::digits(rest) >= width && unit + 1 < UNITS.len() {
        last = rest;
        rest /= scale.divisor;
        unit += 1;
    }
    if unit < GIGA || !with_fraction(out, (last, rest), unit, scale.divisor, shortening) {
        scan::put_number(out, rest.max(1), 0, b' ');
        out.push(UNITS[unit]);
    }
}

/// The unit from which on fractions are shown: G.
const GIGA: usize = 3;

/// Appends `rest` with the fraction that was cut off `last`, as collectl does. `false`: there is no room for it.
fn with_fraction(
    out: &mut Vec<u8>,
    (last, mut rest): (u64, u64),
    unit: usize,
    divisor: u64,
    shortening: Shortening,
) -> bool {
    let round = match shortening {
        Shortening::Fraction => 5,
        Shortening::Decimal => 50,
        Shortening::Cut | Shortening::Never => return false,
    };
    if scan::digits(rest) == 3 || unit == 0 {
        return false;
    }
    let mut fraction = last.saturating_sub(rest * divisor) + round;
    if fraction >= divisor {
        (rest, fraction) = (rest + 1, 0);
    }
    let fraction = format!("{fraction:03}");
    let text = match shortening {
        Shortening::Fraction => {
            let text = format!("{rest}g{fraction}");
            text[..text.len().min(4)].to_string()
        }
        _ if scan::digits(rest) == 1 => format!("{rest}.{}G", &fraction[..1]),
        _ => format!("{rest}G"),
    };
    out.extend_from_slice(text.as_bytes());
    true
}

/// Appends seconds as `MM:SS.hh`, or `HH:MM:SS` from one hour on.
pub(crate) fn time(out: &mut Vec<u8>, secs: f64) {
    // Adds a thousandth of a second, because 0.29 s is slightly less in binary, and would become 0.28 s.
    let hundredths = (secs.max(0.0) * 100.0 + 0.1) as u64;
    let (minutes, rest) = (hundredths / 6000, hundredths % 6000);
    if minutes < 60 {
        parts(out, &[minutes, rest / 100], b':');
        out.push(b'.');
        scan::put_number(out, rest % 100, 2, b'0');
    } else {
        parts(out, &[minutes / 60, minutes % 60, rest / 100], b':');
    }
}

/// Appends seconds as `H:MM:SS`.
pub(crate) fn clock(out: &mut Vec<u8>, secs: f64) {
    let secs = secs.max(0.0) as u64;
    scan::put_number(out, secs / 3600, 0, b' ');
    out.push(b':');
    parts(out, &[secs / 60 % 60, secs % 60], b':');
}

fn parts(out: &mut Vec<u8>, parts: &[u64], separator: u8) {
    for (n, &part) in parts.iter().enumerate() {
        if n > 0 {
            out.push(separator);
        }
        scan::put_number(out, part, 2, b'0');
    }
}

/// Appends a number for programs: at most four decimals, without trailing zeros.
pub(crate) fn plain(out: &mut Vec<u8>, value: f64) {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return whole(out, value);
    }
    let start = out.len();
    out.extend_from_slice(format!("{value:.4}").as_bytes());
    while out.len() > start + 1 && out.ends_with(b"0") {
        out.pop();
    }
    if out.ends_with(b".") {
        out.pop();
    }
    if &out[start..] == b"-0" {
        out.truncate(start);
        out.push(b'0');
    }
}

/// Pads the text from `start` on to `width` characters: aligned right, or left if `width` is negative.
pub(crate) fn align(out: &mut Vec<u8>, start: usize, width: i32) {
    let shown =
        std::str::from_utf8(&out[start..]).map_or(out.len() - start, |text| text.chars().count());
    let missing = (width.unsigned_abs() as usize).saturating_sub(shown);
    out.resize(out.len() + missing, b' ');
    if width > 0 {
        out[start..].rotate_right(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    /// Results of `cvt` in collectl 4.3.1.
    #[test]
    fn shortened() {
        for (value, width, unit, divisor, expect) in [
            (0.0, 4, 0, 1000, "0"),
            (0.4, 4, 0, 1000, "0"),
            (0.5, 4, 0, 1000, "1"),
            (9999.0, 4, 0, 1000, "9999"),
            (10000.0, 4, 0, 1000, "10K"),
            (999_499.0, 4, 0, 1000, "999K"),
            (1_000_000.0, 4, 0, 1000, "1M"),
            (0.0, 4, 1, 1024, "0"),
            (1.0, 4, 1, 1024, "1K"),
            (999.0, 4, 1, 1024, "999K"),
            (1000.0, 4, 1, 1024, "1M"),
            (2047.0, 4, 1, 1024, "1M"),
            (24_684_084.0, 4, 1, 1024, "23G"),
            (24_684_084.0, 7, 1, 1024, "24105M"),
            (16384.0, 6, 0, 1024, "16384"),
            (1_638_400.0, 6, 0, 1024, "1600K"),
            (-5000.0, 4, 1, 1024, "-4M"),
            (-819.0, 4, 0, 1024, "-819"),
            (-8192.0, 4, 0, 1024, "-8K"),
            (1e19, 4, 0, 1000, "10E"),
        ] {
            assert_eq!(
                text(|out| short(out, value, width, Scale { unit, divisor }, Shortening::Cut)),
                expect,
                "{value} in {width}"
            );
        }
    }

    #[test]
    fn times_and_plain_numbers() {
        for (secs, short, long) in [
            (0.0, "00:00.00", "0:00:00"),
            (0.29, "00:00.29", "0:00:00"),
            (59.99, "00:59.99", "0:00:59"),
            (3599.0, "59:59.00", "0:59:59"),
            (3600.0, "01:00:00", "1:00:00"),
            (360_000.0, "100:00:00", "100:00:00"),
        ] {
            assert_eq!(text(|out| time(out, secs)), short);
            assert_eq!(text(|out| clock(out, secs)), long);
        }
        for (value, expect) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.00001, "0"),
            (1.0 / 3.0, "0.3333"),
            (1e9, "1000000000"),
            (-2.0, "-2"),
            (100.00001, "100"),
        ] {
            assert_eq!(text(|out| plain(out, value)), expect);
        }
        assert_eq!(
            text(|out| put(out, f64::NAN, Form::Whole, 4, Shortening::Cut)),
            "-"
        );
    }

    proptest! {
        #[test]
        fn fixed_is_what_c_prints(value in prop_oneof![any::<f64>(), -1e6..1e6, (0u32..100_000).prop_map(|n| f64::from(n) / 8.0)], decimals in 0u8..4) {
            prop_assume!(value.is_finite());
            let expect = format!("{value:.*}", usize::from(decimals));
            let zero = expect.trim_start_matches('-').bytes().all(|b| b == b'0' || b == b'.');
            let got = text(|out| fixed(out, value, decimals));
            prop_assert_eq!(got.trim_start_matches('-'), expect.trim_start_matches('-'));
            if !zero { prop_assert_eq!(got, expect); }
        }

        #[test]
        fn short_fits(value in 0f64..1e17, width in 4usize..8) {
            let scale = Scale { unit: 0, divisor: 1000 };
            let short = text(|out| short(out, value, width, scale, Shortening::Cut));
            prop_assert!(short.len() <= width);
        }
    }
}
