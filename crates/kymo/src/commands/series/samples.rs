//! `kymo series samples`: samples as they were received, by a selector of PromQL.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kymo_base::label_set;
use kymo_query::readers::Union;
use kymo_rrd::zone::own_zone;
use kymo_series::{
    Budget, Reader as _, RowValue, RowsAs, Sample, SampleSink, Selector, SeriesId, TimeRange,
    is_stale, names,
};
use kymo_sys::talk;

use super::{NOTHING, Times, WhichStore, folder, keeper, range, shown};
use crate::commands::data;

/// Most series of an answer.
const SERIES_MAX: u64 = 10_000;

#[derive(Args, Clone, Debug)]
pub(super) struct Samples {
    /// As PromQL has it: node_load1, or {__name__=~"node_.+",job="node"}
    #[arg(value_name = "SELECTOR")]
    selector: String,
    #[command(flatten)]
    times: Times,
    /// Samples at most, of all series together
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    most: u64,
    /// Labels alone
    #[arg(long)]
    labels: bool,
    /// An object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WhichStore,
}

/// Prints samples as they are read.
struct Printed<'a> {
    out: &'a mut dyn Write,
    labels: String,
    json: bool,
    zone: TimeZone,
    done: io::Result<()>,
}

pub(super) fn run(samples: &Samples) -> Result<ExitCode> {
    let selector = Selector::parse(&samples.selector).map_err(|error| Error::msg(error.0))?;
    let (from, thru) = range(&samples.times)?;
    let range = TimeRange {
        from_ms: from.saturating_mul(1000),
        thru_ms: thru.saturating_mul(1000),
    };
    let reader = union(&samples.place)?;
    let mut budget = Budget {
        series: SERIES_MAX,
        samples: samples.most,
    };
    let ids = reader.select(&selector.0, range, &mut budget)?;
    if ids.is_empty() {
        talk::say("kymo: no series fits");
        return Ok(ExitCode::from(NOTHING));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for id in ids {
        let labels = reader.labels(id);
        let labels = labels.map_or_else(String::new, |labels| promql(labels.text()));
        if samples.labels {
            writeln!(out, "{labels}")?;
            continue;
        }
        let mut printed = Printed {
            out: &mut out,
            labels,
            json: samples.json,
            zone: own_zone(),
            done: Ok(()),
        };
        let rows = RowsAs::values(RowValue::Last);
        reader.samples(&[id], range, rows, &mut budget, &mut printed)?;
        printed.done?;
    }
    out.flush()?;
    for missing in reader.missing() {
        talk::say(format_args!("kymo: values are missing: {missing}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A reader of the recording and the store of a folder.
pub(in crate::commands) fn union(place: &WhichStore) -> Result<Union<'static>> {
    match &place.open {
        Some(dir) => data::reader(dir, None),
        None => data::reader(&folder(&place.served)?, Some(keeper(&place.served)?)),
    }
}

/// A label set in PromQL's syntax: `NAME{LABEL="VALUE",...}`.
pub(super) fn promql(text: &[u8]) -> String {
    let name = label_set::value(text, names::METRIC).into_owned();
    let others = label_set::each(text).filter(|(name, _)| *name != names::METRIC.as_bytes());
    let others = others.map(|(name, value)| {
        let mut quoted = Vec::new();
        label_set::put_value(&mut quoted, &value);
        format!("{}=\"{}\"", shown(name), shown(&quoted))
    });
    let others: Vec<String> = others.collect();
    match others.is_empty() {
        true => shown(&name),
        false => format!("{}{{{}}}", shown(&name), others.join(",")),
    }
}

impl SampleSink for Printed<'_> {
    fn samples(&mut self, _id: SeriesId, samples: &[Sample], resolution_s: u32) {
        if self.done.is_ok() {
            self.done = self.print(samples, resolution_s);
        }
    }
}

impl Printed<'_> {
    fn print(&mut self, samples: &[Sample], resolution_s: u32) -> io::Result<()> {
        if self.json {
            let samples = samples.iter();
            let samples = samples.map(|sample| serde_json::json!([sample.t_ms, value(sample.v)]));
            let line = serde_json::json!({
                "series": self.labels,
                "resolution_s": resolution_s,
                "samples": samples.collect::<Vec<_>>(),
            });
            return writeln!(self.out, "{line}");
        }
        match resolution_s {
            0 => writeln!(self.out, "# {}", self.labels)?,
            _ => writeln!(self.out, "# {}, rows of {resolution_s} s", self.labels)?,
        }
        for sample in samples {
            let time = moment(sample.t_ms, &self.zone);
            writeln!(self.out, "{time} {}", value(sample.v))?;
        }
        Ok(())
    }
}

/// A moment in ISO 8601.
pub(in crate::commands) fn moment(t_ms: i64, zone: &TimeZone) -> String {
    let time = Timestamp::from_millisecond(t_ms).map(|time| time.to_zoned(zone.clone()));
    time.map_or_else(
        |_| t_ms.to_string(),
        |time| time.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string(),
    )
}

/// A value in Prometheus' syntax; `stale`: the series has ended.
pub(super) fn value(value: f64) -> String {
    match value {
        _ if is_stale(value) => "stale".into(),
        _ if value.is_nan() => "NaN".into(),
        f64::INFINITY => "+Inf".into(),
        f64::NEG_INFINITY => "-Inf".into(),
        _ => value.to_string(),
    }
}
