//! Users that may sign or encrypt, and the keys derived from their passwords: the password itself for signing, its SHA-256
//! for encryption. Passwords are not kept.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use aes::Aes256Enc;
use hmac::{Hmac, KeyInit, Mac};
use ofb::cipher::{InnerIvInit, StreamCipher};
use ofb::{Ofb, OfbCore};
use sha2::{Digest, Sha256};

/// Longest name of a user, in bytes.
pub const USER_MAX: usize = 64;

/// The users of one AuthFile.
#[derive(Clone, Default)]
pub struct Users {
    by_name: BTreeMap<Box<[u8]>, Keys>,
}

/// The keys derived from one user's password.
#[derive(Clone)]
pub(super) struct Keys {
    mac: Hmac<Sha256>,
    cipher: Aes256Enc,
}

impl fmt::Debug for Users {
    /// Shows only the names, no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.names().map(|name| name.escape_ascii().to_string());
        f.debug_set().entries(names).finish()
    }
}

impl Users {
    /// Adds a user; `Err` has the reason of a refusal. A second password for a name is refused.
    pub fn add(&mut self, name: &[u8], password: &[u8]) -> Result<(), &'static str> {
        if name.is_empty() || name.len() > USER_MAX {
            return Err("a user's name has 1 to 64 bytes");
        }
        match self.by_name.entry(name.into()) {
            Entry::Occupied(_) => Err("this user was there before"),
            Entry::Vacant(place) => {
                place.insert(Keys::new(password));
                Ok(())
            }
        }
    }

    /// Number of users.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True if there is no user.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The names of the users, sorted.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.by_name.keys().map(|name| &**name)
    }

    pub(super) fn keys(&self, name: &[u8]) -> Option<&Keys> {
        self.by_name.get(name)
    }
}

impl Keys {
    pub(super) fn new(password: &[u8]) -> Keys {
        let Ok(mac) = Hmac::new_from_slice(password) else {
            unreachable!("BUG: HMAC takes keys of any length")
        };
        Keys {
            mac,
            cipher: Aes256Enc::new(&Sha256::digest(password)),
        }
    }

    /// True if `mac` is the MAC of `message`, compared in constant time. A MAC of other than 32 bytes is never right.
    pub(super) fn verify(&self, message: &[u8], mac: &[u8]) -> bool {
        let made = self.mac.clone().chain_update(message);
        made.verify_slice(mac).is_ok()
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; 32] {
        let made = self.mac.clone().chain_update(message);
        made.finalize().into_bytes().into()
    }

    /// AES-256 in OFB mode: the same function encrypts and decrypts.
    pub(super) fn crypt(&self, iv: &[u8; 16], bytes: &mut [u8]) {
        let mut stream = Ofb::from_core(OfbCore::inner_iv_init(&self.cipher, iv.into()));
        stream.apply_keystream(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectd::hex::hex;

    /// RFC 4231, case 2. A MAC of another length is refused, even if its beginning is right.
    #[test]
    fn macs_are_hmac_sha256_and_of_32_bytes() {
        let keys = Keys::new(b"Jefe");
        let message = b"what do ya want for nothing?";
        let mac = hex("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_eq!(keys.sign(message).to_vec(), mac);
        let longer: Vec<u8> = mac.iter().chain(&mac).copied().collect();
        for size in 0..=64 {
            assert_eq!(keys.verify(message, &longer[..size]), size == 32, "{size}");
        }
        for bit in 0..256 {
            let mut forged = mac.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!keys.verify(message, &forged), "bit {bit}");
        }
    }

    /// Made with `openssl enc -aes-256-ofb`, key SHA-256 of `foo`.
    #[test]
    fn encryption_is_aes_256_ofb() {
        let keys = Keys::new(b"foo");
        let iv: [u8; 16] = std::array::from_fn(|at| at as u8);
        let mut bytes = b"forty bytes of a text that is encrypted.".to_vec();
        keys.crypt(&iv, &mut bytes);
        assert_eq!(bytes, hex(OPENSSLS));
        keys.crypt(&iv, &mut bytes);
        assert_eq!(bytes, b"forty bytes of a text that is encrypted.");
    }

    const OPENSSLS: &str =
        "210d116bb4df9706fc6f7ad6b4ef0dd63d5028ebf6052a30fb6f1a532d52cca667a4bf52ca386799";

    #[test]
    fn a_user_has_one_password() {
        let mut users = Users::default();
        assert_eq!(users.add(b"b", b"x"), Ok(()));
        assert_eq!(users.add(b"a", b""), Ok(()));
        assert!(users.add(b"b", b"y").is_err());
        assert!(users.add(b"", b"y").is_err());
        assert!(users.add(&[b'a'; 65], b"y").is_err());
        assert_eq!(users.add(&[b'a'; 64], b"y"), Ok(()));
        assert_eq!(users.len(), 3);
        assert!(
            users
                .keys(b"b")
                .is_some_and(|keys| keys.verify(b"m", &Keys::new(b"x").sign(b"m")))
        );
        assert!(users.keys(b"c").is_none());
        assert!(format!("{users:?}").starts_with("{\"a\", "));
    }
}
