//! The guardian's order: receivers and their series, without a file to read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kymo_scrape::{Credentials, TlsTexts};
use serde::{Deserialize, Serialize};

/// Receivers at most: as many as the keeper has registered tails.
pub const TARGETS_MAX: usize = 16;
/// In front of the names of tails that this process registers.
pub(crate) const TAIL_PREFIX: &str = "forward-";
/// Memory of the process besides its receivers, in bytes.
const OWN_BYTES: u64 = 128 << 20;
/// Memory of a receiver: its series, and a reading of the journal.
const TARGET_BYTES: u64 = 1 << 30;

/// The guardian's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ForwardOrder {
    /// The keeper's socket for processes that write.
    pub keeper: PathBuf,
    /// The receivers.
    pub targets: Vec<ForwardTarget>,
}

/// A receiver and its series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForwardTarget {
    /// Name, by which the keeper knows what the receiver has already.
    pub name: String,
    /// URL of the receiver.
    pub url: String,
    /// Milliseconds that a request may take.
    pub timeout_ms: u64,
    /// Selectors, one of which has to match a series; none: all series go.
    pub selectors: Vec<String>,
    /// Labels of series that have none of that name.
    pub labels: BTreeMap<String, String>,
    /// Names of labels that do not go out.
    pub drop_labels: Vec<String>,
    /// Credentials that the receiver is shown.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: TlsTexts,
}

/// Name of the keeper's tail for a receiver.
pub fn tail_name(target: &str) -> String {
    format!("{TAIL_PREFIX}{target}")
}

/// Memory that the process may have.
pub fn memory_bytes(targets: usize) -> u64 {
    let targets = u64::try_from(targets).unwrap_or(u64::MAX);
    OWN_BYTES.saturating_add(TARGET_BYTES.saturating_mul(targets))
}
