//! Parses `DS:` and `RRA:` specifications and durations with suffixes, for create and tune.
//!
//! Errors are those of rrdtool, word for word. If it reports several, the last one counts.

use crate::UNKNOWN;
use crate::cf::{Cf, is_dst};
use crate::compute_text;
use crate::error::Error;
use crate::header::{DsDef, RraDef, Univals, field};
use crate::number::{Parsed, strtodbl};
use kymo_base::printf::put_fixed;

/// Most violations that a FAILURES archive stores.
pub(crate) const WINDOW_MAX: i32 = 28;
/// Dependent index of a HWPREDICT archive without one.
const NOT_GIVEN: u64 = i32::MAX as u64;
/// Longest name of a data source, type or consolidation function, bytes.
const NAME_LEN: usize = 19;

/// Source of a new file's data source: `DS:name=source[2]:...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The data source.
    pub name: Vec<u8>,
    /// Name in the sources; empty: the same name.
    pub source: Vec<u8>,
    /// Index of the source, from 1; negative: any.
    pub index: i32,
}

/// Lowest version of a file with this content; 0: any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs(pub u8);

impl Needs {
    fn at_least(&mut self, version: u8) {
        self.0 = self.0.max(version);
    }
}

/// Parses a count or a duration: a plain number is a count; with a suffix `s m h d w M y` it is seconds and has to
/// be a multiple of `divisor`. The error is rrdtool's cause without its context.
pub fn duration(token: &[u8], divisor: u64) -> Result<u64, &'static str> {
    let digits = token
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if digits == 0 {
        return Err("value must be (suffixed) positive number");
    }
    if divisor == 0 {
        return Err("INTERNAL ERROR: Zero divisor");
    }
    // strtoul saturates at the largest number.
    let value = token[..digits].iter().try_fold(0u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    let value = value.unwrap_or(u64::MAX);
    // Text behind the suffix is ignored.
    let (unit, divisor) = match token.get(digits) {
        None | Some(0) => (1, 1),
        Some(b's') => (1, divisor),
        Some(b'm') => (60, divisor),
        Some(b'h') => (60 * 60, divisor),
        Some(b'd') => (24 * 60 * 60, divisor),
        Some(b'w') => (7 * 24 * 60 * 60, divisor),
        Some(b'M') => (31 * 24 * 60 * 60, divisor),
        Some(b'y') => (366 * 24 * 60 * 60, divisor),
        Some(_) => return Err("value has trailing garbage"),
    };
    let value = value.wrapping_mul(unit);
    if value == 0 {
        return Err("value must be positive");
    }
    if value % divisor != 0 {
        return Err("value would truncate when scaled");
    }
    Ok(value / divisor)
}

/// Parses the part behind `DS:`. `known` has the data sources before this one.
pub fn parse_ds(def: &[u8], known: &[DsDef], needs: &mut Needs) -> Result<(DsDef, Mapping), Error> {
    let parts = split_ds(def).ok_or_else(|| Error::new("invalid DS format"))?;
    let mut ds = DsDef {
        ds_nam: field(parts.name),
        dst: field(parts.dst),
        par: [0; 10],
    };
    if matches!(parts.dst, b"DCOUNTER" | b"DDERIVE") {
        needs.at_least(5);
    }
    let result = if parts.dst == b"COMPUTE" {
        compute_text::compile(parts.arguments, known).map(|par| ds.par = par)
    } else if is_dst(parts.dst) {
        parse_limits(parts.arguments, &mut ds.par)
    } else {
        let dst = shown(parts.dst);
        Err(Error::new(format!("invalid DS type specified ({dst})")))
    };
    if !parts.name.is_empty() && known.iter().any(|other| other.ds_nam == ds.ds_nam) {
        let name = shown(parts.name);
        return Err(Error::new(format!("Duplicate DS name: {name}")));
    }
    result?;
    let mapping = Mapping {
        name: parts.name.to_vec(),
        source: parts.source.to_vec(),
        // strtol saturates at the largest number, and the int gets the low half.
        index: parts.index.map_or(-1, |digits| saturated(digits) as i32),
    };
    Ok((ds, mapping))
}

struct DsParts<'a> {
    name: &'a [u8],
    source: &'a [u8],
    index: Option<&'a [u8]>,
    dst: &'a [u8],
    arguments: &'a [u8],
}

/// Splits `name[=source[[index]]]:TYPE:arguments` like rrdtool's regular expression.
fn split_ds(def: &[u8]) -> Option<DsParts<'_>> {
    let text = std::str::from_utf8(def).ok()?;
    let (name, rest) = front(def, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
    })?;
    let (mut rest, mut source, mut index) = (rest, &b""[..], None);
    if let [b'=', tail @ ..] = rest {
        (source, rest) = front(tail, |byte| {
            byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
        })?;
        if let [b'[', tail @ ..] = rest {
            let len = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
            rest = tail[len..].strip_prefix(b"]").filter(|_| len > 0)?;
            index = Some(&tail[..len]);
        }
    }
    let (dst, rest) = front(rest.strip_prefix(b":")?, |byte| byte.is_ascii_uppercase())?;
    let arguments = rest.strip_prefix(b":").filter(|rest| !rest.is_empty())?;
    let one_line = !text.contains(['\n', '\r', '\x0b', '\x0c', '\u{85}', '\u{2028}', '\u{2029}']);
    one_line.then_some(DsParts {
        name,
        source,
        index,
        dst,
        arguments,
    })
}

/// Splits off the leading bytes of a kind, one to nineteen of them.
fn front(text: &[u8], is: impl Fn(u8) -> bool) -> Option<(&[u8], &[u8])> {
    let len = text.iter().take_while(|&&byte| is(byte)).count();
    (1..=NAME_LEN).contains(&len).then(|| text.split_at(len))
}

/// Parses `heartbeat:min:max`; text behind these is ignored.
fn parse_limits(text: &[u8], par: &mut Univals) -> Result<(), Error> {
    let failed = |cause: &str| {
        let text = shown(text);
        Error::new(format!("failed to parse data source {text}: {cause}"))
    };
    let colon = text.iter().position(|&byte| byte == b':');
    let colon = colon.ok_or_else(|| failed("missing separator"))?;
    if colon >= 32 {
        return Err(failed("heartbeat too long"));
    }
    par[0] = duration(&text[..colon], 1).map_err(failed)?;
    let (min, rest) = limit_text(&text[colon + 1..]);
    let max = rest.strip_prefix(b":").map(|rest| limit_text(rest).0);
    let max = max.filter(|max| !min.is_empty() && !max.is_empty());
    let max = max.ok_or_else(|| failed("failed to extract min:max"))?;
    let min = limit(min, "parsing min val")?;
    let max = limit(max, "parsing max val")?;
    if min >= max {
        return Err(failed("min must be less than max in DS definition"));
    }
    (par[1], par[2]) = (min.to_bits(), max.to_bits());
    Ok(())
}

/// Splits off the text before a colon, at most eighteen characters.
fn limit_text(text: &[u8]) -> (&[u8], &[u8]) {
    let len = text
        .iter()
        .take(NAME_LEN - 1)
        .take_while(|&&byte| byte != b':');
    text.split_at(len.count())
}

fn limit(text: &[u8], what: &str) -> Result<f64, Error> {
    if text == b"U" {
        return Ok(UNKNOWN);
    }
    let number = shown(text);
    match strtodbl(text) {
        Parsed::All(value) => Ok(value),
        Parsed::Trailing(value, used) => {
            let (value, rest) = (fixed(value), shown(&text[used..]));
            Err(Error::new(format!(
                "{what} - Converted '{number}' to {value}, but cannot convert '{rest}'"
            )))
        }
        Parsed::Nothing => Err(Error::new(format!(
            "{what} - Cannot convert '{number}' to float"
        ))),
    }
}

/// Parses a whole `RRA:` argument. `hash` is that of the file name.
pub fn parse_rra(arg: &[u8], step: u64, hash: u64, needs: &mut Needs) -> Result<RraDef, Error> {
    let mut rra = RraDef {
        cf_nam: [0; 20],
        pad: [0; 4],
        row_cnt: 0,
        pdp_cnt: 0,
        par: [0; 10],
    };
    let tokens = arg.get(4..).unwrap_or_default().split(|&byte| byte == b':');
    let tokens = tokens.filter(|token| !token.is_empty());
    let (mut count, mut cf) = (0, Cf::Average);
    for token in tokens {
        match count {
            0 => cf = begin_rra(token, &mut rra, needs)?,
            1 => take_rows_or_xff(cf, token, step, &mut rra)?,
            2 => take_second(cf, token, step, hash, &mut rra)?,
            3 => take_third(cf, token, step, &mut rra)?,
            4 => take_fourth(cf, token, &mut rra, needs)?,
            5 => rra.par[3] = index(token),
            _ => return Err(Error::new("Unknown error")),
        }
        count += 1;
    }
    let least = match (count, cf) {
        (1.., Cf::HwPredict | Cf::MhwPredict | Cf::Failures) => 5,
        (1.., Cf::DevSeasonal | Cf::DevPredict) => 3,
        _ => 4,
    };
    if count < least {
        return Err(Error::new(format!(
            "Expected at least {least} arguments for RRA but got {count}"
        )));
    }
    Ok(rra)
}

/// Parses the consolidation function, and sets its defaults.
fn begin_rra(token: &[u8], rra: &mut RraDef, needs: &mut Needs) -> Result<Cf, Error> {
    let len = token
        .iter()
        .take(NAME_LEN)
        .take_while(|byte| byte.is_ascii_uppercase());
    let name = &token[..len.count()];
    let Some(cf) = Cf::of(name) else {
        let name = shown(name);
        return Err(Error::new(format!(
            "Unrecognized consolidation function {name}"
        )));
    };
    (rra.cf_nam, rra.pdp_cnt) = (field(name), 1);
    let par = &mut rra.par;
    match cf {
        Cf::HwPredict | Cf::MhwPredict => {
            if cf == Cf::MhwPredict {
                needs.at_least(4);
            }
            (par[1], par[2]) = (bits(0.1), bits(1.0 / 288.0));
            par[3] = NOT_GIVEN;
        }
        Cf::Seasonal | Cf::DevSeasonal => {
            (par[1], par[2], par[3]) = (bits(0.1), bits(0.05), u64::MAX);
        }
        Cf::DevPredict => par[3] = u64::MAX,
        Cf::Failures => {
            (par[1], par[2], par[3]) = (bits(2.0), bits(2.0), u64::MAX);
            (par[4], par[5]) = (3, 2);
        }
        Cf::Average | Cf::Min | Cf::Max | Cf::Last => {}
    }
    Ok(cf)
}

fn take_rows_or_xff(cf: Cf, token: &[u8], step: u64, rra: &mut RraDef) -> Result<(), Error> {
    if !cf.is_plain() {
        return take_rows(token, step, rra);
    }
    let xff = fraction(token, "xff", |xff| leaves(xff, 0.0, 1.0) || xff == 1.0)?;
    rra.par[0] = xff;
    Ok(())
}

fn take_rows(token: &[u8], divisor: u64, rra: &mut RraDef) -> Result<(), Error> {
    rra.row_cnt = duration(token, divisor).map_err(|cause| {
        let token = shown(token);
        Error::new(format!("Invalid row count {token}: {cause}"))
    })?;
    Ok(())
}

fn take_second(cf: Cf, token: &[u8], step: u64, hash: u64, rra: &mut RraDef) -> Result<(), Error> {
    let outside = |value: f64| value <= 0.0 || value >= 1.0;
    match cf {
        Cf::HwPredict | Cf::MhwPredict => rra.par[1] = fraction(token, "alpha", outside)?,
        Cf::Seasonal | Cf::DevSeasonal => {
            rra.par[1] = fraction(token, "gamma", outside)?;
            rra.par[4] = hash % rra.row_cnt;
        }
        Cf::Failures => {
            rra.par[5] = i64::from(atoi(token)) as u64;
            in_window(token, "Failure threshold")?;
        }
        Cf::DevPredict => rra.par[3] = index(token),
        Cf::Average | Cf::Min | Cf::Max | Cf::Last => {
            rra.pdp_cnt = duration(token, step).map_err(|cause| {
                let token = shown(token);
                Error::new(format!("Invalid step {token}: {cause}"))
            })?;
        }
    }
    Ok(())
}

fn take_third(cf: Cf, token: &[u8], step: u64, rra: &mut RraDef) -> Result<(), Error> {
    match cf {
        Cf::HwPredict | Cf::MhwPredict => {
            rra.par[2] = fraction(token, "beta", |beta| leaves(beta, 0.0, 1.0))?;
        }
        Cf::Seasonal | Cf::DevSeasonal => rra.par[3] = index(token),
        Cf::Failures => {
            rra.par[4] = i64::from(atoi(token)) as u64;
            let result = in_window(token, "Window length");
            if rra.par[4] < rra.par[5] {
                return Err(Error::new(
                    "Window length is shorter than the failure threshold",
                ));
            }
            result?;
        }
        Cf::DevPredict => return Err(too_many("DEVPREDICT")),
        Cf::Average | Cf::Min | Cf::Max | Cf::Last => {
            take_rows(token, step.wrapping_mul(rra.pdp_cnt), rra)?;
        }
    }
    Ok(())
}

fn take_fourth(cf: Cf, token: &[u8], rra: &mut RraDef, needs: &mut Needs) -> Result<(), Error> {
    match cf {
        Cf::Failures => rra.par[3] = index(token),
        Cf::Seasonal | Cf::DevSeasonal => take_smoothing(token, rra, needs)?,
        Cf::HwPredict | Cf::MhwPredict => {
            let period = atoi(token) as u16;
            if u64::from(period) > rra.row_cnt {
                return Err(Error::new(
                    "Length of seasonal cycle exceeds length of HW prediction array",
                ));
            }
            rra.par[4] = bits(f64::from(period));
        }
        _ => return Err(too_many(&shown(rra.cf()))),
    }
    Ok(())
}

/// Parses `smoothing-window=` like scanf: a text that ends before the number is accepted and changes nothing.
fn take_smoothing(token: &[u8], rra: &mut RraDef, needs: &mut Needs) -> Result<(), Error> {
    const WORD: &[u8] = b"smoothing-window=";
    if !WORD.starts_with(token) {
        let invalid = || Error::new(format!("Invalid option {}", shown(token)));
        let number = token.strip_prefix(WORD).ok_or_else(invalid)?;
        rra.par[2] = bits(scanned(number).ok_or_else(invalid)?);
    }
    needs.at_least(4);
    let window = f64::from_bits(rra.par[2]);
    if leaves(window, 0.0, 1.0) {
        let window = fixed(window);
        return Err(Error::new(format!(
            "Invalid smoothing-window {window}: must be between 0 and 1"
        )));
    }
    Ok(())
}

/// The leading number of a text, correctly rounded like scanf's.
fn scanned(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    let ends = (1..=text.len())
        .rev()
        .filter(|&end| text.is_char_boundary(end));
    // scanf rejects `1e` and `1e+`, which is not worth a grammar.
    ends.map(|end| &text[..end])
        .find_map(|front| front.parse().ok())
}

/// Parses a number "between 0 and 1" into bits. As in rrdtool, `nan` is accepted.
fn fraction(token: &[u8], what: &str, outside: impl Fn(f64) -> bool) -> Result<u64, Error> {
    match strtodbl(token) {
        Parsed::All(value) if !outside(value) => Ok(value.to_bits()),
        _ => Err(Error::new(format!(
            "Invalid {what}: must be between 0 and 1"
        ))),
    }
}

/// True if a number lies outside of a range; NaN does not.
pub(crate) fn leaves(value: f64, low: f64, high: f64) -> bool {
    value < low || value > high
}

fn in_window(token: &[u8], what: &str) -> Result<(), Error> {
    if !(1..=WINDOW_MAX).contains(&atoi(token)) {
        return Err(Error::new(format!(
            "{what} is out of range 1, {WINDOW_MAX}"
        )));
    }
    Ok(())
}

fn too_many(cf: &str) -> Error {
    Error::new(format!(
        "Unexpected extra argument for consolidation function {cf}"
    ))
}

/// Adds the four archives that belong to a HWPREDICT without its own seasonal archive.
pub fn add_companions(rra: &mut Vec<RraDef>, hash: u64) -> Result<(), Error> {
    let own = rra.len().wrapping_sub(1);
    let Some(prediction) = rra.last_mut() else {
        return Ok(());
    };
    let is_prediction = Cf::of(prediction.cf()).is_some_and(Cf::is_prediction);
    if !is_prediction || prediction.par[3] != NOT_GIVEN {
        return Ok(());
    }
    let own = own as u64;
    let period = f64::from_bits(prediction.par[4]) as u64;
    if period == 0 {
        // rrdtool divides by the period.
        return Err(Error::new("creating contingent RRA"));
    }
    prediction.par[3] = own + 1;
    let (row_cnt, alpha) = (prediction.row_cnt, prediction.par[1]);
    let companion = |cf: &[u8], row_cnt| RraDef {
        cf_nam: field(cf),
        pad: [0; 4],
        row_cnt,
        pdp_cnt: 1,
        par: [0; 10],
    };
    for cf in [&b"SEASONAL"[..], b"DEVSEASONAL"] {
        let mut seasonal = companion(cf, period);
        (seasonal.par[1], seasonal.par[3]) = (alpha, own);
        seasonal.par[4] = hash % period;
        rra.push(seasonal);
    }
    let mut deviation = companion(b"DEVPREDICT", row_cnt);
    deviation.par[3] = own + 2;
    rra.push(deviation);
    let mut failures = companion(b"FAILURES", period);
    (failures.par[1], failures.par[2]) = (bits(2.0), bits(2.0));
    (failures.par[3], failures.par[4], failures.par[5]) = (own + 2, 9, 7);
    rra.push(failures);
    Ok(())
}

/// FNV-1 of a file's name with 32-bit constants and 64-bit sums. It chooses the row at which a seasonal archive is
/// smoothed.
pub fn hash(file_name: &[u8]) -> u64 {
    file_name.iter().fold(0x811c_9dc5, |hash: u64, &byte| {
        hash.wrapping_mul(0x0100_0193) ^ u64::from(byte)
    })
}

/// C's atoi: the low half of strtol's result.
pub(crate) fn atoi(text: &[u8]) -> i32 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let value = saturated(digits);
    let value = match (negative, value) {
        (true, i64::MAX) => i64::MIN,
        (true, value) => -value,
        (false, value) => value,
    };
    value as i32
}

/// Value of the leading digits, saturated at the largest number.
fn saturated(digits: &[u8]) -> i64 {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0i64, |value, digit| {
        let value = value.checked_mul(10);
        let value = value.and_then(|value| value.checked_add(i64::from(digit - b'0')));
        value.unwrap_or(i64::MAX)
    })
}

/// An archive's index: from 1 in the text, from 0 in the file.
fn index(token: &[u8]) -> u64 {
    i64::from(atoi(token).wrapping_sub(1)) as u64
}

fn bits(value: f64) -> u64 {
    value.to_bits()
}

fn fixed(value: f64) -> String {
    let mut text = Vec::new();
    put_fixed(&mut text, value, 6);
    shown(&text)
}

pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counts_or_seconds() {
        let cases = [
            ("5", 10, Ok(5)),
            ("50s", 10, Ok(5)),
            ("51s", 10, Err("value would truncate when scaled")),
            ("2m", 60, Ok(2)),
            ("1h", 300, Ok(12)),
            ("1d", 1, Ok(86_400)),
            ("1w", 1, Ok(604_800)),
            ("1M", 1, Ok(2_678_400)),
            ("1y", 1, Ok(31_622_400)),
            ("1sx", 1, Ok(1)),
            ("0", 1, Err("value must be positive")),
            ("-1", 1, Err("value must be (suffixed) positive number")),
            ("", 1, Err("value must be (suffixed) positive number")),
            ("1q", 1, Err("value has trailing garbage")),
            ("1", 0, Err("INTERNAL ERROR: Zero divisor")),
            ("99999999999999999999", 1, Ok(u64::MAX)),
        ];
        for (text, divisor, expected) in cases {
            assert_eq!(duration(text.as_bytes(), divisor), expected, "{text}");
        }
    }

    #[test]
    fn companions_come_with_a_prediction() {
        let mut needs = Needs::default();
        let arg = b"RRA:MHWPREDICT:20:0.1:0.2:5";
        let mut archives = vec![parse_rra(arg, 10, 7, &mut needs).unwrap()];
        add_companions(&mut archives, 7).unwrap();
        let names: Vec<&[u8]> = archives.iter().map(RraDef::cf).collect();
        let expected: [&[u8]; 5] = [
            b"MHWPREDICT",
            b"SEASONAL",
            b"DEVSEASONAL",
            b"DEVPREDICT",
            b"FAILURES",
        ];
        assert_eq!(names, expected);
        let dependent: Vec<u64> = archives.iter().map(|rra| rra.par[3]).collect();
        assert_eq!(dependent, [1, 0, 0, 2, 2]);
        assert_eq!((archives[1].par[4], needs), (2, Needs(4)));
        let none = parse_rra(b"RRA:HWPREDICT:20:0.1:0.2:0", 10, 7, &mut needs).unwrap();
        assert!(add_companions(&mut vec![none], 7).is_err());
    }
}
