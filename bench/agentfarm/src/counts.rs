//! Counts of requests and replies.

use std::fmt;
use std::ops::AddAssign;

/// Counts of one device, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Received datagrams.
    pub requests: u64,
    /// Names in the requests.
    pub varbinds: u64,
    /// Sent replies, including duplicates.
    pub replies: u64,
    /// Requests lost on purpose: by chance, by a dead device, or for too many varbinds.
    pub lost: u64,
    /// Datagrams that are not requests.
    pub malformed: u64,
    /// Requests with another community.
    pub strangers: u64,
    /// Replies with tooBig.
    pub too_big: u64,
    /// Requests of GETNEXT or GETBULK.
    pub walks: u64,
    /// Bytes of requests, without the headers of UDP and IP.
    pub bytes_in: u64,
    /// Bytes of replies, without those headers.
    pub bytes_out: u64,
    /// Arrival of the first request, nanoseconds since 1970; 0: there was none.
    pub first_ns: u64,
    /// Due time of the last reply, nanoseconds since 1970; 0: there was none.
    pub last_ns: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.requests += more.requests;
        self.varbinds += more.varbinds;
        self.replies += more.replies;
        self.lost += more.lost;
        self.malformed += more.malformed;
        self.strangers += more.strangers;
        self.too_big += more.too_big;
        self.walks += more.walks;
        self.bytes_in += more.bytes_in;
        self.bytes_out += more.bytes_out;
        self.first_ns = match (self.first_ns, more.first_ns) {
            (0, ns) | (ns, 0) => ns,
            (one, other) => one.min(other),
        };
        self.last_ns = self.last_ns.max(more.last_ns);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "requests {} varbinds {} replies {} lost {} malformed {} strangers {} too-big {} walks {} bytes-in {} bytes-out {}",
            self.requests,
            self.varbinds,
            self.replies,
            self.lost,
            self.malformed,
            self.strangers,
            self.too_big,
            self.walks,
            self.bytes_in,
            self.bytes_out
        )
    }
}
