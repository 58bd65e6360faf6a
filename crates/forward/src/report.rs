//! Counts and backlogs as series of this machine: they go to the keeper like those of a scrape.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_series::names::METRIC;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::keeper::{Push, PushFormat, RECEIVER_METRICS, ReceiverAccount, TailAccount};
use kymo_wire::remote_write::{
    FamilyMetadata, MetricType, SeriesMetadata, WriteEncoder, WriteLabel, WriteSample,
    WriteVersion, compress,
};

use super::counts::Counts;
use super::order::{ForwardTarget, tail_name};

/// Interval of reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// Longest wait for a piece of the keeper's answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The sender of these series, as the page names it, and their label `job`. `kymo` is the job of the hub alone.
const SENDER: &str = "forward";

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

    /// Reports for ever.
    pub(crate) fn run(self) -> Result<(), String> {
        loop {
            thread::sleep(REPORT_EVERY);
            let Ok(tails) = self.keeper.tails() else {
                continue;
            };
            let accounts = self.accounts(&tails);
            if let Some(body) = self.body(&accounts, now_ms()) {
                let push = Push {
                    format: PushFormat::Scrape,
                    sender: SENDER.into(),
                    body,
                };
                // The next report has all of this one.
                let _lost = self.keeper.push(push);
            }
            let _lost = self.keeper.forwarded(accounts);
        }
    }

    /// The counts of all receivers.
    fn accounts(&self, tails: &[TailAccount]) -> Vec<ReceiverAccount> {
        let accounts = self.targets.iter().map(|(target, counts)| {
            let name = tail_name(target);
            let tail = tails.iter().find(|tail| tail.name == name);
            counts.account(target, tail)
        });
        accounts.collect()
    }

    /// The message with all series.
    fn body(&self, accounts: &[ReceiverAccount], t_ms: i64) -> Option<Vec<u8>> {
        let mut encoder = WriteEncoder::new(WriteVersion::V1);
        for metric in &RECEIVER_METRICS {
            encoder.push_family(&FamilyMetadata {
                family: metric.name.trim_end_matches("_total"),
                metadata: SeriesMetadata {
                    metric_type: match metric.is_counter() {
                        true => MetricType::Counter,
                        false => MetricType::Gauge,
                    },
                    help: metric.help,
                    unit: "",
                },
            });
        }
        for account in accounts {
            for metric in &RECEIVER_METRICS {
                let labels = [
                    (METRIC, metric.name),
                    ("forward", &account.name),
                    ("instance", &self.host),
                    ("job", SENDER),
                ];
                let labels = labels.map(|(name, value)| WriteLabel { name, value });
                let sample = WriteSample {
                    t_ms,
                    value: (metric.value)(account),
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

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    RealClock.now().real_ns / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_wire::remote_write::{WriteItem, WriteLimits, WriteReader, decompress};
    use std::sync::atomic::Ordering;

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
        let accounts = report.accounts(&[tail]);
        let packed = report.body(&accounts, 1000).unwrap();
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
        assert_eq!(lines.len(), RECEIVER_METRICS.len());
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
