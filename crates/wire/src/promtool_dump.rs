//! The text that `promtool tsdb dump` prints: a sample a line, `{__name__="up", job="node"} 1 1700000000000`. Values of labels are
//! quoted as in Go, the time is in milliseconds.

#[cfg(test)]
mod tests;

use std::fmt;

/// Most bytes of a line.
pub const LINE_MAX: usize = 1 << 20;

/// A sample of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DumpedSample<'a> {
    /// The labels as they are written, with their braces; [`dumped_labels`] reads them.
    pub labels: &'a [u8],
    /// The value.
    pub value: f64,
    /// Milliseconds since 1970.
    pub time_ms: i64,
}

/// Reason why a line is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BadDumpLine {
    /// The line does not begin with labels in braces.
    Labels,
    /// A quoted text has no end, or an escape that Go does not have.
    Quotes,
    /// The value is a native histogram.
    Histogram,
    /// The value or the time is no number.
    Number,
}

impl BadDumpLine {
    /// The reason in words.
    pub fn why(self) -> &'static str {
        match self {
            BadDumpLine::Labels => "it does not begin with labels in braces",
            BadDumpLine::Quotes => "a quoted text has no end, or an unknown escape",
            BadDumpLine::Histogram => "native histograms are not kept",
            BadDumpLine::Number => "its value or its time is no number",
        }
    }
}

impl fmt::Display for BadDumpLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

/// Reads a line without its line feed.
pub fn dumped_sample(line: &[u8]) -> Result<DumpedSample<'_>, BadDumpLine> {
    let (labels, rest) = line.split_at(end_of_labels(line)?);
    let rest = rest.strip_prefix(b" ").ok_or(BadDumpLine::Number)?;
    if rest.starts_with(b"{") {
        return Err(BadDumpLine::Histogram);
    }
    let text = std::str::from_utf8(rest).map_err(|_| BadDumpLine::Number)?;
    let (value, time) = text.split_once(' ').ok_or(BadDumpLine::Number)?;
    Ok(DumpedSample {
        labels,
        value: value_of(value).ok_or(BadDumpLine::Number)?,
        time_ms: time.parse().map_err(|_| BadDumpLine::Number)?,
    })
}

/// A number as Go prints it by `%g`.
fn value_of(text: &str) -> Option<f64> {
    match text {
        "NaN" => Some(f64::NAN),
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ => {
            let is_number = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e');
            let value: f64 = text.bytes().all(is_number).then(|| text.parse().ok())??;
            value.is_finite().then_some(value)
        }
    }
}

/// The place behind the brace that closes the labels.
fn end_of_labels(line: &[u8]) -> Result<usize, BadDumpLine> {
    if line.first() != Some(&b'{') {
        return Err(BadDumpLine::Labels);
    }
    let (mut at, mut is_quoted) = (1, false);
    while let Some(byte) = line.get(at) {
        at += 1;
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'\\' if is_quoted => at += 1,
            b'}' if !is_quoted => return Ok(at),
            _ => {}
        }
    }
    Err(match is_quoted {
        true => BadDumpLine::Quotes,
        false => BadDumpLine::Labels,
    })
}

/// Name and value of a label.
pub type DumpedLabel = (Vec<u8>, Vec<u8>);

/// Names and values of labels in braces. Names may be any text; a name may be quoted, and a quoted text alone is the metric.
pub fn dumped_labels(labels: &[u8]) -> Result<Vec<DumpedLabel>, BadDumpLine> {
    let inner = labels
        .strip_prefix(b"{")
        .and_then(|it| it.strip_suffix(b"}"));
    let mut rest = inner.ok_or(BadDumpLine::Labels)?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let name = match rest.first() {
            Some(b'"') => unquote(&mut rest)?,
            _ => bare(&mut rest),
        };
        let pair = match rest.strip_prefix(b"=") {
            Some(behind) => {
                rest = behind;
                (name, unquote(&mut rest)?)
            }
            None => (b"__name__".to_vec(), name),
        };
        found.push(pair);
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(b", ").ok_or(BadDumpLine::Labels)?;
        if rest.is_empty() {
            return Err(BadDumpLine::Labels);
        }
    }
    Ok(found)
}

/// Takes a name that is not quoted.
fn bare(rest: &mut &[u8]) -> Vec<u8> {
    let end = rest.iter().position(|byte| matches!(byte, b'=' | b','));
    let (name, behind) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = behind;
    name.to_vec()
}

/// Takes a text as Go's `strconv.Quote` writes it.
fn unquote(rest: &mut &[u8]) -> Result<Vec<u8>, BadDumpLine> {
    let mut input = rest.strip_prefix(b"\"").ok_or(BadDumpLine::Quotes)?;
    let mut out = Vec::new();
    loop {
        let (byte, behind) = input.split_first().ok_or(BadDumpLine::Quotes)?;
        input = behind;
        match byte {
            b'"' => break,
            b'\\' => take_escape(&mut input, &mut out).ok_or(BadDumpLine::Quotes)?,
            byte => out.push(*byte),
        }
    }
    *rest = input;
    Ok(out)
}

fn take_escape(input: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (letter, behind) = input.split_first()?;
    *input = behind;
    let byte = match letter {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'\\' | b'"' => *letter,
        b'x' => u8::try_from(take_hex(input, 2)?).ok()?,
        b'u' | b'U' => {
            let digits = if *letter == b'u' { 4 } else { 8 };
            let letter = char::from_u32(take_hex(input, digits)?)?;
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(());
        }
        _ => return None,
    };
    out.push(byte);
    Some(())
}

fn take_hex(input: &mut &[u8], digits: usize) -> Option<u32> {
    let (text, behind) = input.split_at_checked(digits)?;
    *input = behind;
    let text = std::str::from_utf8(text).ok()?;
    let are_digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    are_digits.then(|| u32::from_str_radix(text, 16).ok())?
}
