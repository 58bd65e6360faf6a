//! Headers and statuses of a request by remote write, without a server: the message that a request has by its headers,
//! the status of its answer, and how many samples a receiver says it wrote.

use std::fmt;

use super::model::{WriteCounts, WriteVersion};
use super::refusal::BadWrite;
use super::snappy::BadSnappy;

/// The only media type there is.
pub const MEDIA_TYPE: &str = "application/x-protobuf";
/// The only encoding there is, a block and not a stream.
pub const CONTENT_ENCODING: &str = "snappy";
/// A sender says here which version it speaks. Receivers go by the content type alone.
pub const VERSION_HEADER: &str = "X-Prometheus-Remote-Write-Version";
/// How long a sender is to wait, in seconds; with 429 and 503.
pub const RETRY_AFTER_HEADER: &str = "Retry-After";

const PROTO_V1: &str = "prometheus.WriteRequest";
const PROTO_V2: &str = "io.prometheus.write.v2.Request";

/// Why a request is not read: 415.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsupported {
    /// Another media type, or another message.
    ContentType,
    /// Another compression than Snappy.
    Encoding,
}

impl Unsupported {
    /// For a message.
    pub fn why(self) -> &'static str {
        match self {
            Unsupported::ContentType => {
                "content type is not application/x-protobuf of prometheus.WriteRequest or io.prometheus.write.v2.Request"
            }
            Unsupported::Encoding => "content encoding is not snappy",
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why())
    }
}

impl WriteVersion {
    /// The message that a request has by its headers, `None` for those it lacks: as Prometheus does, no content type
    /// means 1.0 and no encoding means Snappy.
    pub fn of_headers(
        content_type: Option<&str>,
        content_encoding: Option<&str>,
    ) -> Result<WriteVersion, Unsupported> {
        let version = match content_type.map(str::trim) {
            None | Some("") => WriteVersion::V1,
            Some(text) => of_content_type(text).ok_or(Unsupported::ContentType)?,
        };
        let encoding = content_encoding.map_or("", str::trim);
        match encoding.is_empty() || encoding.eq_ignore_ascii_case(CONTENT_ENCODING) {
            true => Ok(version),
            false => Err(Unsupported::Encoding),
        }
    }

    /// The content type that a sender says.
    pub fn content_type(self) -> &'static str {
        match self {
            WriteVersion::V1 => MEDIA_TYPE,
            WriteVersion::V2 => "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        }
    }

    /// The version that a sender says, in [`VERSION_HEADER`].
    pub fn version_header(self) -> &'static str {
        match self {
            WriteVersion::V1 => "0.1.0",
            WriteVersion::V2 => "2.0.0",
        }
    }
}

/// A media type and its names of parameters are not case sensitive; values may be in quotes.
fn of_content_type(text: &str) -> Option<WriteVersion> {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next()?;
    if !media_type.eq_ignore_ascii_case(MEDIA_TYPE) {
        return None;
    }
    for parameter in parts.filter(|part| !part.is_empty()) {
        let (name, value) = parameter.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("proto") {
            return match value.trim().trim_matches('"') {
                PROTO_V1 => Some(WriteVersion::V1),
                PROTO_V2 => Some(WriteVersion::V2),
                _ => None,
            };
        }
    }
    Some(WriteVersion::V1)
}

/// How a request went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteOutcome {
    /// All of it is written.
    Written,
    /// Some of it or all of it never will be: the message or some of its series are not as they have to be, or samples
    /// are too old or in disorder. The rest may have been written. A sender drops the request.
    Invalid,
    /// Another method than POST.
    Method,
    /// The body is longer than a limit, packed or unpacked. A sender drops it.
    TooLong,
    /// The headers ask for another message or encoding. A sender may try again with other ones.
    Unsupported,
    /// The sender is to wait: a limit of its own, or too many at once. Nothing may be written, or writing it twice must
    /// be as good as once. Prometheus tries again only if it is configured to.
    TooMany,
    /// The store cannot write now. Nothing is written, and a sender has to try again.
    Unavailable,
    /// The store failed. A sender has to try again.
    Failed,
}

impl WriteOutcome {
    /// All of them.
    pub const ALL: [WriteOutcome; 8] = [
        WriteOutcome::Written,
        WriteOutcome::Invalid,
        WriteOutcome::Method,
        WriteOutcome::TooLong,
        WriteOutcome::Unsupported,
        WriteOutcome::TooMany,
        WriteOutcome::Unavailable,
        WriteOutcome::Failed,
    ];

    /// The outcome of a message of which the store took every sample that the reader gave. Native histograms are
    /// samples that this receiver does not take, so that a message with any is not written whole; exemplars are unknown
    /// to it.
    pub fn of_counts(counts: &WriteCounts) -> WriteOutcome {
        match counts.refused_series == 0 && counts.histograms == 0 {
            true => WriteOutcome::Written,
            false => WriteOutcome::Invalid,
        }
    }

    /// The status of the answer.
    pub fn status(self) -> u16 {
        match self {
            WriteOutcome::Written => 204,
            WriteOutcome::Invalid => 400,
            WriteOutcome::Method => 405,
            WriteOutcome::TooLong => 413,
            WriteOutcome::Unsupported => 415,
            WriteOutcome::TooMany => 429,
            WriteOutcome::Failed => 500,
            WriteOutcome::Unavailable => 503,
        }
    }
}

impl From<Unsupported> for WriteOutcome {
    fn from(_: Unsupported) -> WriteOutcome {
        WriteOutcome::Unsupported
    }
}

impl From<BadSnappy> for WriteOutcome {
    fn from(bad: BadSnappy) -> WriteOutcome {
        match bad {
            BadSnappy::Malformed => WriteOutcome::Invalid,
            BadSnappy::Size => WriteOutcome::TooLong,
        }
    }
}

impl From<BadWrite> for WriteOutcome {
    fn from(bad: BadWrite) -> WriteOutcome {
        match bad {
            BadWrite::Malformed => WriteOutcome::Invalid,
            BadWrite::Samples | BadWrite::Symbols => WriteOutcome::TooLong,
        }
    }
}

/// True if a sender sends a request again after an answer of that status: it has to after 5xx, it may after 429.
pub fn is_tried_again(status: u16) -> bool {
    status == 429 || (500..600).contains(&status)
}

/// How many of each were written. 2.0 demands the headers in each answer to a request that was understood, 1.0 allows
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Float samples.
    pub samples: u64,
    /// Native histograms.
    pub histograms: u64,
    /// Exemplars.
    pub exemplars: u64,
}

impl Written {
    /// Names of headers and their values.
    pub fn headers(self) -> [(&'static str, u64); 3] {
        [
            ("X-Prometheus-Remote-Write-Samples-Written", self.samples),
            (
                "X-Prometheus-Remote-Write-Histograms-Written",
                self.histograms,
            ),
            (
                "X-Prometheus-Remote-Write-Exemplars-Written",
                self.exemplars,
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_which_message() {
        let v1 = Ok(WriteVersion::V1);
        let v2 = Ok(WriteVersion::V2);
        let (no_type, no_encoding) = (Err(Unsupported::ContentType), Err(Unsupported::Encoding));
        for (content_type, encoding, expected) in [
            ("", "", v1),
            ("application/x-protobuf", "snappy", v1),
            (
                "application/x-protobuf;proto=prometheus.WriteRequest",
                "snappy",
                v1,
            ),
            (
                "application/x-protobuf;proto=io.prometheus.write.v2.Request",
                "snappy",
                v2,
            ),
            (
                " Application/X-Protobuf ; a=b; Proto=\"io.prometheus.write.v2.Request\" ;",
                "Snappy",
                v2,
            ),
            (
                "application/x-protobuf;proto=prometheus.writerequest",
                "snappy",
                no_type,
            ),
            (
                "application/x-protobuf;proto=io.prometheus.write.v3.Request",
                "snappy",
                no_type,
            ),
            ("application/x-protobuf;proto", "snappy", no_type),
            ("application/json", "snappy", no_type),
            ("application/x-protobuf2", "snappy", no_type),
            ("application/x-protobuf", "gzip", no_encoding),
            ("application/x-protobuf", "snappy, gzip", no_encoding),
            ("application/x-protobuf", "zstd", no_encoding),
        ] {
            let found = WriteVersion::of_headers(Some(content_type), Some(encoding));
            assert_eq!(found, expected, "{content_type} {encoding}");
        }
        assert_eq!(WriteVersion::of_headers(None, None), v1);
        for version in [WriteVersion::V1, WriteVersion::V2] {
            let said = Some(version.content_type());
            assert_eq!(
                WriteVersion::of_headers(said, Some(CONTENT_ENCODING)),
                Ok(version)
            );
        }
    }

    #[test]
    fn statuses_say_what_senders_do() {
        use WriteOutcome::*;
        for outcome in WriteOutcome::ALL {
            let again = matches!(outcome, TooMany | Unavailable | Failed);
            assert_eq!(is_tried_again(outcome.status()), again, "{outcome:?}");
        }
        let counts = WriteCounts {
            series: 1,
            samples: 2,
            exemplars: 3,
            ..WriteCounts::default()
        };
        assert_eq!(WriteOutcome::of_counts(&counts), Written);
        for counts in [
            WriteCounts {
                refused_series: 1,
                ..counts
            },
            WriteCounts {
                histograms: 1,
                ..counts
            },
        ] {
            assert_eq!(WriteOutcome::of_counts(&counts).status(), 400);
        }
    }

    #[test]
    fn faults_have_statuses() {
        for (outcome, status) in [
            (WriteOutcome::from(Unsupported::Encoding), 415),
            (WriteOutcome::from(BadSnappy::Malformed), 400),
            (WriteOutcome::from(BadSnappy::Size), 413),
            (WriteOutcome::from(BadWrite::Malformed), 400),
            (WriteOutcome::from(BadWrite::Samples), 413),
            (WriteOutcome::from(BadWrite::Symbols), 413),
        ] {
            assert_eq!(outcome.status(), status, "{outcome:?}");
        }
    }

    #[test]
    fn written_is_said_in_three_headers() {
        let written = super::Written {
            samples: 1,
            histograms: 2,
            exemplars: 3,
        };
        assert_eq!(written.headers().map(|(_, count)| count), [1, 2, 3]);
        assert!(
            written
                .headers()
                .iter()
                .all(|(name, _)| name.ends_with("-Written"))
        );
    }
}
