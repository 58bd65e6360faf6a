//! The series of the rows and their requests of remote write.

use crate::fault::{Cannot, Result};
use kymo_wire::remote_write::{WriteEncoder, WriteLabel, WriteSample, WriteVersion, compress};

/// Series a request.
const BATCH: usize = 1000;
/// Values of the label by which series are picked or added up.
const GROUPS: usize = 100;

/// Counters of one metric.
pub(super) struct Fleet {
    texts: Vec<[String; 2]>,
}

/// The metric of all series.
pub(super) const METRIC: &str = "bench_requests_total";

impl Fleet {
    /// `count` series: of each value of the label `group` a hundredth.
    pub(super) fn new(count: usize) -> Fleet {
        let each =
            (0..count).map(|n| [format!("group-{}", n % GROUPS), format!("web-{n:06}:9100")]);
        Fleet {
            texts: each.collect(),
        }
    }

    /// Requests with a sample of each series at this time, the `step`th one: counters that grow by some 3 to 20 a step.
    pub(super) fn requests(&self, t_ms: i64, step: u64) -> Result<Vec<Vec<u8>>> {
        let all = self.texts.chunks(BATCH).enumerate();
        let requests = all.map(|(at, texts)| {
            let mut encoder = WriteEncoder::new(WriteVersion::V1);
            for (n, [group, instance]) in (at * BATCH..).zip(texts) {
                let labels = [
                    ("__name__", METRIC),
                    ("group", group),
                    ("instance", instance),
                    ("job", "bench"),
                ];
                let labels = labels.map(|(name, value)| WriteLabel { name, value });
                let sample = WriteSample {
                    t_ms,
                    value: value(n as u64, step),
                    created_ms: None,
                };
                encoder.push(&labels, &[sample], None);
            }
            let (mut message, mut block) = (Vec::new(), Vec::new());
            encoder.finish(&mut message);
            compress(&message, &mut block)
                .map_err(|why| why.why())
                .cannot("compress samples")?;
            Ok(block)
        });
        requests.collect()
    }
}

/// A counter that grows unevenly.
fn value(series: u64, step: u64) -> f64 {
    let jitter = (series * 31 + step * 17) % 5;
    ((series % 18 + 3) * step + jitter) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_grow() {
        for series in 0..40 {
            for step in 0..40 {
                assert!(value(series, step) <= value(series, step + 1) + 2.0);
                assert!(value(series, step) < value(series, step + 2));
            }
        }
    }

    #[test]
    fn a_request_has_a_thousand_series() {
        let fleet = Fleet::new(2500);
        assert_eq!(fleet.requests(0, 1).unwrap().len(), 3);
    }
}
