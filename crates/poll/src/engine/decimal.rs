//! A reading's value: decimal text, short ones in place.

/// Bytes that need no allocation: a Counter64 has 20 digits at most.
const SHORT: usize = 22;

/// Decimal text, or nothing: unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decimal {
    /// Not known.
    #[default]
    Unknown,
    /// As many of the bytes as the number says.
    Short(u8, [u8; SHORT]),
    /// A longer one.
    Long(Box<[u8]>),
}

impl Decimal {
    /// Of this text.
    pub(crate) fn of(text: &[u8]) -> Decimal {
        if text.len() > SHORT {
            return Decimal::Long(text.into());
        }
        let mut bytes = [0; SHORT];
        bytes[..text.len()].copy_from_slice(text);
        Decimal::Short(text.len() as u8, bytes)
    }

    /// The text, if it is known.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Decimal::Unknown => None,
            Decimal::Short(length, bytes) => bytes.get(..usize::from(*length)),
            Decimal::Long(text) => Some(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
