//! Keys of an account of S3, from a file in the shape of `~/.aws/credentials`.

use kymo_scrape::Secret;
use rusty_s3::Credentials;
use serde::{Deserialize, Serialize};

/// The profile that is read.
const PROFILE: &str = "default";

/// Keys of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// The key's name.
    id: String,
    /// The secret key.
    secret: Secret,
    /// Token of a session, for keys that end; empty: none.
    session: Secret,
}

impl Keys {
    /// Reads the lines of the profile `default`, or those before the first profile.
    pub fn parse(text: &str) -> Result<Keys, String> {
        let mut keys = Keys::default();
        let mut is_read = true;
        for line in text.lines().map(str::trim) {
            if let Some(profile) = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'))
            {
                is_read = profile.trim() == PROFILE;
                continue;
            }
            if !is_read || line.starts_with(['#', ';']) {
                continue;
            }
            let Some((name, value)) = line.split_once('=') else {
                continue;
            };
            match name.trim() {
                "aws_access_key_id" => keys.id = value.trim().into(),
                "aws_secret_access_key" => keys.secret = Secret::of_file(value),
                "aws_session_token" => keys.session = Secret::of_file(value),
                _ => {}
            }
        }
        let missing = |name| {
            Err(format!(
                "the profile {PROFILE} has no {name}; its lines are aws_access_key_id = NAME and aws_secret_access_key = KEY"
            ))
        };
        match (keys.id.is_empty(), keys.secret.text().is_empty()) {
            (true, _) => missing("aws_access_key_id"),
            (_, true) => missing("aws_secret_access_key"),
            (false, false) => Ok(keys),
        }
    }

    /// The keys for signatures.
    pub(super) fn credentials(&self) -> Credentials {
        match self.session.text() {
            "" => Credentials::new(self.id.clone(), self.secret.text()),
            session => Credentials::new_with_token(self.id.clone(), self.secret.text(), session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_keys_are_read_and_no_message_has_a_secret() {
        let keys = "aws_access_key_id = a\naws_secret_access_key=s3cret\n";
        for (text, read) in [
            (keys.to_string(), Some(("a", "s3cret", ""))),
            (
                format!(
                    "[other]\naws_access_key_id=b\n [ default ]\r\n# c\n{keys}aws_session_token = t\nregion = x\n"
                ),
                Some(("a", "s3cret", "t")),
            ),
            (format!("[other]\n{keys}"), None),
            (keys.replace("key_id", "key"), None),
            ("aws_access_key_id = a\ns3cret".into(), None),
            (String::new(), None),
        ] {
            let found = Keys::parse(&text);
            let shown = format!("{found:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
            let found = found.as_ref().ok();
            let found = found.map(|of| (of.id.as_str(), of.secret.text(), of.session.text()));
            assert_eq!(found, read, "{text}");
        }
    }
}
