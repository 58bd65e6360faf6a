//! Takes metrics of OpenTelemetry.

use kymo_store::Point;
use kymo_wire::keeper::PushResult;
use kymo_wire::otlp::{BadDataPoint, OtlpLimits, OtlpSample, read_metrics};
use kymo_wire::remote_write::SeriesMetadata;

use super::intake::PushIntake;
use super::round::PushRound;

/// Statuses of answers. A sender tries again after 503 and after no other of these.
const TAKEN: u16 = 200;
const MALFORMED: u16 = 400;
const UNAVAILABLE: u16 = 503;

/// Takes a request: an `ExportMetricsServiceRequest`.
pub(super) fn take(intake: &mut PushIntake, round: &mut PushRound, body: &[u8]) -> PushResult {
    let mut sink = |sample: &OtlpSample| take_sample(intake, round, sample);
    let read = read_metrics(body, &OtlpLimits::default(), &mut sink);
    let counts = match read {
        Ok(counts) => counts,
        Err(bad) => {
            intake.drop_pending();
            round.refuse("a request that is not understood", 1);
            return PushResult {
                status: MALFORMED,
                samples: round.stored,
                refused: 0,
                why: format!("cannot read the message: {bad}"),
            };
        }
    };
    intake.write(round);
    for (why, points) in counts.reasons() {
        round.refuse(refusal(why), points);
    }
    let (status, why) = match &round.failed {
        Some(why) => (UNAVAILABLE, why.clone()),
        None => (TAKEN, round.words()),
    };
    PushResult {
        status,
        samples: round.stored,
        refused: round.refused_count(),
        why,
    }
}

fn take_sample(intake: &mut PushIntake, round: &mut PushRound, sample: &OtlpSample) {
    let metadata = SeriesMetadata {
        metric_type: sample.metric_type,
        help: sample.help,
        unit: sample.unit,
    };
    let about = Some((sample.family, metadata));
    if let Some(target) = intake.series(sample.labels.iter(), 1, about, round) {
        let point = Point {
            t_ms: sample.t_ms,
            v: sample.value,
        };
        intake.add(target, point, round);
    }
}

fn refusal(why: BadDataPoint) -> &'static str {
    match why {
        BadDataPoint::Delta => "a data point of delta temporality (configure cumulative)",
        BadDataPoint::NoTemporality => "a data point without temporality",
        BadDataPoint::Exponential => {
            "a data point of an exponential histogram (configure explicit buckets)"
        }
        BadDataPoint::Name => "a data point of a metric without a usable name",
        BadDataPoint::NotUtf8 => "a data point with a text that is not UTF-8",
        BadDataPoint::NoTime => "a data point without a time",
        BadDataPoint::NoValue => "a data point without a value",
        BadDataPoint::AttributeKey => "a data point with an attribute without a usable key",
        BadDataPoint::AttributeDepth => "a data point with an attribute nested too deeply",
        BadDataPoint::AttributeCount => "a data point with too many attributes",
        BadDataPoint::AttributeBytes => "a data point with attributes of too many bytes",
        BadDataPoint::BucketCount => "a data point with too many buckets or quantiles",
        BadDataPoint::Bounds => "a data point whose bounds do not fit its buckets",
    }
}
