//! Hosts, devices and programs of the store: those that fell silent, and values of programs that are unusual.
//!
//! The keeper's index says whose values go on. Samples are read of one series of each sender that has not stopped, and of a few of
//! the others.

use std::collections::BTreeMap;

use kymo_base::field;
use kymo_base::label_set;
use kymo_base::name::DisplayName;
use kymo_series::names::{self, METRIC};
use kymo_series::{
    Budget, Labels, ReadError, Reader, RowValue, RowsAs, Sample, SampleSink, SeriesId, TimeRange,
    Unit,
};
use kymo_sys::machine;

use super::finding::{Cause, Finding, Subject, worst_first};
use super::gather::Value;
use super::judge::{self, Question, Verdict};
use super::signals::Way;

const MS_NS: i64 = 1_000_000;
const HOUR_MS: i64 = 3_600_000;
/// A sender whose newest value is older than this at the end of a span has stopped, as far as the index knows.
const STOPPED_MS: i64 = 150_000;
/// Least time without a value that is worth a line.
const SILENT_MS: i64 = 30_000;
/// Fewest times between values from which the usual one is computed.
const TIMES_MIN: usize = 5;
/// Most senders, series of a sender, and metrics of a program.
const SENDERS_MAX: usize = 4096;
const SERIES_MAX: usize = 3;
const METRICS_MAX: usize = 64;
/// Limits of all questions together.
const BUDGET: Budget = Budget {
    series: 1 << 19,
    samples: 1 << 22,
};
/// Senders that fall silent at once are one line from this number on.
const FOLD_MIN: usize = 3;
/// Most lines about metrics of a program.
const TOLD_MAX: usize = 3;
const SILENCE_SEVERITY: f64 = 2.2;
const METRIC_WEIGHT: f64 = 0.8;

/// Kinds of senders, as answers call them.
const HOST: &str = "host";
const DEVICE: &str = "device";
const TARGET: &str = "target";
const PROGRAM: &str = "program";

/// A sender, and some of its series.
struct Sender {
    kind: &'static str,
    name: String,
    goes_on: bool,
    series: Vec<(SeriesId, Labels)>,
    silence: Option<Hole>,
}

/// Time without values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Hole {
    /// The last value before it, in milliseconds since 1970.
    since_ms: i64,
    /// The first value after it.
    back_ms: Option<i64>,
    /// Usual time between two values.
    usual_ms: i64,
}

/// Findings about senders in a span, in nanoseconds since 1970.
pub(super) fn findings(
    reader: &dyn Reader,
    (from_ns, thru_ns): (i64, i64),
) -> Result<Vec<Finding>, ReadError> {
    let span = (from_ns / MS_NS, thru_ns / MS_NS);
    let begin_ms = span.0 - HOUR_MS.max(span.1 - span.0);
    let range = TimeRange {
        from_ms: begin_ms,
        thru_ms: span.1 + HOUR_MS,
    };
    let mut budget = BUDGET;
    let mut senders = senders(reader, range.from_ms, span.1 - STOPPED_MS, &mut budget)?;
    for sender in &mut senders {
        sender.silence = silence(reader, sender, range, span, &mut budget)?;
    }
    let mut found = silences(&senders, span);
    let programs = senders
        .iter()
        .filter(|sender| sender.kind == PROGRAM && sender.silence.is_none());
    for program in programs {
        found.extend(metrics(
            reader,
            program,
            (begin_ms, from_ns, thru_ns),
            &mut budget,
        )?);
    }
    Ok(found)
}

/// Senders that had a value after `begin_ms`, with series that had one after `late_ms` if there are any.
fn senders(
    reader: &dyn Reader,
    begin_ms: i64,
    late_ms: i64,
    budget: &mut Budget,
) -> Result<Vec<Sender>, ReadError> {
    let mut senders: Vec<Sender> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (goes_on, from_ms) in [(true, late_ms), (false, begin_ms)] {
        let range = TimeRange {
            from_ms,
            thru_ms: i64::MAX,
        };
        for id in reader.select(&[], range, budget)? {
            let Some(labels) = reader.labels(id) else {
                continue;
            };
            let Some((kind, name)) = sender_of(&labels) else {
                continue;
            };
            let count = senders.len();
            let place = *places.entry(format!("{kind} {name}")).or_insert(count);
            if place == count && count < SENDERS_MAX {
                senders.push(Sender {
                    kind,
                    name,
                    goes_on,
                    series: Vec::new(),
                    silence: None,
                });
            }
            let most = match kind {
                PROGRAM => METRICS_MAX,
                _ => SERIES_MAX,
            };
            let sender = senders.get_mut(place);
            if let Some(sender) =
                sender.filter(|sender| sender.goes_on == goes_on && sender.series.len() < most)
            {
                sender.series.push((id, labels));
            }
        }
    }
    Ok(senders)
}

/// Kind and name of the sender of a series. `None`: it has none, or it says whether others answer.
fn sender_of(labels: &Labels) -> Option<(&'static str, String)> {
    let value = |label| label_set::value(labels.text(), label);
    let (metric, job, path) = (value(METRIC), value("job"), value("path"));
    let instance = value("instance");
    let (kind, name) = match (&*metric, &*job) {
        (b"rrd", _) => match path.strip_prefix(b"mrtg/") {
            Some(rest) => (TARGET, rest.rsplit(|byte| *byte == b'/').next()?),
            None => (HOST, names::collectd_of_path(&path)?.host),
        },
        (b"up", _) => return None,
        (metric, _) if metric.starts_with(b"scrape_") || metric.starts_with(b"snmp_scrape_") => {
            return None;
        }
        (_, b"programs") => {
            let publisher = value("publisher");
            return Some((PROGRAM, DisplayName(&publisher).text().into_owned()));
        }
        (_, b"snmp") => (DEVICE, &*instance),
        _ => (HOST, &*instance),
    };
    (!name.is_empty()).then(|| (kind, DisplayName(name).text().into_owned()))
}

/// Samples of a series that have values.
fn samples(
    reader: &dyn Reader,
    id: SeriesId,
    range: TimeRange,
    budget: &mut Budget,
) -> Result<Vec<Sample>, ReadError> {
    struct KnownValues(Vec<Sample>);
    impl SampleSink for KnownValues {
        fn samples(&mut self, _: SeriesId, samples: &[Sample], _: u32) {
            let known = samples.iter().filter(|sample| !sample.v.is_nan());
            self.0.extend(known);
        }
    }
    let mut known = KnownValues(Vec::new());
    let rows = RowsAs::values(RowValue::Growth);
    reader.samples(&[id], range, rows, budget, &mut known)?;
    Ok(known.0)
}

/// The time for which none of a sender's series had a value, or a program's a new one. One that is regular ends the search.
fn silence(
    reader: &dyn Reader,
    sender: &Sender,
    range: TimeRange,
    span: (i64, i64),
    budget: &mut Budget,
) -> Result<Option<Hole>, ReadError> {
    let mut all: Option<Hole> = None;
    for (id, _) in &sender.series {
        let mut samples = samples(reader, *id, range, budget)?;
        if sender.kind == PROGRAM {
            samples.dedup_by(|next, last| next.v == last.v);
        }
        let stamps: Vec<i64> = samples.iter().map(|sample| sample.t_ms).collect();
        let Some(regular) = hole(&stamps, span) else {
            continue;
        };
        let Some(own) = regular else { return Ok(None) };
        all = Some(all.map_or(own, |all| Hole {
            since_ms: all.since_ms.max(own.since_ms),
            back_ms: match (all.back_ms, own.back_ms) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            },
            usual_ms: all.usual_ms.min(own.usual_ms),
        }));
    }
    let is_long = |hole: &Hole| hole.back_ms.unwrap_or(span.1) - hole.since_ms > SILENT_MS;
    Ok(all.filter(is_long))
}

/// The longest time without a stamp that overlaps the span, if it is much longer than usual. The outer `None`: too few stamps
/// are known.
fn hole(stamps: &[i64], (from_ms, thru_ms): (i64, i64)) -> Option<Option<Hole>> {
    let back = |at: usize| stamps.get(at + 1).copied();
    let length = |at: usize| back(at).unwrap_or(thru_ms) - stamps[at];
    let overlaps =
        |at: &usize| stamps[*at] <= thru_ms && back(*at).is_none_or(|back_ms| back_ms > from_ms);
    let at = (0..stamps.len())
        .filter(overlaps)
        .max_by_key(|at| length(*at))?;
    let pairs = stamps[..=at].windows(2);
    let mut times: Vec<i64> = pairs.map(|pair| pair[1] - pair[0]).collect();
    times.sort_unstable();
    let percent = |percent: usize| times.get(times.len() * percent / 100).copied();
    let (usual_ms, long_ms) = (percent(50)?, percent(95)?);
    let least_ms = SILENT_MS.max(usual_ms * 5 / 2).max(long_ms * 2);
    (times.len() >= TIMES_MIN).then(|| {
        (length(at) > least_ms).then_some(Hole {
            since_ms: stamps[at],
            back_ms: back(at),
            usual_ms,
        })
    })
}

/// Findings of silent senders: one of those that stopped at the same time. Where this machine's own values are missing, those
/// of others are missing for the same reason.
fn silences(senders: &[Sender], (_, thru_ms): (i64, i64)) -> Vec<Finding> {
    let own = machine::host();
    let silent = senders.iter().filter_map(|of| Some((of, of.silence?)));
    let mut silent: Vec<(&Sender, Hole)> = silent.collect();
    silent.sort_by_key(|(of, hole)| (of.kind, hole.since_ms));
    let mut found = Vec::new();
    let mut rest = &silent[..];
    while let Some((first, begin)) = rest.first() {
        let is_together = |(of, hole): &&(&Sender, Hole)| {
            let near_ms = 2 * begin.usual_ms.max(hole.usual_ms);
            of.kind == first.kind && hole.since_ms - begin.since_ms <= near_ms
        };
        let (group, next) = rest.split_at(rest.iter().take_while(is_together).count());
        rest = next;
        if first.kind == HOST && group.iter().any(|(of, _)| of.name == own) {
            continue;
        }
        let size = match group.len() {
            ..FOLD_MIN => 1,
            many => many,
        };
        found.extend(
            group
                .chunks(size)
                .map(|group| silent_finding(group, thru_ms)),
        );
    }
    found
}

/// The finding of senders that fell silent together.
fn silent_finding(group: &[(&Sender, Hole)], thru_ms: i64) -> Finding {
    let holes = || group.iter().map(|(_, hole)| hole);
    let since_ms = holes().map(|hole| hole.since_ms).min().unwrap_or(0);
    let usual_ms = holes().map(|hole| hole.usual_ms).min().unwrap_or(0);
    let back_ms = holes().map(|hole| hole.back_ms);
    // The last of several counts, and one that is not back.
    let back_ms = back_ms
        .reduce(|one, other| Some(one?.max(other?)))
        .flatten();
    let seconds = |ms: i64| ms as f64 / 1e3;
    Finding {
        cause: Cause::Silent,
        subject: Subject::Silence {
            kind: group.first().map_or(HOST, |(of, _)| of.kind),
            names: group.iter().map(|(of, _)| of.name.clone()).collect(),
            back_ns: back_ms.map(|ms| ms * MS_NS),
        },
        value: seconds(back_ms.unwrap_or(thru_ms) - since_ms),
        usual: seconds(usual_ms),
        unit: field::Unit::Seconds,
        score: f64::NAN,
        severity: SILENCE_SEVERITY + (group.len() as f64).ln() / 4.0,
        since_ns: Some(since_ms * MS_NS),
        parts: Vec::new(),
    }
}

/// The finding of a program's unusual values, with the worst in front.
fn metrics(
    reader: &dyn Reader,
    program: &Sender,
    (begin_ms, from_ns, thru_ns): (i64, i64, i64),
    budget: &mut Budget,
) -> Result<Option<Finding>, ReadError> {
    let range = TimeRange {
        from_ms: begin_ms,
        thru_ms: thru_ns / MS_NS + 2_000,
    };
    let mut found: Vec<Finding> = Vec::new();
    for (id, labels) in &program.series {
        let quantile = label_set::value(labels.text(), "quantile");
        if matches!(&*quantile, b"0.5" | b"0.9") {
            continue;
        }
        let samples = samples(reader, *id, range, budget)?;
        let metric = names::metric_of(labels);
        let counts = names::kind_of(&metric).counts() || only_grows(&samples);
        let values = values(&samples, counts);
        let unit = names::unit_of(&metric);
        let question = Question {
            values: &values,
            span: (from_ns, thru_ns),
            floor: floor(unit).max(judge::median(&values).abs() / 5.0),
            way: Way::Both,
            is_stock: false,
        };
        found.extend(question.verdict().map(|verdict| {
            let unit = match (unit, counts) {
                (Unit::Seconds, false) => field::Unit::Seconds,
                (Unit::Bytes, false) => field::Unit::Bytes,
                (Unit::Bytes, true) => field::Unit::BytesPerSecond,
                (Unit::None, true) => field::Unit::PerSecond,
                _ => field::Unit::None,
            };
            metric_finding(program, labels, &verdict, unit)
        }));
    }
    worst_first(&mut found);
    found.truncate(TOLD_MAX);
    let mut found = found.into_iter();
    Ok(found.next().map(|head| Finding {
        parts: found.collect(),
        ..head
    }))
}

fn metric_finding(
    program: &Sender,
    labels: &Labels,
    verdict: &Verdict,
    unit: field::Unit,
) -> Finding {
    let mut name = names::metric_of(labels);
    let hidden: [&[u8]; 4] = [METRIC.as_bytes(), b"job", b"publisher", b"user"];
    for (label, value) in
        label_set::each(labels.text()).filter(|(label, _)| !hidden.contains(label))
    {
        name.push_str(&format!(" {}={}", DisplayName(label), DisplayName(&value)));
    }
    Finding {
        cause: Cause::Program,
        subject: Subject::Metric {
            publisher: program.name.clone(),
            name,
        },
        value: verdict.value,
        usual: verdict.usual,
        unit,
        score: verdict.score,
        severity: METRIC_WEIGHT * verdict.score.min(10.0).ln_1p(),
        since_ns: verdict.since_ns,
        parts: Vec::new(),
    }
}

/// Least usual distance of a value: nothing that a person would look at.
fn floor(unit: Unit) -> f64 {
    match unit {
        Unit::Seconds | Unit::Ratio => 0.05,
        Unit::Bytes => 1e6,
        _ => 1.0,
    }
}

/// True for a counter whose name does not say so.
fn only_grows(samples: &[Sample]) -> bool {
    let grown = samples.windows(2).filter(|pair| pair[1].v > pair[0].v);
    let grown = grown.count();
    let fell = samples.windows(2).any(|pair| pair[1].v < pair[0].v);
    !fell && grown * 2 > samples.len()
}

/// Values of a series; of a counter its growth a second.
fn values(samples: &[Sample], counts: bool) -> Vec<Value> {
    let values = samples.windows(2).filter_map(|pair| {
        let [before, now] = pair else { return None };
        let grown = (now.v - before.v) * 1e3 / (now.t_ms - before.t_ms).max(1) as f64;
        (!counts || grown >= 0.0).then(|| Value {
            from_ns: before.t_ms * MS_NS,
            thru_ns: now.t_ms * MS_NS,
            value: if counts { grown } else { now.v },
        })
    });
    values.collect()
}

#[cfg(test)]
mod tests;
