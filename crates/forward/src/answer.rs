//! Answers of a receiver, and their meaning for the request.

use std::time::Duration;

use kymo_wire::remote_write::WriteVersion;
use kymo_wire::remote_write::http::is_tried_again;

/// An answer, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceiverAnswer {
    /// The status.
    pub(crate) status: u16,
    /// Samples that the receiver says it wrote.
    pub(crate) written: Option<u64>,
    /// Time that the receiver wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Status and begin of the text, for a message.
    pub(crate) why: String,
}

/// Fate of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The receiver has it.
    Taken,
    /// The receiver does not know 2.0: the samples go out again by 1.0.
    Older,
    /// The receiver never takes it, but for this number of samples.
    Refused {
        /// Samples that it wrote all the same.
        written: u64,
        /// The reason.
        why: String,
    },
    /// The receiver takes it later, maybe.
    Later {
        /// The reason.
        why: String,
        /// Time that the receiver wants to be left alone.
        after: Option<Duration>,
    },
}

/// Judges an answer to a request of this version. A receiver of 2.0 says how many samples it wrote in each answer to a
/// message that it has read; one that knows 1.0 only may answer 204 to a message of which it has read nothing.
pub(crate) fn judge(version: WriteVersion, answer: ReceiverAnswer) -> Verdict {
    let ReceiverAnswer {
        status,
        written,
        retry_after,
        why,
    } = answer;
    let is_silent = version == WriteVersion::V2 && written.is_none();
    match status {
        415 if version == WriteVersion::V2 => Verdict::Older,
        200..=299 if is_silent => Verdict::Older,
        200..=299 => Verdict::Taken,
        // Whoever may not write, or wrote to another place, did not meet a reader of messages.
        400..=499 if is_silent && ![401, 403, 404, 405, 413, 429].contains(&status) => {
            Verdict::Older
        }
        300..=399 => Verdict::Later {
            why: format!("{why}; the URL behind the redirect has to stand in kymo.toml"),
            after: None,
        },
        _ if is_tried_again(status) => Verdict::Later {
            why,
            after: retry_after,
        },
        _ => Verdict::Refused {
            written: written.unwrap_or(0),
            why,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_judged() {
        use WriteVersion::{V1, V2};
        let later = |after: Option<u64>| Verdict::Later {
            why: "x".into(),
            after: after.map(Duration::from_secs),
        };
        let refused = |written| Verdict::Refused {
            written,
            why: "x".into(),
        };
        for (version, status, written, retry_after, expected) in [
            (V1, 204, None, None, Verdict::Taken),
            (V1, 200, None, None, Verdict::Taken),
            (V2, 204, Some(7), None, Verdict::Taken),
            (V2, 204, None, None, Verdict::Older),
            (V2, 415, None, None, Verdict::Older),
            (V2, 415, Some(0), None, Verdict::Older),
            (V1, 415, None, None, refused(0)),
            (V2, 400, None, None, Verdict::Older),
            (V2, 400, Some(3), None, refused(3)),
            (V1, 400, None, None, refused(0)),
            (V2, 401, None, None, refused(0)),
            (V2, 404, None, None, refused(0)),
            (V2, 413, None, None, refused(0)),
            (V1, 429, None, Some(9), later(Some(9))),
            (V2, 429, None, Some(9), later(Some(9))),
            (V2, 500, None, None, later(None)),
            (V1, 503, None, Some(1), later(Some(1))),
        ] {
            let answer = ReceiverAnswer {
                status,
                written,
                retry_after: retry_after.map(Duration::from_secs),
                why: "x".into(),
            };
            assert_eq!(judge(version, answer), expected, "{version:?} {status}");
        }
        let moved = ReceiverAnswer {
            status: 301,
            ..ReceiverAnswer::default()
        };
        assert!(matches!(judge(V1, moved), Verdict::Later { .. }));
    }
}
