//! Counts and backlogs as series of this machine: they go to the keeper like those of a scrape.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_series::names::METRIC;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::{machine, talk};
use kymo_wire::keeper::{Push, PushFormat, TailAccount};
use kymo_wire::remote_write::{
    FamilyMetadata, MetricType, SeriesMetadata, WriteEncoder, WriteLabel, WriteSample,
    WriteVersion, compress,
};

use super::counts::{Counts, number};
use super::order::{ForwardTarget, TAIL_PREFIX, tail_name};

/// Interval of reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Longest wait for a piece of the keeper's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The sender of these series, as the page names it, and their label `job`. `kymo` is the job of the hub alone.
const SENDER: &str = "forward";

/// The metrics, in the order of [`values`].
const METRICS: [(&str, MetricType, &str); 9] = [
    (
        "kymo_forward_samples_total",
        MetricType::Counter,
        "Samples that the receiver has.",
    ),
    (
        "kymo_forward_refused_samples_total",
        MetricType::Counter,
        "Samples that the receiver refused for good.",
    ),
    (
        "kymo_forward_missed_values_total",
        MetricType::Counter,
        "Values that the journal had no more when the receiver was to get them.",
    ),
    (
        "kymo_forward_requests_total",
        MetricType::Counter,
        "Requests to the receiver.",
    ),
    (
        "kymo_forward_failed_requests_total",
        MetricType::Counter,
        "Requests that had to be sent again.",
    ),
    (
        "kymo_forward_sent_bytes_total",
        MetricType::Counter,
        "Bytes of requests that the receiver has, without HTTP.",
    ),
    (
        "kymo_forward_up",
        MetricType::Gauge,
        "1: the last request was answered; 0: it failed.",
    ),
    (
        "kymo_forward_backlog_bytes",
        MetricType::Gauge,
        "Bytes of the journal that the receiver is behind.",
    ),
    (
        "kymo_forward_backlog_seconds",
        MetricType::Gauge,
        "Age of the oldest part of the journal that the receiver does not have.",
    ),
];

/// Counts of all receivers, and the way to the keeper.
pub(crate) struct Report {
    keeper: Keeper,
    host: String,
    targets: Vec<(String, Arc<Counts>)>,
}

impl Report {
    /// A report to the keeper with this socket.
    pub(crate) fn new(keeper: &Path) -> Report {
        Report {
            keeper: Keeper::shared(keeper.into(), 1, PATIENCE),
            host: machine::host(),
            targets: Vec::new(),
        }
    }

    /// Adds a receiver.
    pub(crate) fn add(&mut self, target: &ForwardTarget, counts: Arc<Counts>) {
        self.targets.push((target.name.clone(), counts));
    }

    /// Reports for ever. The tails of receivers that are configured no more end first.
    pub(crate) fn run(self) -> Result<(), String> {
        let mut is_tidy = false;
        loop {
            thread::sleep(REPORT_EVERY);
            let Ok(tails) = self.keeper.tails() else {
                continue;
            };
            if !is_tidy {
                is_tidy = self.end_others(&tails);
            }
            if let Some(body) = self.body(&tails, now_ms()) {
                let push = Push {
                    format: PushFormat::Scrape,
                    sender: SENDER.into(),
                    body,
                };
                // The next report has all of this one.
                let _lost = self.keeper.push(push);
            }
        }
    }

    /// Ends tails of receivers that are not configured; true: there are none left.
    fn end_others(&self, tails: &[TailAccount]) -> bool {
        let own: HashSet<String> = self
            .targets
            .iter()
            .map(|(name, _)| tail_name(name))
            .collect();
        let mut tails = tails.iter().map(|tail| &tail.name);
        tails.all(|name| {
            if !name.starts_with(TAIL_PREFIX) || own.contains(name) {
                return true;
            }
            let ended = self.keeper.end_tail(name).is_ok();
            if ended {
                talk::say(format_args!(
                    "kymo: forward: {name} has ended: no table [[forward]] has its name"
                ));
            }
            ended
        })
    }

    /// The message with all series.
    fn body(&self, tails: &[TailAccount], t_ms: i64) -> Option<Vec<u8>> {
        let mut encoder = WriteEncoder::new(WriteVersion::V1);
        for (name, metric_type, help) in METRICS {
            encoder.push_family(&FamilyMetadata {
                family: name.trim_end_matches("_total"),
                metadata: SeriesMetadata {
                    metric_type,
                    help,
                    unit: "",
                },
            });
        }
        for (target, counts) in &self.targets {
            let name = tail_name(target);
            let tail = tails.iter().find(|tail| tail.name == name);
            for ((metric, _, _), value) in METRICS.iter().zip(values(counts, tail)) {
                let labels = [
                    (METRIC, *metric),
                    ("forward", target),
                    ("instance", &self.host),
                    ("job", SENDER),
                ];
                let labels = labels.map(|(name, value)| WriteLabel { name, value });
                let sample = WriteSample {
                    t_ms,
                    value,
                    created_ms: None,
                };
                encoder.push(&labels, &[sample], None);
            }
        }
        let (mut plain, mut packed) = (Vec::new(), Vec::new());
        encoder.finish(&mut plain);
        compress(&plain, &mut packed).ok()?;
        Some(packed)
    }
}

/// Values of all metrics.
fn values(counts: &Counts, tail: Option<&TailAccount>) -> [f64; METRICS.len()] {
    let of = |count: &std::sync::atomic::AtomicU64| number(count.load(Ordering::Relaxed));
    let is_down = counts.is_down.load(Ordering::Relaxed);
    [
        of(&counts.sent),
        of(&counts.refused),
        of(&counts.missed),
        of(&counts.requests),
        of(&counts.failed),
        of(&counts.bytes),
        f64::from(u8::from(!is_down)),
        tail.map_or(0.0, |tail| number(tail.backlog_bytes)),
        tail.map_or(0.0, |tail| tail.backlog_age_s),
    ]
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    RealClock.now().real_ns / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, decompress};

    #[test]
    fn each_receiver_has_each_metric() {
        let counts = Arc::new(Counts::default());
        counts.sent.store(7, Ordering::Relaxed);
        counts.is_down.store(true, Ordering::Relaxed);
        let report = Report {
            targets: vec![("a".into(), counts)],
            host: "web".into(),
            ..Report::new(Path::new("/nowhere"))
        };
        let tail = TailAccount {
            name: "forward-a".into(),
            backlog_bytes: 9,
            backlog_age_s: 1.5,
            ..TailAccount::default()
        };
        let packed = report.body(&[tail], 1000).unwrap();
        let mut plain = Vec::new();
        decompress(&packed, 1 << 20, &mut plain).unwrap();
        let limits = WriteLimits::default();
        let mut reader = WriteReader::new(WriteVersion::V1, &plain, limits).unwrap();
        let mut lines = Vec::new();
        while let Some(item) = reader.read().unwrap() {
            if let WriteItem::Series(series) = item {
                let labels = series.labels.iter().map(|label| label.value);
                let labels: Vec<&str> = labels.collect();
                lines.push(format!("{} {}", labels.join(","), series.samples[0].value));
            }
        }
        assert_eq!(lines.len(), METRICS.len());
        for line in [
            "kymo_forward_samples_total,a,web,forward 7",
            "kymo_forward_up,a,web,forward 0",
            "kymo_forward_backlog_bytes,a,web,forward 9",
            "kymo_forward_backlog_seconds,a,web,forward 1.5",
        ] {
            assert!(lines.iter().any(|of| of == line), "{line}: {lines:?}");
        }
    }
}
