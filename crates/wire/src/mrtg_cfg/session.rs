//! SNMP parameters of a device: address, version, community, timeouts. Readings with equal parameters share a session.

use super::secret::Secret;
use super::user::User;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// Parameters of a device. Two readings share a session only if all of these are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Address of the device.
    pub host: Host,
    /// UDP port; 161 by default.
    pub port: u16,
    /// Address or name to send from.
    pub local_host: Option<Box<str>>,
    /// Port to send from.
    pub local_port: Option<u16>,
    /// Community of versions 1 and 2c.
    pub community: Secret,
    /// v1 by default. As in MRTG, also v1 if the target has version 3 without `EnableSnmpV3`.
    pub access: Access,
    /// Timeout of the first attempt in seconds; 2 by default.
    pub timeout_s: f64,
    /// Most packets sent for a request, the first one included; 5 by default. MRTG calls them retries.
    pub attempts: u32,
    /// Factor from the timeout of an attempt to that of the next one; 1 by default.
    pub backoff: f64,
    /// Rows of a GETBULK; 12 by default.
    pub max_repetitions: u32,
    /// True if walks may use GETBULK, which v1 has not.
    pub use_getbulk: bool,
    /// True if request ids have 16 bits.
    pub use_16bit_ids: bool,
    /// Accepts replies from other addresses, as MRTG does unless `SnmpOptions` forbid it.
    pub lenient_address: bool,
    /// Accepts replies from other ports, as MRTG does unless `SnmpOptions` forbid it.
    pub lenient_port: bool,
    /// Takes values by their place in a reply, though they have other names than those that were asked for. `oidbyplace`, a key
    /// that MRTG does not have.
    pub oid_by_place: bool,
    /// No IPv6 for this device: `EnableIPv6` is not `yes`, or `IPv4Only` is `yes`.
    pub ipv4_only: bool,
    /// Community, host and options in sequence. Secret because of the community.
    pub mrtg_key: Secret,
}

impl Session {
    /// The key of MRTG's cache of interfaces, as its cleanhostkey makes it: of five numbers behind the host it has the first and the
    /// last, port and version, of two to four the first, and each colon becomes `_`. Secret because of the community.
    pub fn cache_key(&self) -> Vec<u8> {
        let key = self.mrtg_key.reveal();
        let (mut colons, mut end) = (Vec::new(), key.len());
        while colons.len() < 5
            && let Some(colon) = memchr::memrchr(b':', &key[..end])
            && key[colon + 1..end].iter().all(u8::is_ascii_digit)
        {
            colons.push(colon);
            end = colon;
        }
        // The last colon is the first one here.
        let (cut, again) = match colons[..] {
            [last, _, _, second, _] => (second, last),
            [.., second, _] => (second, key.len()),
            _ => (key.len(), key.len()),
        };
        let kept = key[..cut].iter().chain(&key[again..]);
        kept.map(|&byte| if byte == b':' { b'_' } else { byte })
            .collect()
    }
}

/// The SNMP version of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// SNMPv1.
    V1,
    /// SNMPv2c.
    V2c,
    /// SNMPv3 as this user.
    V3(Arc<User>),
}

impl Access {
    pub(super) fn version(&self) -> &'static str {
        match self {
            Access::V1 => "V1",
            Access::V2c => "V2c",
            Access::V3(_) => "V3",
        }
    }
}

/// The text behind the `@`: an address in brackets, a name, or an IPv4 address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// `[2001:db8::1]`; `None`: the brackets contain no valid address, and the device is never queried.
    V6(Option<Ipv6Addr>),
    /// A name to resolve, or an IPv4 address.
    Name(Box<str>),
}
