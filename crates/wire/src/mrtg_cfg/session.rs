//! How a device is asked: address, version, community, patience. Readings of one session share it.

use super::secret::Secret;
use crate::snmp::Version;
use std::net::Ipv6Addr;

/// What readings of a device have in common. Two readings have the same session exactly if all of this is equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Where.
    pub host: Host,
    /// UDP port; 161 unless said.
    pub port: u16,
    /// Address or name to send from.
    pub local_host: Option<Box<str>>,
    /// Port to send from.
    pub local_port: Option<u16>,
    /// With what.
    pub community: Secret,
    /// v1 unless said; also where 3 is said without `EnableSnmpV3`, as in MRTG.
    pub version: Version,
    /// Seconds until the first attempt is given up; 2 unless said.
    pub timeout_s: f64,
    /// Packets sent at most for a request, the first one included; 5 unless said. MRTG calls them retries.
    pub attempts: u32,
    /// Factor by which an attempt waits longer than the one before; 1 unless said.
    pub backoff: f64,
    /// Rows of a GETBULK; 12 unless said.
    pub max_repetitions: u32,
    /// Whether walks may use GETBULK (v2c only).
    pub use_getbulk: bool,
    /// Request ids have 16 bits.
    pub use_16bit_ids: bool,
    /// Replies from other addresses are taken, as MRTG does unless `SnmpOptions` say otherwise.
    pub lenient_address: bool,
    /// Replies from other ports are taken, as MRTG does unless `SnmpOptions` say otherwise.
    pub lenient_port: bool,
    /// No IPv6 for this device: `EnableIPv6` is not `yes`, or `IPv4Only` is.
    pub ipv4_only: bool,
    /// Community, host and options as MRTG writes them behind one another: the key of its interface cache, and secret for
    /// the community in it.
    pub mrtg_key: Secret,
}

/// An address in brackets, or what else stands behind the `@`: a name, or an IPv4 address as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// `[2001:db8::1]`; `None`: what is in the brackets is no address, and nothing is asked.
    V6(Option<Ipv6Addr>),
    /// To be resolved unless it is an IPv4 address.
    Name(Box<str>),
}
