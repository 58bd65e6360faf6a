//! Texts that may be secret. No log, page or debug output shows a community, or a part of a configuration that may contain one.

use std::fmt;

/// A community, or another secret for a device. `{:?}` shows stars.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Copies the bytes.
    pub fn new(bytes: &[u8]) -> Secret {
        Secret(bytes.into())
    }

    /// The bytes, for the packet only.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A part of a configuration in a message. An unparsable line may have a community anywhere, so `{}` and `{:?}` show plain names,
/// and dots for any other text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ConfigText<'t>(pub &'t [u8]);

impl<'t> ConfigText<'t> {
    /// Replaces hidden text.
    pub const DOTS: &'static str = "...";

    /// The text if it is a plain name, or dots. Devices, pairs and Perl hashes contain signs that plain names lack.
    pub fn text(self) -> &'t str {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./+*".contains(byte);
        let plain = self.0.iter().all(is_plain).then_some(self.0);
        plain
            .and_then(|name| std::str::from_utf8(name).ok())
            .unwrap_or(Self::DOTS)
    }
}

impl fmt::Display for ConfigText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for ConfigText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_and_a_device_is_not() {
        for (text, shown) in [
            ("core-1_eth0.10", "core-1_eth0.10"),
            ("", ""),
            ("2:s3cret@10.0.0.1", "..."),
            ("a]:2:s3cret@[fd00::1", "..."),
            ("privpassword => 's3cret'", "..."),
            ("Zürich s3cret", "..."),
        ] {
            let text = ConfigText(text.as_bytes());
            assert_eq!(format!("{text} {text:?}"), format!("{shown} {shown}"));
        }
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(Secret::new(b"public"))), "Some(***)");
    }
}
