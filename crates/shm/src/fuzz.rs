//! Fuzzing: a reader reads a file of any bytes without panic, and keeps no more than the file has.

use crate::reader::fuzz_file;

/// A file of version 1.0.
const GOLDEN: &[u8] = include_bytes!("../tests/fixtures/shm-1.0");

/// A publisher's file: the input, or a good one with the bytes that the input says, each with its place before it.
pub fn fuzz_shm(input: &[u8]) {
    fuzz_file(input);
    let mut file = GOLDEN.to_vec();
    for edit in input.as_chunks::<3>().0 {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % file.len();
        file[at] = edit[2];
    }
    fuzz_file(&file);
}
