//! Requests to a daemon: each is sent, and its answer is read.

use kymo_rrd::UNKNOWN;
use kymo_rrd::fetch::Fetched;
use kymo_rrd::info::{Entry, Value};
use kymo_rrd::number::{self, Parsed};

use super::client::{Client, Refusal, Reply};
use super::clock::now;
use super::message::Message;

/// Error of a request that is too long, if rrdtool has no other text for it.
const TOO_LONG: &str = "No buffer space available";

/// A CREATE with its options.
pub(super) struct Create<'a> {
    /// Name of the file.
    pub name: &'a [u8],
    /// Step in seconds, or 0.
    pub step: u64,
    /// Time after which the file begins.
    pub start: Option<i64>,
    /// True if an existing file is kept.
    pub keep: bool,
    /// Files whose values fill the new file.
    pub sources: &'a [&'a [u8]],
    /// A file with the definitions to use.
    pub template: Option<&'a [u8]>,
    /// Definitions: `DS:` and `RRA:`.
    pub definitions: &'a [&'a [u8]],
}

impl Client {
    /// Sends a command with a file's name and more words. `too_long`: the error if they do not
    /// fit.
    fn on_file(
        &mut self,
        command: &str,
        name: &[u8],
        more: &[&[u8]],
        too_long: &str,
    ) -> Result<Reply, Message> {
        let path = self.path(name)?;
        let mut words = vec![command.as_bytes(), &path];
        words.extend_from_slice(more);
        self.request(&words).map_err(|refusal| match refusal {
            Refusal::TooLong => Message::from(too_long),
            Refusal::Failed(message) => message,
        })
    }

    /// Lets the daemon write its values of a file.
    pub(super) fn flush(&mut self, name: &[u8]) -> Result<(), Message> {
        let path = self.path(name)?;
        match self.request(&[b"flush", &path]) {
            Ok(_) => Ok(()),
            Err(Refusal::Failed(message)) => Err(message),
            Err(Refusal::TooLong) => {
                let why = TOO_LONG.as_bytes();
                Err(Message::of(&[b"rrdc_flush (", name, b") failed: ", why]))
            }
        }
    }

    /// Lets the daemon begin to write all its values.
    pub(super) fn flush_all(&mut self) -> Result<(), Message> {
        match self.request(&[b"flushall"]) {
            Ok(_) | Err(Refusal::TooLong) => Ok(()),
            Err(Refusal::Failed(message)) => Err(message),
        }
    }

    /// Lets the daemon drop its values of a file.
    pub(super) fn forget(&mut self, name: &[u8]) -> Result<(), Message> {
        self.on_file("forget", name, &[], TOO_LONG).map(|_| ())
    }

    /// Time of the last update.
    pub(super) fn last(&mut self, name: &[u8]) -> Result<i64, Message> {
        let reply = self.on_file("last", name, &[], "rrdc_last: out of memory")?;
        Ok(leading_number(&reply.message))
    }

    /// Time of an archive's first row.
    pub(super) fn first(&mut self, name: &[u8], archive: i64) -> Result<i64, Message> {
        let archive = archive.to_string();
        let too_long = "rrdc_first: out of memory";
        let reply = self.on_file("first", name, &[archive.as_bytes()], too_long)?;
        Ok(leading_number(&reply.message))
    }

    /// Sends values. `N` is replaced by this machine's time.
    pub(super) fn update(&mut self, name: &[u8], values: &[&[u8]]) -> Result<(), Message> {
        let seconds = now().sec.to_string();
        let stamped = |value: &&[u8]| match value.strip_prefix(b"N:") {
            Some(rest) => [seconds.as_bytes(), rest].join(&b':'),
            None => value.to_vec(),
        };
        let values: Vec<Vec<u8>> = values.iter().map(stamped).collect();
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let too_long = format!("Failed sending the values to rrdcached: {TOO_LONG}");
        self.on_file("update", name, &values, &too_long).map(|_| ())
    }

    /// Lets the daemon make a file.
    pub(super) fn create(&mut self, create: &Create<'_>) -> Result<(), Message> {
        let (start, step) = (
            create.start.map(|it| it.to_string()),
            create.step.to_string(),
        );
        let mut words: Vec<&[u8]> = Vec::new();
        if let Some(start) = &start {
            words.extend_from_slice(&[b"-b", start.as_bytes()]);
        }
        words.extend_from_slice(&[b"-s", step.as_bytes()]);
        if create.keep {
            words.push(b"-O");
        }
        for source in create.sources {
            words.extend_from_slice(&[b"-r", source]);
        }
        if let Some(template) = create.template {
            words.extend_from_slice(&[b"-t", template]);
        }
        words.extend_from_slice(create.definitions);
        let too_long = "rrdc_create: out of memory";
        self.on_file("create", create.name, &words, too_long)
            .map(|_| ())
    }

    /// Names of files below a folder.
    pub(super) fn list(&mut self, recursive: bool, dir: &[u8]) -> Result<Vec<Vec<u8>>, Message> {
        let words: &[&[u8]] = match recursive {
            true => &[b"list", b"RECURSIVE", dir],
            false => &[b"list", dir],
        };
        match self.request(words) {
            Ok(reply) => Ok(reply.lines),
            Err(Refusal::Failed(message)) => Err(message),
            Err(Refusal::TooLong) => Err(Message::from("rrdc_list: out of memory")),
        }
    }

    /// Entries of `info`.
    pub(super) fn info(&mut self, name: &[u8]) -> Result<Vec<Entry>, Message> {
        let reply = self.on_file("info", name, &[], "rrdc_info: out of memory")?;
        let mut entries = Vec::new();
        for line in &reply.lines {
            let Some((key, kind, value)) = entry_of(line) else {
                break;
            };
            entries.push((key.to_vec(), value_of(kind, value)?));
        }
        Ok(entries)
    }

    /// Rows from `start` to `end`, in steps that the daemon chooses.
    pub(super) fn fetch(
        &mut self,
        name: &[u8],
        cf: &[u8],
        start: i64,
        end: i64,
    ) -> Result<Fetched, Message> {
        let (start, end) = (start.to_string(), end.to_string());
        let more = [cf, start.as_bytes(), end.as_bytes()];
        let reply = self.on_file("FETCH", name, &more, "rrdc_fetch: out of memory")?;
        fetched(&reply.lines).map_err(|text| Message(format!("rrdc_fetch: {text}").into()))
    }
}

/// A leading number, as C's `atol` reads it.
fn leading_number(text: &[u8]) -> i64 {
    let signs = text
        .iter()
        .take_while(|byte| matches!(byte, b'-' | b'0'..=b'9'));
    let number = std::str::from_utf8(&text[..signs.count()]);
    number.ok().and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// Reads a line `key type value`.
fn entry_of(line: &[u8]) -> Option<(&[u8], i64, &[u8])> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    let (key, kind, value) = (parts.next()?, parts.next()?, parts.next()?);
    (!kind.is_empty() && !value.is_empty()).then(|| (key, leading_number(kind), value))
}

fn value_of(kind: i64, text: &[u8]) -> Result<Value, Message> {
    let number = leading_number(text);
    Ok(match kind {
        0 if text.starts_with(b"N") => Value::Val(UNKNOWN),
        0 => {
            let text = std::str::from_utf8(text).unwrap_or_default();
            Value::Val(text.parse().unwrap_or(0.0))
        }
        1 => Value::Cnt(number as u64),
        2 => Value::Str(text.to_vec()),
        3 => Value::Int(number as i32),
        4 => return Err(Message::from("rrdc_info: BLOB objects are not supported")),
        _ => {
            return Err(Message(
                format!("rrdc_info: Unsupported info type {kind}").into(),
            ));
        }
    })
}

/// Reads FETCH's lines: six lines about the rows, then one for each row.
fn fetched(lines: &[Vec<u8>]) -> Result<Fetched, String> {
    let short = || "Premature end of response packet".to_string();
    let version = header(lines.first().ok_or_else(short)?, "FlushVersion")?;
    if version != 1 {
        return Err(format!(
            "Don't know how to handle flush format version {version}."
        ));
    }
    let [_, start, end, step, count, names, rows @ ..] = lines else {
        return Err(short());
    };
    let (start, end) = (header(start, "Start")?, header(end, "End")?);
    if start >= end {
        return Err(format!(
            "Malformed start and end times: start = {start}; end = {end};"
        ));
    }
    let step = header(step, "Step")?;
    if step < 1 {
        return Err(format!("Invalid number for Step: {step}"));
    }
    let count = header(count, "DSCount")?;
    if count < 1 {
        return Err(format!("Invalid number for DSCount: {count}"));
    }
    let names = names_of(names, count)?;
    let expected = (end - start) / step;
    if rows.len() as i64 != expected {
        return Err(format!(
            "Got {} lines, expected {}",
            lines.len(),
            6 + expected
        ));
    }
    let mut cells = Vec::with_capacity(rows.len() * names.len());
    for row in rows {
        read_row(row, names.len(), &mut cells).ok_or("Cannot parse value line")?;
    }
    Ok(Fetched {
        start,
        end,
        step: step as u64,
        names,
        rows: cells,
    })
}

/// Reads the number of a line `name: number`.
fn header(line: &[u8], name: &str) -> Result<i64, String> {
    let (key, value) =
        key_and_value(line).ok_or_else(|| format!("Unable to parse header `{name}'"))?;
    if !key.eq_ignore_ascii_case(name.as_bytes()) {
        let key = String::from_utf8_lossy(key);
        return Err(format!(
            "Unexpected header line: Expected `{name}', got `{key}'"
        ));
    }
    Ok(leading_number(value))
}

fn names_of(line: &[u8], count: i64) -> Result<Vec<Vec<u8>>, String> {
    let cannot = || "Unable to parse header `DSName'".to_string();
    let (key, value) = key_and_value(line).ok_or_else(cannot)?;
    if !key.eq_ignore_ascii_case(b"DSName") {
        let key = String::from_utf8_lossy(key);
        return Err(format!(
            "Unexpected header line: Expected `DSName', got `{key}'"
        ));
    }
    let names: Vec<Vec<u8>> = fields(value).map(<[u8]>::to_vec).collect();
    if names.len() as i64 == count {
        Ok(names)
    } else {
        Err(cannot())
    }
}

fn read_row(line: &[u8], count: usize, cells: &mut Vec<f64>) -> Option<()> {
    let (_, values) = key_and_value(line)?;
    let before = cells.len();
    for field in fields(values) {
        match number::strtodbl(field) {
            Parsed::All(value) => cells.push(value),
            _ => return None,
        }
    }
    (cells.len() - before == count).then_some(())
}

fn key_and_value(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|&byte| byte == b':')?;
    let value = &line[at + 1..];
    let blanks = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let value = &value[blanks.count()..];
    (!value.is_empty()).then_some((&line[..at], value))
}

fn fields(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
        .filter(|field| !field.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "FlushVersion: 1|Start: 10|End: 30|Step: 10|DSCount: 2|DSName: a b|        20: 1.0e+00 -nan|        30: 2 nan";

    #[test]
    fn a_fetch_is_read_and_a_wrong_one_refused() {
        let read = |text: &str| {
            let lines: Vec<Vec<u8>> = text.split('|').map(|line| line.into()).collect();
            fetched(&lines)
        };
        let good = read(GOOD).unwrap();
        assert_eq!((good.start, good.end, good.step), (10, 30, 10));
        assert_eq!(good.names, [b"a", b"b"]);
        let bits: Vec<u64> = good.rows.iter().map(|cell| cell.to_bits()).collect();
        let expected = [1.0, UNKNOWN, 2.0, -UNKNOWN].map(f64::to_bits);
        assert_eq!(bits, expected);
        for (from, to, error) in [
            (
                "Version: 1",
                "Version: 2",
                "Don't know how to handle flush format version 2.",
            ),
            (
                "Start",
                "Begin",
                "Unexpected header line: Expected `Start', got `Begin'",
            ),
            (
                "End: 30",
                "End: 10",
                "Malformed start and end times: start = 10; end = 10;",
            ),
            ("Step: 10", "Step: 0", "Invalid number for Step: 0"),
            ("Count: 2", "Count: 0", "Invalid number for DSCount: 0"),
            ("Name: a b", "Name: a", "Unable to parse header `DSName'"),
            ("End: 30", "End: 40", "Got 8 lines, expected 9"),
            ("2 nan", "2", "Cannot parse value line"),
            ("2 nan", "2 3x", "Cannot parse value line"),
            ("Step: 10", "Step:", "Unable to parse header `Step'"),
        ] {
            assert_eq!(read(&GOOD.replace(from, to)), Err(error.into()), "{to}");
        }
        assert_eq!(
            read("FlushVersion: 1"),
            Err("Premature end of response packet".into())
        );
    }

    #[test]
    fn info_lines_have_a_type() {
        assert_eq!(entry_of(b"a 2 b c"), Some((&b"a"[..], 2, &b"b c"[..])));
        for bad in [&b"a"[..], b"a 2", b"a 2 ", b""] {
            assert_eq!(entry_of(bad), None);
        }
        assert_eq!(value_of(1, b"17"), Ok(Value::Cnt(17)));
        assert_eq!(value_of(0, b"5.0000000000e-01"), Ok(Value::Val(0.5)));
        assert!(value_of(4, b"x").is_err() && value_of(9, b"x").is_err());
    }
}
