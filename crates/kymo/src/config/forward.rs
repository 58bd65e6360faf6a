//! `[[forward]]`: receivers of Prometheus' remote write that get the values that kymo takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kymo_forward::{Picker, TARGETS_MAX};
use kymo_scrape::ScrapeUrl;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::access::{AccessKeys, AccessTo};
use super::{File, checked, quoted, scrape};
use crate::options;

/// Longest name of a receiver, bytes.
const NAME_MAX: usize = 56;
/// Shortest and longest time of a request.
const TIMEOUTS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(600)];

/// A table `[[forward]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Forward {
    /// Name of the receiver; empty: the URL's host and port.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// URL that takes remote write.
    #[serde(deserialize_with = "url")]
    pub url: String,
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
    /// User of basic authentication.
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

impl Default for Forward {
    fn default() -> Forward {
        Forward {
            name: String::new(),
            url: String::new(),
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
        let url = ScrapeUrl::of_server(&self.url);
        let place = url.map_or_else(|_| String::new(), |url| url.instance());
        let place = place.chars().map(|c| if is_plain(c) { c } else { '_' });
        place.take(NAME_MAX).collect()
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

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    ScrapeUrl::of_server(&text).map_err(D::Error::custom)?;
    Ok(text)
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
        let name = receiver.full_name();
        if receiver.url.is_empty() {
            return Err("a table [[forward]] has no url".into());
        }
        receiver
            .access()
            .check()
            .map_err(|why| format!("the receiver {name:?} of [[forward]]: {why}"))?;
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
        "\n# A table for each receiver of Prometheus' remote write that gets the values that others send to kymo.\n",
    );
    if receivers.is_empty() {
        file.0.push_str("#[[forward]]\n");
        let example = Forward {
            name: "central".into(),
            url: "http://metrics.example:9090/api/v1/write".into(),
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
    for (name, help, value) in [
        (
            "name",
            "Name of the receiver, by which kymo knows what it has already. Without it: host and port.",
            quoted(&receiver.name),
        ),
        (
            "url",
            "URL that takes remote write, such as that of Prometheus, VictoriaMetrics, Thanos, Mimir or another kymo.",
            quoted(&receiver.url),
        ),
        (
            "match",
            "Selectors as in PromQL, one of which has to match a series, such as [\"up\", \"{job=\\\"node\\\"}\"]; none: all series.",
            scrape::list_text(&receiver.selectors),
        ),
        (
            "labels",
            "Labels of series that have none of that name, such as { site = \"berlin\" }.",
            scrape::labels_text(&receiver.labels),
        ),
        (
            "drop_labels",
            "Names of labels that do not go out.",
            scrape::list_text(&receiver.drop_labels),
        ),
        (
            "timeout",
            "Longest time of a request, 1s to 10m.",
            quoted(&receiver.timeout),
        ),
    ] {
        file.key(name, help, shown(&value));
    }
    receiver.access().text(file, AccessTo::Receiver);
}
