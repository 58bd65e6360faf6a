//! Perl's conversions of texts.

/// The number that a text begins with; 0 if there is none.
pub(super) fn number(text: &[u8]) -> f64 {
    let text = super::lines::trim_start(text);
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    if text.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        end += 1 + fraction;
    }
    if whole + fraction == 0 {
        return 0.0;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if digits(end + 1 + sign) > 0 {
            end += 1 + sign + digits(end + 1 + sign);
        }
    }
    let number = std::str::from_utf8(&text[..end]).unwrap_or_default();
    number.parse().unwrap_or(0.0)
}

/// The integer part, limited to the range of `u64`.
pub(super) fn whole(number: f64) -> u64 {
    number as u64
}

/// True if Perl treats a text as true.
pub(super) fn is_true(text: &[u8]) -> bool {
    !matches!(text, b"" | b"0")
}

/// `[A-Za-z0-9_]`
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `^[0-9]+$`
pub(super) fn is_digits(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_with_numbers() {
        for (text, expected) in [
            ("400px", 400.0),
            (" -1.5e2x", -150.0),
            ("1e", 1.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7", 7.0),
            ("x", 0.0),
            ("", 0.0),
            (".", 0.0),
            ("-", 0.0),
            ("0x10", 0.0),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
    }
}
