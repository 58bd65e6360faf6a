//! Texts in quotes, with Go's escapes; between backquotes there are none.

/// The text between quotes. `word` begins and ends with the same quote.
pub(crate) fn unquoted(word: &str) -> Result<String, String> {
    let quote = word.chars().next().unwrap_or('"');
    let inner = word
        .get(1..word.len().saturating_sub(1))
        .unwrap_or_default();
    if quote == '`' || !inner.contains('\\') {
        return Ok(inner.to_string());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.extend_from_slice(plain.as_bytes());
        rest = put_escaped(escaped, quote, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).map_err(|_| format!("string {word} is not UTF-8"))
}

/// Reads an escape behind its `\` and returns the rest.
fn put_escaped<'a>(text: &'a str, quote: char, out: &mut Vec<u8>) -> Result<&'a str, String> {
    let mut chars = text.chars();
    let c = chars.next().ok_or("escape sequence not terminated")?;
    let (digits, base) = match c {
        'x' => (2, 16),
        'u' => (4, 16),
        'U' => (8, 16),
        '0'..='7' => (3, 8),
        _ => {
            out.push(plain_escape(c, quote)?);
            return Ok(chars.as_str());
        }
    };
    let number = if base == 8 { text } else { chars.as_str() };
    let (value, rest) = take_number(number, digits, base)?;
    match c {
        'u' | 'U' => {
            let c =
                char::from_u32(value).ok_or("escape sequence is an invalid Unicode code point")?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        _ => out.push(
            u8::try_from(value).map_err(|_| "escape sequence is an invalid Unicode code point")?,
        ),
    }
    Ok(rest)
}

/// The byte of an escape of one character.
fn plain_escape(c: char, quote: char) -> Result<u8, String> {
    match c {
        'a' => Ok(7),
        'b' => Ok(8),
        'f' => Ok(12),
        'n' => Ok(b'\n'),
        'r' => Ok(b'\r'),
        't' => Ok(b'\t'),
        'v' => Ok(11),
        '\\' => Ok(b'\\'),
        '"' | '\'' if c == quote => Ok(if c == '"' { b'"' } else { b'\'' }),
        _ => Err(format!(
            "unknown escape sequence U+{:04X} {c:?}",
            u32::from(c)
        )),
    }
}

fn take_number(text: &str, digits: usize, base: u32) -> Result<(u32, &str), String> {
    let mut value = 0u32;
    let mut chars = text.chars();
    for _ in 0..digits {
        let c = chars.next().ok_or("escape sequence not terminated")?;
        let digit = c.to_digit(base).ok_or_else(|| {
            let code = u32::from(c);
            format!("illegal character U+{code:04X} {c:?} in escape sequence")
        })?;
        // Eight hexadecimal digits fill a u32.
        value = (value << base.trailing_zeros()) | digit;
    }
    Ok((value, chars.as_str()))
}

/// Appends a text in quotes, as Go's strconv.Quote does.
pub(crate) fn put_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            _ if is_printable(c) => out.push(c),
            '\0'..='\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            '\u{80}'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
}

fn is_printable(c: char) -> bool {
    matches!(c, '\'') || c.escape_debug().eq([c])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_gos() {
        for (word, wanted) in [
            (
                r#""a\a\b\f\n\r\t\v\\\"""#,
                Ok("a\u{7}\u{8}\u{c}\n\r\t\u{b}\\\""),
            ),
            (r"'\''", Ok("'")),
            (r#"'"'"#, Ok("\"")),
            (r"`\n`", Ok("\\n")),
            (r#""\x41\101\u00e4\U0001F600""#, Ok("AA\u{e4}\u{1f600}")),
            (r#""\xc3\xa4""#, Ok("\u{e4}")),
            (r#""\'""#, Err("unknown escape sequence U+0027 '\\''")),
            (
                r#""\ud800""#,
                Err("escape sequence is an invalid Unicode code point"),
            ),
            (
                r#""\U00110000""#,
                Err("escape sequence is an invalid Unicode code point"),
            ),
            (
                r#""\400""#,
                Err("escape sequence is an invalid Unicode code point"),
            ),
            (r#""\x4""#, Err("escape sequence not terminated")),
            (
                r#""\xg1""#,
                Err("illegal character U+0067 'g' in escape sequence"),
            ),
            (r#""\xff""#, Err(r#"string "\xff" is not UTF-8"#)),
        ] {
            let found = unquoted(word);
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, wanted, "{word}");
        }
    }

    #[test]
    fn quoted_texts_read_back() {
        for text in [
            "",
            "a\"b\\",
            "\0\u{7}\u{1b}\u{7f}",
            "ä☺\u{202e}\u{10ffff}\u{ad}",
        ] {
            let mut quoted = String::new();
            put_quoted(&mut quoted, text);
            assert!(!quoted.chars().any(char::is_control), "{quoted}");
            assert_eq!(unquoted(&quoted).as_deref(), Ok(text), "{quoted}");
        }
    }
}
