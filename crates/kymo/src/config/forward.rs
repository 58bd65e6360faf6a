//! `[[forward]]`: receivers that get the values that kymo takes, by Prometheus' remote write, or the protocols of
//! collectd and rrdcached.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use kymo_forward::{HostPort, Picker, RrdcachedAddress, TARGETS_MAX};
use kymo_scrape::ScrapeUrl;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::access::{AccessKeys, AccessTo};
use super::{File, Security, checked, quoted, scrape};
use crate::options;

/// Longest name of a receiver, bytes.
const NAME_MAX: usize = 56;
/// Port of rrdcached.
const RRDCACHED_PORT: u16 = 42217;
/// Port of collectd's network plugin.
const COLLECTD_PORT: u16 = 25826;
/// Longest name of a user of collectd.
const USER_MAX: usize = kymo_wire::collectd::USER_MAX;
/// Packets a second.
const PACKETS: RangeInclusive<u32> = 1..=1_000_000;
/// Shortest and longest time of a request.
const TIMEOUTS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// A table `[[forward]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Forward {
    /// Name of the receiver; empty: its host and port.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// URL that takes remote write; `None`: the receiver speaks another protocol.
    #[serde(deserialize_with = "url")]
    pub url: Option<String>,
    /// Host and port that take collectd's datagrams.
    #[serde(deserialize_with = "collectd")]
    pub collectd: Option<String>,
    /// Unix socket, or host and port, of a daemon of rrdcached's protocol.
    #[serde(deserialize_with = "rrdcached")]
    pub rrdcached: Option<String>,
    /// Protection of collectd's packets.
    pub security: Security,
    /// Most packets of collectd a second.
    #[serde(deserialize_with = "packets")]
    pub packets_per_second: u32,
    /// Selectors, one of which has to match a series; none: all series.
    #[serde(rename = "match", deserialize_with = "selectors")]
    pub selectors: Vec<String>,
    /// Labels of series that have none of that name.
    #[serde(deserialize_with = "scrape::labels")]
    pub labels: BTreeMap<String, String>,
    /// Labels that do not go out.
    #[serde(deserialize_with = "dropped")]
    pub drop_labels: Vec<String>,
    /// Longest time of a request.
    #[serde(deserialize_with = "timeout")]
    pub timeout: String,
    /// User of basic authentication, or of collectd's packets.
    pub user: Option<String>,
    /// File with the user's password.
    pub password_file: Option<PathBuf>,
    /// File with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Certificates of authorities, PEM; `None`: the system's.
    pub tls_ca: Option<PathBuf>,
    /// Certificate that the receiver is shown, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Key of this certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// Name in the certificate of the receiver; `None`: the host of the URL.
    pub tls_server_name: Option<String>,
}

/// Protocols of receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiverProtocol {
    RemoteWrite,
    Collectd,
    Rrdcached,
}

impl ReceiverProtocol {
    fn word(self) -> &'static str {
        match self {
            ReceiverProtocol::RemoteWrite => "remote write",
            ReceiverProtocol::Collectd => "collectd",
            ReceiverProtocol::Rrdcached => "rrdcached",
        }
    }
}

/// Protocol and address of a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ForwardAddress {
    /// Remote write to a URL.
    RemoteWrite(ScrapeUrl),
    /// collectd's datagrams.
    Collectd(HostPort),
    /// rrdcached's protocol.
    Rrdcached(RrdcachedAddress),
}

impl Default for Forward {
    fn default() -> Forward {
        Forward {
            name: String::new(),
            url: None,
            collectd: None,
            rrdcached: None,
            security: Security::None,
            packets_per_second: 500,
            selectors: Vec::new(),
            labels: BTreeMap::new(),
            drop_labels: Vec::new(),
            timeout: "30s".into(),
            user: None,
            password_file: None,
            token_file: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            tls_server_name: None,
        }
    }
}

impl Forward {
    /// Name of the receiver: its own, or host and port.
    pub(crate) fn full_name(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let place = match self.address() {
            Ok(ForwardAddress::RemoteWrite(url)) => url.instance(),
            Ok(ForwardAddress::Collectd(address)) => address.to_string(),
            Ok(ForwardAddress::Rrdcached(address)) => address.to_string(),
            Err(_) => String::new(),
        };
        let place = place.chars().map(|c| if is_plain(c) { c } else { '_' });
        place.take(NAME_MAX).collect()
    }

    /// Address of the receiver. The error says that there is not exactly one.
    pub(crate) fn address(&self) -> Result<ForwardAddress, String> {
        match (&self.url, &self.collectd, &self.rrdcached) {
            (Some(url), None, None) => ScrapeUrl::of_server(url).map(ForwardAddress::RemoteWrite),
            (None, Some(text), None) => {
                HostPort::parse(text, COLLECTD_PORT).map(ForwardAddress::Collectd)
            }
            (None, None, Some(text)) => {
                RrdcachedAddress::parse(text, RRDCACHED_PORT).map(ForwardAddress::Rrdcached)
            }
            (None, None, None) => {
                Err("a table [[forward]] has neither url nor collectd nor rrdcached".into())
            }
            _ => Err(
                "a table [[forward]] has two of url, collectd and rrdcached: each receiver has a table"
                    .into(),
            ),
        }
    }

    /// Checks that each key is one of the receiver's protocol.
    fn check_keys(&self, address: &ForwardAddress) -> Result<(), String> {
        use ReceiverProtocol::{Collectd, RemoteWrite, Rrdcached};
        let defaults = Forward::default();
        let protocol = match address {
            ForwardAddress::RemoteWrite(_) => RemoteWrite,
            ForwardAddress::Collectd(_) => Collectd,
            ForwardAddress::Rrdcached(_) => Rrdcached,
        };
        let has_rate = self.packets_per_second != defaults.packets_per_second;
        let has_timeout = self.timeout != defaults.timeout;
        let keys: [(_, _, &[ReceiverProtocol]); 10] = [
            ("labels", !self.labels.is_empty(), &[RemoteWrite]),
            ("drop_labels", !self.drop_labels.is_empty(), &[RemoteWrite]),
            ("timeout", has_timeout, &[RemoteWrite, Rrdcached]),
            ("token_file", self.token_file.is_some(), &[RemoteWrite]),
            ("tls_ca", self.tls_ca.is_some(), &[RemoteWrite]),
            ("tls_cert", self.tls_cert.is_some(), &[RemoteWrite]),
            (
                "tls_server_name",
                self.tls_server_name.is_some(),
                &[RemoteWrite],
            ),
            ("user", self.user.is_some(), &[RemoteWrite, Collectd]),
            ("security", self.security != defaults.security, &[Collectd]),
            ("packets_per_second", has_rate, &[Collectd]),
        ];
        let mut keys = keys.into_iter();
        let foreign = keys.find(|(_, is_set, of)| *is_set && !of.contains(&protocol));
        match foreign {
            Some((key, ..)) => Err(format!(
                "{key} is no key of a receiver of {}",
                protocol.word()
            )),
            None => Ok(()),
        }
    }

    fn check_user(&self) -> Result<(), String> {
        let user = self.user.as_deref().unwrap_or_default();
        match (self.security, user.len()) {
            (Security::None, 0) => Ok(()),
            (Security::None, _) => {
                Err("a user goes with security = \"sign\" or \"encrypt\"".into())
            }
            (Security::Sign | Security::Encrypt, 1..=USER_MAX) => Ok(()),
            (Security::Sign | Security::Encrypt, _) => Err(format!(
                "security = {:?} needs a user of 1 to {USER_MAX} bytes and password_file",
                self.security.word()
            )),
        }
    }

    /// Milliseconds that a request may take.
    pub(crate) fn timeout_ms(&self) -> Result<u64, String> {
        timeout_ms(&self.timeout)
    }

    /// Credentials and certificates.
    pub(crate) fn access(&self) -> AccessKeys<'_> {
        AccessKeys {
            user: &self.user,
            password_file: &self.password_file,
            token_file: &self.token_file,
            tls_ca: &self.tls_ca,
            tls_cert: &self.tls_cert,
            tls_key: &self.tls_key,
            tls_server_name: &self.tls_server_name,
        }
    }
}

/// True for characters of names.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    let is_name = (1..=NAME_MAX).contains(&text.len()) && text.chars().all(is_plain);
    match is_name {
        true => Ok(text),
        false => Err(D::Error::custom(format!(
            "{text:?} is not a name: 1 to {NAME_MAX} letters, digits, . _ and -"
        ))),
    }
}

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    checked(ScrapeUrl::of_server(&text), text).map(Some)
}

fn collectd<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    checked(HostPort::parse(&text, COLLECTD_PORT), text).map(Some)
}

fn rrdcached<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    checked(RrdcachedAddress::parse(&text, RRDCACHED_PORT), text).map(Some)
}

fn packets<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let rate = u32::deserialize(from)?;
    match PACKETS.contains(&rate) {
        true => Ok(rate),
        false => Err(D::Error::custom(format!(
            "cannot use {rate}: not a number from {} to {}",
            PACKETS.start(),
            PACKETS.end()
        ))),
    }
}

fn selectors<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = Picker::new(&texts, &BTreeMap::new(), &[]);
    read.map(|_| texts).map_err(D::Error::custom)
}

fn dropped<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = Picker::new(&[], &BTreeMap::new(), &texts);
    read.map(|_| texts).map_err(D::Error::custom)
}

fn timeout_ms(text: &str) -> Result<u64, String> {
    let ms = options::duration_ns("", text)? / 1_000_000;
    let [least, most] = TIMEOUTS;
    match (least..=most).contains(&Duration::from_millis(ms)) {
        true => Ok(ms),
        false => Err(format!("cannot use {text}: not a time from 1s to 10m")),
    }
}

fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(timeout_ms(&text), text)
}

/// Checks all tables together.
pub(super) fn check(receivers: &[Forward]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for receiver in receivers {
        let address = receiver.address()?;
        let name = receiver.full_name();
        let checked = receiver.access().check().map_err(str::to_string);
        let checked = checked.and_then(|()| receiver.check_keys(&address));
        let checked = checked.and_then(|()| match address {
            ForwardAddress::RemoteWrite(_) | ForwardAddress::Rrdcached(_) => Ok(()),
            ForwardAddress::Collectd(_) => receiver.check_user(),
        });
        checked.map_err(|why| format!("the receiver {name:?} of [[forward]]: {why}"))?;
        if !names.insert(name.clone()) {
            return Err(format!(
                "two tables [[forward]] have the name {name:?}; give each a name"
            ));
        }
    }
    match receivers.len() > TARGETS_MAX {
        true => Err(format!(
            "there are {} tables [[forward]], {TARGETS_MAX} at most are served",
            receivers.len()
        )),
        false => Ok(()),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, receivers: &[Forward]) {
    file.0.push_str(
        "\n# A table for each receiver, of Prometheus' remote write, or of the protocols of collectd or rrdcached, that gets the values that others send to kymo.\n",
    );
    if receivers.is_empty() {
        file.0.push_str("#[[forward]]\n");
        let example = Forward {
            name: "central".into(),
            url: Some("http://metrics.example:9090/api/v1/write".into()),
            ..Forward::default()
        };
        keys_text(file, &example, |value| Err(value));
    }
    for receiver in receivers {
        file.0.push_str("[[forward]]\n");
        let named = Forward {
            name: receiver.full_name(),
            ..receiver.clone()
        };
        keys_text(file, &named, |value| Ok(value.to_string()));
    }
}

fn keys_text(
    file: &mut File,
    receiver: &Forward,
    shown: impl for<'a> Fn(&'a str) -> Result<String, &'a str>,
) {
    let example = |value: &Option<String>, example: &str| match value {
        Some(value) => shown(&quoted(value)).map_err(str::to_string),
        None => Err(quoted(example)),
    };
    let plain = |value: String| shown(&value).map_err(str::to_string);
    for (name, help, value) in [
        (
            "name",
            "Name of the receiver, by which kymo knows what it has already. Without it: host and port.",
            plain(quoted(&receiver.name)),
        ),
        (
            "url",
            "URL that takes remote write, such as that of Prometheus, VictoriaMetrics, Thanos, Mimir or another kymo.",
            example(&receiver.url, "http://metrics.example:9090/api/v1/write"),
        ),
        (
            "collectd",
            "Host and port that take collectd's datagrams, instead of url.",
            example(&receiver.collectd, "hub.example:25826"),
        ),
        (
            "rrdcached",
            "Unix socket, or host and port, of a daemon of rrdcached's protocol, instead of url.",
            example(&receiver.rrdcached, "/run/rrdcached.sock"),
        ),
        (
            "match",
            "Selectors as in PromQL, one of which has to match a series, such as [\"up\", \"{job=\\\"node\\\"}\"]; none: all series.",
            plain(scrape::list_text(&receiver.selectors)),
        ),
        (
            "labels",
            "Labels of series that have none of that name, such as { site = \"berlin\" }. Of url.",
            plain(scrape::labels_text(&receiver.labels)),
        ),
        (
            "drop_labels",
            "Names of labels that do not go out. Of url.",
            plain(scrape::list_text(&receiver.drop_labels)),
        ),
        (
            "timeout",
            "Longest time of a request, 1s to 10m. Of url and rrdcached.",
            plain(quoted(&receiver.timeout)),
        ),
        (
            "security",
            "Protection of packets: \"none\", \"sign\" or \"encrypt\", the latter two with user and password_file. Of collectd.",
            plain(quoted(receiver.security.word())),
        ),
        (
            "packets_per_second",
            "Most packets a second, 1 to 1000000. Of collectd.",
            plain(receiver.packets_per_second.to_string()),
        ),
    ] {
        let value = value.as_ref();
        file.key(name, help, value.cloned().map_err(String::as_str));
    }
    receiver.access().text(file, AccessTo::Receiver);
}
