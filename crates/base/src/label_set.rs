//! Label sets: names of series that are no file's. One is written `{host="web1",job="kymo"}`: labels sorted by their names, in a
//! value `"`, `\` and a new line behind a `\`. Two sets are the same when these texts are.

use std::borrow::Cow;
use std::fmt;

/// Labels of a set at most.
pub const LABELS_MAX: usize = 256;
/// Bytes of a label's name at most.
const NAME_MAX: usize = 128;
/// Bytes of the whole text at most.
pub const TEXT_MAX: usize = 16_384;

/// A sorted set of labels.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels {
    text: Box<[u8]>,
}

/// Why there is no such set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelError {
    /// A name is not of letters, digits and `_`, or begins with a digit, or is too long.
    Name,
    /// A name comes twice.
    Twice,
    /// There are no labels, or more than a set has.
    Count,
    /// The text is longer than a set's may be.
    Long,
    /// The text is not how a set is written.
    Text,
}

impl fmt::Display for LabelError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LabelError::Name => {
                "a label's name is 1 to 128 letters, digits and _, and no digit first"
            }
            LabelError::Twice => "a label comes twice",
            LabelError::Count => "a set has 1 to 256 labels",
            LabelError::Long => "a set has 16,384 bytes at most",
            LabelError::Text => "a set is written {NAME=\"VALUE\",...}, sorted by names",
        })
    }
}

/// Limits of the label set of a new series. Sets that are stored already may be larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelLimits {
    /// Labels.
    pub labels: usize,
    /// Bytes of the text.
    pub bytes: usize,
}

impl Default for LabelLimits {
    fn default() -> LabelLimits {
        LabelLimits {
            labels: 64,
            bytes: 2048,
        }
    }
}

impl LabelLimits {
    /// Says by what a set exceeds them.
    pub fn admit(self, set: &Labels) -> Result<(), LabelExcess> {
        if set.text.len() > self.bytes {
            return Err(LabelExcess::Bytes(set.text.len(), self.bytes));
        }
        // Each takes at least `a="b",`.
        if set.text.len() / 6 <= self.labels {
            return Ok(());
        }
        let labels = each(&set.text).count();
        match labels > self.labels {
            true => Err(LabelExcess::Labels(labels, self.labels)),
            false => Ok(()),
        }
    }
}

/// How many labels or bytes a set has, and how many it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelExcess {
    /// Labels.
    Labels(usize, usize),
    /// Bytes of its text.
    Bytes(usize, usize),
}

impl fmt::Display for LabelExcess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabelExcess::Labels(has, most) => {
                write!(out, "its set has {has} labels, {most} at most are taken")
            }
            LabelExcess::Bytes(has, most) => {
                write!(out, "its set has {has} bytes, {most} at most are taken")
            }
        }
    }
}

impl Labels {
    /// The set of these labels. One whose value is empty is as good as none.
    pub fn new<'a>(
        labels: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Labels, LabelError> {
        let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
        let mut labels: Vec<(&str, &[u8])> = labels.collect();
        labels.sort_unstable();
        if labels.is_empty() || labels.len() > LABELS_MAX {
            return Err(LabelError::Count);
        }
        if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(LabelError::Twice);
        }
        let mut text = Vec::with_capacity(64);
        for (name, value) in labels {
            if !is_name(name.as_bytes()) {
                return Err(LabelError::Name);
            }
            text.push(if text.is_empty() { b'{' } else { b',' });
            text.extend_from_slice(name.as_bytes());
            text.extend_from_slice(b"=\"");
            put_value(&mut text, value);
            text.push(b'"');
        }
        text.push(b'}');
        match text.len() > TEXT_MAX {
            true => Err(LabelError::Long),
            false => Ok(Labels { text: text.into() }),
        }
    }

    /// Reads what [`Labels::text`] says, and nothing else: two texts are never one set.
    pub fn parse(text: &[u8]) -> Result<Labels, LabelError> {
        let labels: Vec<(&str, Cow<'_, [u8]>)> = each(text)
            .map(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)))
            .collect::<Option<_>>()
            .ok_or(LabelError::Name)?;
        let set = Labels::new(labels.iter().map(|(name, value)| (*name, &**value)))?;
        match *set.text == *text {
            true => Ok(set),
            false => Err(LabelError::Text),
        }
    }

    /// How it is written.
    pub fn text(&self) -> &[u8] {
        &self.text
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&String::from_utf8_lossy(&self.text))
    }
}

/// True if the name of a series is a label set. The name of a file begins otherwise: a file `{a` is written `./{a`.
pub fn is_set(name: &[u8]) -> bool {
    name.first() == Some(&b'{')
}

/// The value of a label in the text of a set; empty: it has none.
pub fn value<'a>(text: &'a [u8], label: &str) -> Cow<'a, [u8]> {
    let found = each(text).find(|(name, _)| *name == label.as_bytes());
    found.map_or(Cow::Borrowed(&b""[..]), |(_, value)| value)
}

/// True if this may be a label's name.
pub fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.len() <= NAME_MAX
        && name.first().is_some_and(is_letter)
        && name
            .iter()
            .all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// Names and values of a text, up to where it is none of a set's.
pub fn each(text: &[u8]) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
    let mut left = text.strip_prefix(b"{").unwrap_or_default();
    std::iter::from_fn(move || {
        let equals = left.iter().position(|&byte| byte == b'=')?;
        let (name, rest) = left.split_at(equals);
        let quoted = rest.strip_prefix(b"=\"")?;
        let end = end_of(quoted)?;
        let behind = &quoted[end + 1..];
        left = behind.strip_prefix(b",").unwrap_or_default();
        Some((name, plain(&quoted[..end])))
    })
}

/// Where the quote is that ends a value.
fn end_of(quoted: &[u8]) -> Option<usize> {
    let mut escaped = false;
    quoted.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Appends a value as a set has it between quotes.
pub fn put_value(text: &mut Vec<u8>, value: &[u8]) {
    for &byte in value {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            b'\n' => text.extend_from_slice(b"\\n"),
            _ => text.push(byte),
        }
    }
}

/// A value without what [`put_value`] adds.
fn plain(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'\\') {
        return Cow::Borrowed(value);
    }
    let (mut out, mut escaped) = (Vec::with_capacity(value.len()), false);
    for &byte in value {
        match (escaped, byte) {
            (false, b'\\') => escaped = true,
            (true, b'n') => {
                out.push(b'\n');
                escaped = false;
            }
            _ => {
                out.push(byte);
                escaped = false;
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(labels: &[(&str, &str)]) -> Result<Labels, LabelError> {
        Labels::new(labels.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    #[test]
    fn one_text_for_one_set() {
        let one = set(&[("job", "kymo"), ("host", "web1"), ("instance", "")]).unwrap();
        assert_eq!(one.text(), br#"{host="web1",job="kymo"}"#);
        assert_eq!(Labels::parse(one.text()), Ok(one.clone()));
        assert_eq!(&*value(one.text(), "job"), b"kymo");
        assert_eq!(&*value(one.text(), "jo"), b"");
        for text in [
            &br#"{job="kymo",host="web1"}"#[..],
            br#"{host="web1",job="kymo"} "#,
            br#"{host="web1",job="kymo",}"#,
            br#"{host="web1",job="kymo""#,
            br#"{host="we\b1"}"#,
            br#"{a=""}"#,
            b"{}",
            b"",
            b"web1/load/load.rrd",
        ] {
            assert!(Labels::parse(text).is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_set() {
        let many: Vec<(String, &str)> = (0..257).map(|at| (format!("a{at}"), "1")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (&**name, *value)).collect();
        for (labels, error) in [
            (&[][..], LabelError::Count),
            (&many[..], LabelError::Count),
            (&[("a", "1"), ("a", "2")][..], LabelError::Twice),
            (&[("1a", "1")][..], LabelError::Name),
            (&[("a-b", "1")][..], LabelError::Name),
            (&[(&*"a".repeat(129), "1")][..], LabelError::Name),
            (&[("a", &*"x".repeat(16_384))][..], LabelError::Long),
        ] {
            assert_eq!(set(labels), Err(error));
        }
    }

    #[test]
    fn limits_are_counted_exactly() {
        let limits = LabelLimits {
            labels: 2,
            bytes: 23,
        };
        for (labels, admitted) in [
            (&[("a", "1"), ("b", "22222222")][..], Ok(())),
            (
                &[("a", "1"), ("b", "222222222222")],
                Err(LabelExcess::Bytes(24, 23)),
            ),
            (
                &[("a", "1"), ("b", "2"), ("c", "3")],
                Err(LabelExcess::Labels(3, 2)),
            ),
        ] {
            assert_eq!(limits.admit(&set(labels).unwrap()), admitted);
        }
        let many: Vec<(String, &str)> = (0..65).map(|at| (format!("a{at}"), "1")).collect();
        let many = many.iter().map(|(name, value)| (&**name, value.as_bytes()));
        let (most, many) = (Labels::new(many.clone().skip(1)), Labels::new(many));
        let usual = LabelLimits::default();
        assert_eq!(usual.admit(&most.unwrap()), Ok(()));
        let excess = usual.admit(&many.unwrap()).unwrap_err();
        assert_eq!(
            excess.to_string(),
            "its set has 65 labels, 64 at most are taken"
        );
    }

    proptest! {
        #[test]
        fn any_value_comes_back(bytes in proptest::collection::vec(any::<u8>(), 1..40), other in "[\"\\\\\n,={}a]{1,9}") {
            let set = Labels::new([("b", &bytes[..]), ("a", other.as_bytes())]).unwrap();
            prop_assert_eq!(&*value(set.text(), "b"), &bytes[..]);
            prop_assert_eq!(&*value(set.text(), "a"), other.as_bytes());
            prop_assert_eq!(Labels::parse(set.text()), Ok(set.clone()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(text: Vec<u8>) {
            let text = [&b"{"[..], &text].concat();
            if let Ok(set) = Labels::parse(&text) {
                prop_assert_eq!(set.text(), &text[..]);
            }
        }
    }
}
