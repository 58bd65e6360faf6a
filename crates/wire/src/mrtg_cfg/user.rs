//! The user of SNMPv3 that `SnmpOptions` describe, by the keys of MRTG's library Net::SNMP.

use super::secret::Secret;
use crate::snmp::usm::{AuthProtocol, PrivProtocol};

/// A user has a name of at most this many bytes.
const NAME_MAX: usize = 32;
/// A context has a name of at most this many bytes.
const CONTEXT_MAX: usize = 255;

/// A user, and the context of its requests.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    /// Name of the user, 1 to 32 bytes.
    pub name: Box<[u8]>,
    /// Signs messages; `None`: they are not signed.
    pub auth: Option<(AuthProtocol, KeySource)>,
    /// Encrypts messages, if it is there; never without `auth`.
    pub privacy: Option<(PrivProtocol, KeySource)>,
    /// Name of the context; mostly empty.
    pub context_name: Box<[u8]>,
    /// Engine of the context; `None`: the device's own.
    pub context_engine: Option<Box<[u8]>>,
}

/// The source of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeySource {
    /// A password of at least one byte.
    Password(Secret),
    /// A localized key of the length that its protocol needs.
    Localized(Secret),
}

/// Values of `SnmpOptions` as they are written; `None`: the key is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct UserOptions {
    username: Option<Secret>,
    authkey: Option<Secret>,
    authpassword: Option<Secret>,
    authprotocol: Option<Secret>,
    contextengineid: Option<Secret>,
    contextname: Option<Secret>,
    privkey: Option<Secret>,
    privpassword: Option<Secret>,
    privprotocol: Option<Secret>,
}

impl UserOptions {
    /// Sets the value of a key; false if the key is none of a user.
    pub(super) fn set(&mut self, key: &[u8], value: &[u8]) -> bool {
        let place = match key {
            b"username" => &mut self.username,
            b"authkey" => &mut self.authkey,
            b"authpassword" => &mut self.authpassword,
            b"authprotocol" => &mut self.authprotocol,
            b"contextengineid" => &mut self.contextengineid,
            b"contextname" => &mut self.contextname,
            b"privkey" => &mut self.privkey,
            b"privpassword" => &mut self.privpassword,
            b"privprotocol" => &mut self.privprotocol,
            _ => return false,
        };
        *place = Some(Secret::new(value));
        true
    }

    /// The user. The error is a message without values.
    pub(super) fn user(&self) -> Result<User, String> {
        let name = self.username.as_ref().map_or(&b""[..], Secret::reveal);
        if !(1..=NAME_MAX).contains(&name.len()) {
            return Err("SNMPv3 needs SnmpOptions with a username of 1 to 32 bytes".into());
        }
        let auth = self.auth()?;
        let privacy = self.privacy()?;
        if privacy.is_some() && auth.is_none() {
            return Err(
                "SnmpOptions: privpassword and privkey need authpassword or authkey".into(),
            );
        }
        let context_name = self.contextname.as_ref().map_or(&b""[..], Secret::reveal);
        if context_name.len() > CONTEXT_MAX {
            return Err("SnmpOptions: contextname must have at most 255 bytes".into());
        }
        let context_engine = match &self.contextengineid {
            None => None,
            Some(text) => Some(
                digits(text)
                    .filter(|id| (5..=32).contains(&id.len()))
                    .ok_or(
                        "SnmpOptions: contextengineid must be 0x and 10 to 64 hexadecimal digits",
                    )?,
            ),
        };
        Ok(User {
            name: name.into(),
            auth,
            privacy,
            context_name: context_name.into(),
            context_engine: context_engine.map(Vec::into_boxed_slice),
        })
    }

    fn auth(&self) -> Result<Option<(AuthProtocol, KeySource)>, String> {
        let protocol = match &self.authprotocol {
            None => AuthProtocol::Md5,
            Some(name) => AuthProtocol::of_name(name.reveal()).ok_or_else(|| {
                format!(
                    "SnmpOptions: authprotocol must be one of {}",
                    AuthProtocol::NAMES
                )
            })?,
        };
        let source = source(
            "auth",
            &self.authpassword,
            &self.authkey,
            protocol.key_bytes(),
        )?;
        if source.is_none() && self.authprotocol.is_some() {
            return Err("SnmpOptions: authprotocol needs authpassword or authkey".into());
        }
        Ok(source.map(|source| (protocol, source)))
    }

    fn privacy(&self) -> Result<Option<(PrivProtocol, KeySource)>, String> {
        let protocol = match &self.privprotocol {
            None => PrivProtocol::Des,
            Some(name) => PrivProtocol::of_name(name.reveal()).ok_or_else(|| {
                format!(
                    "SnmpOptions: privprotocol must be one of {}",
                    PrivProtocol::NAMES
                )
            })?,
        };
        let source = source(
            "priv",
            &self.privpassword,
            &self.privkey,
            protocol.key_bytes(),
        )?;
        if source.is_none() && self.privprotocol.is_some() {
            return Err("SnmpOptions: privprotocol needs privpassword or privkey".into());
        }
        Ok(source.map(|source| (protocol, source)))
    }
}

/// The password or the key of `auth` or `priv`.
fn source(
    which: &str,
    password: &Option<Secret>,
    key: &Option<Secret>,
    key_bytes: usize,
) -> Result<Option<KeySource>, String> {
    match (password, key) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(format!(
            "SnmpOptions: {which}password and {which}key exclude each other"
        )),
        (Some(password), None) if password.reveal().is_empty() => {
            Err(format!("SnmpOptions: {which}password is empty"))
        }
        (Some(password), None) => Ok(Some(KeySource::Password(password.clone()))),
        (None, Some(text)) => {
            let key = digits(text).filter(|key| key.len() == key_bytes);
            let key = key.ok_or_else(|| {
                let digits = 2 * key_bytes;
                format!(
                    "SnmpOptions: {which}key must be 0x and {digits} hexadecimal digits for its {which}protocol"
                )
            })?;
            Ok(Some(KeySource::Localized(Secret::new(&key))))
        }
    }
}

/// The bytes of hexadecimal digits, with or without `0x` before them.
fn digits(text: &Secret) -> Option<Vec<u8>> {
    let text = text.reveal();
    let text = text
        .strip_prefix(b"0x")
        .or_else(|| text.strip_prefix(b"0X"))
        .unwrap_or(text);
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = text.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(options: &[(&str, &str)]) -> Result<User, String> {
        let mut all = UserOptions::default();
        for (key, value) in options {
            assert!(all.set(key.as_bytes(), value.as_bytes()), "{key}");
        }
        all.user()
    }

    #[test]
    fn users_are_read() {
        let plain = user(&[("username", "u")]).unwrap();
        assert_eq!(
            (&*plain.name, plain.auth, plain.privacy),
            (&b"u"[..], None, None)
        );
        let whole = user(&[
            ("username", "u"),
            ("authpassword", "p4ssword"),
            ("privkey", "0x000102030405060708090a0b0c0d0e0F"),
            ("contextname", "vlan-7"),
            ("contextengineid", "0x80000009fe"),
        ])
        .unwrap();
        let password = KeySource::Password(Secret::new(b"p4ssword"));
        assert_eq!(whole.auth, Some((AuthProtocol::Md5, password)));
        let key: Vec<u8> = (0..16).collect();
        let key = KeySource::Localized(Secret::new(&key));
        assert_eq!(whole.privacy, Some((PrivProtocol::Des, key)));
        assert_eq!(&*whole.context_name, b"vlan-7");
        assert_eq!(
            whole.context_engine.as_deref(),
            Some(&[0x80, 0, 0, 9, 0xfe][..])
        );
    }

    #[test]
    fn users_that_are_wrong_are_refused_without_their_values() {
        let long = "s3cr3t".repeat(60);
        for (options, message) in [
            (&[][..], "a username"),
            (&[("username", &*long)], "a username"),
            (&[("authprotocol", "sha")], "needs authpassword"),
            (
                &[("authprotocol", "s3cr3t"), ("authpassword", "s3cr3t")],
                "must be one of md5",
            ),
            (&[("authpassword", "")], "is empty"),
            (
                &[("authpassword", "s3cr3t"), ("authkey", "00")],
                "exclude each other",
            ),
            (&[("authkey", "s3cr3t")], "0x and 32 hexadecimal digits"),
            (
                &[("authkey", "0x00112233445566778899aabbccddee")],
                "0x and 32",
            ),
            (&[("privpassword", "s3cr3t")], "need authpassword"),
            (
                &[("authpassword", "s3cr3t"), ("privprotocol", "des")],
                "needs privpassword",
            ),
            (
                &[("authpassword", "s3cr3t"), ("privprotocol", "3des")],
                "must be one of des",
            ),
            (&[("contextengineid", "s3cr3t")], "10 to 64"),
            (&[("contextengineid", "0x80")], "10 to 64"),
            (&[("contextname", &*long)], "at most 255"),
        ] {
            let mut all = options.to_vec();
            if !all.iter().any(|of| of.0 == "username") && !message.contains("username") {
                all.push(("username", "u"));
            }
            let refusal = user(&all).unwrap_err();
            assert!(refusal.contains(message), "{options:?}: {refusal}");
            assert!(!refusal.contains("s3cr3t"), "{refusal}");
        }
    }
}
