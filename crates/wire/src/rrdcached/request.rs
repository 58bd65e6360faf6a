//! Parses fields into a request. Only the checks that rrdcached makes before it opens files are made here;
//! other fields stay unparsed, so that their errors come in rrdcached's order.

use super::fields::Fields;
use super::verb::{Context, Permissions, Verb};

/// A client's request. Names are unchecked.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Request<'a> {
    Update {
        name: &'a [u8],
        values: Fields<'a>,
    },
    Tune {
        name: &'a [u8],
        rest: Fields<'a>,
    },
    Dump(&'a [u8]),
    Flush(&'a [u8]),
    FlushAll,
    Pending(&'a [u8]),
    Forget(&'a [u8]),
    Queue,
    Stats,
    Help(Option<&'a [u8]>),
    Ping,
    Batch,
    EndBatch,
    Fetch(Fetch<'a>),
    FetchBin(Fetch<'a>),
    Info(&'a [u8]),
    First {
        name: &'a [u8],
        index: Option<&'a [u8]>,
    },
    Last(&'a [u8]),
    Create {
        name: &'a [u8],
        rest: Fields<'a>,
    },
    List(Fields<'a>),
    Suspend(&'a [u8]),
    Resume(&'a [u8]),
    SuspendAll,
    ResumeAll,
    Quit,
}

/// Arguments of FETCH and FETCHBIN.
#[derive(Clone, Debug)]
pub struct Fetch<'a> {
    /// The file.
    pub name: &'a [u8],
    /// Consolidation function.
    pub cf: &'a [u8],
    /// First second since 1970, or seconds before now.
    pub start: Option<&'a [u8]>,
    /// Last second since 1970, or seconds before now.
    pub end: Option<&'a [u8]>,
    /// Names of data sources; none: all. Empty names are skipped.
    pub columns: Fields<'a>,
}

/// Why a line is not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// The line has no field; rrdcached then closes the connection.
    Torn,
    /// An unknown command.
    Unknown(&'a [u8]),
    /// The command is forbidden on this socket.
    Denied,
    /// The command is forbidden inside BATCH, or outside of it.
    Misplaced(&'a [u8]),
    /// A field is missing.
    Usage(Verb),
}

/// Parses a request from the fields of a line.
pub fn parse<'a>(
    mut fields: Fields<'a>,
    context: Context,
    permissions: Permissions,
) -> Result<Request<'a>, Refusal<'a>> {
    let word = fields.next().ok_or(Refusal::Torn)?;
    let verb = Verb::named(word).ok_or(Refusal::Unknown(word))?;
    if !permissions.allow(verb) {
        return Err(Refusal::Denied);
    }
    if !verb.fits(context) {
        return Err(Refusal::Misplaced(word));
    }
    of_verb(verb, fields).ok_or(Refusal::Usage(verb))
}

/// Parses the fields behind the command. `None`: a field is missing.
fn of_verb<'a>(verb: Verb, mut fields: Fields<'a>) -> Option<Request<'a>> {
    Some(match verb {
        Verb::Update => Request::Update {
            name: fields.next()?,
            values: fields,
        },
        Verb::Tune => Request::Tune {
            name: fields.next()?,
            rest: fields,
        },
        Verb::Create => Request::Create {
            name: fields.next()?,
            rest: fields,
        },
        Verb::Fetch => Request::Fetch(fetch(fields)?),
        Verb::FetchBin => Request::FetchBin(fetch(fields)?),
        Verb::First => Request::First {
            name: fields.next()?,
            index: fields.next(),
        },
        Verb::Dump => Request::Dump(fields.next()?),
        Verb::Flush => Request::Flush(fields.next()?),
        Verb::Pending => Request::Pending(fields.next()?),
        Verb::Forget => Request::Forget(fields.next()?),
        Verb::Info => Request::Info(fields.next()?),
        Verb::Last => Request::Last(fields.next()?),
        Verb::Suspend => Request::Suspend(fields.next()?),
        Verb::Resume => Request::Resume(fields.next()?),
        Verb::Help => Request::Help(fields.next()),
        Verb::List => Request::List(fields),
        Verb::FlushAll => Request::FlushAll,
        Verb::Queue => Request::Queue,
        Verb::Stats => Request::Stats,
        Verb::Ping => Request::Ping,
        Verb::Batch => Request::Batch,
        Verb::EndBatch => Request::EndBatch,
        Verb::SuspendAll => Request::SuspendAll,
        Verb::ResumeAll => Request::ResumeAll,
        Verb::Quit => Request::Quit,
        // A command of rrdcached's own journal; no context allows it.
        Verb::Wrote => return None,
    })
}

fn fetch<'a>(mut fields: Fields<'a>) -> Option<Fetch<'a>> {
    Some(Fetch {
        name: fields.next()?,
        cf: fields.next()?,
        start: fields.next(),
        end: fields.next(),
        columns: fields,
    })
}

/// Parses a time of FETCH: seconds since 1970, or if not positive, relative to `now`.
pub fn time_of(text: &[u8], now: i64) -> Option<i64> {
    let (value, used) = strtol(text, 0)?;
    let value = (used > 0).then_some(value)?;
    Some(if value > 0 {
        value
    } else {
        now.wrapping_add(value)
    })
}

/// C's `atoi`: a text that is not a number is 0.
pub fn atoi(text: &[u8]) -> i32 {
    atol(text) as i32
}

/// C's `atol`.
pub fn atol(text: &[u8]) -> i64 {
    let over = match text.trim_ascii_start().first() {
        Some(b'-') => i64::MIN,
        _ => i64::MAX,
    };
    strtol(text, 10).map_or(over, |(value, _)| value)
}

/// C's `strtol`: the value, and the number of bytes read. `None`: out of range. With base 0 a prefix selects
/// octal or hexadecimal.
fn strtol(text: &[u8], base: u32) -> Option<(i64, usize)> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let mut at = text.iter().take_while(|byte| is_space(byte)).count();
    let negative = text.get(at) == Some(&b'-');
    if matches!(text.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let digit = |at: usize, base| text.get(at).and_then(|&b| char::from(b).to_digit(base));
    let hex =
        matches!(text.get(at..), Some([b'0', b'x' | b'X', ..])) && digit(at + 2, 16).is_some();
    let base = match base {
        0 if hex => 16,
        0 if text.get(at) == Some(&b'0') => 8,
        0 => 10,
        base => base,
    };
    if base == 16 && hex {
        at += 2;
    }
    let begin = at;
    let mut value: i64 = 0;
    let mut fits = true;
    while let Some(digit) = digit(at, base) {
        let digit = if negative {
            -i64::from(digit)
        } else {
            i64::from(digit)
        };
        match value
            .checked_mul(i64::from(base))
            .and_then(|value| value.checked_add(digit))
        {
            Some(next) => value = next,
            None => fits = false,
        }
        at += 1;
    }
    let used = if at > begin { at } else { 0 };
    fits.then_some((value, used))
}

/// Parses the fields of LIST: recursive or not, and the path. `None`: wrong usage.
pub fn list_words<'a>(mut fields: Fields<'a>) -> Option<(bool, &'a [u8])> {
    match fields.next()? {
        path if path.starts_with(b"/") => Some((false, path)),
        b"RECURSIVE" => Some((true, fields.next()?)),
        _ => None,
    }
}

/// Arguments of CREATE behind the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateWords<'a> {
    /// `-b`: seconds since 1970.
    pub start: Option<i64>,
    /// `-s`: seconds; 0 for the default.
    pub step: i64,
    /// `-O`: keep an existing file.
    pub no_overwrite: bool,
    /// `-r`: files to copy values from.
    pub sources: Vec<&'a [u8]>,
    /// `-t`: a file to copy definitions from.
    pub template: Option<&'a [u8]>,
    /// `DS:` and `RRA:` definitions.
    pub definitions: Vec<&'a [u8]>,
}

/// Parses the arguments of CREATE. `None`: wrong usage.
pub fn create_words<'a>(mut fields: Fields<'a>) -> Option<CreateWords<'a>> {
    let mut words = CreateWords::default();
    while let Some(word) = fields.next() {
        // As in rrdcached, only the first letters of an option count, and its value is the next field.
        match word {
            [b'-', b'b', ..] => words.start = Some(atol(fields.next()?)),
            [b'-', b's', ..] => words.step = atol(fields.next()?),
            [b'-', b'r', ..] => words.sources.push(fields.next()?),
            [b'-', b't', ..] => words.template = Some(fields.next()?),
            [b'-', b'O', ..] => words.no_overwrite = true,
            _ if word.starts_with(b"DS:") || word.starts_with(b"RRA:") => {
                words.definitions.push(word);
            }
            _ => return None,
        }
    }
    Some(words)
}

/// Why the arguments of TUNE are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuneRefusal {
    /// The count is missing.
    Usage,
    /// The count is negative, or exceeds the number of words.
    Count(i32),
}

/// Parses the fields of TUNE behind the name: a count, and the words of a command line. The first word, the
/// command's name, is left out.
pub fn tune_words<'a>(mut fields: Fields<'a>) -> Result<Vec<&'a [u8]>, TuneRefusal> {
    let count = atoi(fields.next().ok_or(TuneRefusal::Usage)?);
    let wanted = usize::try_from(count).map_err(|_| TuneRefusal::Count(count))?;
    // Collects the words that are there, without allocating for the announced count.
    let words: Vec<&[u8]> = fields.take(wanted).collect();
    if words.len() < wanted {
        return Err(TuneRefusal::Count(count));
    }
    Ok(words.into_iter().skip(1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(line: &'a str, scratch: &'a mut Vec<u8>) -> Fields<'a> {
        Fields::of(line.as_bytes(), scratch)
    }

    #[test]
    fn refusals_come_in_stocks_order() {
        let mut flush = Permissions::NONE;
        flush.add(b"FLUSH");
        let (all, client, batch) = (Permissions::ALL, Context::Client, Context::Batch);
        for (line, context, permissions, expected) in [
            ("\\", client, all, Refusal::Torn),
            ("", client, all, Refusal::Unknown(b"")),
            ("FOO x", client, all, Refusal::Unknown(b"FOO")),
            ("foo", client, Permissions::NONE, Refusal::Unknown(b"foo")),
            ("update a", client, flush, Refusal::Denied),
            ("STATS", batch, flush, Refusal::Denied),
            ("Stats", batch, all, Refusal::Misplaced(b"Stats")),
            (".", client, all, Refusal::Misplaced(b".")),
            ("WROTE x", client, all, Refusal::Misplaced(b"WROTE")),
            ("BATCH", batch, all, Refusal::Misplaced(b"BATCH")),
            ("UPDATE", client, all, Refusal::Usage(Verb::Update)),
            ("FETCH x", client, all, Refusal::Usage(Verb::Fetch)),
            ("UPDATE x\\", client, all, Refusal::Usage(Verb::Update)),
        ] {
            let mut scratch = Vec::new();
            let parsed = parse(fields(line, &mut scratch), context, permissions);
            assert_eq!(parsed.err(), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_is_told_is_kept() {
        let mut scratch = Vec::new();
        let line = "fetch a\\ b.rrd AVERAGE -300 0 x y";
        let Ok(Request::Fetch(fetch)) = parse(
            fields(line, &mut scratch),
            Context::Client,
            Permissions::ALL,
        ) else {
            panic!("no FETCH");
        };
        assert_eq!((fetch.name, fetch.cf), (&b"a b.rrd"[..], &b"AVERAGE"[..]));
        assert_eq!(
            (fetch.start, fetch.end),
            (Some(&b"-300"[..]), Some(&b"0"[..]))
        );
        assert_eq!(fetch.columns.collect::<Vec<_>>(), [b"x", b"y"]);
    }

    #[test]
    fn times_are_simple_integers() {
        for (text, time) in [
            ("5", Some(5)),
            ("0", Some(1000)),
            ("-300", Some(700)),
            ("+7", Some(7)),
            (" 7", Some(7)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("08", Some(1000)),
            ("0x", Some(1000)),
            ("10abc", Some(10)),
            ("x", None),
            ("", None),
            ("-", None),
            ("now", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
        ] {
            assert_eq!(time_of(text.as_bytes(), 1000), time, "{text}");
        }
    }

    #[test]
    fn numbers_are_cs() {
        for (text, int, long) in [
            ("12", 12, 12),
            ("-1x", -1, -1),
            ("x", 0, 0),
            ("", 0, 0),
            ("0x10", 0, 0),
            ("010", 10, 10),
            ("4294967297", 1, 4_294_967_297),
            ("99999999999999999999", -1, i64::MAX),
            ("-99999999999999999999", 0, i64::MIN),
        ] {
            assert_eq!(
                (atoi(text.as_bytes()), atol(text.as_bytes())),
                (int, long),
                "{text}"
            );
        }
    }

    #[test]
    fn words_of_list_create_and_tune() {
        let mut scratch = Vec::new();
        for (line, expected) in [
            ("/a", Some((false, &b"/a"[..]))),
            ("RECURSIVE /", Some((true, &b"/"[..]))),
            ("RECURSIVE x", Some((true, &b"x"[..]))),
            ("RECURSIVE", None),
            ("recursive /", None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(list_words(fields(line, &mut scratch)), expected, "{line}");
        }
        let line = "-b 1000 -sfoo 10 -O -r a -r b -t c DS:x RRA:y DS:z";
        let words = create_words(fields(line, &mut scratch)).expect("words");
        assert_eq!(
            (words.start, words.step, words.no_overwrite),
            (Some(1000), 10, true)
        );
        assert_eq!(
            (words.sources, words.template),
            (vec![&b"a"[..], b"b"], Some(&b"c"[..]))
        );
        assert_eq!(words.definitions, [&b"DS:x"[..], b"RRA:y", b"DS:z"]);
        for line in ["-b", "x", "DS:x ", "-s 1 -r"] {
            assert_eq!(create_words(fields(line, &mut scratch)), None, "{line}");
        }
        for (line, expected) in [
            ("3 tune -h x:5", Ok(vec![&b"-h"[..], b"x:5"])),
            ("2 tune -h x:5", Ok(vec![&b"-h"[..]])),
            ("0", Ok(vec![])),
            ("x tune", Ok(vec![])),
            ("3 tune -h", Err(TuneRefusal::Count(3))),
            ("-1 tune", Err(TuneRefusal::Count(-1))),
            ("2000000000 tune", Err(TuneRefusal::Count(2_000_000_000))),
        ] {
            assert_eq!(tune_words(fields(line, &mut scratch)), expected, "{line}");
        }
    }
}
