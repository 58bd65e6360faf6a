//! `[traps]`: who may send SNMP traps, and names of devices.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{File, list_text, prefixes, quoted};

/// Longest name of a device, bytes, as of those that are polled.
const HOST_MAX: usize = 300;

/// The keys.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TrapKeys {
    /// Communities and users that may send; `None`: any community, and no user.
    pub auth_file: Option<PathBuf>,
    /// Networks from which traps are accepted; empty: all networks.
    #[serde(deserialize_with = "prefixes")]
    pub allow: Vec<String>,
    /// Names of devices by address.
    #[serde(deserialize_with = "hosts")]
    pub hosts: BTreeMap<String, String>,
}

fn hosts<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let hosts = BTreeMap::<String, String>::deserialize(from)?;
    for (address, name) in &hosts {
        if address.parse::<IpAddr>().is_err() {
            return Err(D::Error::custom(format!("{address:?} is not an address")));
        }
        if !(1..=HOST_MAX).contains(&name.len()) {
            let why = format!("{name:?} is not a name of 1 to {HOST_MAX} bytes");
            return Err(D::Error::custom(why));
        }
    }
    Ok(hosts)
}

/// Writes the table.
pub(super) fn text(file: &mut File, traps: &TrapKeys) {
    file.0.push_str("\n[traps]\n");
    let path = traps.auth_file.as_ref();
    file.key(
        "auth_file",
        "Who may send: a line `community SECRET` each, and for SNMPv3 a line `user username => 'NAME', ...` with the keys of\n\
         MRTG's SnmpOptions. Without it: any community, and no user. Read at start and at SIGHUP.",
        path.map(|path| quoted(&path.to_string_lossy()))
            .ok_or("\"/etc/kymo/traps.auth\""),
    );
    file.key(
        "allow",
        "Networks that senders may be of; []: any. Beyond loopback there has to be one, and auth_file, or `insecure`.",
        Ok(list_text(&traps.allow)),
    );
    let hosts = traps.hosts.iter();
    let hosts: Vec<_> = hosts
        .map(|(address, name)| format!("{} = {}", quoted(address), quoted(name)))
        .collect();
    let hosts = match hosts.is_empty() {
        true => Err("{ \"192.0.2.7\" = \"core-1\" }"),
        false => Ok(format!("{{ {} }}", hosts.join(", "))),
    };
    file.key(
        "hosts",
        "Names of devices by address, as they are polled: then traps are on the graphs of their targets. Others are called by\n\
         their address.",
        hosts,
    );
}
