//! The ciphers: DES in CBC mode (RFC 3414, 8.1.1), AES in CFB mode (RFC 3826, 3.1). Messages are changed in place.

use aes::{Aes128Enc, Aes192Enc, Aes256Enc};
use cbc::cipher::{
    Array, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit,
    consts::U16,
};
use des::Des;

use super::protocols::PrivProtocol;

/// Bytes of the salt in a message.
pub(super) const SALT_BYTES: usize = 8;
/// DES encrypts blocks of this size.
const DES_BLOCK_BYTES: usize = 8;

/// Boots and time of the engine in a message, and its salt.
#[derive(Clone, Copy)]
pub(super) struct Nonce {
    pub(super) boots: u32,
    pub(super) time_s: u32,
    pub(super) salt: [u8; SALT_BYTES],
}

/// A cipher with its key.
pub(super) enum Cipher {
    Des { key: Des, pre_iv: [u8; 8] },
    Aes128(Aes128Enc),
    Aes192(Aes192Enc),
    Aes256(Aes256Enc),
}

impl Cipher {
    /// `None`: the key is shorter than [`PrivProtocol::key_bytes`].
    pub(super) fn new(protocol: PrivProtocol, key: &[u8]) -> Option<Cipher> {
        let key = key.get(..protocol.key_bytes())?;
        Some(match protocol {
            PrivProtocol::Des => {
                let (key, pre_iv) = key.split_first_chunk::<8>()?;
                Cipher::Des {
                    key: Des::new_from_slice(key).ok()?,
                    pre_iv: pre_iv.try_into().ok()?,
                }
            }
            PrivProtocol::Aes128 => Cipher::Aes128(Aes128Enc::new_from_slice(key).ok()?),
            PrivProtocol::Aes192 | PrivProtocol::Aes192Reeder => {
                Cipher::Aes192(Aes192Enc::new_from_slice(key).ok()?)
            }
            PrivProtocol::Aes256 | PrivProtocol::Aes256Reeder => {
                Cipher::Aes256(Aes256Enc::new_from_slice(key).ok()?)
            }
        })
    }

    /// Bytes of an encrypted text.
    pub(super) fn padded_bytes(&self, bytes: usize) -> usize {
        match self {
            Cipher::Des { .. } => bytes.next_multiple_of(DES_BLOCK_BYTES),
            Cipher::Aes128(_) | Cipher::Aes192(_) | Cipher::Aes256(_) => bytes,
        }
    }

    /// Encrypts a text of [`Cipher::padded_bytes`].
    pub(super) fn encrypt(&self, nonce: &Nonce, text: &mut [u8]) {
        match self {
            Cipher::Des { key, pre_iv } => {
                let iv = Array(des_iv(pre_iv, nonce));
                let (blocks, _) = Array::slice_as_chunks_mut(text);
                cbc::Encryptor::<&Des>::inner_iv_init(key, &iv).encrypt_blocks(blocks);
            }
            Cipher::Aes128(key) => encrypt_aes(key, nonce, text),
            Cipher::Aes192(key) => encrypt_aes(key, nonce, text),
            Cipher::Aes256(key) => encrypt_aes(key, nonce, text),
        }
    }

    /// Decrypts a text; false if it has a length that no encrypted text has.
    pub(super) fn decrypt(&self, nonce: &Nonce, text: &mut [u8]) -> bool {
        match self {
            Cipher::Des { key, pre_iv } => {
                let iv = Array(des_iv(pre_iv, nonce));
                let (blocks, []) = Array::slice_as_chunks_mut(text) else {
                    return false;
                };
                cbc::Decryptor::<&Des>::inner_iv_init(key, &iv).decrypt_blocks(blocks);
            }
            Cipher::Aes128(key) => decrypt_aes(key, nonce, text),
            Cipher::Aes192(key) => decrypt_aes(key, nonce, text),
            Cipher::Aes256(key) => decrypt_aes(key, nonce, text),
        }
        true
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        if let Cipher::Des { pre_iv, .. } = self {
            zeroize::Zeroize::zeroize(pre_iv);
        }
    }
}

fn des_iv(pre_iv: &[u8; 8], nonce: &Nonce) -> [u8; 8] {
    std::array::from_fn(|at| pre_iv[at] ^ nonce.salt[at])
}

fn aes_iv(nonce: &Nonce) -> Array<u8, U16> {
    let [boots, time] = [nonce.boots, nonce.time_s].map(u32::to_be_bytes);
    let mut iv = [0; 16];
    iv[..4].copy_from_slice(&boots);
    iv[4..8].copy_from_slice(&time);
    iv[8..].copy_from_slice(&nonce.salt);
    Array(iv)
}

fn encrypt_aes<C>(key: &C, nonce: &Nonce, text: &mut [u8])
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    cfb_mode::Encryptor::<&C>::inner_iv_init(key, &aes_iv(nonce)).encrypt(text);
}

fn decrypt_aes<C>(key: &C, nonce: &Nonce, text: &mut [u8])
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    cfb_mode::Decryptor::<&C>::inner_iv_init(key, &aes_iv(nonce)).decrypt(text);
}
