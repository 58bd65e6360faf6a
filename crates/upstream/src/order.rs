//! The guardian's order: the engine, without a file to read.

use kymo_scrape::{Credentials, TlsTexts};
use serde::{Deserialize, Serialize};

/// Memory that the process may have, in bytes: an answer as text and as numbers for each of a few clients, and labels.
pub const MEMORY_BYTES: u64 = 1 << 30;

/// Requests of HTTP that one question takes at most.
pub(crate) const REQUESTS_MAX: u64 = 8;
/// Most milliseconds that anybody waits for an answer: a bit less than a question of Prometheus' clients may take.
const ANSWER_MAX_MS: u64 = 25_000;

/// Milliseconds in which a question has an answer, if one of the engine may take `timeout_ms`.
pub fn answer_ms(timeout_ms: u64) -> u64 {
    timeout_ms.saturating_mul(REQUESTS_MAX).min(ANSWER_MAX_MS)
}

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UpstreamOrder {
    /// File descriptor of the clients' socket.
    pub listener: i32,
    /// The engine.
    pub target: UpstreamTarget,
}

/// The engine that is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UpstreamTarget {
    /// URL in front of `/api/v1`.
    pub url: String,
    /// Milliseconds that an answer may take.
    pub timeout_ms: u64,
    /// Labels that its series lose here.
    pub drop_labels: Vec<String>,
    /// Credentials that the engine is shown.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: TlsTexts,
}
