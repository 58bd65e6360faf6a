//! The unit for shares of limits. A single address is too small a unit: a local user can send from 2^24 loopback addresses,
//! and a host with IPv6 from 2^64 addresses of its network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an IPv6 address that its host chooses.
const HOST_BITS: u32 = 64;

/// Senders that share limits: this machine, one IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SenderGroup(IpAddr);

impl SenderGroup {
    /// All senders on this machine, by loopback or a unix socket.
    pub const THIS_MACHINE: SenderGroup = SenderGroup(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The group of an address. An IPv4 address mapped into IPv6 counts as an IPv4 address.
    pub fn of(address: IpAddr) -> SenderGroup {
        let address = address.to_canonical();
        if address.is_loopback() {
            return SenderGroup::THIS_MACHINE;
        }
        SenderGroup(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(address) => {
                let network = address.to_bits() >> HOST_BITS << HOST_BITS;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}

impl fmt::Display for SenderGroup {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0 {
            _ if *self == SenderGroup::THIS_MACHINE => f.write_str("this machine"),
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/{HOST_BITS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_sender_are_one_group() {
        for (address, group) in [
            ("127.0.0.1", "this machine"),
            ("127.255.3.4", "this machine"),
            ("::1", "this machine"),
            ("::ffff:127.0.0.2", "this machine"),
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::", "2001:db8:1:3::/64"),
        ] {
            let of = SenderGroup::of(address.parse().expect(address));
            assert_eq!(of.to_string(), group, "{address}");
        }
    }
}
