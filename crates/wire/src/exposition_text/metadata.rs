//! Lines that begin with `#`.

use super::cursor::{Blanks, Cursor};
use super::fault::BadExposition;
use super::model::{EscapedText, Escapes, ExposedLine};
use crate::metric_type::MetricType;

/// A comment's meaning.
pub(super) enum Comment<'a> {
    /// For people.
    Free,
    /// The end of a text of OpenMetrics.
    Eof,
    /// HELP, TYPE or UNIT.
    Metadata(ExposedLine<'a, 'a>),
}

/// Reads a comment behind its `#`.
pub(super) fn read<'a>(mut line: Cursor<'a>) -> Result<Comment<'a>, BadExposition> {
    if line.blanks == Blanks::Single && line.rest == " EOF" {
        return Ok(Comment::Eof);
    }
    let before = line.rest;
    if !line.end_field() {
        return Err(BadExposition::Comment);
    }
    // In 0.0.4 a word that follows at once is any comment's.
    if line.rest.len() == before.len() {
        return Ok(Comment::Free);
    }
    let word = line.take_word(b' ');
    let is_known = match (word, line.blanks) {
        ("HELP" | "TYPE", _) | ("UNIT", Blanks::Single) => true,
        (_, Blanks::Single) => return Err(BadExposition::Comment),
        (_, Blanks::Free) => false,
    };
    // Without a blank behind it, the word is any comment's.
    if !is_known || line.rest.is_empty() && line.blanks == Blanks::Free {
        return Ok(Comment::Free);
    }
    if !line.end_field() {
        return Err(BadExposition::Comment);
    }
    let family = match line.rest.starts_with('"') {
        true => line.take_quoted(),
        false => {
            let name = line.take_metric_name();
            name.map(|name| EscapedText::new(name, Escapes::None))
        }
    };
    let family = family.filter(|family| !family.raw().is_empty());
    let family = family.ok_or(BadExposition::Comment)?;
    let text = text_behind(line)?;
    let line = match word {
        "HELP" => ExposedLine::Help {
            family,
            help: EscapedText::new(text, help_escapes(line.blanks)),
        },
        "TYPE" => ExposedLine::Type {
            family,
            metric_type: type_of(text, line.blanks).ok_or(BadExposition::Type)?,
        },
        _ => ExposedLine::Unit {
            family,
            unit: unit_of(text, family).ok_or(BadExposition::Unit)?,
        },
    };
    Ok(Comment::Metadata(line))
}

/// All behind the blank that follows the name. In 0.0.4 there need not be anything.
fn text_behind<'a>(line: Cursor<'a>) -> Result<&'a str, BadExposition> {
    let is_free = line.blanks == Blanks::Free;
    let blanks: &[char] = if is_free { &[' ', '\t'] } else { &[' '] };
    match line.rest.strip_prefix(blanks) {
        Some(text) => Ok(text),
        None if is_free && line.rest.is_empty() => Ok(""),
        None => Err(BadExposition::Comment),
    }
}

fn help_escapes(blanks: Blanks) -> Escapes {
    match blanks {
        Blanks::Free => Escapes::Help,
        Blanks::Single => Escapes::Quoted,
    }
}

/// 0.0.4 has fewer types, calls one of them otherwise, and is not strict about blanks.
fn type_of(text: &str, blanks: Blanks) -> Option<MetricType> {
    if blanks == Blanks::Single {
        return MetricType::of_word(text);
    }
    match text.trim_matches([' ', '\t']) {
        "untyped" => Some(MetricType::Unknown),
        word @ ("counter" | "gauge" | "histogram" | "summary") => MetricType::of_word(word),
        _ => None,
    }
}

/// A unit that is not empty is the end of the family's name, behind a `_`.
fn unit_of<'a>(unit: &'a str, family: EscapedText) -> Option<&'a str> {
    let stem = family.raw().strip_suffix(unit)?;
    let is_end = unit.is_empty() || stem.ends_with('_');
    is_end.then_some(unit)
}
