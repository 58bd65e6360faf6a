//! Secrets, which no message shows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A password or a token.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(String);

impl Secret {
    /// The secret in the text of a file: blanks and line ends around it are no part.
    pub fn of_file(text: &str) -> Secret {
        Secret(text.trim().into())
    }

    /// The secret itself.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    /// Shows nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::of_file(" a b\n");
        assert_eq!(secret.text(), "a b");
        assert_eq!(format!("{secret:?}"), "Secret");
    }
}
