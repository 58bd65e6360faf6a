//! Protection of a datagram's parts: none, a signature, or encryption. A datagram is plain parts, or a signature and plain
//! parts, or one encrypted part after the other.

use sha1::{Digest, Sha1};

use super::parts::{Bad, Parts, part};
use super::users::{Keys, USER_MAX, Users};

/// Protection that a listener requires, as collectd's `SecurityLevel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityLevel {
    /// Accepts every packet. With users, signatures are verified; without users, a signed packet counts as plain.
    #[default]
    None,
    /// Accepts signed and encrypted packets.
    Sign,
    /// Accepts encrypted packets.
    Encrypt,
}

/// The user of a packet, and bytes that differ between any two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The user's name, 1 to [`USER_MAX`] bytes.
    pub user: &'a [u8],
    /// The MAC of a signed packet, the initialisation vector of an encrypted one; for [`super::ReplayWindow`].
    pub unique: &'a [u8],
}

/// Verified protection of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection<'a> {
    /// No protection that was verified.
    Plain,
    /// The section has a valid signature of the user.
    Signed(Proof<'a>),
    /// The section was encrypted with the user's password.
    Encrypted(Proof<'a>),
}

/// Parts with one protection. Fields set in one section do not hold in another.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// Protection of the parts.
    pub protection: Protection<'a>,
    /// The parts, decrypted.
    pub payload: &'a [u8],
}

impl<'a> Section<'a> {
    /// Reads the parts.
    pub fn parts(&self) -> Parts<'a> {
        Parts::new(self.payload)
    }
}

/// Splits a datagram into sections and decrypts them in place. After an error there are no more sections.
#[derive(Debug)]
pub struct Datagram<'a, 'u> {
    rest: &'a mut [u8],
    level: SecurityLevel,
    users: Option<&'u Users>,
}

/// Bytes of a part SIGN_SHA256 without the user's name: head and MAC.
const SIGNED_HEAD: usize = part::HEAD + MAC;
/// Bytes of a part ENCR_AES256 without the user's name and the encrypted bytes.
const ENCRYPTED_HEAD: usize = part::HEAD + 2 + IV;
const MAC: usize = 32;
const IV: usize = 16;
/// SHA-1 of the parts, which is encrypted together with them.
const CHECKSUM: usize = 20;

impl<'a, 'u> Datagram<'a, 'u> {
    /// Reads a whole datagram. `users` is `None` if no AuthFile is configured.
    pub fn new(datagram: &'a mut [u8], level: SecurityLevel, users: Option<&'u Users>) -> Self {
        Datagram {
            rest: datagram,
            level,
            users,
        }
    }

    /// Bytes not read yet. Each section consumes at least one.
    pub fn rest_bytes(&self) -> usize {
        self.rest.len()
    }

    fn plain(&self, payload: &'a [u8]) -> Result<Section<'a>, Bad> {
        match self.level {
            SecurityLevel::None => Ok(Section {
                protection: Protection::Plain,
                payload,
            }),
            SecurityLevel::Sign | SecurityLevel::Encrypt => Err(Bad::Unprotected),
        }
    }

    /// Reads a signed section. The MAC covers the user's name and the rest of the datagram.
    fn signed(&self, rest: &'a [u8], size: usize) -> Result<Section<'a>, Bad> {
        let (head, payload) = rest.split_at_checked(size).ok_or(Bad::Cut)?;
        let (head, user) = head
            .split_at_checked(SIGNED_HEAD)
            .ok_or(Bad::SecurityLength)?;
        let user = checked_user(user)?;
        if self.level == SecurityLevel::Encrypt {
            return Err(Bad::Unprotected);
        }
        if self.users.is_none() {
            return self.plain(payload).map_err(|_| Bad::UnknownUser);
        }
        let mac = &head[part::HEAD..];
        match self.keys(user)?.verify(&rest[SIGNED_HEAD..], mac) {
            true => Ok(Section {
                protection: Protection::Signed(Proof { user, unique: mac }),
                payload,
            }),
            false => Err(Bad::Signature),
        }
    }

    /// Decrypts one part in place.
    fn encrypted(&self, whole: &'a mut [u8]) -> Result<Section<'a>, Bad> {
        let length = whole
            .get(part::HEAD..part::HEAD + 2)
            .ok_or(Bad::SecurityLength)?;
        let user_size = usize::from(u16::from_be_bytes([length[0], length[1]]));
        let (head, crypted) = whole
            .split_at_mut_checked(ENCRYPTED_HEAD + user_size)
            .ok_or(Bad::SecurityLength)?;
        let (user, iv) = head[part::HEAD + 2..].split_at(user_size);
        let user = checked_user(user)?;
        let iv = iv.as_array::<IV>().ok_or(Bad::SecurityLength)?;
        // Behind the checksum there must be at least one byte.
        if crypted.len() <= CHECKSUM {
            return Err(Bad::SecurityLength);
        }
        self.keys(user)?.crypt(iv, crypted);
        let (checksum, payload) = crypted.split_at(CHECKSUM);
        match same(checksum, &Sha1::digest(payload)) {
            true => Ok(Section {
                protection: Protection::Encrypted(Proof { user, unique: iv }),
                payload,
            }),
            false => Err(Bad::Checksum),
        }
    }

    fn keys(&self, user: &[u8]) -> Result<&'u Keys, Bad> {
        let users = self.users.ok_or(Bad::UnknownUser)?;
        users.keys(user).ok_or(Bad::UnknownUser)
    }
}

impl<'a> Iterator for Datagram<'a, '_> {
    type Item = Result<Section<'a>, Bad>;

    fn next(&mut self) -> Option<Result<Section<'a>, Bad>> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = std::mem::take(&mut self.rest);
        Some(match security_part(rest) {
            Some((part::SIGN_SHA256, size)) => self.signed(rest, size),
            Some((_, size)) => match rest.split_at_mut_checked(size) {
                None => Err(Bad::Cut),
                Some((whole, behind)) => {
                    let section = self.encrypted(whole);
                    if section.is_ok() {
                        self.rest = behind;
                    }
                    section
                }
            },
            None => self.plain(rest),
        })
    }
}

/// The type and the size of the first part, if it is a signature or an encrypted part.
fn security_part(input: &[u8]) -> Option<(u16, usize)> {
    let &[kind_high, kind_low, size_high, size_low] = input.first_chunk()?;
    let kind = u16::from_be_bytes([kind_high, kind_low]);
    let size = u16::from_be_bytes([size_high, size_low]);
    matches!(kind, part::SIGN_SHA256 | part::ENCR_AES256).then_some((kind, usize::from(size)))
}

fn checked_user(user: &[u8]) -> Result<&[u8], Bad> {
    match user.len() {
        1..=USER_MAX => Ok(user),
        _ => Err(Bad::SecurityLength),
    }
}

/// Compares in constant time.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differs = left
        .iter()
        .zip(right)
        .fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests;
