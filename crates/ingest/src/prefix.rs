//! Networks of senders: `10.0.0.0/8`, `2001:db8::/32`, or one address.

use std::net::IpAddr;

/// A network: addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    bits: u8,
}

impl Prefix {
    /// Reads `ADDRESS/BITS` or `ADDRESS`; `None`: it is neither.
    pub fn parse(text: &str) -> Option<Prefix> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = most_bits(address);
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Prefix { address, bits })
    }

    /// True if an address belongs to the network. An IPv4 address mapped into IPv6 is an IPv4
    /// address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let (own, other) = (self.address.to_canonical(), address.to_canonical());
        if own.is_ipv4() != other.is_ipv4() {
            return false;
        }
        let differs = number(own) ^ number(other);
        // `checked_shr` refuses to shift all bits out: with 0 bits each address belongs.
        differs
            .checked_shr(u32::from(most_bits(own) - self.bits.min(most_bits(own))))
            .unwrap_or(0)
            == 0
    }
}

fn most_bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_their_networks() {
        for (prefix, address, held) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("0.0.0.0/0", "192.0.2.7", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "::1", true),
            ("::1", "::1", true),
        ] {
            let prefix = Prefix::parse(prefix).expect(prefix);
            assert_eq!(
                prefix.holds(address.parse().expect(address)),
                held,
                "{prefix:?} {address}"
            );
        }
        for text in [
            "",
            "10.0.0.0/33",
            "10.0.0/8",
            "::/129",
            "10.0.0.0/",
            "a",
            "10.0.0.0/-1",
        ] {
            assert_eq!(Prefix::parse(text), None, "{text}");
        }
    }
}
