//! Entry points for fuzzing.

use super::delay::retry_after;
use super::rrdcached::fuzz_replies;

/// Replies of a daemon of rrdcached's protocol, and the header Retry-After of a receiver of remote write.
pub fn fuzz_receivers(input: &[u8]) {
    fuzz_replies(input);
    if let Ok(header) = std::str::from_utf8(input) {
        let _pause = retry_after(header, 1_700_000_000);
    }
}
