//! `[query]`: another engine that is asked for series that kymo does not have, or the labels by which an engine that asks kymo
//! tells it from others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kymo_base::label_set::is_name;
use kymo_scrape::ScrapeUrl;
use kymo_series::names::METRIC;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::access::{AccessKeys, AccessTo};
use super::{File, checked, quoted, scrape};
use crate::options;

/// Shortest and longest time of an answer.
const TIMEOUTS: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];

/// The table `[query]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Query {
    /// URL of the engine, in front of `/api/v1`; empty: none is asked.
    #[serde(deserialize_with = "url")]
    pub upstream: String,
    /// Longest time of an answer of the engine.
    #[serde(deserialize_with = "timeout")]
    pub timeout: String,
    /// Labels that the engine's series lose.
    #[serde(deserialize_with = "dropped")]
    pub drop_labels: Vec<String>,
    /// Labels by which engines tell this kymo from others.
    #[serde(deserialize_with = "scrape::labels")]
    pub external_labels: BTreeMap<String, String>,
    /// User of basic authentication.
    pub user: Option<String>,
    /// File with the user's password.
    pub password_file: Option<PathBuf>,
    /// File with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Certificates of authorities, PEM; `None`: the system's.
    pub tls_ca: Option<PathBuf>,
    /// Certificate that the engine is shown, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Key of this certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// Name in the certificate of the engine; `None`: the host of the URL.
    pub tls_server_name: Option<String>,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            upstream: String::new(),
            timeout: "2s".into(),
            drop_labels: Vec::new(),
            external_labels: BTreeMap::new(),
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

impl Query {
    /// Milliseconds that an answer may take.
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

fn url<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if !text.is_empty() {
        ScrapeUrl::of_server(&text).map_err(D::Error::custom)?;
    }
    Ok(text)
}

fn timeout_ms(text: &str) -> Result<u64, String> {
    let ms = options::duration_ns("", text)? / 1_000_000;
    let [least, most] = TIMEOUTS;
    match (least..=most).contains(&Duration::from_millis(ms)) {
        true => Ok(ms),
        false => Err(format!("cannot use {text}: not a time from 100ms to 10s")),
    }
}

fn timeout<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(timeout_ms(&text), text)
}

fn dropped<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(from)?;
    let is_dropped = |name: &&String| is_name(name.as_bytes()) && *name != METRIC;
    match names.iter().find(|name| !is_dropped(name)) {
        Some(name) => Err(D::Error::custom(format!(
            "{name:?} is not a label that can be dropped"
        ))),
        None => Ok(names),
    }
}

/// Checks keys that go together.
pub(super) fn check(query: &Query) -> Result<(), String> {
    let checked = query.access().check();
    checked.map_err(|why| format!("[query]: {why}"))?;
    match query.upstream.is_empty() || query.external_labels.is_empty() {
        true => Ok(()),
        false => Err("[query]: upstream and external_labels exclude each other: an engine that asks this kymo has its series".into()),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, query: &Query) {
    file.0.push_str("\n[query]\n");
    let upstream = Some(&query.upstream).filter(|url| !url.is_empty());
    file.key(
        "upstream",
        "An engine with Prometheus' HTTP API that is asked for the series that are not here: the URL in front of /api/v1.",
        upstream.map(|url| quoted(url)).ok_or("\"http://thanos.example:10902\""),
    );
    file.key(
        "timeout",
        "Longest time of an answer of the upstream, 100ms to 10s. After it an answer has a warning instead of its series.",
        Ok(quoted(&query.timeout)),
    );
    file.key(
        "drop_labels",
        "Labels that series of the upstream lose here, such as those that [[forward]] gives them: [\"site\", \"tenant_id\"].",
        Ok(scrape::list_text(&query.drop_labels)),
    );
    file.key(
        "external_labels",
        "Labels by which engines that ask kymo, such as Thanos, tell it from others: { site = \"berlin\" }.",
        Ok(scrape::labels_text(&query.external_labels)),
    );
    query.access().text(file, AccessTo::Upstream);
}
