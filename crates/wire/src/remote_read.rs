//! Prometheus' remote read as a server and as a client: requests, and both forms of answers, all samples in one message
//! or chunks in frames.
//!
//! A request has queries, each with a range of times and matchers. Samples are whole in one message with a block of
//! Snappy around it; frames have a checksum each, and carry chunks of one series in Gorilla's compression, so that
//! neither side has more than a frame in memory.

mod bits;
mod chunk;
mod frame;
mod request;
mod samples;
#[cfg(test)]
mod tests;

pub use chunk::{BadChunk, CHUNK_SAMPLES, read_chunk};
pub use frame::{BadFrame, ChunkedSeries, FRAME_BYTES, SeriesChunks, put_frames, take_frame};
pub use request::{
    BadRead, MatcherKind, ReadMatcher, ReadQuery, ReadRequest, ResponseForm, put_request,
};
pub use samples::{put_labels, put_result, put_sample, put_series};

/// Media type of an answer with samples; it is a block of Snappy.
pub const SAMPLES_TYPE: &str = "application/x-protobuf";
/// Media type of an answer in frames.
pub const FRAMES_TYPE: &str =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
/// Encoding of an answer with samples.
pub const SAMPLES_ENCODING: &str = "snappy";
