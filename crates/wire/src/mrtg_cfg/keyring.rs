//! Keys of users for engines, made of their passwords or known.

use std::collections::HashMap;

use super::secret::Secret;
use super::user::{KeySource, User};
use crate::snmp::usm::{AuthProtocol, Key, UsmKeys};

/// Keys of passwords, each of which takes a millisecond or more. Devices with one password share its key.
#[derive(Default)]
pub struct Keyring(HashMap<(AuthProtocol, Secret), Key>);

impl Keyring {
    /// The localized key of a source.
    fn localized(&mut self, protocol: AuthProtocol, source: &KeySource, engine: &[u8]) -> Key {
        let password = match source {
            KeySource::Localized(key) => return Key::new(key.reveal()),
            KeySource::Password(password) => password,
        };
        let place = self.0.entry((protocol, password.clone()));
        let key = place.or_insert_with(|| match Key::of_password(protocol, password.reveal()) {
            Some(key) => key,
            None => unreachable!("BUG: an empty password"),
        });
        key.localized(protocol, engine)
    }

    /// The keys of a user; `None`: its messages are not signed.
    pub fn keys(&mut self, user: &User, engine: &[u8]) -> Option<UsmKeys> {
        let (auth, source) = user.auth.as_ref()?;
        let key = self.localized(*auth, source, engine);
        let private = user.privacy.as_ref().map(|(protocol, source)| {
            let key = self.localized(*auth, source, engine);
            (*protocol, key.extended(*auth, *protocol, engine))
        });
        let private = private.as_ref().map(|(protocol, key)| (*protocol, key));
        match UsmKeys::new((*auth, &key), private) {
            Some(keys) => Some(keys),
            None => unreachable!("BUG: a key that is too short"),
        }
    }
}
