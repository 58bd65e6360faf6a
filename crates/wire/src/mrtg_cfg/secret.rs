//! A text that no log, page or debug output shows.

use std::fmt;

/// A community, or what else opens a device. `{:?}` shows stars.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Of these bytes.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(bytes.into())
    }

    /// The bytes, for the packet and for nothing else.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(Secret::new(b"public"))), "Some(***)");
    }
}
