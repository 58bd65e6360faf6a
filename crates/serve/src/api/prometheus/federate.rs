//! `/federate`: the newest sample of each series that selectors pick, with its time, as text that Prometheus scrapes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use kymo_base::label_set;
use kymo_query::readers::Union;
use kymo_series::names::{METRIC, is_metric};
use kymo_series::{
    Budget, Labels, Matcher, ReadError, Reader, RowValue, RowsAs, Sample, SampleSink, SeriesId,
    TimeRange, is_stale,
};

use super::failure::{ErrorType, Failure, PlainFailure};
use super::labels::silence;
use super::{ANSWER_MAX, FormRequest, Hub, PATIENCE, Terms, answer_with};
use crate::answer::{Made, Wishes};
use kymo_promql::push_number;

/// Type of the answer: Prometheus' text format.
const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// A sample stands for this long, as in an expression.
const LOOKBACK_MS: i64 = 300_000;
/// Most series have a sample of the last seconds. Only for the others the whole time is read.
const RECENT_MS: i64 = 15_000;
/// Series whose samples are read at one time.
const BATCH: usize = 512;
/// Series of an answer at most.
const SERIES_MAX: u64 = 1_000_000;
/// Samples that one answer reads at most.
const SAMPLES_MAX: u64 = 50_000_000;
/// A series without this label gets an empty one, so that the scraper does not add its own.
const INSTANCE: &str = "instance";

/// Answers with the newest samples.
pub(in crate::api) async fn answer(
    State(hub): State<Arc<Hub>>,
    asking: FormRequest,
) -> Result<Response, PlainFailure> {
    let sets = asking.form.matchers()?.unwrap_or_default();
    let now_ms = asking.form.now_ms();
    let wishes = Wishes::of(&asking.head.headers);
    let made = move |hub: &Hub, terms: &Terms| {
        let body = written(&sets, now_ms, hub, terms)?;
        Ok(Made::tagged(&wishes, MEDIA_TYPE, body))
    };
    Ok(answer_with(hub, &asking.head, PATIENCE, made).await?)
}

fn written(
    sets: &[Vec<Matcher>],
    now_ms: i64,
    hub: &Hub,
    terms: &Terms,
) -> Result<Vec<u8>, Failure> {
    let reader = terms.own_reader(hub)?;
    let range = TimeRange {
        from_ms: now_ms.saturating_sub(LOOKBACK_MS).saturating_add(1),
        thru_ms: now_ms,
    };
    let mut query = FederateQuery {
        reader: &reader,
        terms,
        range,
        budget: Budget {
            series: SERIES_MAX,
            samples: SAMPLES_MAX,
        },
    };
    let mut found = BTreeSet::new();
    for set in sets {
        found.extend(query.select(set)?);
    }
    let found: Vec<SeriesId> = found.into_iter().collect();
    let mut lines = Vec::new();
    for ids in found.chunks(BATCH) {
        let newest = query.newest(ids)?;
        let labelled = ids.iter().filter_map(|id| {
            let sample = newest.get(id)?;
            Line::of(&reader.labels(*id)?, *sample)
        });
        lines.extend(labelled);
    }
    lines.sort_unstable();
    text(&lines)
}

/// Reads for one answer.
struct FederateQuery<'a> {
    reader: &'a Union<'a>,
    terms: &'a Terms,
    range: TimeRange,
    budget: Budget,
}

impl FederateQuery<'_> {
    fn select(&mut self, set: &[Matcher]) -> Result<Vec<SeriesId>, Failure> {
        self.terms.check()?;
        let found = self.reader.select(set, self.range, &mut self.budget);
        found.or_else(|error| silence(error).map(|_| Vec::new()))
    }

    /// The newest samples that stand now.
    fn newest(&mut self, ids: &[SeriesId]) -> Result<HashMap<SeriesId, Sample>, Failure> {
        let mut newest = NewestSamples {
            now_ms: self.range.thru_ms,
            samples: HashMap::with_capacity(ids.len()),
        };
        let recent = TimeRange {
            from_ms: self.range.thru_ms.saturating_sub(RECENT_MS),
            ..self.range
        };
        self.read(ids, recent, &mut newest)?;
        let others = ids.iter().filter(|id| !newest.samples.contains_key(id));
        let others: Vec<SeriesId> = others.copied().collect();
        self.read(&others, self.range, &mut newest)?;
        newest.samples.retain(|_, sample| !is_stale(sample.v));
        Ok(newest.samples)
    }

    fn read(
        &mut self,
        ids: &[SeriesId],
        range: TimeRange,
        newest: &mut NewestSamples,
    ) -> Result<(), Failure> {
        self.terms.check()?;
        let rows = RowsAs {
            value: RowValue::Last,
            before: 1,
        };
        if ids.is_empty() {
            return Ok(());
        }
        let read = self
            .reader
            .samples(ids, range, rows, &mut self.budget, newest);
        read.or_else(|error: ReadError| silence(error).map(|_| ()))
    }
}

/// The newest sample of each series.
struct NewestSamples {
    now_ms: i64,
    samples: HashMap<SeriesId, Sample>,
}

impl SampleSink for NewestSamples {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        let Some(&last) = samples.last() else {
            return;
        };
        // A row stands for the time up to the next one.
        let stands_ms = LOOKBACK_MS.max(i64::from(resolution_s).saturating_mul(1000));
        if last.t_ms > self.now_ms.saturating_sub(stands_ms) && last.t_ms <= self.now_ms {
            self.samples.insert(id, last);
        }
    }
}

/// A sample of the text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    metric: String,
    /// Labels, value and time.
    rest: String,
}

impl Line {
    /// `None`: the format cannot carry the metric's name.
    fn of(labels: &Labels, sample: Sample) -> Option<Line> {
        let metric = label_set::value(labels.text(), METRIC);
        let metric = String::from_utf8_lossy(&metric).into_owned();
        if !is_metric(&metric) {
            return None;
        }
        let (mut rest, mut has_instance) = (String::from("{"), false);
        for (name, value) in label_set::each(labels.text()) {
            let name = String::from_utf8_lossy(name);
            if name != METRIC {
                has_instance |= name == INSTANCE;
                push_label(&mut rest, &name, &String::from_utf8_lossy(&value));
            }
        }
        if !has_instance {
            push_label(&mut rest, INSTANCE, "");
        }
        rest.push_str("} ");
        push_number(&mut rest, sample.v);
        // Writing to a String cannot fail.
        let _ = write!(rest, " {}", sample.t_ms);
        Some(Line { metric, rest })
    }
}

fn push_label(out: &mut String, name: &str, value: &str) {
    if out.len() > 1 {
        out.push(',');
    }
    out.push_str(name);
    out.push_str("=\"");
    for letter in value.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// The text of sorted lines.
fn text(lines: &[Line]) -> Result<Vec<u8>, Failure> {
    let (mut out, mut known) = (Vec::new(), "");
    for line in lines {
        if line.metric != known {
            known = &line.metric;
            out.extend_from_slice(format!("# TYPE {known} untyped\n").as_bytes());
        }
        for part in [line.metric.as_str(), line.rest.as_str(), "\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        if out.len() > ANSWER_MAX {
            let text = format!("the answer has more than {ANSWER_MAX} bytes; ask for less");
            return Err(Failure::new(ErrorType::Execution, text));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use kymo_series::stale;

    use super::*;

    fn line(labels: &[(&str, &str)], v: f64) -> Option<Line> {
        let labels = labels.iter().map(|(name, value)| (*name, value.as_bytes()));
        let sample = Sample { t_ms: 1500, v };
        Line::of(&Labels::new(labels).unwrap(), sample)
    }

    #[test]
    fn lines_have_the_text_formats_escapes() {
        let up = line(&[("__name__", "up"), ("instance", "a:1")], 1.0);
        let odd = line(
            &[("__name__", "a:b"), ("path", "a\\b\"c\nd")],
            f64::INFINITY,
        );
        assert_eq!(line(&[("job", "node")], 1.0), None);
        let mut lines: Vec<Line> = [up, odd].into_iter().flatten().collect();
        lines.push(line(&[("__name__", "up")], 0.5).unwrap());
        lines.sort_unstable();
        let text = String::from_utf8(text(&lines).unwrap()).unwrap();
        let expected = concat!(
            "# TYPE a:b untyped\n",
            "a:b{path=\"a\\\\b\\\"c\\nd\",instance=\"\"} +Inf 1500\n",
            "# TYPE up untyped\n",
            "up{instance=\"\"} 0.5 1500\n",
            "up{instance=\"a:1\"} 1 1500\n",
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn an_answer_has_a_limit() {
        let long = Line {
            metric: "a".into(),
            rest: "x".repeat(ANSWER_MAX),
        };
        assert_eq!(text(&[long]).unwrap_err().kind, ErrorType::Execution);
    }

    #[test]
    fn the_newest_sample_stands_for_its_time() {
        let now_ms = 10_000_000;
        let mut newest = NewestSamples {
            now_ms,
            samples: HashMap::new(),
        };
        let sample = |before_ms| Sample {
            t_ms: now_ms - before_ms,
            v: stale(),
        };
        for (id, before_ms, resolution_s, stands) in [
            (1, 0, 0, true),
            (2, 299_999, 0, true),
            (3, 300_000, 0, false),
            (4, 300_000, 3600, true),
            (5, -1, 0, false),
        ] {
            let id = SeriesId(id);
            newest.samples(id, &[sample(400_000), sample(before_ms)], resolution_s);
            assert_eq!(newest.samples.contains_key(&id), stands, "{before_ms}");
        }
    }
}
