//! `[[device]]`: devices that are polled by SNMP, and what of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use kymo_poll::devices::{InterfaceFilter, InterfaceState, Patterns};
use kymo_scrape::{RelabelRule, device_address};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::scrape::{
    ValuesWritten, interval, interval_ms, labels, labels_text, list_text, relabel, rules_text,
};
use super::{File, quoted};

/// A table `[[device]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeviceTable {
    /// Name or address, with a port if it is not 161.
    #[serde(deserialize_with = "address")]
    pub address: String,
    /// Name, which is the label `instance`; empty: the address.
    pub name: String,
    /// Version of SNMP.
    pub version: SnmpVersion,
    /// File with the community; `None`: it is `public`.
    pub community_file: Option<PathBuf>,
    /// User of SNMPv3.
    pub user: String,
    /// Protocol of authentication.
    pub auth: String,
    /// File with the password of authentication.
    pub auth_file: Option<PathBuf>,
    /// Protocol of privacy.
    pub privacy: String,
    /// File with the password of privacy.
    pub privacy_file: Option<PathBuf>,
    /// Name of the context of SNMPv3.
    pub context: String,
    /// Time from one poll to the next.
    #[serde(deserialize_with = "interval")]
    pub interval: String,
    /// Longest time of a poll.
    #[serde(deserialize_with = "interval")]
    pub timeout: String,
    /// Names of profiles.
    pub profiles: Vec<String>,
    /// State of the interfaces that are polled.
    pub interfaces: InterfaceState,
    /// Expressions, one of which the name of an interface has to match.
    pub names: Vec<String>,
    /// Expressions that the name may not match.
    pub not_names: Vec<String>,
    /// As `names`, of the alias.
    pub aliases: Vec<String>,
    /// As `not_names`, of the alias.
    pub not_aliases: Vec<String>,
    /// As `names`, of the type.
    pub types: Vec<String>,
    /// As `not_names`, of the type.
    pub not_types: Vec<String>,
    /// Interfaces as `kymo discover` found them: if there are any, they alone are polled.
    pub interface: Vec<ListedInterface>,
    /// Labels of all series.
    #[serde(deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
    /// Rules that change labels of samples, or drop samples.
    #[serde(deserialize_with = "relabel")]
    pub relabel: Vec<RelabelRule>,
}

/// An interface of a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ListedInterface {
    /// ifName.
    pub name: String,
    /// ifAlias when it was found.
    pub alias: String,
    /// Speed when it was found, Mbit/s.
    pub mbit: u64,
}

/// A version of SNMP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub(crate) enum SnmpVersion {
    /// SNMPv1.
    #[serde(rename = "1")]
    V1,
    /// SNMPv2c.
    #[default]
    #[serde(rename = "2c")]
    V2c,
    /// SNMPv3.
    #[serde(rename = "3")]
    V3,
}

impl SnmpVersion {
    /// The word in the file.
    pub(crate) fn word(self) -> &'static str {
        match self {
            SnmpVersion::V1 => "1",
            SnmpVersion::V2c => "2c",
            SnmpVersion::V3 => "3",
        }
    }
}

impl Default for DeviceTable {
    fn default() -> DeviceTable {
        let filter = InterfaceFilter::default();
        DeviceTable {
            address: String::new(),
            name: String::new(),
            version: SnmpVersion::default(),
            community_file: None,
            user: String::new(),
            auth: "sha256".into(),
            auth_file: None,
            privacy: "aes".into(),
            privacy_file: None,
            context: String::new(),
            interval: "1m".into(),
            timeout: "20s".into(),
            profiles: vec!["system".into(), "interfaces".into()],
            interfaces: filter.state,
            names: Vec::new(),
            not_names: Vec::new(),
            aliases: Vec::new(),
            not_aliases: Vec::new(),
            types: Vec::new(),
            not_types: filter.types.not,
            interface: Vec::new(),
            labels: BTreeMap::new(),
            relabel: Vec::new(),
        }
    }
}

impl DeviceTable {
    /// Milliseconds from one poll to the next.
    pub(crate) fn interval_ms(&self) -> Result<u64, String> {
        interval_ms(&self.interval)
    }

    /// Milliseconds that a poll may take: never longer than the interval.
    pub(crate) fn timeout_ms(&self) -> Result<u64, String> {
        Ok(interval_ms(&self.timeout)?.min(self.interval_ms()?))
    }

    /// Labels of all series, with the name as the instance.
    pub(crate) fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        if !self.name.is_empty() {
            let instance = labels.entry("instance".into());
            instance.or_insert_with(|| self.name.clone());
        }
        labels
    }

    /// The interfaces that are polled.
    pub(crate) fn filter(&self) -> InterfaceFilter {
        let patterns = |only: &[String], not: &[String]| Patterns {
            only: only.to_vec(),
            not: not.to_vec(),
        };
        InterfaceFilter {
            state: self.interfaces,
            listed: self.interface.iter().map(|one| one.name.clone()).collect(),
            names: patterns(&self.names, &self.not_names),
            aliases: patterns(&self.aliases, &self.not_aliases),
            types: patterns(&self.types, &self.not_types),
        }
    }

    fn check(&self) -> Result<(), String> {
        let is_v3 = self.version == SnmpVersion::V3;
        if is_v3 == self.user.is_empty() {
            return Err("user and version = \"3\" go together".into());
        }
        if is_v3 && self.community_file.is_some() {
            return Err("version 3 has no community".into());
        }
        if self.privacy_file.is_some() && self.auth_file.is_none() {
            return Err("privacy_file needs auth_file".into());
        }
        if self.profiles.is_empty() {
            return Err("it has no profiles".into());
        }
        self.filter().check()
    }
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    device_address(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// Checks all tables together.
pub(crate) fn check(devices: &[DeviceTable]) -> Result<(), String> {
    let mut instances = BTreeSet::new();
    for device in devices {
        let address = &device.address;
        if address.is_empty() {
            return Err("a table [[device]] has no address".into());
        }
        let cause = |why| format!("the device {address:?} of [[device]]: {why}");
        device.check().map_err(cause)?;
        let instance = match device.name.as_str() {
            "" => address,
            _ => &device.name,
        };
        if !instances.insert((instance, &device.labels)) {
            return Err(format!(
                "two tables [[device]] are {instance:?}; give each a name"
            ));
        }
    }
    Ok(())
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, devices: &[DeviceTable]) {
    file.0.push_str(
        "\n# A table for each device that kymo polls by SNMP; `kymo discover` writes them.\n",
    );
    if devices.is_empty() {
        file.0.push_str("#[[device]]\n");
        let example = DeviceTable {
            address: "192.0.2.1".into(),
            ..DeviceTable::default()
        };
        device_text(file, &example, ValuesWritten::Example);
        rules_text(file, "device", &[]);
    }
    for device in devices {
        file.0.push_str("[[device]]\n");
        device_text(file, device, ValuesWritten::InForce);
        rules_text(file, "device", &device.relabel);
    }
}

fn device_text(file: &mut File, device: &DeviceTable, shown: ValuesWritten) {
    let keys = access_keys(device).into_iter().chain(choice_keys(device));
    for (name, help, value) in keys {
        let value = match (&value, shown) {
            (Ok(value), ValuesWritten::InForce) => Ok(value.clone()),
            (Ok(value), ValuesWritten::Example) => Err(value.as_str()),
            (Err(example), _) => Err(example.as_str()),
        };
        file.key(name, help, value);
    }
}

/// A key, its help, and its value, or else an example.
type KeyText = (&'static str, &'static str, Result<String, String>);

fn access_keys(device: &DeviceTable) -> Vec<KeyText> {
    let path = |path: &Option<PathBuf>, of: &str| match path {
        Some(path) => Ok(quoted(&path.to_string_lossy())),
        None => Err(quoted(&format!("/etc/kymo/device-{of}"))),
    };
    vec![
        (
            "address",
            "Name or address, with :PORT if it is not 161; without `name` it is the label `instance`.",
            Ok(quoted(&device.address)),
        ),
        (
            "name",
            "The label `instance`; empty: the address.",
            Ok(quoted(&device.name)),
        ),
        (
            "version",
            "Version of SNMP: \"1\", \"2c\" or \"3\".",
            Ok(quoted(device.version.word())),
        ),
        (
            "community_file",
            "File with the community. Without it: public. It and the files below are read at start and at SIGHUP.",
            path(&device.community_file, "community"),
        ),
        ("user", "User of version 3.", Ok(quoted(&device.user))),
        (
            "auth",
            "Protocol of authentication: md5, sha, sha224, sha256, sha384 or sha512.",
            Ok(quoted(&device.auth)),
        ),
        (
            "auth_file",
            "File with its password. Without it, messages are not signed.",
            path(&device.auth_file, "auth"),
        ),
        (
            "privacy",
            "Protocol of privacy: des, aes, aes192, aes256, aes192c or aes256c.",
            Ok(quoted(&device.privacy)),
        ),
        (
            "privacy_file",
            "File with its password. Without it, messages are not encrypted.",
            path(&device.privacy_file, "privacy"),
        ),
        (
            "context",
            "Context of version 3.",
            Ok(quoted(&device.context)),
        ),
    ]
}

fn choice_keys(device: &DeviceTable) -> Vec<KeyText> {
    let list = |texts: &[String]| Ok(list_text(texts));
    let state = match device.interfaces {
        InterfaceState::Up => "up",
        InterfaceState::All => "all",
    };
    let interfaces = match device.interface.is_empty() {
        true => Err("[{ name = \"Gi0/1\", alias = \"to the core\", mbit = 1000 }]".into()),
        false => Ok(interfaces_text(&device.interface)),
    };
    vec![
        (
            "interval",
            "Time from one poll to the next, 1s to 1h.",
            Ok(quoted(&device.interval)),
        ),
        (
            "timeout",
            "Longest time of a poll, never longer than the interval.",
            Ok(quoted(&device.timeout)),
        ),
        (
            "profiles",
            "What is polled: system, interfaces, cpu, memory, storage, sensors, ups, neighbours, and those of [poll] profiles.",
            list(&device.profiles),
        ),
        (
            "interfaces",
            "Interfaces that are polled: \"up\": those that are up, or were since kymo started; \"all\".",
            Ok(quoted(state)),
        ),
        (
            "names",
            "Of these, those whose ifName one of the expressions matches whole; []: any.",
            list(&device.names),
        ),
        (
            "not_names",
            "Expressions that ifName may not match.",
            list(&device.not_names),
        ),
        ("aliases", "The same for ifAlias.", list(&device.aliases)),
        (
            "not_aliases",
            "Expressions that ifAlias may not match.",
            list(&device.not_aliases),
        ),
        (
            "types",
            "The same for ifType, by its word.",
            list(&device.types),
        ),
        (
            "not_types",
            "Expressions that ifType may not match.",
            list(&device.not_types),
        ),
        (
            "interface",
            "Interfaces as `kymo discover` found them: if there are any, these alone are polled.",
            interfaces,
        ),
        (
            "labels",
            "Further labels of all series, such as { site = \"north\" }.",
            Ok(labels_text(&device.labels)),
        ),
    ]
}

/// A list of interfaces, a line each.
pub(crate) fn interfaces_text(interfaces: &[ListedInterface]) -> String {
    let lines = interfaces.iter();
    let lines: String = lines
        .map(|one| format!("  {},\n", interface_text(one)))
        .collect();
    format!("[\n{lines}]")
}

/// An interface of a list.
pub(crate) fn interface_text(interface: &ListedInterface) -> String {
    let ListedInterface { name, alias, mbit } = interface;
    let alias = match alias.is_empty() {
        true => String::new(),
        false => format!(", alias = {}", quoted(alias)),
    };
    format!("{{ name = {}{alias}, mbit = {mbit} }}", quoted(name))
}
