//! `kymo query`: an expression of PromQL over all that a folder has, on the terminal.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::{Error, Result};
use clap::Args;
use jiff::tz::TimeZone;
use kymo_promql::{Answer, Engine, Expr, LabelSet, Limits, NoteKind, Value, Watch, parse};
use kymo_rrd::zone::own_zone;
use kymo_series::Reader;
use kymo_series::names::METRIC;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::talk;

use super::series::{self, Times, WhichStore};

/// Exit code when nothing was found.
const NOTHING: u8 = 1;
/// Points of a series of a range without a step, about.
const POINTS: i64 = 250;
/// Most points of a series.
pub(super) const POINTS_MAX: i64 = 11_000;

/// Options of `kymo query`.
#[derive(Args, Clone, Debug)]
pub(crate) struct QueryOptions {
    /// As PromQL has it: rate(node_cpu_seconds_total[1m])
    #[arg(value_name = "EXPR")]
    expr: String,
    /// Time of the value: 14:30, 20261121:14:30, 2026-11-21T14:30, -1h, now
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "from",
        allow_hyphen_values = true
    )]
    time: Option<String>,
    /// Beginning of the values, one a step. With the end: 14:30-15:00
    #[arg(long, value_name = "TIME[-THRU]", allow_hyphen_values = true)]
    from: Option<String>,
    /// Up to this time, not now
    #[arg(
        long,
        value_name = "TIME",
        requires = "from",
        allow_hyphen_values = true
    )]
    thru: Option<String>,
    /// Time between two values, such as 15s or 5m; without, about 250 values fit
    #[arg(long, value_name = "STEP", requires = "from")]
    step: Option<String>,
    /// The answer of Prometheus' API
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// A line a value: time, value, and labels
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    place: WhichStore,
}

/// When an expression is evaluated, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moments {
    At(i64),
    Range {
        from_ms: i64,
        thru_ms: i64,
        step_ms: i64,
    },
}

/// Runs the command.
pub(crate) fn run(options: &QueryOptions) -> Result<ExitCode> {
    let expr = parse(&options.expr)
        .map_err(|error| Error::msg(format!("cannot use {:?}: {error}", options.expr)))?;
    let moments = moments(options)?;
    let reader = series::union(&options.place)?;
    let answer = evaluate(&options.expr, &expr, moments, &reader)?;
    let missing = reader.missing();
    match put(options, &answer, moments, missing.clone()) {
        // A reader of the output that is gone is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        done => done?,
    }
    if !options.json {
        say_notes(&options.expr, &answer, &missing);
    }
    Ok(match is_empty(&answer.value) {
        true => ExitCode::from(NOTHING),
        false => ExitCode::SUCCESS,
    })
}

/// Evaluates an expression to its end.
pub(super) fn evaluate(
    text: &str,
    expr: &Expr,
    moments: Moments,
    reader: &dyn Reader,
) -> Result<Answer> {
    let never = AtomicBool::new(false);
    let watch = Watch {
        canceled: &never,
        is_late: &|| false,
    };
    let engine = Engine::new(Limits::default());
    let answer = match moments {
        Moments::At(t_ms) => engine.instant(expr, t_ms, reader, watch),
        Moments::Range {
            from_ms,
            thru_ms,
            step_ms,
        } => engine.range(expr, from_ms, thru_ms, step_ms, reader, watch),
    };
    answer.map_err(|error| Error::msg(format!("cannot evaluate {text:?}: {error}")))
}

fn moments(options: &QueryOptions) -> Result<Moments> {
    let Some(from) = options.from.clone() else {
        return match options.time.as_deref() {
            Some(time) => Ok(Moments::At(
                series::moment("--time", time)?.saturating_mul(1000),
            )),
            None => Ok(Moments::At(RealClock.now().real_ns.div_euclid(1_000_000))),
        };
    };
    let times = Times {
        from,
        thru: options.thru.clone(),
    };
    let (from, thru) = series::range(&times)?;
    let length = thru.saturating_sub(from);
    let step_ms = match options.step.as_deref() {
        Some(step) => step_ms(step)?,
        None => (length / POINTS).max(1).saturating_mul(1000),
    };
    if length.saturating_mul(1000) / step_ms > POINTS_MAX {
        let points = format!("more than {POINTS_MAX} values of a series");
        return Err(Error::msg(format!("cannot use --step: {points}")));
    }
    Ok(Moments::Range {
        from_ms: from.saturating_mul(1000),
        thru_ms: thru.saturating_mul(1000),
        step_ms,
    })
}

/// A step in milliseconds: seconds, or a duration of PromQL.
pub(super) fn step_ms(text: &str) -> Result<i64> {
    kymo_serve::prometheus_step_ms(text)
        .ok_or_else(|| Error::msg(format!("cannot use --step {text:?}: 15, 15s, 5m, 1h30m")))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Scalar(_) | Value::Text(_) => false,
        Value::Vector(series) => series.is_empty(),
        Value::Matrix(tracks) => tracks.is_empty(),
    }
}

/// Says on stderr what there is to say beside an answer.
pub(super) fn say_notes(text: &str, answer: &Answer, missing: &[String]) {
    for note in &answer.notes {
        match note.kind {
            NoteKind::Warning | NoteKind::Info => {
                talk::say(format_args!("kymo: {}", note.text(text)));
            }
        }
    }
    for missing in missing {
        talk::say(format_args!("kymo: values are missing: {missing}"));
    }
    if is_empty(&answer.value) {
        talk::say("kymo: no series fits");
    }
}

fn put(
    options: &QueryOptions,
    answer: &Answer,
    moments: Moments,
    missing: Vec<String>,
) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let t_ms = match moments {
        Moments::At(t_ms) => t_ms,
        Moments::Range { thru_ms, .. } => thru_ms,
    };
    if options.json {
        let json = kymo_serve::prometheus_json(answer, &options.expr, t_ms, missing);
        writeln!(out, "{json}")?;
        return out.flush();
    }
    let zone = own_zone();
    match options.csv {
        true => put_csv(&mut out, &answer.value, t_ms, &zone)?,
        false => put_table(&mut out, &answer.value, &zone)?,
    }
    out.flush()
}

fn put_table(out: &mut dyn Write, value: &Value, zone: &TimeZone) -> io::Result<()> {
    match value {
        Value::Scalar(v) => writeln!(out, "{}", number(*v)),
        Value::Text(text) => writeln!(out, "{text:?}"),
        Value::Vector(series) => {
            let rows = series
                .iter()
                .map(|(labels, v)| (promql(labels), number(*v)));
            let rows: Vec<(String, String)> = rows.collect();
            let widths = rows.iter().map(|(labels, _)| labels.chars().count());
            let width = widths.max().unwrap_or(0);
            for (labels, v) in rows {
                writeln!(out, "{labels:<width$}  {v}")?;
            }
            Ok(())
        }
        Value::Matrix(tracks) => {
            for track in tracks {
                writeln!(out, "# {}", promql(&track.labels))?;
                for sample in &track.samples {
                    let time = series::sample_time(sample.t_ms, zone);
                    writeln!(out, "{time} {}", number(sample.v))?;
                }
            }
            Ok(())
        }
    }
}

fn put_csv(out: &mut dyn Write, value: &Value, t_ms: i64, zone: &TimeZone) -> io::Result<()> {
    writeln!(out, "time,value,series")?;
    let mut line = |t_ms: i64, v: String, labels: &str| {
        let time = series::sample_time(t_ms, zone);
        writeln!(out, "{time},{},{}", cell(&v), cell(labels))
    };
    match value {
        Value::Scalar(v) => line(t_ms, number(*v), ""),
        Value::Text(text) => line(t_ms, text.clone(), ""),
        Value::Vector(series) => series
            .iter()
            .try_for_each(|(labels, v)| line(t_ms, number(*v), &promql(labels))),
        Value::Matrix(tracks) => tracks.iter().try_for_each(|track| {
            let labels = promql(&track.labels);
            let mut samples = track.samples.iter();
            samples.try_for_each(|sample| line(sample.t_ms, number(sample.v), &labels))
        }),
    }
}

/// A cell of CSV, between quotes where it needs them.
fn cell(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into(),
    }
}

/// A value in PromQL's syntax.
pub(super) fn number(v: f64) -> String {
    let mut out = String::new();
    kymo_promql::push_number(&mut out, v);
    out
}

/// A label set in PromQL's syntax: `NAME{LABEL="VALUE",...}`. Control characters are escaped.
pub(super) fn promql(labels: &LabelSet) -> String {
    let others = labels.iter().filter(|(name, _)| *name != METRIC);
    let others: Vec<String> = others
        .map(|(name, value)| format!("{name}={value:?}"))
        .collect();
    let name = labels.metric().escape_debug();
    match (others.is_empty(), labels.metric().is_empty()) {
        (true, false) => name.to_string(),
        _ => format!("{name}{{{}}}", others.join(",")),
    }
}

#[cfg(test)]
mod tests {
    use kymo_promql::Track;
    use kymo_series::Sample;

    use super::*;

    fn text(value: &Value, csv: bool) -> String {
        let mut out = Vec::new();
        match csv {
            true => put_csv(&mut out, value, 1500, &TimeZone::UTC).unwrap(),
            false => put_table(&mut out, value, &TimeZone::UTC).unwrap(),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_line_a_series() {
        let labels = LabelSet::new(&[("__name__", "up"), ("job", "a\"b\u{7}")]);
        let vector = Value::Vector(vec![(labels.clone(), 1.5), (LabelSet::empty(), f64::NAN)]);
        assert_eq!(
            text(&vector, false),
            "up{job=\"a\\\"b\\u{7}\"}  1.5\n{}                   NaN\n"
        );
        assert_eq!(
            text(&vector, true),
            "time,value,series\n\
             1970-01-01T00:00:01.500+00:00,1.5,\"up{job=\"\"a\\\"\"b\\u{7}\"\"}\"\n\
             1970-01-01T00:00:01.500+00:00,NaN,{}\n"
        );
        let samples = vec![Sample { t_ms: 0, v: 2.0 }];
        let matrix = Value::Matrix(vec![Track { labels, samples }]);
        assert_eq!(
            text(&matrix, false),
            "# up{job=\"a\\\"b\\u{7}\"}\n1970-01-01T00:00:00.000+00:00 2\n"
        );
        assert_eq!(text(&Value::Scalar(1e-7), false), "1e-07\n");
    }
}
