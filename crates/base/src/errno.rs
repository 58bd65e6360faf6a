//! Errors of the system in words. A person reads no number of an error.

use std::io;

/// The words of `strerror`, without the number that Rust puts behind them.
pub fn strerror(error: &io::Error) -> String {
    without_numbers(error.to_string())
}

/// The words for the number of an error, as recordings have it.
pub fn words(number: u16) -> String {
    strerror(&io::Error::from_raw_os_error(number.into()))
}

/// A text without the numbers of the system's errors in it.
pub fn without_numbers(mut text: String) -> String {
    const NUMBER: &str = " (os error ";
    while let Some(at) = text.find(NUMBER) {
        let rest = &text[at + NUMBER.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 || !rest[digits..].starts_with(')') {
            break;
        }
        text.replace_range(at..=at + NUMBER.len() + digits, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_words() {
        for (number, text) in [
            (2, "No such file or directory"),
            (3, "No such process"),
            (13, "Permission denied"),
            (24, "Too many open files"),
        ] {
            assert_eq!(words(number), text);
        }
        let unknown = words(u16::MAX);
        assert!(!unknown.contains("os error"), "{unknown}");
    }

    #[test]
    fn a_cause_has_no_number() {
        assert_eq!(
            strerror(&io::Error::from_raw_os_error(2)),
            "No such file or directory"
        );
        assert_eq!(strerror(&io::Error::other("late")), "late");
        for (text, plain) in [
            (
                "cannot open a: gone (os error 2); b",
                "cannot open a: gone; b",
            ),
            ("a (os error 2): b (os error 13)", "a: b"),
            ("a (os error ) (os error 1", "a (os error ) (os error 1"),
            ("", ""),
        ] {
            assert_eq!(without_numbers(text.into()), plain, "{text}");
        }
    }
}
