//! From the text of a scrape to samples: labels of the target are added, rules are applied, and series that have ended
//! get a stale marker. A text with a fault gives no sample at all.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use kymo_series::{names, stale};
use kymo_wire::exposition_text::{
    EscapedText, ExposedLine, ExposedSample, ExpositionFormat, ExpositionReader, MetricType,
};
use kymo_wire::remote_write::{FamilyMetadata, SeriesMetadata};

use super::message::Message;
use super::relabel::{LabelMap, Relabeled, Relabeling};
use super::series::{ExposedSeries, PlainLabels, TargetSeries, Turn};

/// Prefix of a label of a sample that the target has, too.
const EXPORTED: &str = "exported_";
/// Scrapes after which descriptions are sent again.
const DESCRIBE_EVERY: u64 = 240;
/// Descriptions that are remembered of a target.
const DESCRIBED_MAX: usize = 20_000;

/// Rules for the samples of a target.
#[derive(Clone)]
pub(crate) struct IntakeRules {
    /// Labels of the target.
    pub(crate) labels: Vec<(String, String)>,
    /// Rules that change labels.
    pub(crate) relabeling: Arc<Relabeling>,
    /// True: labels of samples win over those of the target.
    pub(crate) honor_labels: bool,
    /// True: samples keep their own times.
    pub(crate) honor_timestamps: bool,
    /// Most samples of a scrape.
    pub(crate) samples_max: u64,
}

/// Samples of a target.
pub(crate) struct Intake {
    rules: IntakeRules,
    series: TargetSeries,
    /// Hashes of the descriptions that the keeper has, by family.
    described: HashMap<Box<str>, u64>,
}

/// Samples of a scrape, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScrapeCounts {
    /// All samples.
    pub(crate) scraped: u64,
    /// Samples that rules left.
    pub(crate) kept: u64,
    /// Series that the scrape before did not have.
    pub(crate) added: u64,
}

/// A family whose lines are being read.
#[derive(Default)]
struct OpenFamily<'a> {
    name: String,
    metric_type: MetricType,
    help: Option<EscapedText<'a>>,
    unit: &'a str,
}

impl Intake {
    /// No series.
    pub(crate) fn new(rules: IntakeRules) -> Intake {
        Intake {
            rules,
            series: TargetSeries::default(),
            described: HashMap::new(),
        }
    }

    /// Takes the text of a scrape. The error is the reason why the scrape failed; [`Intake::fail`] follows it.
    pub(crate) fn take(
        &mut self,
        format: ExpositionFormat,
        text: &[u8],
        stamp_ms: i64,
    ) -> Result<(Message, ScrapeCounts), String> {
        self.series.begin();
        if self.series.scrape().is_multiple_of(DESCRIBE_EVERY) {
            self.described.clear();
        }
        let (mut message, mut counts) = (Message::new(), ScrapeCounts::default());
        let mut reader = ExpositionReader::new(format, text);
        let mut open = OpenFamily::default();
        loop {
            let line = reader.read().map_err(|fault| {
                format!("the answer is not in the format of Prometheus or OpenMetrics: {fault}")
            })?;
            match line {
                None => break,
                Some(ExposedLine::Sample(sample)) => {
                    self.describe(&mut open, "", &mut message);
                    self.take_sample(&sample, stamp_ms, &mut message, &mut counts)?;
                }
                Some(ExposedLine::Type {
                    family,
                    metric_type,
                }) => {
                    self.describe(&mut open, &family.text(), &mut message);
                    open.metric_type = metric_type;
                }
                Some(ExposedLine::Help { family, help }) => {
                    self.describe(&mut open, &family.text(), &mut message);
                    open.help = Some(help);
                }
                Some(ExposedLine::Unit { family, unit }) => {
                    self.describe(&mut open, &family.text(), &mut message);
                    open.unit = unit;
                }
            }
        }
        self.describe(&mut open, "", &mut message);
        let end = |labels: &PlainLabels| message.sample(labels, stamp_ms, stale());
        self.series.succeed(end);
        Ok((message, counts))
    }

    /// Ends all series: the scrape failed.
    pub(crate) fn fail(&mut self, stamp_ms: i64) -> Message {
        let mut message = Message::new();
        let end = |labels: &PlainLabels| message.sample(labels, stamp_ms, stale());
        self.series.fail(end);
        message
    }

    /// Adds a sample of a metric about the scrape.
    pub(crate) fn report(&self, metric: &str, stamp_ms: i64, value: f64, message: &mut Message) {
        let mut labels: LabelMap = self.rules.labels.iter().cloned().collect();
        labels.insert(names::METRIC.into(), metric.into());
        message.sample(&plain(labels), stamp_ms, value);
    }

    /// Sends the description of a family of which no further line follows, unless the keeper has it.
    fn describe(&mut self, open: &mut OpenFamily, next: &str, message: &mut Message) {
        if open.name == next {
            return;
        }
        let ended = std::mem::replace(
            open,
            OpenFamily {
                name: next.into(),
                ..OpenFamily::default()
            },
        );
        if ended.name.is_empty() {
            return;
        }
        let help = ended.help.map(EscapedText::text).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (ended.metric_type.word(), &help, ended.unit).hash(&mut hasher);
        let hash = hasher.finish();
        let is_known = self.described.get(&*ended.name) == Some(&hash);
        if is_known || self.described.len() >= DESCRIBED_MAX {
            return;
        }
        message.family(&FamilyMetadata {
            family: &ended.name,
            metadata: SeriesMetadata {
                metric_type: ended.metric_type,
                help: &help,
                unit: ended.unit,
            },
        });
        self.described.insert(ended.name.into(), hash);
    }

    fn take_sample(
        &mut self,
        sample: &ExposedSample,
        stamp_ms: i64,
        message: &mut Message,
        counts: &mut ScrapeCounts,
    ) -> Result<(), String> {
        counts.scraped += 1;
        if counts.scraped > self.rules.samples_max {
            let most = self.rules.samples_max;
            return Err(format!(
                "it has more than {most} samples; `samples` of its job allows more"
            ));
        }
        if !self.series.has(sample.series) {
            let labels = self.labels_of(sample)?;
            counts.added += u64::from(labels.is_some());
            self.series.add(sample.series, ExposedSeries::new(labels));
        }
        let own_ms = sample.t_ms.filter(|_| self.rules.honor_timestamps);
        let noted = self.series.note(sample.series, own_ms.is_some());
        if let Some((turn, Some(labels))) = noted {
            counts.kept += 1;
            // The first of two samples of one moment counts.
            if turn == Turn::First || own_ms.is_some() {
                message.sample(labels, own_ms.unwrap_or(stamp_ms), sample.value);
            }
        }
        Ok(())
    }

    /// Labels under which samples of a series are kept; `None`: a rule drops them.
    fn labels_of(&self, sample: &ExposedSample) -> Result<Option<PlainLabels>, String> {
        let mut labels = LabelMap::new();
        labels.insert(names::METRIC.into(), sample.name.text().into_owned());
        for label in sample.labels {
            let (name, value) = (label.name.text(), label.value.text());
            if value.is_empty() {
                continue;
            }
            if labels
                .insert(name.into_owned(), value.into_owned())
                .is_some()
            {
                return Err("a sample has a label twice".into());
            }
        }
        for (name, value) in &self.rules.labels {
            match labels.remove(name) {
                Some(exposed) if self.rules.honor_labels => {
                    labels.insert(name.clone(), exposed);
                }
                Some(exposed) => {
                    let mut exported = format!("{EXPORTED}{name}");
                    while labels.contains_key(&exported) {
                        exported.insert_str(0, EXPORTED);
                    }
                    labels.insert(exported, exposed);
                    labels.insert(name.clone(), value.clone());
                }
                None => drop(labels.insert(name.clone(), value.clone())),
            }
        }
        if self.rules.relabeling.apply(&mut labels) == Relabeled::Dropped {
            return Ok(None);
        }
        match labels.get(names::METRIC) {
            Some(metric) if !metric.is_empty() => Ok(Some(plain(labels))),
            Some(_) | None => Err("a rule leaves a sample without __name__".into()),
        }
    }
}

fn plain(labels: LabelMap) -> PlainLabels {
    let labels = labels.into_iter();
    labels
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests;
