//! The protocols of authentication and privacy, by the names that configurations have for them.

/// A hash function, from which the signature and all keys are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AuthProtocol {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-96.
    Sha1,
    /// HMAC-128-SHA-224.
    Sha224,
    /// HMAC-192-SHA-256.
    Sha256,
    /// HMAC-256-SHA-384.
    Sha384,
    /// HMAC-384-SHA-512.
    Sha512,
}

impl AuthProtocol {
    /// Names in a message that lists them.
    pub const NAMES: &'static str = "md5, sha, sha224, sha256, sha384 and sha512";

    /// The protocol of a name in any case, with or without a hyphen.
    pub fn of_name(name: &[u8]) -> Option<AuthProtocol> {
        Some(match plain(name).as_slice() {
            b"md5" => AuthProtocol::Md5,
            b"sha" | b"sha1" => AuthProtocol::Sha1,
            b"sha224" => AuthProtocol::Sha224,
            b"sha256" => AuthProtocol::Sha256,
            b"sha384" => AuthProtocol::Sha384,
            b"sha512" => AuthProtocol::Sha512,
            _ => return None,
        })
    }

    /// Bytes of a key.
    pub fn key_bytes(self) -> usize {
        match self {
            AuthProtocol::Md5 => 16,
            AuthProtocol::Sha1 => 20,
            AuthProtocol::Sha224 => 28,
            AuthProtocol::Sha256 => 32,
            AuthProtocol::Sha384 => 48,
            AuthProtocol::Sha512 => 64,
        }
    }

    /// Bytes of a signature in a message.
    pub(super) fn signature_bytes(self) -> usize {
        match self {
            AuthProtocol::Md5 | AuthProtocol::Sha1 => 12,
            AuthProtocol::Sha224 => 16,
            AuthProtocol::Sha256 => 24,
            AuthProtocol::Sha384 => 32,
            AuthProtocol::Sha512 => 48,
        }
    }
}

/// A cipher, and the way in which its key is made longer than the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrivProtocol {
    /// CBC-DES.
    Des,
    /// CFB128-AES-128.
    Aes128,
    /// AES-192 with keys extended as Blumenthal's draft has it.
    Aes192,
    /// AES-256 with keys extended as Blumenthal's draft has it.
    Aes256,
    /// AES-192 with keys extended as Reeder's draft has it, which Cisco uses.
    Aes192Reeder,
    /// AES-256 with keys extended as Reeder's draft has it, which Cisco uses.
    Aes256Reeder,
}

impl PrivProtocol {
    /// Names in a message that lists them.
    pub const NAMES: &'static str = "des, aes, aes192, aes256, aes192c and aes256c";

    /// The protocol of a name in any case, with or without a hyphen.
    pub fn of_name(name: &[u8]) -> Option<PrivProtocol> {
        Some(match plain(name).as_slice() {
            b"des" => PrivProtocol::Des,
            b"aes" | b"aes128" => PrivProtocol::Aes128,
            b"aes192" => PrivProtocol::Aes192,
            b"aes256" => PrivProtocol::Aes256,
            b"aes192c" => PrivProtocol::Aes192Reeder,
            b"aes256c" => PrivProtocol::Aes256Reeder,
            _ => return None,
        })
    }

    /// Bytes of a key; that of DES includes what its initialization vectors are made from.
    pub fn key_bytes(self) -> usize {
        match self {
            PrivProtocol::Des | PrivProtocol::Aes128 => 16,
            PrivProtocol::Aes192 | PrivProtocol::Aes192Reeder => 24,
            PrivProtocol::Aes256 | PrivProtocol::Aes256Reeder => 32,
        }
    }
}

fn plain(name: &[u8]) -> Vec<u8> {
    let kept = name.iter().filter(|byte| **byte != b'-');
    kept.map(u8::to_ascii_lowercase).collect()
}
