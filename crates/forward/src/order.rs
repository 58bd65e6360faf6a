//! The guardian's order: receivers and their series, without a file to read.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kymo_scrape::{Credentials, Secret, TlsTexts};
use serde::{Deserialize, Serialize};

use super::address::{HostPort, RrdcachedAddress};

/// Receivers at most: as many as the keeper has registered tails.
pub const TARGETS_MAX: usize = 16;
/// In front of the names of tails that this process registers.
const TAIL_PREFIX: &str = "forward-";
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
    /// Address of the receiver, and the protocol that it speaks.
    pub way: ForwardWay,
    /// Selectors, one of which has to match a series; none: all series go.
    pub selectors: Vec<String>,
}

/// Protocols of receivers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ForwardWay {
    /// Prometheus' remote write.
    RemoteWrite(RemoteWriteWay),
    /// collectd's binary protocol.
    Collectd(CollectdWay),
    /// rrdcached's protocol.
    Rrdcached(RrdcachedWay),
}

/// A receiver of remote write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteWriteWay {
    /// URL of the receiver.
    pub url: String,
    /// Milliseconds that a request may take.
    pub timeout_ms: u64,
    /// Labels of series that have none of that name.
    pub labels: BTreeMap<String, String>,
    /// Names of labels that do not go out.
    pub drop_labels: Vec<String>,
    /// Credentials that the receiver is shown.
    pub credentials: Credentials,
    /// Certificates.
    pub tls: TlsTexts,
}

/// A receiver of collectd's datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectdWay {
    /// Host and port.
    pub address: HostPort,
    /// Protection of packets.
    pub protection: PacketProtection,
    /// Most packets a second.
    pub packets_per_second: u32,
}

/// A receiver of rrdcached's protocol.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RrdcachedWay {
    /// Where it listens.
    pub address: RrdcachedAddress,
    /// Milliseconds that an answer may take.
    pub timeout_ms: u64,
    /// Where this kymo speaks the protocol itself; `None`: nowhere.
    pub own: Option<RrdcachedAddress>,
}

/// Protection of packets, as collectd's `SecurityLevel`, with a user of the receiver's AuthFile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum PacketProtection {
    /// None.
    #[default]
    Plain,
    /// HMAC-SHA-256.
    Signed {
        /// Name of the user.
        user: String,
        /// Password of the user.
        password: Secret,
    },
    /// AES-256-OFB.
    Encrypted {
        /// Name of the user.
        user: String,
        /// Password of the user.
        password: Secret,
    },
}

/// True for names of receivers' tails.
pub fn is_tail_name(name: &str) -> bool {
    name.starts_with(TAIL_PREFIX)
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
