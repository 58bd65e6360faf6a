//! What came and what went.

use std::fmt;
use std::ops::AddAssign;

/// Of one device, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that came.
    pub requests: u64,
    /// Names in them.
    pub varbinds: u64,
    /// Replies that went, duplicates too.
    pub replies: u64,
    /// Requests that were lost on purpose: by chance, of a dead device, or of too many varbinds.
    pub lost: u64,
    /// Datagrams that are no request.
    pub malformed: u64,
    /// Requests of another community.
    pub strangers: u64,
    /// Replies that were tooBig.
    pub too_big: u64,
    /// Requests of GETNEXT or GETBULK.
    pub walks: u64,
    /// Requests as they came, without the heads of UDP and IP.
    pub bytes_in: u64,
    /// Replies likewise.
    pub bytes_out: u64,
    /// When the first request came, nanoseconds since 1970; 0: none did.
    pub first_ns: u64,
    /// When the last reply went, or was to go; 0: none was.
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
