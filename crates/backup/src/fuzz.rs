//! Fuzzed functions: a manifest from anywhere.

use crate::hash::ContentHash;
use crate::manifest::Manifest;

/// Reads any bytes as a manifest, and as the lines of one with the right checksum.
pub fn fuzz_manifest(bytes: &[u8]) {
    let _refused = Manifest::decode(bytes);
    let lines = String::from_utf8_lossy(bytes);
    let text = format!("{lines}end {}\n", ContentHash::of(lines.as_bytes()));
    if let Ok(read) = Manifest::parse(&text) {
        assert_eq!(Manifest::parse(&read.text()), Ok(read));
    }
}
