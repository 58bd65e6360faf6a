//! Commands of collectd's unixsock plugin: a line each, one answer each. Texts of refusals are collectd's, to the byte.
//!
//! Different on purpose: PUTVAL passes over options that it does not know, as collectd's manual says (collectd 5.12 answers
//! nothing at all), and over metadata. A list with too few values, or a value with other bytes behind its number, is refused;
//! collectd fills in zeros, and cuts.

mod fields;

use std::time::Duration;

use fields::{MalformedOption, next_option, option, split};

use super::cdtime::Cdtime;
use super::identifier::Identifier;
use super::parts::{MESSAGE_MAX, NAME_MAX, Severity};
use super::types_db::DataSource;
use super::value::{RawValues, Value, ValueKind};
use crate::number;

/// Most bytes of a line. collectd cuts lines at 1,023.
pub const COMMAND_MAX: usize = 16 << 10;

/// A command of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// GETVAL: the newest values of the series of this name.
    GetVal(Vec<u8>),
    /// LISTVAL: all series that have sent lately.
    ListVal,
    /// PUTVAL: values of a series.
    PutVal(PutVal),
    /// PUTNOTIF: a notification.
    PutNotif(PutNotif),
    /// FLUSH: waiting values are written to .rrd files.
    Flush(FlushOrder),
}

/// Values of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct PutVal {
    name: Vec<u8>,
    /// Texts of value lists, each with its interval; an interval of zero: none was given.
    pub lists: Vec<(Cdtime, Vec<u8>)>,
}

/// A notification of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct PutNotif {
    /// Host, plugin, plugin instance, type, type instance; empty: not given.
    texts: [Vec<u8>; 5],
    /// Time of the notification; not zero.
    pub time: Cdtime,
    /// Severity.
    pub severity: Severity,
    /// The text; not empty, at most [`MESSAGE_MAX`] bytes.
    pub message: Vec<u8>,
}

/// Series to flush.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushOrder {
    /// Number of plugins that were named. kymo has one place for values, whatever their names are.
    pub plugins: usize,
    /// Names of series; empty: all series.
    pub names: Vec<Vec<u8>>,
}

/// Why a command is refused: the text behind `-1 `, in one line.
pub type CommandRefusal = String;

impl Command {
    /// Parses a line without its end. The line is not empty.
    pub fn parse(line: &[u8]) -> Result<Command, CommandRefusal> {
        let is_blank = |byte: &u8| fields::is_blank(*byte);
        let mut words = line.split(is_blank).filter(|word| !word.is_empty());
        let verb = words.next().ok_or("Internal error")?;
        let rest = || {
            let mut fields = split(line)?.into_iter();
            fields.next();
            Ok::<Vec<Vec<u8>>, CommandRefusal>(fields.collect())
        };
        match &*verb.to_ascii_uppercase() {
            b"GETVAL" => get_val(rest()?),
            b"LISTVAL" => match rest()?.first() {
                None => Ok(Command::ListVal),
                Some(field) => {
                    let field = shown(field);
                    Err(format!("Garbage after end of command: `{field}'."))
                }
            },
            b"PUTVAL" => put_val(rest()?),
            b"PUTNOTIF" => put_notif(line),
            b"FLUSH" => flush(rest()?),
            b"GETTHRESHOLD" => Err(no_threshold(&rest()?)),
            _ => Err(format!("Unknown command: {}", shown(verb))),
        }
    }
}

/// A field in an answer, which has one line.
fn shown(field: &[u8]) -> String {
    let text = String::from_utf8_lossy(field);
    text.chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn identifier(name: &[u8]) -> Option<Identifier<'_>> {
    Identifier::parse(name).filter(|_| !name.contains(&0))
}

fn unparsable(name: &[u8]) -> CommandRefusal {
    format!("Cannot parse identifier `{}'.", shown(name))
}

fn get_val(fields: Vec<Vec<u8>>) -> Result<Command, CommandRefusal> {
    let mut fields = fields.into_iter();
    let name = fields.next().ok_or("Missing identifier.")?;
    match fields.next() {
        Some(more) => Err(format!("Garbage after identifier: `{}'.", shown(&more))),
        None if identifier(&name).is_none() => Err(unparsable(&name)),
        None => Ok(Command::GetVal(name)),
    }
}

/// kymo has no thresholds.
fn no_threshold(fields: &[Vec<u8>]) -> CommandRefusal {
    match fields {
        [] => "Cannot parse identifier.".into(),
        [name] if identifier(name).is_none() => unparsable(name),
        [name] => format!("No threshold found for identifier {}", shown(name)),
        [_, more, ..] => format!("Garbage after end of command: {}", shown(more)),
    }
}

fn put_val(fields: Vec<Vec<u8>>) -> Result<Command, CommandRefusal> {
    let mut fields = fields.into_iter();
    let (Some(name), false) = (fields.next(), fields.len() == 0) else {
        return Err("Missing identifier and/or value-list.".into());
    };
    let identifier = identifier(&name).ok_or_else(|| unparsable(&name))?;
    if texts_of(&identifier)
        .iter()
        .any(|text| text.len() > NAME_MAX)
    {
        return Err("Identifier too long.".into());
    }
    let (mut interval, mut lists) = (Cdtime::ZERO, Vec::new());
    for field in fields {
        match option(&field) {
            None => lists.push((interval, field)),
            Some((key, value)) if key.eq_ignore_ascii_case(b"interval") => {
                interval = time(value).unwrap_or(interval);
            }
            Some(_) => {}
        }
    }
    Ok(Command::PutVal(PutVal { name, lists }))
}

fn texts_of<'a>(identifier: &Identifier<'a>) -> [&'a [u8]; 5] {
    [
        identifier.host,
        identifier.plugin,
        identifier.plugin_instance,
        identifier.type_name,
        identifier.type_instance,
    ]
}

fn put_notif(line: &[u8]) -> Result<Command, CommandRefusal> {
    let mut rest = fields::behind_word(line);
    let mut texts: [Vec<u8>; 5] = Default::default();
    let (mut severity, mut at, mut message) = (None, Cdtime::ZERO, Vec::new());
    while !rest.is_empty() {
        let (key, value) = next_option(&mut rest).map_err(|MalformedOption| "Malformed option.")?;
        let wrong = || format!("Error parsing option `{}'", shown(key));
        let [host, plugin, plugin_instance, type_name, type_instance] = &mut texts;
        let is_zero = || number::decimal(&value) == Ok(0.0);
        match &*key.to_ascii_lowercase() {
            b"severity" => severity = Some(severity_of(&value).ok_or_else(wrong)?),
            b"time" if is_zero() => at = Cdtime::ZERO,
            b"time" => at = time(&value).ok_or_else(wrong)?,
            b"message" => message = cut(value, MESSAGE_MAX),
            b"host" => *host = cut(value, NAME_MAX),
            b"plugin" => *plugin = cut(value, NAME_MAX),
            b"plugin_instance" => *plugin_instance = cut(value, NAME_MAX),
            b"type" => *type_name = cut(value, NAME_MAX),
            b"type_instance" => *type_instance = cut(value, NAME_MAX),
            // Metadata, which packets do not carry either.
            [b's', b':', _, ..] => {}
            _ => return Err(wrong()),
        }
    }
    let severity = severity.ok_or("Option `severity' missing.")?;
    if at == Cdtime::ZERO {
        return Err("Option `time' missing.".into());
    }
    if message.is_empty() {
        return Err("No message or message of length 0 given.".into());
    }
    Ok(Command::PutNotif(PutNotif {
        texts,
        time: at,
        severity,
        message,
    }))
}

/// A text as a C string of at most `most` bytes.
fn cut(mut text: Vec<u8>, most: usize) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == 0);
    text.truncate(end.unwrap_or(most).min(most));
    text
}

fn severity_of(word: &[u8]) -> Option<Severity> {
    let all = [Severity::Failure, Severity::Warning, Severity::Okay];
    let is = |severity: &Severity| word.eq_ignore_ascii_case(severity.word().as_bytes());
    all.into_iter().find(is)
}

fn flush(fields: Vec<Vec<u8>>) -> Result<Command, CommandRefusal> {
    let mut order = FlushOrder::default();
    for field in fields {
        let invalid = || format!("Invalid option string `{}'.", shown(&field));
        let (key, value) = option(&field).ok_or_else(invalid)?;
        match &*key.to_ascii_lowercase() {
            b"plugin" => order.plugins += 1,
            b"identifier" if identifier(value).is_some() => order.names.push(value.to_vec()),
            b"identifier" => return Err(format!("Invalid identifier `{}'.", shown(value))),
            b"timeout" if number::decimal(value).is_ok() => {}
            b"timeout" => {
                let value = shown(value);
                return Err(format!("Invalid value for option `timeout': {value}"));
            }
            _ => return Err(format!("Cannot parse option `{}'.", shown(key))),
        }
    }
    Ok(Command::Flush(order))
}

impl PutVal {
    /// The series.
    pub fn identifier(&self) -> Identifier<'_> {
        Identifier::parse(&self.name).unwrap_or_default()
    }
}

impl PutNotif {
    /// Names that were given; others are empty.
    pub fn identifier(&self) -> Identifier<'_> {
        let [host, plugin, plugin_instance, type_name, type_instance] = &self.texts;
        Identifier {
            host,
            plugin,
            plugin_instance,
            type_name,
            type_instance,
        }
    }
}

/// Values of a value list, one for each source of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedValues {
    codes: Vec<u8>,
    cells: Vec<[u8; 8]>,
}

impl ListedValues {
    /// Parses `TIME:VALUE[:VALUE...]` for the sources of a type; the time `N` is `now`. `None`: the text has another number of
    /// values, or no time, or no number where one has to be. `U` is an unknown gauge.
    pub fn parse(
        text: &[u8],
        sources: &[DataSource],
        now: Cdtime,
    ) -> Option<(Cdtime, ListedValues)> {
        let mut words = text.split(|byte| *byte == b':');
        let time = match words.next()? {
            b"N" => now,
            word => time(word)?,
        };
        let mut listed = ListedValues::default();
        for source in sources {
            let value = value(words.next()?, source.kind)?;
            listed.codes.push(value.kind().code());
            listed.cells.push(value.cell());
        }
        (words.next().is_none() && !listed.codes.is_empty()).then_some((time, listed))
    }

    /// The values as those of a packet.
    pub fn raw(&self) -> RawValues<'_> {
        RawValues::new(&self.codes, &self.cells).unwrap_or_default()
    }
}

/// Seconds as a time above zero.
fn time(text: &[u8]) -> Option<Cdtime> {
    let time = Duration::try_from_secs_f64(number::decimal(text).ok()?).ok()?;
    let time = Cdtime::from_nanoseconds(u64::try_from(time.as_nanos()).ok()?);
    (time != Cdtime::ZERO).then_some(time)
}

fn value(word: &[u8], kind: ValueKind) -> Option<Value> {
    match kind {
        ValueKind::Gauge => gauge(word).map(Value::Gauge),
        ValueKind::Counter => u64::try_from(integer(word)?).ok().map(Value::Counter),
        ValueKind::Absolute => u64::try_from(integer(word)?).ok().map(Value::Absolute),
        ValueKind::Derive => i64::try_from(integer(word)?).ok().map(Value::Derive),
    }
}

fn gauge(word: &[u8]) -> Option<f64> {
    if word == b"U" {
        return Some(f64::NAN);
    }
    let is_number = word.iter().any(u8::is_ascii_alphanumeric);
    let text = std::str::from_utf8(word).ok().filter(|_| is_number)?;
    text.parse().ok()
}

/// A decimal number, a hexadecimal one behind `0x`, or an octal one behind `0`.
fn integer(word: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(word).ok()?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = i128::from_str_radix(digits, base)
        .ok()
        .filter(|_| is_plain)?;
    number.checked_mul(sign)
}

#[cfg(test)]
mod tests;
