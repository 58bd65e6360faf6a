//! One argument of update: its fields, their data sources, and its stamp.

use super::{Now, Stamp, Update};
use crate::error::Error;
use crate::header::Header;
use crate::kind::Dst;
use crate::number::{Parsed, strtodbl, to_i64};
use kymo_base::printf::put_fixed;

/// Place of a data source's reading in the argument; `None`: unknown, as the argument has none.
pub(super) type Field = Option<(usize, usize)>;

/// rrdtool's factor for microseconds, which is a float.
const MICRO: f64 = 1e-6f32 as f64;

/// Data source of each reading: all except computed ones, or those of the template.
pub(super) fn order(
    header: &Header,
    kinds: &[Dst],
    template: Option<&[u8]>,
    order: &mut Vec<usize>,
) -> Result<(), Error> {
    order.clear();
    let Some(template) = template else {
        let given = kinds.iter().enumerate();
        order.extend(given.filter_map(|(i, &kind)| (kind != Dst::Compute).then_some(i)));
        return Ok(());
    };
    for name in template.split(|&byte| byte == b':') {
        if order.len() >= header.ds.len() {
            return Err(Error::new("tmplt contains more DS definitions than RRD"));
        }
        let source = header.ds.iter().position(|ds| ds.name() == name);
        order.push(source.ok_or_else(|| {
            Error::new(format!(
                "unknown DS name '{}'",
                String::from_utf8_lossy(name)
            ))
        })?);
    }
    Ok(())
}

/// Splits an argument and parses its stamp, which has to be newer than the last one.
pub(super) fn read(
    header: &Header,
    how: &Update<'_>,
    order: &[usize],
    arg: &[u8],
    fields: &mut Vec<Field>,
) -> Result<Stamp, Error> {
    let at_style = arg.iter().position(|&byte| byte == b'@');
    let split = at_style.or_else(|| arg.iter().position(|&byte| byte == b':'));
    let Some(split) = split else {
        return Err(error(
            "expected timestamp not found in data source from ",
            arg,
        ));
    };
    fields.clear();
    fields.resize(header.ds.len(), None);
    read_fields(order, arg, split, fields)?;
    let time = &arg[..split];
    let mut stamp = match at_style {
        Some(_) => at_time(how, time)?,
        None if time == b"N" => Stamp {
            sec: how.now.sec,
            usec: how.now.usec,
        },
        None => seconds(how.now, time)?,
    };
    if header.version < 3 {
        stamp.usec = 0;
    }
    let last = Stamp {
        sec: header.last_up,
        usec: header.last_up_usec,
    };
    if stamp <= last {
        return Err(Error::past(format!(
            "illegal attempt to update using time {} when last update time is {} (minimum one second step)",
            stamp.sec, header.last_up
        )));
    }
    Ok(stamp)
}

fn read_fields(
    order: &[usize],
    arg: &[u8],
    split: usize,
    fields: &mut [Field],
) -> Result<(), Error> {
    let (mut count, mut from) = (0, split + 1);
    loop {
        let len = arg[from..].iter().position(|&byte| byte == b':');
        let end = len.map_or(arg.len(), |len| from + len);
        match order.get(count) {
            Some(&source) => fields[source] = Some((from, end)),
            None if count > 0 => {
                return Err(error("found extra data on update argument: ", &arg[from..]));
            }
            // If all are computed, the first reading is counted, and then there is one too many.
            None => {}
        }
        count += 1;
        if len.is_none() {
            break;
        }
        from = end + 1;
    }
    if count == order.len() {
        return Ok(());
    }
    let text = format!(
        "expected {} data source readings (got {count}) from ",
        order.len()
    );
    Err(error(&text, &arg[..split]))
}

fn at_time(how: &Update<'_>, time: &[u8]) -> Result<Stamp, Error> {
    match (how.at_time)(time) {
        Ok(Some(sec)) => Ok(Stamp { sec, usec: 0 }),
        Ok(None) => Err(error(
            "specifying time relative to the 'start' or 'end' makes no sense here: ",
            time,
        )),
        Err(cause) => {
            let time = String::from_utf8_lossy(time);
            Err(Error::new(format!("ds time: {time}: {cause}")))
        }
    }
}

/// Parses seconds with a fraction; a negative number is relative to now.
fn seconds(now: Now, time: &[u8]) -> Result<Stamp, Error> {
    let mut value = number(time, "error while parsing time in get_time_from_reading")?;
    if value < 0.0 {
        value += now.sec as f64 + now.usec as f64 * MICRO;
    }
    let sec = to_i64(value.floor());
    Ok(Stamp {
        sec,
        usec: to_i64((value - sec as f64) * 1e6),
    })
}

/// Parses a text that has to be a number; `place` begins rrdtool's error.
pub(super) fn number(text: &[u8], place: &str) -> Result<f64, Error> {
    let shown = || String::from_utf8_lossy(text);
    match strtodbl(text) {
        Parsed::All(value) => Ok(value),
        Parsed::Nothing => {
            let text = shown();
            Err(Error::new(format!(
                "{place} - Cannot convert '{text}' to float"
            )))
        }
        Parsed::Trailing(value, used) => {
            let (mut converted, rest) = (Vec::new(), &text[used..]);
            put_fixed(&mut converted, value, 6);
            let (text, converted) = (shown(), String::from_utf8_lossy(&converted));
            let rest = String::from_utf8_lossy(rest);
            Err(Error::new(format!(
                "{place} - Converted '{text}' to {converted}, but cannot convert '{rest}'"
            )))
        }
    }
}

fn error(text: &str, arg: &[u8]) -> Error {
    Error::new(format!("{text}{}", String::from_utf8_lossy(arg)))
}
