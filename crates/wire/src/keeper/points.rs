//! Series as in `kymo_series`: found by Prometheus' matchers, with samples as they were received.

use super::body::{Put, Take};
use super::put_flag;
use kymo_base::label_set::Labels;
use kymo_base::varint::{len, put, take, unzigzag, zigzag};

/// Most matchers of a request.
const MATCHERS_MAX: usize = 64;
/// Most series of one SAMPLES.
pub const IDS_MAX: usize = 1000;
/// The largest [`SamplesOf::row_value`].
const ROW_VALUE_MAX: u8 = 4;

/// A matcher of Prometheus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelMatcher {
    /// The label.
    pub label: String,
    /// Comparison of the matcher.
    pub op: MatchOp,
    /// Text or expression to compare with.
    pub value: String,
}

/// Comparisons of matchers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

impl MatchOp {
    const ALL: [MatchOp; 4] = [
        MatchOp::Equal,
        MatchOp::NotEqual,
        MatchOp::Matches,
        MatchOp::NotMatches,
    ];
}

/// A choice of series, in a range of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Find {
    /// Matchers, all of which a series has to match.
    pub matchers: Vec<LabelMatcher>,
    /// First moment, milliseconds since 1970.
    pub from_ms: i64,
    /// Last moment, milliseconds since 1970; included.
    pub thru_ms: i64,
    /// Most series; more are an error.
    pub series_max: u64,
}

/// KeeperRequest for samples of series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplesOf {
    /// Numbers of series, as in [`FoundSeries`]; at most [`IDS_MAX`].
    pub ids: Vec<u64>,
    /// First moment, milliseconds since 1970.
    pub from_ms: i64,
    /// Last moment, milliseconds since 1970; included.
    pub thru_ms: i64,
    /// Where rows stand for samples, the value of a row: 0 its mean, 1 minimum, 2 maximum, 3 last value, 4 a counter that grows as
    /// the samples did.
    pub row_value: u8,
    /// Number of rows before the range that are read, too.
    pub rows_before: u8,
    /// Most samples; more are an error.
    pub samples_max: u64,
}

/// KeeperRequest for names of labels, or values of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelsOf {
    /// The label whose values are asked for; empty: names of labels.
    pub label: String,
    /// The series whose labels are asked for.
    pub find: Find,
}

/// A series that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSeries {
    /// Number of the series, as long as the keeper runs.
    pub id: u64,
    /// Labels of the series.
    pub labels: Labels,
}

/// Some samples of one series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SamplesPiece {
    /// The series.
    pub id: u64,
    /// Seconds between samples that are rows; 0: the samples are as they were received.
    pub resolution_s: u32,
    /// Stamps, milliseconds since 1970, rising, each with its value.
    pub samples: Vec<(i64, f64)>,
}

fn text(body: &mut Take) -> Option<String> {
    String::from_utf8(body.text()?.to_vec()).ok()
}

impl Find {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.from_ms);
        out.i64(self.thru_ms);
        out.u64(self.series_max);
        out.u16(self.matchers.len());
        for matcher in &self.matchers {
            let op = MatchOp::ALL.iter().position(|op| *op == matcher.op);
            out.text(matcher.label.as_bytes());
            out.u8(op.and_then(|op| u8::try_from(op).ok()).unwrap_or(0));
            out.text(matcher.value.as_bytes());
        }
    }

    pub(super) fn take(body: &mut Take) -> Option<Find> {
        let (from_ms, thru_ms, series_max) = (body.i64()?, body.i64()?, body.u64()?);
        let count = body.count(MATCHERS_MAX)?;
        let matchers = (0..count).map(|_| {
            Some(LabelMatcher {
                label: text(body)?,
                op: *MatchOp::ALL.get(usize::from(body.u8()?))?,
                value: text(body)?,
            })
        });
        Some(Find {
            matchers: matchers.collect::<Option<_>>()?,
            from_ms,
            thru_ms,
            series_max,
        })
    }
}

impl SamplesOf {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.i64(self.from_ms);
        out.i64(self.thru_ms);
        out.u8(self.row_value);
        out.u8(self.rows_before);
        out.u64(self.samples_max);
        out.u16(self.ids.len());
        self.ids.iter().for_each(|id| out.u64(*id));
    }

    pub(super) fn take(body: &mut Take) -> Option<SamplesOf> {
        let (from_ms, thru_ms) = (body.i64()?, body.i64()?);
        let row_value = body.u8().filter(|code| *code <= ROW_VALUE_MAX)?;
        let (rows_before, samples_max) = (body.u8()?, body.u64()?);
        let count = body.count(IDS_MAX)?;
        Some(SamplesOf {
            ids: (0..count).map(|_| body.u64()).collect::<Option<_>>()?,
            from_ms,
            thru_ms,
            row_value,
            rows_before,
            samples_max,
        })
    }
}

impl LabelsOf {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.text(self.label.as_bytes());
        self.find.put(out);
    }

    pub(super) fn take(body: &mut Take) -> Option<LabelsOf> {
        Some(LabelsOf {
            label: text(body)?,
            find: Find::take(body)?,
        })
    }
}

pub(super) fn put_found(found: &[FoundSeries], more: &bool, out: &mut Vec<u8>) {
    put_flag(more, out);
    out.length(found.len());
    for series in found {
        out.u64(series.id);
        out.text(series.labels.text());
    }
}

pub(super) fn take_found(body: &mut Take) -> Option<(Vec<FoundSeries>, bool)> {
    let more = body.flag()?;
    let count = body.u32()?;
    let found = (0..count).map(|_| {
        Some(FoundSeries {
            id: body.u64()?,
            labels: Labels::parse(body.text()?).ok()?,
        })
    });
    Some((found.collect::<Option<_>>()?, more))
}

pub(super) fn put_texts(texts: &[String], more: &bool, out: &mut Vec<u8>) {
    put_flag(more, out);
    out.length(texts.len());
    texts.iter().for_each(|text| out.text(text.as_bytes()));
}

pub(super) fn take_texts(body: &mut Take) -> Option<(Vec<String>, bool)> {
    let more = body.flag()?;
    let count = body.u32()?;
    let texts = (0..count).map(|_| text(body));
    Some((texts.collect::<Option<_>>()?, more))
}

impl SamplesPiece {
    /// Appends the piece. A stamp is stored as the change of its distance to the stamp before, mostly
    /// in one byte.
    pub(super) fn put(&self, more: &bool, out: &mut Vec<u8>) {
        // Most stamps take a byte.
        out.reserve(32 + 9 * self.samples.len());
        put_flag(more, out);
        out.u64(self.id);
        out.u32(self.resolution_s);
        out.length(self.samples.len());
        let (mut last, mut step) = (0_i64, 0_i64);
        for &(stamp_ms, _) in &self.samples {
            let next = stamp_ms.wrapping_sub(last);
            put(out, zigzag(next.cast_unsigned(), step.cast_unsigned()));
            (last, step) = (stamp_ms, next);
        }
        out.cells(self.samples.iter().map(|&(_, v)| v));
    }

    pub(super) fn take(body: &mut Take) -> Option<(SamplesPiece, bool)> {
        let more = body.flag()?;
        let (id, resolution_s) = (body.u64()?, body.u32()?);
        let count = usize::try_from(body.u32()?).ok()?;
        // Each stamp has at least a byte and each value eight: a false count allocates nothing.
        if count.checked_mul(9)? > body.rest().len() {
            return None;
        }
        let mut rest = body.rest();
        let (mut last, mut step) = (0_i64, 0_i64);
        let mut samples = Vec::with_capacity(count);
        for _ in 0..count {
            let left = rest.len();
            let change = take(&mut rest)?;
            // Each number has one encoding: the shortest one.
            if left - rest.len() != len(change) {
                return None;
            }
            step = unzigzag(change, step.cast_unsigned()).cast_signed();
            last = last.wrapping_add(step);
            samples.push((last, 0.0));
        }
        *body = Take::of(rest);
        let (values, _) = body.bytes(count * 8)?.as_chunks();
        for ((_, v), bytes) in samples.iter_mut().zip(values) {
            *v = f64::from_le_bytes(*bytes);
        }
        let piece = SamplesPiece {
            id,
            resolution_s,
            samples,
        };
        Some((piece, more))
    }
}
