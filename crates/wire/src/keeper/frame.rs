//! Frames: a length, the protocol's version, a kind, a body.

/// Bytes of a frame's length.
pub const HEAD: usize = 4;
/// The version of the protocol.
pub const VERSION: u8 = 4;
/// Bytes of a question at most.
pub const QUESTION_MAX: usize = 1 << 20;
/// Bytes of an answer at most.
pub const ANSWER_MAX: usize = 64 << 20;

/// How many bytes follow a frame's length, if that is sound.
pub fn body_bytes(head: [u8; HEAD], most: usize) -> Result<usize, &'static str> {
    let bytes = u32::from_le_bytes(head) as usize;
    match bytes {
        0..2 => Err("has no kind"),
        _ if bytes > most => Err("is too long"),
        _ => Ok(bytes),
    }
}

/// A frame with this body.
pub(super) fn framed(kind: u8, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; HEAD];
    out.extend([VERSION, kind]);
    put(&mut out);
    let bytes = (out.len() - HEAD) as u32;
    out[..HEAD].copy_from_slice(&bytes.to_le_bytes());
    out
}
