//! What is fuzzed: a file of any bytes is read without panic, and a reader keeps no more than the file has.

use crate::reader::fuzz_file;

/// A publisher's file.
pub fn fuzz_shm(input: &[u8]) {
    fuzz_file(input);
}
