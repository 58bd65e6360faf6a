//! The keeper's protocol: writing a decoded message again must give the same bytes.

use crate::keeper::{Answer, HEAD, KeeperRequest, VERSION};

/// Reads any bytes as a request and as an answer.
pub fn fuzz_keeper(input: &[u8]) {
    if let Ok(request) = KeeperRequest::read(input) {
        assert_eq!(&request.frame()[HEAD..], input, "a request changed");
    }
    if let Ok(answer) = Answer::read(input) {
        // Texts for people need not be UTF-8 when they arrive.
        let again = answer.frame();
        assert!(
            matches!(answer, Answer::Refused(_) | Answer::Taken(_)) || &again[HEAD..] == input,
            "an answer changed"
        );
    }
}

/// Cuts an input into frames of the protocol, so that more inputs pass the checks of lengths: two bytes give the
/// length of each frame.
pub fn keeper_frames(mut rest: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length) % 700).min(behind.len());
        let (body, behind) = behind.split_at(length);
        out.extend((body.len() as u32 + 1).to_le_bytes());
        out.push(VERSION);
        out.extend(body);
        rest = behind;
    }
    out
}
