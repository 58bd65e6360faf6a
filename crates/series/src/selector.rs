//! PromQL selectors, such as `node_cpu_seconds_total{mode="idle",cpu=~"[01]"}`.

use std::fmt;

use crate::matcher::{Matcher, MatcherError, Op};
use crate::names::{METRIC, is_metric};

/// Most matchers of a selector.
const MATCHERS_MAX: usize = 64;

/// Matchers, all of which have to match a series.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector(pub Vec<Matcher>);

impl Selector {
    /// Parses `NAME`, `{MATCHER,...}` or `NAME{MATCHER,...}`. As in PromQL, at least one matcher has to reject the
    /// empty value.
    pub fn parse(text: &str) -> Result<Selector, MatcherError> {
        let wrong = |why: String| MatcherError(format!("cannot use {text:?} as a selector: {why}"));
        let (name, inside) = match text.trim().split_once('{') {
            Some((name, rest)) => (name.trim_end(), Some(rest)),
            None => (text.trim(), None),
        };
        let mut matchers = Vec::new();
        if !name.is_empty() {
            if !is_metric(name) {
                return Err(wrong(format!("{name:?} is no metric's name")));
            }
            matchers.push(Matcher::of_metric(name));
        }
        if let Some(inside) = inside {
            let mut left = Matchers { left: inside };
            while let Some((label, op, value)) = left.next().map_err(&wrong)? {
                if label == METRIC && !name.is_empty() {
                    return Err(wrong("the metric's name stands twice".into()));
                }
                matchers.push(Matcher::new(&label, op, &value)?);
            }
            if !left.left.trim().is_empty() {
                return Err(wrong("there is text behind the }".into()));
            }
        }
        if matchers.len() > MATCHERS_MAX {
            return Err(wrong(format!("it has more than {MATCHERS_MAX} matchers")));
        }
        if matchers.iter().all(Matcher::matches_empty) {
            return Err(wrong(
                "one matcher at least has to refuse an empty value".into(),
            ));
        }
        Ok(Selector(matchers))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (at, matcher) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(out, "{comma}{matcher}")?;
        }
        out.write_str("}")
    }
}

/// The text between braces.
struct Matchers<'a> {
    left: &'a str,
}

impl Matchers<'_> {
    /// Parses the next matcher; `None`: the brace is closed.
    fn next(&mut self) -> Result<Option<(String, Op, String)>, String> {
        if self.take("}") {
            return Ok(None);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = self.left.trim_start();
        let end = start.find(|c| !is_word(c)).unwrap_or(start.len());
        let label = start[..end].to_string();
        self.left = &start[end..];
        // Longer operators first, as `=~` begins with `=`.
        let known = [Op::Matches, Op::NotMatches, Op::NotEqual, Op::Equal];
        let op = known.into_iter().find(|op| self.take(op.text()));
        let op = op.ok_or_else(|| format!("=, !=, =~ or !~ is missing behind {label:?}"))?;
        let value = self.quoted()?;
        if !self.take(",") && !self.left.trim_start().starts_with('}') {
            return Err("a comma or } is missing".into());
        }
        Ok(Some((label, op, value)))
    }

    fn take(&mut self, token: &str) -> bool {
        match self.left.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.left = rest;
                true
            }
            None => false,
        }
    }

    /// Parses a text in quotes with Go's escapes, or in backquotes without escapes.
    fn quoted(&mut self) -> Result<String, String> {
        let text = self.left.trim_start();
        let mut chars = text.char_indices();
        let quote = match chars.next() {
            Some((_, quote @ ('"' | '\'' | '`'))) => quote,
            _ => return Err("a value stands between quotes".into()),
        };
        let mut value = Vec::new();
        while let Some((at, c)) = chars.next() {
            if c == quote {
                self.left = &text[at + 1..];
                return String::from_utf8(value).map_err(|_| "the value is not UTF-8".into());
            }
            match (c, quote) {
                ('\\', '"' | '\'') => {
                    let read = escape(&text[at + 1..], quote, &mut value);
                    let count = read.ok_or("a value has an unknown escape")?;
                    chars.by_ref().take(count).for_each(drop);
                }
                ('\n', '"' | '\'') => return Err("a value is broken by a line feed".into()),
                _ => value.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Err("a closing quote is missing".into())
    }
}

/// Parses an escape behind its `\`; returns the number of its characters.
fn escape(text: &str, quote: char, out: &mut Vec<u8>) -> Option<usize> {
    let c = text.chars().next()?;
    let plain = match c {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        _ if c == quote => u8::try_from(quote).ok()?,
        'x' => {
            out.push(number(text.get(1..3)?, 16)?.try_into().ok()?);
            return Some(3);
        }
        '0'..='7' => {
            out.push(number(text.get(..3)?, 8)?.try_into().ok()?);
            return Some(3);
        }
        'u' | 'U' => {
            let digits = if c == 'u' { 4 } else { 8 };
            let code = char::from_u32(number(text.get(1..=digits)?, 16)?)?;
            out.extend_from_slice(code.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(digits + 1);
        }
        _ => return None,
    };
    out.push(plain);
    Some(1)
}

fn number(digits: &str, base: u32) -> Option<u32> {
    let all = digits.chars().all(|c| c.is_digit(base));
    u32::from_str_radix(digits, base).ok().filter(|_| all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_promql_has_them() {
        for (text, shown) in [
            ("up", r#"{__name__="up"}"#),
            (" up { } ", r#"{__name__="up"}"#),
            (
                r#"up{job="node",instance=~'web.*',}"#,
                r#"{__name__="up",job="node",instance=~"web.*"}"#,
            ),
            (r#"{a!="",b!~`\d`}"#, r#"{a!="",b!~"\\d"}"#),
            (r#"{__name__=~"node_.+"}"#, r#"{__name__=~"node_.+"}"#),
            (r#"{a="\x41\u00e4\n\"\101"}"#, "{a=\"A\u{e4}\\n\\\"A\"}"),
            (
                r#"node:cpu:rate5m{a="}"}"#,
                r#"{__name__="node:cpu:rate5m",a="}"}"#,
            ),
        ] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(selector.to_string(), shown, "{text}");
            assert_eq!(Selector::parse(shown).unwrap(), selector);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "{}",
            r#"{a=""}"#,
            r#"{a=~".*"}"#,
            r#"{a!="x"}"#,
            "1up",
            "up{",
            "up}",
            r#"up{a="b"} x"#,
            r#"up{a="b""#,
            r#"up{a="b}"#,
            r#"up{a=b}"#,
            r#"up{"a"}"#,
            r#"up{a=="b"}"#,
            r#"up{__name__="x"}"#,
            r#"up{a="\q"}"#,
            r#"up{a="\xff"}"#,
            r#"up{a=~"("}"#,
            r#"up{a="b" c="d"}"#,
        ] {
            assert!(Selector::parse(text).is_err(), "{text}");
        }
    }
}
