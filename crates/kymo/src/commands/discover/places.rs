//! The words of the command line: hosts, networks, and files.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kymo_scrape::{SNMP_PORT, device_address};

/// Bits of a network's host part.
const HOST_BITS_MAX: u32 = 16;
/// Bytes of a list.
const LIST_MAX: u64 = 4 << 20;

/// Where devices may be.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DevicePlaces {
    /// Hosts that were named, with ports if they are not 161.
    pub(super) hosts: Vec<String>,
    /// Addresses of networks.
    pub(super) of_networks: Vec<String>,
    /// Files of configuration.
    pub(super) configs: Vec<PathBuf>,
}

impl DevicePlaces {
    /// Reads the words, and the files that they name.
    pub(super) fn read(words: &[String]) -> Result<DevicePlaces> {
        let mut places = DevicePlaces::default();
        for word in words {
            let path = Path::new(word);
            match (path.is_file(), path.extension()) {
                (true, Some(ending)) if ending == "toml" => places.configs.push(path.into()),
                (true, _) => places.add_list(path)?,
                (false, _) => places.add(word)?,
            }
        }
        let mut seen = BTreeSet::new();
        places.hosts.retain(|host| seen.insert(host.clone()));
        places.of_networks.retain(|host| seen.insert(host.clone()));
        Ok(places)
    }

    /// True if the words name this address.
    pub(super) fn names(&self, address: &String) -> bool {
        self.hosts.contains(address) || self.of_networks.contains(address)
    }

    fn add_list(&mut self, path: &Path) -> Result<()> {
        let cannot = || format!("cannot read {}", path.display());
        if path.metadata().with_context(cannot)?.len() > LIST_MAX {
            bail!("cannot read {}: it is no list of addresses", path.display());
        }
        let text = std::fs::read_to_string(path).with_context(cannot)?;
        for (number, line) in (1..).zip(text.lines()) {
            let word = line.split('#').next().unwrap_or_default().trim();
            if !word.is_empty() {
                let at = || format!("cannot read {} line {number}", path.display());
                self.add(word).with_context(at)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, word: &str) -> Result<()> {
        if let Some((address, bits)) = word.split_once('/') {
            let (bits, port) = bits.split_once(':').unwrap_or((bits, "161"));
            let parts = (address.parse::<IpAddr>(), bits.parse(), port.parse());
            let (Ok(address), Ok(bits), Ok(port)) = parts else {
                bail!("cannot use {word:?}: neither a file nor a network such as 10.0.0.0/24");
            };
            let addresses = network(word, address, bits)?.into_iter();
            self.of_networks
                .extend(addresses.map(|address| with_port(address, port)));
            return Ok(());
        }
        device_address(word).map_err(|why| anyhow::Error::msg(format!("cannot use {why}")))?;
        self.hosts.push(word.into());
        Ok(())
    }
}

/// Addresses of a network, without those of the network itself and of all its hosts.
fn network(word: &str, address: IpAddr, bits: u32) -> Result<Vec<IpAddr>> {
    let (whole, all_bits) = match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32u32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let host_bits = all_bits
        .checked_sub(bits)
        .filter(|host| *host <= HOST_BITS_MAX);
    let Some(host_bits) = host_bits else {
        bail!("cannot use {word}: a network has at most 65,536 addresses");
    };
    let hosts = 1u128 << host_bits;
    let first = whole & !(hosts - 1);
    let (skipped, left) = match (address, host_bits) {
        (IpAddr::V4(_), 2..) => (1, hosts - 2),
        _ => (0, hosts),
    };
    let addresses = (first + skipped..).take(usize::try_from(left).unwrap_or(0));
    let address = |number: u128| match u32::try_from(number) {
        Ok(number) if address.is_ipv4() => IpAddr::from(number.to_be_bytes()),
        _ => IpAddr::from(number.to_be_bytes()),
    };
    Ok(addresses.map(address).collect())
}

/// The address as a table has it.
fn with_port(address: IpAddr, port: u16) -> String {
    match port {
        SNMP_PORT => address.to_string(),
        _ => SocketAddr::new(address, port).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_their_hosts() {
        for (word, count, first, last) in [
            ("10.0.0.7/30", 2, "10.0.0.5", "10.0.0.6"),
            ("10.0.0.0/31", 2, "10.0.0.0", "10.0.0.1"),
            ("10.0.0.9/32", 1, "10.0.0.9", "10.0.0.9"),
            ("10.1.0.0/16", 65_534, "10.1.0.1", "10.1.255.254"),
            ("10.0.0.0/31:7", 2, "10.0.0.0:7", "10.0.0.1:7"),
            ("2001:db8::/127", 2, "2001:db8::", "2001:db8::1"),
        ] {
            let places = DevicePlaces::read(&[word.into()]).unwrap();
            let found = places.of_networks;
            assert_eq!(found.len(), count, "{word}");
            assert_eq!((&*found[0], &*found[count - 1]), (first, last), "{word}");
        }
        for word in [
            "10.0.0.0/15",
            "10.0.0.0/33",
            "10.0.0/24",
            "::/64",
            "a/b",
            "a b",
        ] {
            assert!(DevicePlaces::read(&[word.into()]).is_err(), "{word}");
        }
    }
}
