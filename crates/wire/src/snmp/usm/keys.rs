//! Keys: from a password to a key of the user (RFC 3414, A.2), from that to the key for one engine (2.6), and from that to a key
//! that is long enough for a cipher.

use std::fmt;

use hmac::digest::Digest;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use zeroize::Zeroizing;

use super::cipher::Cipher;
use super::protocols::{AuthProtocol, PrivProtocol};

/// A password is repeated to this length before it is hashed.
const EXPANDED_BYTES: usize = 1 << 20;
/// The password is repeated to about this length, so that few pieces have to be hashed.
const PIECE_BYTES: usize = 4096;

/// A key, which is erased when it is dropped.
#[derive(Clone)]
pub struct Key(Zeroizing<Vec<u8>>);

impl Key {
    /// A key that is known, such as one that was localized elsewhere.
    pub fn new(bytes: &[u8]) -> Key {
        Key(Zeroizing::new(bytes.to_vec()))
    }

    /// The key of a user with this password, the same for all engines. Takes a millisecond or more. An empty password has none.
    pub fn of_password(protocol: AuthProtocol, password: &[u8]) -> Option<Key> {
        if password.is_empty() {
            return None;
        }
        let times = PIECE_BYTES.div_ceil(password.len());
        let piece = Zeroizing::new(password.repeat(times));
        let whole = std::iter::repeat_n(&piece[..], EXPANDED_BYTES / piece.len());
        let rest = &piece[..EXPANDED_BYTES % piece.len()];
        Some(hash(protocol, whole.chain([rest])))
    }

    /// The user's key for one engine.
    pub fn localized(&self, protocol: AuthProtocol, engine: &[u8]) -> Key {
        hash(protocol, [&self.0[..], engine, &self.0[..]])
    }

    /// A localized key of the length that a cipher needs.
    pub fn extended(self, auth: AuthProtocol, privacy: PrivProtocol, engine: &[u8]) -> Key {
        let mut whole = self;
        let mut last = whole.clone();
        while whole.0.len() < privacy.key_bytes() {
            last = match privacy {
                PrivProtocol::Aes192Reeder | PrivProtocol::Aes256Reeder => {
                    let Some(key) = Key::of_password(auth, &last.0) else {
                        unreachable!("BUG: a key without bytes")
                    };
                    key.localized(auth, engine)
                }
                PrivProtocol::Des
                | PrivProtocol::Aes128
                | PrivProtocol::Aes192
                | PrivProtocol::Aes256 => hash(auth, [&whole.0[..]]),
            };
            // A vector that grows leaves its bytes behind in freed memory.
            whole = Key(Zeroizing::new([&whole.0[..], &last.0[..]].concat()));
        }
        whole
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The keys of a user for one engine, ready to sign and to encrypt.
pub struct UsmKeys {
    signer: Box<dyn Signer>,
    pub(super) signature_bytes: usize,
    pub(super) cipher: Option<Cipher>,
}

impl UsmKeys {
    /// From localized keys. `None`: the key of privacy is too short for its cipher.
    pub fn new(
        auth: (AuthProtocol, &Key),
        privacy: Option<(PrivProtocol, &Key)>,
    ) -> Option<UsmKeys> {
        let cipher = match privacy {
            Some((protocol, key)) => Some(Cipher::new(protocol, &key.0)?),
            None => None,
        };
        let (protocol, key) = auth;
        Some(UsmKeys {
            signer: signer(protocol, &key.0),
            signature_bytes: protocol.signature_bytes(),
            cipher,
        })
    }

    /// True if messages are encrypted.
    pub fn has_privacy(&self) -> bool {
        self.cipher.is_some()
    }

    /// Signs a message whose signature consists of zeros.
    pub(super) fn sign(&self, packet: &mut [u8], at: usize) {
        let mut signature = [0; SIGNATURE_MAX];
        let signature = &mut signature[..self.signature_bytes];
        self.signer.sign(packet, signature);
        packet[at..at + signature.len()].copy_from_slice(signature);
    }

    /// True if the bytes at `at` are the signature of the message.
    pub(super) fn verifies(&self, packet: &[u8], at: usize) -> bool {
        let end = at + self.signature_bytes;
        let Some(signature) = packet.get(at..end) else {
            return false;
        };
        let zeros = [0; SIGNATURE_MAX];
        let parts = [&packet[..at], &zeros[..signature.len()], &packet[end..]];
        self.signer.verifies(parts, signature)
    }
}

impl fmt::Debug for UsmKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The longest signature, that of SHA-512.
pub(super) const SIGNATURE_MAX: usize = 48;

/// An HMAC with its key, of one of the hash functions.
trait Signer: Send + Sync {
    /// Writes the first bytes of the HMAC.
    fn sign(&self, message: &[u8], signature: &mut [u8]);
    /// Compares in constant time.
    fn verifies(&self, message: [&[u8]; 3], signature: &[u8]) -> bool;
}

impl<M: Mac + Clone + Send + Sync> Signer for M {
    fn sign(&self, message: &[u8], signature: &mut [u8]) {
        let whole = self.clone().chain_update(message).finalize().into_bytes();
        signature.copy_from_slice(&whole[..signature.len()]);
    }

    fn verifies(&self, message: [&[u8]; 3], signature: &[u8]) -> bool {
        let mut mac = self.clone();
        message.into_iter().for_each(|part| mac.update(part));
        mac.verify_truncated_left(signature).is_ok()
    }
}

fn signer(protocol: AuthProtocol, key: &[u8]) -> Box<dyn Signer> {
    match protocol {
        AuthProtocol::Md5 => Box::new(keyed::<Hmac<Md5>>(key)),
        AuthProtocol::Sha1 => Box::new(keyed::<Hmac<Sha1>>(key)),
        AuthProtocol::Sha224 => Box::new(keyed::<Hmac<Sha224>>(key)),
        AuthProtocol::Sha256 => Box::new(keyed::<Hmac<Sha256>>(key)),
        AuthProtocol::Sha384 => Box::new(keyed::<Hmac<Sha384>>(key)),
        AuthProtocol::Sha512 => Box::new(keyed::<Hmac<Sha512>>(key)),
    }
}

fn keyed<M: KeyInit>(key: &[u8]) -> M {
    let Ok(mac) = M::new_from_slice(key) else {
        unreachable!("BUG: HMAC takes keys of any length")
    };
    mac
}

fn hash<'p>(protocol: AuthProtocol, parts: impl IntoIterator<Item = &'p [u8]>) -> Key {
    match protocol {
        AuthProtocol::Md5 => hash_by::<Md5>(parts),
        AuthProtocol::Sha1 => hash_by::<Sha1>(parts),
        AuthProtocol::Sha224 => hash_by::<Sha224>(parts),
        AuthProtocol::Sha256 => hash_by::<Sha256>(parts),
        AuthProtocol::Sha384 => hash_by::<Sha384>(parts),
        AuthProtocol::Sha512 => hash_by::<Sha512>(parts),
    }
}

fn hash_by<'p, D: Digest>(parts: impl IntoIterator<Item = &'p [u8]>) -> Key {
    let mut digest = D::new();
    parts.into_iter().for_each(|part| digest.update(part));
    Key::new(&digest.finalize())
}
