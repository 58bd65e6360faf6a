//! What protects the parts of a datagram: nothing, a signature over all of them, or encryption. A datagram is either plain
//! parts, or a signature and plain parts, or encrypted parts one behind the other.

use sha1::{Digest, Sha1};

use super::parts::{Bad, Parts, part};
use super::users::{Keys, USER_MAX, Users};

/// What a listener asks for, as collectd's `SecurityLevel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecurityLevel {
    /// Takes all. Signatures are verified if there are users; without users a signed packet counts as a plain one.
    #[default]
    None,
    /// Takes what is signed or encrypted.
    Sign,
    /// Takes what is encrypted.
    Encrypt,
}

/// Whose packet it is, and what is never the same in two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The user's name, 1 to [`USER_MAX`] bytes.
    pub user: &'a [u8],
    /// The MAC of what is signed, the initialisation vector of what is encrypted: for [`super::ReplayWindow`].
    pub unique: &'a [u8],
}

/// What is known of who made a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection<'a> {
    /// Nothing.
    Plain,
    /// The user's signature was right.
    Signed(Proof<'a>),
    /// It was encrypted with the user's password.
    Encrypted(Proof<'a>),
}

/// Parts that are protected in one way. Nothing that they say holds in another section.
#[derive(Clone, Copy, Debug)]
pub struct Section<'a> {
    /// How.
    pub protection: Protection<'a>,
    /// The parts, decrypted.
    pub payload: &'a [u8],
}

impl<'a> Section<'a> {
    /// The parts.
    pub fn parts(&self) -> Parts<'a> {
        Parts::new(self.payload)
    }
}

/// The sections of a datagram, which is decrypted where it lies. After an error there is nothing more.
#[derive(Debug)]
pub struct Datagram<'a, 'u> {
    rest: &'a mut [u8],
    level: SecurityLevel,
    users: Option<&'u Users>,
}

/// Bytes of a part SIGN_SHA256 without the user's name: head and MAC.
const SIGNED_HEAD: usize = part::HEAD + MAC;
/// Bytes of a part ENCR_AES256 without the user's name and what is encrypted.
const ENCRYPTED_HEAD: usize = part::HEAD + 2 + IV;
const MAC: usize = 32;
const IV: usize = 16;
/// SHA-1, before the parts, encrypted with them.
const CHECKSUM: usize = 20;

impl<'a, 'u> Datagram<'a, 'u> {
    /// Of a whole datagram. `users`: none, if no AuthFile is configured.
    pub fn new(datagram: &'a mut [u8], level: SecurityLevel, users: Option<&'u Users>) -> Self {
        Datagram {
            rest: datagram,
            level,
            users,
        }
    }

    /// Bytes that were not looked at yet. Each section takes at least one.
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

    /// The MAC is of the user's name and all that follows, to the end of the datagram.
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

    /// One part; `behind` it may be others.
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
        // At least one byte of a part.
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

/// The type and the size of the first part, if it is a signature or encrypted.
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

/// Takes equally long wherever they differ.
fn same(left: &[u8], right: &[u8]) -> bool {
    let differs = left
        .iter()
        .zip(right)
        .fold(0, |all, (left, right)| all | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests;
