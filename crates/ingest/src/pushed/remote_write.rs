//! Takes a request of Prometheus' remote write.

use kymo_store::Point;
use kymo_wire::keeper::PushResult;
use kymo_wire::remote_write::http::WriteOutcome;
use kymo_wire::remote_write::{
    BadSeries, SeriesMetadata, WriteItem, WriteLabel, WriteLimits, WriteReader, WriteSeries,
    WriteVersion, decompress,
};

use super::intake::PushIntake;
use super::kinds::family_of;
use super::round::PushRound;

/// Most bytes of a message behind Snappy.
const UNPACKED_MAX: usize = 32 << 20;
const HISTOGRAM: &str = "a native histogram";

/// Takes a request: a block of Snappy with a message. `unpacked` is a buffer.
pub(super) fn take(
    intake: &mut PushIntake,
    round: &mut PushRound,
    unpacked: &mut Vec<u8>,
    version: WriteVersion,
    body: &[u8],
) -> PushResult {
    if let Err(bad) = decompress(body, UNPACKED_MAX, unpacked) {
        round.refuse("a request that is not understood", 1);
        return refused(bad.into(), format!("cannot read the body: {bad}"));
    }
    let mut reader = match WriteReader::new(version, unpacked, WriteLimits::default()) {
        Ok(reader) => reader,
        Err(bad) => {
            round.refuse("a request that is not understood", 1);
            return refused(bad.into(), format!("cannot read the message: {bad}"));
        }
    };
    loop {
        match reader.read() {
            Ok(Some(item)) => take_item(intake, round, &item),
            Ok(None) => break,
            Err(bad) => {
                intake.drop_pending();
                round.refuse("a request that is not understood", 1);
                return PushResult {
                    samples: round.stored,
                    ..refused(bad.into(), format!("cannot read the message: {bad}"))
                };
            }
        }
    }
    intake.write(round);
    let counts = reader.counts();
    round.refuse(HISTOGRAM, counts.histograms);
    outcome(round)
}

fn take_item(intake: &mut PushIntake, round: &mut PushRound, item: &WriteItem) {
    match item {
        WriteItem::Series(series) => take_series(intake, round, series),
        WriteItem::Refused { why, samples, .. } => {
            let samples = u64::try_from(*samples).unwrap_or(u64::MAX);
            round.refuse(refusal(*why), samples.max(1));
        }
        WriteItem::Metadata(of) => intake.families.note(of.family, &of.metadata),
    }
}

fn take_series(intake: &mut PushIntake, round: &mut PushRound, series: &WriteSeries) {
    // A series of native histograms alone has none.
    if series.samples.is_empty() {
        return;
    }
    let labels = series.labels.iter().map(|label| (label.name, label.value));
    let about = series.metadata.map(|metadata| {
        let metric = metric_of(series.labels);
        (family_in(metric, &metadata), metadata)
    });
    let samples = u64::try_from(series.samples.len()).unwrap_or(u64::MAX);
    let Some(target) = intake.series(labels, samples, about, round) else {
        return;
    };
    for sample in series.samples {
        let point = Point {
            t_ms: sample.t_ms,
            v: sample.value,
        };
        intake.add(target, point, round);
    }
}

fn metric_of<'a>(labels: &[WriteLabel<'a>]) -> &'a str {
    let named = labels.iter().find(|label| label.name == "__name__");
    named.map_or("", |label| label.value)
}

/// The family of a series of 2.0, whose metadata stand beside each part.
fn family_in<'a>(metric: &'a str, metadata: &SeriesMetadata) -> &'a str {
    use kymo_wire::remote_write::MetricType::{
        Counter, Gauge, GaugeHistogram, Histogram, Info, StateSet, Summary, Unknown,
    };
    match metadata.metric_type {
        Histogram | GaugeHistogram | Summary => family_of(metric).unwrap_or(metric),
        Counter | Gauge | Info | StateSet | Unknown => metric,
    }
}

fn refusal(why: BadSeries) -> &'static str {
    match why {
        BadSeries::NoName => "a sample without a metric's name",
        BadSeries::EmptyLabelName => "a sample with a label without a name",
        BadSeries::Twice => "a sample with a label that comes twice",
        BadSeries::NotUtf8 => "a sample with a label that is not UTF-8",
        BadSeries::LabelCount | BadSeries::LabelBytes => {
            "a sample whose labels are too long or too many"
        }
        BadSeries::NoSymbol => "a sample with a reference beyond the table of symbols",
        BadSeries::OddReferences => "a sample with a label's name without a value",
        BadSeries::Empty => "a series with neither samples nor histograms",
    }
}

fn refused(outcome: WriteOutcome, why: String) -> PushResult {
    PushResult {
        status: outcome.status(),
        samples: 0,
        refused: 0,
        why,
    }
}

fn outcome(round: &PushRound) -> PushResult {
    let (outcome, why) = match &round.failed {
        Some(why) => (WriteOutcome::Unavailable, why.clone()),
        None if round.refused.is_empty() => (WriteOutcome::Written, String::new()),
        None => (WriteOutcome::Invalid, round.words()),
    };
    PushResult {
        status: outcome.status(),
        samples: round.stored,
        refused: round.refused_count(),
        why,
    }
}
