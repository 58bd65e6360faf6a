//! `[[scrape]]`: targets that expose metrics over HTTP, and how they are scraped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use kymo_base::label_set::is_name;
use kymo_scrape::{RelabelRule, Relabeling, SAMPLES_MAX, ScrapeUrl};
use kymo_wire::keeper::SCRAPED_MAX;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::access::{AccessKeys, AccessTo};
use super::{File, checked, quoted};
use crate::options;

/// Shortest and longest interval.
const INTERVALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3600)];

/// A table `[[scrape]]`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scrape {
    /// Name of the job, which is the label `job`.
    pub job: String,
    /// URLs of the targets.
    #[serde(deserialize_with = "urls")]
    pub urls: Vec<String>,
    /// Time from one scrape to the next.
    #[serde(deserialize_with = "interval")]
    pub interval: String,
    /// Longest time of a scrape.
    #[serde(deserialize_with = "interval")]
    pub timeout: String,
    /// Labels of all series.
    #[serde(deserialize_with = "labels")]
    pub labels: BTreeMap<String, String>,
    /// True if labels of samples win over those of the target.
    pub honor_labels: bool,
    /// True if samples keep their own times.
    pub honor_timestamps: bool,
    /// Most samples of a scrape.
    #[serde(deserialize_with = "samples")]
    pub samples: u64,
    /// User of basic authentication.
    pub user: Option<String>,
    /// File with the user's password.
    pub password_file: Option<PathBuf>,
    /// File with a bearer token.
    pub token_file: Option<PathBuf>,
    /// Certificates of authorities, PEM; `None`: the system's.
    pub tls_ca: Option<PathBuf>,
    /// Certificate that targets are shown, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Key of this certificate, PEM.
    pub tls_key: Option<PathBuf>,
    /// Name in certificates of targets; `None`: the host of the URL.
    pub tls_server_name: Option<String>,
    /// Rules that change labels of samples, or drop samples.
    #[serde(deserialize_with = "relabel")]
    pub relabel: Vec<RelabelRule>,
}

impl Default for Scrape {
    fn default() -> Scrape {
        Scrape {
            job: String::new(),
            urls: Vec::new(),
            interval: "15s".into(),
            timeout: "10s".into(),
            labels: BTreeMap::new(),
            honor_labels: false,
            honor_timestamps: true,
            samples: 200_000,
            user: None,
            password_file: None,
            token_file: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            tls_server_name: None,
            relabel: Vec::new(),
        }
    }
}

impl Scrape {
    /// Milliseconds from one scrape to the next.
    pub(crate) fn interval_ms(&self) -> Result<u64, String> {
        interval_ms(&self.interval)
    }

    /// Milliseconds that a scrape may take: never longer than the interval.
    pub(crate) fn timeout_ms(&self) -> Result<u64, String> {
        Ok(interval_ms(&self.timeout)?.min(self.interval_ms()?))
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

pub(super) fn interval_ms(text: &str) -> Result<u64, String> {
    let ms = options::duration_ns("", text)? / 1_000_000;
    let [least, most] = INTERVALS;
    match (least..=most).contains(&Duration::from_millis(ms)) {
        true => Ok(ms),
        false => Err(format!("cannot use {text}: not a time from 1s to 1h")),
    }
}

pub(super) fn interval<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    checked(interval_ms(&text), text)
}

fn urls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    for text in &texts {
        ScrapeUrl::parse(text).map_err(D::Error::custom)?;
    }
    Ok(texts)
}

pub(super) fn labels<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let labels = BTreeMap::<String, String>::deserialize(from)?;
    let is_free = |name: &String| is_name(name.as_bytes()) && !name.starts_with("__");
    match labels.keys().find(|name| !is_free(name)) {
        Some(name) => Err(D::Error::custom(format!(
            "{name:?} is not a label's name: letters, digits and _, no digit first, no __ in front"
        ))),
        None => Ok(labels),
    }
}

fn samples<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let samples = u64::deserialize(from)?;
    match (1..=SAMPLES_MAX).contains(&samples) {
        true => Ok(samples),
        false => Err(D::Error::custom(format!(
            "not a number from 1 to {SAMPLES_MAX}"
        ))),
    }
}

pub(super) fn relabel<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<RelabelRule>, D::Error> {
    let rules = Vec::<RelabelRule>::deserialize(from)?;
    Relabeling::new(&rules).map_err(D::Error::custom)?;
    Ok(rules)
}

/// Checks all tables together, besides which there are this many devices.
pub(super) fn check(jobs: &[Scrape], devices: usize) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut targets = devices;
    for job in jobs {
        let name = &job.job;
        if name.is_empty() {
            return Err("a table [[scrape]] has no job".into());
        }
        if !names.insert(name) {
            return Err(format!("two tables [[scrape]] have the job {name:?}"));
        }
        if job.urls.is_empty() {
            return Err(format!("the job {name:?} of [[scrape]] has no urls"));
        }
        job.access()
            .check()
            .map_err(|why| format!("the job {name:?} of [[scrape]]: {why}"))?;
        let urls: BTreeSet<&String> = job.urls.iter().collect();
        if urls.len() < job.urls.len() {
            return Err(format!("the job {name:?} of [[scrape]] has a URL twice"));
        }
        targets += job.urls.len();
    }
    match targets > SCRAPED_MAX {
        true => Err(format!(
            "the tables [[scrape]] and [[device]] have {targets} targets, {SCRAPED_MAX} at most are scraped"
        )),
        false => Ok(()),
    }
}

/// Writes all keys with their help.
pub(super) fn text(file: &mut File, jobs: &[Scrape]) {
    file.0.push_str(
        "\n# A table for each job: targets that expose metrics over HTTP for Prometheus. kymo scrapes them itself.\n",
    );
    if jobs.is_empty() {
        file.0.push_str("#[[scrape]]\n");
        job_text(file, &Scrape::default(), ValuesWritten::Example);
        rules_text(file, "scrape", &[]);
    }
    for job in jobs {
        file.0.push_str("[[scrape]]\n");
        job_text(file, job, ValuesWritten::InForce);
        rules_text(file, "scrape", &job.relabel);
    }
}

/// Meaning of the values that are written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ValuesWritten {
    InForce,
    Example,
}

/// A list of texts.
pub(super) fn list_text(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// Labels as a table.
pub(super) fn labels_text(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter();
    let labels = labels.map(|(name, value)| format!("{name} = {}", quoted(value)));
    let labels: Vec<String> = labels.collect();
    match labels.is_empty() {
        true => "{}".into(),
        false => format!("{{ {} }}", labels.join(", ")),
    }
}

fn job_text(file: &mut File, job: &Scrape, shown: ValuesWritten) {
    let (name, urls) = match shown {
        ValuesWritten::InForce => (quoted(&job.job), list_text(&job.urls)),
        ValuesWritten::Example => (
            quoted("node"),
            list_text(&["http://localhost:9100/metrics".into()]),
        ),
    };
    let labels = labels_text(&job.labels);
    let keys = [
        (
            "job",
            "Name of the job, and the label `job` of its series.",
            name,
        ),
        (
            "urls",
            "Targets. Without a path it is /metrics; host and port are the label `instance`.",
            urls,
        ),
        (
            "interval",
            "Time from one scrape of a target to the next, 1s to 1h.",
            quoted(&job.interval),
        ),
        (
            "timeout",
            "Longest time of a scrape, never longer than the interval.",
            quoted(&job.timeout),
        ),
        (
            "labels",
            "Further labels of all series, such as { env = \"prod\" }.",
            labels,
        ),
        (
            "honor_labels",
            "true: labels of samples win over those of the target. false: they are called exported_NAME where both have one.",
            job.honor_labels.to_string(),
        ),
        (
            "honor_timestamps",
            "true: samples that have times keep them.",
            job.honor_timestamps.to_string(),
        ),
        (
            "samples",
            "Most samples of a scrape; one with more fails.",
            job.samples.to_string(),
        ),
    ];
    for (name, help, value) in &keys {
        let value = match shown {
            ValuesWritten::InForce => Ok(value.clone()),
            ValuesWritten::Example => Err(value.as_str()),
        };
        file.key(name, help, value);
    }
    job.access().text(file, AccessTo::Targets);
}

/// Writes the rules of a table; without one, an example.
pub(super) fn rules_text(file: &mut File, table: &str, rules: &[RelabelRule]) {
    const HELP: &str =
        "\n# A table for each rule, in their order, as metric_relabel_configs of Prometheus.\n";
    if rules.is_empty() {
        let example = RelabelRule {
            source_labels: vec!["__name__".into()],
            regex: "go_.*".into(),
            action: kymo_scrape::RelabelAction::Drop,
            ..RelabelRule::default()
        };
        file.0.push_str(HELP);
        file.0.push_str(&format!("#[[{table}.relabel]]\n"));
        rule_text(file, &example, |value| Err(value));
    }
    for rule in rules {
        file.0.push_str(HELP);
        file.0.push_str(&format!("[[{table}.relabel]]\n"));
        rule_text(file, rule, |value| Ok(value.to_string()));
    }
}

fn rule_text(
    file: &mut File,
    rule: &RelabelRule,
    shown: impl for<'a> Fn(&'a str) -> Result<String, &'a str>,
) {
    for (name, help, value) in [
        (
            "action",
            "\"replace\", \"keep\", \"drop\", \"labeldrop\" or \"labelkeep\".",
            quoted(rule.action.word()),
        ),
        (
            "source_labels",
            "Labels whose values, joined, are compared; __name__ is the metric.",
            list_text(&rule.source_labels),
        ),
        ("separator", "Text between them.", quoted(&rule.separator)),
        (
            "regex",
            "Expression (RE2) that has to match all of it.",
            quoted(&rule.regex),
        ),
        (
            "target_label",
            "Label that \"replace\" sets.",
            quoted(&rule.target_label),
        ),
        (
            "replacement",
            "Value of this label, with $1 for a group of the expression.",
            quoted(&rule.replacement),
        ),
    ] {
        file.key(name, help, shown(&value));
    }
}
