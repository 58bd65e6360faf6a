//! The answer to a request: an `ExportMetricsServiceResponse`, which says of how many points nothing became.

use std::fmt::Write;

use super::model::OtlpCounts;
use crate::protobuf::{put_bytes, put_message, put_number};

/// Media type of request and answer. JSON, which OTLP has as well, is not read.
pub const MEDIA_TYPE: &str = "application/x-protobuf";

/// Appends the answer to a request that was read, whose status is 200 even if points were refused: a sender does not
/// send them again. Nothing is appended, and that is an answer as well, if all were taken.
pub fn put_response(out: &mut Vec<u8>, counts: &OtlpCounts) {
    let refused = counts.refused_points();
    if refused == 0 {
        return;
    }
    let mut text = String::from("not taken: ");
    for (at, (why, points)) in counts.reasons().enumerate() {
        let parted = if at > 0 { "; " } else { "" };
        // A `String` takes all that is written to it.
        let _ = write!(text, "{parted}{points} data points: {why}");
    }
    put_refused(out, refused, &text);
}

/// Appends the answer to a request with this number of refused data points, and the reasons for people.
pub fn put_refused(out: &mut Vec<u8>, refused: u64, why: &str) {
    put_message(out, 1, |out| {
        if refused > 0 {
            put_number(out, 1, refused);
        }
        put_bytes(out, 2, why.as_bytes());
    });
}

/// Appends the body of an answer whose status is an error: a `google.rpc.Status` with the reason for people.
pub fn put_status(out: &mut Vec<u8>, why: &str) {
    put_bytes(out, 2, why.as_bytes());
}

/// True if a request has the media type that is read.
pub fn is_protobuf(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(MEDIA_TYPE)
}
