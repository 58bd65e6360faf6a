//! The value of a reading as decimal text. Short texts need no
//! allocation.

/// Longest text without an allocation. A Counter64 has 20 digits at
/// most.
const SHORT: usize = 22;

/// Decimal text, or unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// Not known.
    #[default]
    Unknown,
    /// The number of bytes in use, and the bytes.
    Short(u8, [u8; SHORT]),
    /// A longer text.
    Long(Box<[u8]>),
}

impl Decimal {
    /// Stores a text.
    pub(crate) fn of(text: &[u8]) -> Decimal {
        if text.len() > SHORT {
            return Decimal::Long(text.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..text.len()].copy_from_slice(text);
        Decimal::Short(text.len() as u8, bytes)
    }

    /// The text; `None`: unknown.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Decimal::Unknown => None,
            Decimal::Short(length, bytes) => bytes.get(..usize::from(*length)),
            Decimal::Long(text) => Some(text),
        }
    }

    /// True if both values are known and this one is less.
    pub(crate) fn is_less(&self, before: &Decimal) -> bool {
        let number = |of: &Decimal| {
            let text = std::str::from_utf8(of.text()?).ok()?;
            Some((text.parse::<i128>().ok(), text.parse::<f64>().ok()?))
        };
        match (number(self), number(before)) {
            (Some((Some(new), _)), Some((Some(old), _))) => new < old,
            (Some((_, new)), Some((_, old))) => new < old,
            (None, _) | (_, None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_less_as_a_number() {
        for (new, old, is_less) in [
            ("9", "10", true),
            ("10", "9", false),
            ("10", "10", false),
            ("-5", "3", true),
            ("1.5", "2", true),
            ("18446744073709551614", "18446744073709551615", true),
            ("18446744073709551615", "18446744073709551614", false),
            ("x", "1", false),
        ] {
            let (new, old) = (Decimal::of(new.as_bytes()), Decimal::of(old.as_bytes()));
            assert_eq!(new.is_less(&old), is_less, "{new:?} {old:?}");
        }
        let known = Decimal::of(b"1");
        assert!(!Decimal::Unknown.is_less(&known) && !known.is_less(&Decimal::Unknown));
    }

    #[test]
    fn texts_of_any_length_come_back() {
        assert_eq!(Decimal::Unknown.text(), None);
        for length in [0, 1, SHORT, SHORT + 1, 60] {
            let text = vec![b'7'; length];
            assert_eq!(Decimal::of(&text).text(), Some(&text[..]));
        }
        assert!(size_of::<Decimal>() <= 24);
    }
}
