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
    /// Time that the receiver may be behind; `None`: that of the store's tails.
    #[serde(deserialize_with = "backlog")]
    pub backlog: Option<String>,
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

    /// The table in whose help credentials stand; `None`: the protocol has none.
    fn access(self) -> Option<AccessTo> {
        match self {
            ReceiverProtocol::RemoteWrite => Some(AccessTo::Receiver),
            ReceiverProtocol::Collectd => Some(AccessTo::CollectdReceiver),
            ReceiverProtocol::Rrdcached => None,
        }
    }

    /// True for keys that receivers of the protocol take. Keys that are not named here are of all protocols.
    fn has_key(self, key: &str) -> bool {
        use ReceiverProtocol::{Collectd, RemoteWrite, Rrdcached};
        let protocols: &[ReceiverProtocol] = match key {
            "url" | "labels" | "drop_labels" | "token_file" | "tls_ca" | "tls_cert" | "tls_key"
            | "tls_server_name" => &[RemoteWrite],
            "collectd" | "security" | "packets_per_second" => &[Collectd],
            "rrdcached" => &[Rrdcached],
            "timeout" => &[RemoteWrite, Rrdcached],
            "user" | "password_file" => &[RemoteWrite, Collectd],
            _ => return true,
        };
        protocols.contains(&self)
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

impl ForwardAddress {
    fn protocol(&self) -> ReceiverProtocol {
        match self {
            ForwardAddress::RemoteWrite(_) => ReceiverProtocol::RemoteWrite,
            ForwardAddress::Collectd(_) => ReceiverProtocol::Collectd,
            ForwardAddress::Rrdcached(_) => ReceiverProtocol::Rrdcached,
        }
    }
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
            backlog: None,
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
    fn check_keys(&self, protocol: ReceiverProtocol) -> Result<(), String> {
        let defaults = Forward::default();
        let keys = [
            ("labels", !self.labels.is_empty()),
            ("drop_labels", !self.drop_labels.is_empty()),
            ("timeout", self.timeout != defaults.timeout),
            ("token_file", self.token_file.is_some()),
            ("tls_ca", self.tls_ca.is_some()),
            ("tls_cert", self.tls_cert.is_some()),
            ("tls_server_name", self.tls_server_name.is_some()),
            ("user", self.user.is_some()),
            ("security", self.security != defaults.security),
            (
                "packets_per_second",
                self.packets_per_second != defaults.packets_per_second,
            ),
        ];
        let mut keys = keys.into_iter();
        match keys.find(|(key, is_set)| *is_set && !protocol.has_key(key)) {
            Some((key, _)) => Err(format!(
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

    /// Seconds that the receiver may be behind; `None`: as many as the store's tails.
    pub(crate) fn backlog_s(&self) -> Result<Option<u64>, String> {
        self.backlog.as_deref().map(backlog_s).transpose()
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

/// The text of an address that was read. Errors of addresses name the text, unlike those of switches.
fn address<T, E: serde::de::Error>(
    read: Result<T, String>,
    text: String,
) -> Result<Option<String>, E> {
    read.map(|_| Some(text)).map_err(E::custom)
}

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    address(ScrapeUrl::of_server(&text), text)
}

fn collectd<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    address(HostPort::parse(&text, COLLECTD_PORT), text)
}

fn rrdcached<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    address(RrdcachedAddress::parse(&text, RRDCACHED_PORT), text)
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

fn backlog_s(text: &str) -> Result<u64, String> {
    Ok(options::duration_ns("", text)? / 1_000_000_000)
}

fn backlog<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    checked(backlog_s(&text), text).map(Some)
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
        let checked = checked.and_then(|()| receiver.check_keys(address.protocol()));
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
        for (n, receiver) in examples().into_iter().enumerate() {
            file.0.push_str(if n == 0 { "" } else { "\n" });
            file.0.push_str("#[[forward]]\n");
            keys_text(file, &receiver, |value| Err(value));
        }
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

/// A receiver of each protocol.
fn examples() -> [Forward; 3] {
    let of_url = Forward {
        name: "central".into(),
        url: Some("http://metrics.example:9090/api/v1/write".into()),
        ..Forward::default()
    };
    let of_collectd = Forward {
        name: "hub".into(),
        collectd: Some("hub.example:25826".into()),
        security: Security::Encrypt,
        ..Forward::default()
    };
    let of_rrdcached = Forward {
        name: "files".into(),
        rrdcached: Some("/run/rrdcached.sock".into()),
        ..Forward::default()
    };
    [of_url, of_collectd, of_rrdcached]
}

/// Writes the keys of the receiver's protocol.
fn keys_text(
    file: &mut File,
    receiver: &Forward,
    shown: impl for<'a> Fn(&'a str) -> Result<String, &'a str>,
) {
    let Ok(protocol) = receiver.address().map(|address| address.protocol()) else {
        return;
    };
    let shown = |value: String| shown(&value).map_err(str::to_string);
    for (name, help, value) in keys(receiver, &shown) {
        if protocol.has_key(name) {
            let value = value.as_ref();
            file.key(name, help, value.cloned().map_err(String::as_str));
        }
    }
    if let Some(to) = protocol.access() {
        receiver.access().text(file, to);
    }
}

/// Name, help and value of each key, but those of credentials.
type KeyText = (&'static str, &'static str, Result<String, String>);

fn keys(receiver: &Forward, plain: &dyn Fn(String) -> Result<String, String>) -> [KeyText; 11] {
    let address = |text: &Option<String>| plain(quoted(text.as_deref().unwrap_or_default()));
    [
        (
            "name",
            "Name of the receiver, by which kymo knows what it has already. Without it: host and port.",
            plain(quoted(&receiver.name)),
        ),
        (
            "url",
            "URL that takes remote write, such as that of Prometheus, VictoriaMetrics, Thanos, Mimir or another kymo.",
            address(&receiver.url),
        ),
        (
            "collectd",
            "Host and port that take collectd's datagrams.",
            address(&receiver.collectd),
        ),
        (
            "rrdcached",
            "Unix socket, or host and port, of a daemon of rrdcached's protocol.",
            address(&receiver.rrdcached),
        ),
        (
            "match",
            "Selectors as in PromQL, one of which has to match a series, such as [\"up\", \"{job=\\\"node\\\"}\"]; none: all series.",
            plain(scrape::list_text(&receiver.selectors)),
        ),
        (
            "labels",
            "Labels of series that have none of that name, such as { site = \"berlin\" }.",
            plain(scrape::labels_text(&receiver.labels)),
        ),
        (
            "drop_labels",
            "Names of labels that do not go out.",
            plain(scrape::list_text(&receiver.drop_labels)),
        ),
        (
            "backlog",
            "How far behind the receiver may be, such as \"36h\", as long as the journal stays below [store] tail_bytes. Without it: [store] tail_age.",
            match &receiver.backlog {
                Some(backlog) => plain(quoted(backlog)),
                None => Err(quoted("36h")),
            },
        ),
        (
            "timeout",
            "Longest time of a request, 1s to 10m.",
            plain(quoted(&receiver.timeout)),
        ),
        (
            "security",
            "Protection of packets: \"none\", \"sign\" or \"encrypt\", the latter two with user and password_file.",
            plain(quoted(receiver.security.word())),
        ),
        (
            "packets_per_second",
            "Most packets a second, 1 to 1000000.",
            plain(receiver.packets_per_second.to_string()),
        ),
    ]
}
