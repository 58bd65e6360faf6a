//! A message from its first resource to its last, sample by sample.

use super::attribute::utf8;
use super::labels::{LabelBuffer, METRIC_NAME};
use super::limits::OtlpLimits;
use super::model::{OtlpCounts, OtlpSample};
use super::names::{NameKind, metric_name, unit_name};
use super::point::{Distribution, Moment, read_histogram, read_number, read_summary};
use super::refusal::{BadDataPoint, BadOtlp, Unread};
use super::resource::{Resource, messages};
use crate::metric_type::MetricType;
use crate::protobuf::{MessageFields, Wire};

/// Bits of the NaN by which Prometheus says that a series has ended.
const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;
const TARGET_INFO: &str = "target_info";
/// `AGGREGATION_TEMPORALITY_DELTA` and `_CUMULATIVE`.
const DELTA: u64 = 1;
const CUMULATIVE: u64 = 2;

/// Gives each sample of an `ExportMetricsServiceRequest` to `sink`, in the message's order. The bytes are those that
/// HTTP brought, unpacked; how many they may be is the caller's to limit. Time and memory are bounded by their number.
pub fn read_metrics(
    message: &[u8],
    limits: &OtlpLimits,
    sink: &mut impl FnMut(&OtlpSample),
) -> Result<OtlpCounts, BadOtlp> {
    let mut reader = MetricsReader {
        limits,
        sink,
        counts: OtlpCounts::default(),
        labels: LabelBuffer::default(),
        parts: Distribution::default(),
        text: String::new(),
        latest_ms: None,
    };
    for field in MessageFields::of(message) {
        if let (1, Wire::Bytes(metrics)) = field? {
            reader.resource_metrics(metrics)?;
        }
    }
    Ok(reader.counts)
}

struct MetricsReader<'r, S> {
    limits: &'r OtlpLimits,
    sink: &'r mut S,
    counts: OtlpCounts,
    labels: LabelBuffer,
    parts: Distribution,
    /// For bounds and quantiles.
    text: String,
    /// The latest of the resource's points.
    latest_ms: Option<i64>,
}

/// A metric without its points.
struct Family<'a> {
    name: String,
    metric_type: MetricType,
    help: &'a str,
    unit: String,
}

/// The points of a metric, by their kind.
#[derive(Clone, Copy)]
enum DataPoints<'a> {
    None,
    Gauge(&'a [u8]),
    Sum(&'a [u8]),
    Histogram(&'a [u8]),
    Exponential(&'a [u8]),
    Summary(&'a [u8]),
}

impl<'a> DataPoints<'a> {
    fn message(self) -> &'a [u8] {
        match self {
            DataPoints::None => b"",
            DataPoints::Gauge(points)
            | DataPoints::Sum(points)
            | DataPoints::Histogram(points)
            | DataPoints::Exponential(points)
            | DataPoints::Summary(points) => points,
        }
    }
}

impl<S: FnMut(&OtlpSample)> MetricsReader<'_, S> {
    fn resource_metrics(&mut self, message: &[u8]) -> Result<(), BadOtlp> {
        let resource = match Resource::of(message, self.limits) {
            Ok(resource) => resource,
            Err(Unread::Message) => return Err(BadOtlp),
            Err(Unread::Point(why)) => Resource {
                bad: Some(why),
                ..Resource::default()
            },
        };
        self.latest_ms = None;
        for scope in messages(message, 2) {
            for metric in messages(scope.map_err(|_| BadOtlp)?, 2) {
                self.metric(metric.map_err(|_| BadOtlp)?, &resource)?;
            }
        }
        self.target_info(message, &resource)
    }

    /// One sample of the resource's other attributes, at its latest point. Prometheus writes more of them where points
    /// lie far apart. A resource whose attributes cannot be labels has none; its points are taken all the same.
    fn target_info(&mut self, message: &[u8], resource: &Resource) -> Result<(), BadOtlp> {
        let Some(t_ms) = self.latest_ms.filter(|_| resource.is_known()) else {
            return Ok(());
        };
        match resource.describe(message, &mut self.labels, self.limits) {
            Ok(true) => {}
            Ok(false) | Err(Unread::Point(_)) => return Ok(()),
            Err(Unread::Message) => return Err(BadOtlp),
        }
        let family = Family {
            name: TARGET_INFO.to_owned(),
            metric_type: MetricType::Gauge,
            help: "Target metadata",
            unit: String::new(),
        };
        self.sample(&family, "", None, (t_ms, None), 1.0);
        Ok(())
    }

    fn metric(&mut self, message: &[u8], resource: &Resource) -> Result<(), BadOtlp> {
        let (mut name, mut help, mut unit) = (&b""[..], &b""[..], &b""[..]);
        let mut points = DataPoints::None;
        for field in MessageFields::of(message) {
            match field? {
                (1, Wire::Bytes(text)) => name = text,
                (2, Wire::Bytes(text)) => help = text,
                (3, Wire::Bytes(text)) => unit = text,
                (5, Wire::Bytes(gauge)) => points = DataPoints::Gauge(gauge),
                (7, Wire::Bytes(sum)) => points = DataPoints::Sum(sum),
                (9, Wire::Bytes(histogram)) => points = DataPoints::Histogram(histogram),
                (10, Wire::Bytes(histogram)) => points = DataPoints::Exponential(histogram),
                (11, Wire::Bytes(summary)) => points = DataPoints::Summary(summary),
                _ => {}
            }
        }
        match (resource.bad, family([name, help, unit], points)) {
            (None, Ok(family)) => self.points(&family, points, resource),
            (Some(why), _) | (None, Err(Unread::Point(why))) => {
                let count = messages(points.message(), 1).count();
                self.counts
                    .refuse(why, u64::try_from(count).unwrap_or(u64::MAX));
                Ok(())
            }
            (None, Err(Unread::Message)) => Err(BadOtlp),
        }
    }

    fn points(
        &mut self,
        family: &Family,
        points: DataPoints,
        resource: &Resource,
    ) -> Result<(), BadOtlp> {
        for message in messages(points.message(), 1) {
            let message = message.map_err(|_| BadOtlp)?;
            match self.point(family, points, message, resource) {
                Ok(moment) => {
                    self.counts.points += 1;
                    self.counts.exemplars += moment.exemplars;
                    self.latest_ms = self.latest_ms.max(Some(moment.t_ms()));
                }
                Err(Unread::Point(why)) => self.counts.refuse(why, 1),
                Err(Unread::Message) => return Err(BadOtlp),
            }
        }
        Ok(())
    }

    fn point(
        &mut self,
        family: &Family,
        points: DataPoints,
        message: &[u8],
        resource: &Resource,
    ) -> Result<Moment, Unread> {
        let (labels, parts) = (&mut self.labels, &mut self.parts);
        match points {
            DataPoints::Gauge(_) | DataPoints::Sum(_) => {
                let (moment, value) = read_number(message, labels, self.limits)?;
                labels.finish(&resource.labels())?;
                self.sample_of(family, "", None, moment, value);
                Ok(moment)
            }
            DataPoints::Histogram(_) => {
                let moment = read_histogram(message, labels, parts, self.limits)?;
                labels.finish(&resource.labels())?;
                self.rows(family, "_bucket", "le", moment);
                self.sample_of(
                    family,
                    "_bucket",
                    Some(("le", "+Inf")),
                    moment,
                    self.parts.count,
                );
                Ok(moment)
            }
            DataPoints::Summary(_) => {
                let moment = read_summary(message, labels, parts, self.limits)?;
                labels.finish(&resource.labels())?;
                self.rows(family, "", "quantile", moment);
                Ok(moment)
            }
            // Their families are refused.
            DataPoints::None | DataPoints::Exponential(_) => Err(BadDataPoint::Exponential.into()),
        }
    }

    /// The sum, the count, and each bucket or quantile.
    fn rows(&mut self, family: &Family, end: &str, label: &str, moment: Moment) {
        if let Some(sum) = self.parts.sum {
            self.sample_of(family, "_sum", None, moment, sum);
        }
        self.sample_of(family, "_count", None, moment, self.parts.count);
        let rows = std::mem::take(&mut self.parts.rows);
        for &(bound, value) in &rows {
            let mut text = std::mem::take(&mut self.text);
            text.clear();
            put_bound(&mut text, bound);
            self.sample_of(family, end, Some((label, &text)), moment, value);
            self.text = text;
        }
        self.parts.rows = rows;
    }

    fn sample_of(
        &mut self,
        family: &Family,
        end: &str,
        own: Option<(&str, &str)>,
        moment: Moment,
        value: f64,
    ) {
        let value = match moment.has_no_value() {
            true => f64::from_bits(STALE_BITS),
            false => value,
        };
        self.sample(
            family,
            end,
            own,
            (moment.t_ms(), moment.created_ms()),
            value,
        );
    }

    fn sample(
        &mut self,
        family: &Family,
        end: &str,
        own: Option<(&str, &str)>,
        (t_ms, created_ms): (i64, Option<i64>),
        value: f64,
    ) {
        let mut name = String::new();
        let name = match end {
            "" => &family.name,
            end => {
                name.push_str(&family.name);
                name.push_str(end);
                &name
            }
        };
        let own = own.unwrap_or((METRIC_NAME, name));
        let labels = self.labels.of_sample(&[(METRIC_NAME, name), own]);
        self.counts.samples += 1;
        (self.sink)(&OtlpSample {
            labels,
            family: &family.name,
            metric_type: family.metric_type,
            help: family.help,
            unit: &family.unit,
            t_ms,
            created_ms,
            value,
        });
    }
}

/// A metric by its texts (name, description, unit), unless its points are of a kind that is not taken.
fn family<'a>([name, help, unit]: [&'a [u8]; 3], points: DataPoints) -> Result<Family<'a>, Unread> {
    let (metric_type, kind) = match points {
        DataPoints::None | DataPoints::Gauge(_) => (MetricType::Gauge, NameKind::Gauge),
        DataPoints::Exponential(_) => return Err(BadDataPoint::Exponential.into()),
        DataPoints::Summary(_) => (MetricType::Summary, NameKind::Other),
        DataPoints::Histogram(points) => {
            cumulative(points)?;
            (MetricType::Histogram, NameKind::Other)
        }
        DataPoints::Sum(points) => match cumulative(points)? {
            true => (MetricType::Counter, NameKind::Counter),
            false => (MetricType::Gauge, NameKind::Other),
        },
    };
    let (name, unit) = (utf8(name)?, utf8(unit)?);
    Ok(Family {
        name: metric_name(name, unit, kind).ok_or(BadDataPoint::Name)?,
        metric_type,
        help: utf8(help)?,
        unit: unit_name(unit),
    })
}

/// Looks whether points are totals, and says whether they only grow.
fn cumulative(points: &[u8]) -> Result<bool, Unread> {
    let (mut temporality, mut is_monotonic) = (0, false);
    for field in MessageFields::of(points) {
        match field? {
            (2, Wire::Varint(number)) => temporality = number,
            (3, Wire::Varint(number)) => is_monotonic = number != 0,
            _ => {}
        }
    }
    match temporality {
        CUMULATIVE => Ok(is_monotonic),
        DELTA => Err(BadDataPoint::Delta.into()),
        _ => Err(BadDataPoint::NoTemporality.into()),
    }
}

/// A bound or a quantile as Prometheus writes it: without an exponent.
fn put_bound(out: &mut String, bound: f64) {
    match bound {
        f64::INFINITY => out.push_str("+Inf"),
        f64::NEG_INFINITY => out.push_str("-Inf"),
        _ => out.push_str(&bound.to_string()),
    }
}
