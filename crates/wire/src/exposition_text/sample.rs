//! A line with a value.

use kymo_base::scan;

use super::cursor::{Blanks, Cursor};
use super::fault::BadExposition;
use super::model::{EscapedText, Escapes, ExposedLabel, ExposedSample};
use crate::number::whole_ms;

/// Longest run of digits whose number an f64 holds exactly.
const EXACT_DIGITS: usize = 15;

/// A sample without its labels, which are in the buffer, and whether an exemplar is behind it.
pub(super) struct Plain<'a> {
    series: &'a str,
    name: EscapedText<'a>,
    value: f64,
    t_ms: Option<i64>,
    pub(super) has_exemplar: bool,
}

impl<'a> Plain<'a> {
    pub(super) fn with<'r>(self, labels: &'r [ExposedLabel<'a>]) -> ExposedSample<'r, 'a> {
        ExposedSample {
            series: self.series,
            name: self.name,
            labels,
            value: self.value,
            t_ms: self.t_ms,
        }
    }
}

/// Reads a line that is no comment; its labels replace those in the buffer.
pub(super) fn read<'a>(
    mut line: Cursor<'a>,
    labels: &mut Vec<ExposedLabel<'a>>,
) -> Result<Plain<'a>, BadExposition> {
    labels.clear();
    let begin = line.rest;
    let name = line.take_metric_name();
    let name = name.map(|text| EscapedText::new(text, Escapes::None));
    let mut behind = line;
    behind.pass_blanks();
    let name = if behind.eat("{") {
        line = behind;
        line.take_labels(name, labels)?.ok_or(BadExposition::Name)?
    } else {
        name.ok_or(BadExposition::Start)?
    };
    let size = begin.len() - line.rest.len();
    let series = begin.get(..size).unwrap_or(begin);
    if !line.end_field() {
        return Err(BadExposition::Value);
    }
    let value = number(line.take_word(b'{')).ok_or(BadExposition::Value)?;
    let (t_ms, has_exemplar) = match line.blanks {
        Blanks::Free => (timestamp_ms(&mut line)?, false),
        Blanks::Single => timestamp_s(&mut line)?,
    };
    Ok(Plain {
        series,
        name,
        value,
        t_ms,
        has_exemplar,
    })
}

/// Decimal numbers as Go reads them, `NaN`, and infinity by any of its names. Too large a number is refused.
#[inline]
fn number(text: &str) -> Option<f64> {
    if text.len() <= EXACT_DIGITS
        && let Some(whole) = scan::number(text.as_bytes())
    {
        return Some(exact(whole));
    }
    let number: f64 = text.parse().ok()?;
    match number {
        _ if number.is_nan() => Some(f64::NAN),
        _ if number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) => None,
        _ => Some(number),
    }
}

/// The number has 15 digits at most.
#[inline]
fn exact(whole: u64) -> f64 {
    whole as f64
}

/// Milliseconds, and nothing behind them.
fn timestamp_ms(line: &mut Cursor) -> Result<Option<i64>, BadExposition> {
    line.pass_blanks();
    if line.rest.is_empty() {
        return Ok(None);
    }
    let word = line.take_word(b' ');
    let digits = word.strip_prefix('-').unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(BadExposition::Timestamp);
    }
    let t_ms = word.parse().map_err(|_| BadExposition::Timestamp)?;
    line.pass_blanks();
    match line.rest.is_empty() {
        true => Ok(Some(t_ms)),
        false => Err(BadExposition::Behind),
    }
}

/// Seconds, and perhaps an exemplar, which is passed over. Prometheus cuts seconds off to milliseconds, and so loses
/// one where the nearest f64 is below; here they are rounded.
fn timestamp_s(line: &mut Cursor) -> Result<(Option<i64>, bool), BadExposition> {
    if line.rest.is_empty() {
        return Ok((None, false));
    }
    if line.rest.starts_with(" # {") {
        return Ok((None, true));
    }
    if !line.eat(" ") {
        return Err(BadExposition::Behind);
    }
    let seconds = number(line.take_word(b' ')).ok_or(BadExposition::Timestamp)?;
    let t_ms = whole_ms(seconds).ok_or(BadExposition::Timestamp)?;
    match line.rest.is_empty() {
        true => Ok((Some(t_ms), false)),
        false if line.rest.starts_with(" # {") => Ok((Some(t_ms), true)),
        false => Err(BadExposition::Behind),
    }
}
