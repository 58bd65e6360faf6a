//! Data points: numbers, histograms and summaries, with their attributes in the label buffer.

use super::labels::{LabelBuffer, METRIC_NAME};
use super::limits::OtlpLimits;
use super::refusal::{BadDataPoint, Unread};
use crate::protobuf::{BadProtobuf, MessageFields, Numbers, Wire};

/// Says in the flags of a point that there is no value now.
const NO_VALUE: u64 = 1;

/// MessageFields that all points have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    created_ns: u64,
    time_ns: u64,
    flags: u64,
    pub(super) exemplars: u64,
}

impl Moment {
    /// Milliseconds since 1970.
    pub(super) fn t_ms(self) -> i64 {
        milliseconds(self.time_ns)
    }

    /// Milliseconds since 1970, if it is known.
    pub(super) fn created_ms(self) -> Option<i64> {
        (self.created_ns != 0).then(|| milliseconds(self.created_ns))
    }

    /// The point says that its series goes on later.
    pub(super) fn has_no_value(self) -> bool {
        self.flags & NO_VALUE != 0
    }

    fn checked(self) -> Result<Moment, BadDataPoint> {
        match self.time_ns {
            0 => Err(BadDataPoint::NoTime),
            _ => Ok(self),
        }
    }
}

fn milliseconds(ns: u64) -> i64 {
    (ns / 1_000_000).cast_signed()
}

/// Attributes of a point that are no labels.
const SKIPPED: &[&str] = &[METRIC_NAME];

/// A point of a gauge or of a sum.
pub(super) fn read_number(
    message: &[u8],
    labels: &mut LabelBuffer,
    limits: &OtlpLimits,
) -> Result<(Moment, f64), Unread> {
    labels.clear();
    let (mut moment, mut value) = (Moment::default(), None);
    for field in MessageFields::of(message) {
        match field? {
            (2, Wire::Fixed64(ns)) => moment.created_ns = ns,
            (3, Wire::Fixed64(ns)) => moment.time_ns = ns,
            (4, Wire::Fixed64(bits)) => value = Some(f64::from_bits(bits)),
            (5, Wire::Bytes(_)) => moment.exemplars += 1,
            (6, Wire::Fixed64(bits)) => value = Some(nearest(bits.cast_signed())),
            (7, Wire::Bytes(attribute)) => labels.push_attribute(attribute, SKIPPED, limits)?,
            (8, Wire::Varint(flags)) => moment.flags = flags,
            _ => {}
        }
    }
    match value {
        None if !moment.has_no_value() => Err(BadDataPoint::NoValue.into()),
        value => Ok((moment.checked()?, value.unwrap_or_default())),
    }
}

/// Buckets of a histogram, each with those below it, or quantiles of a summary.
#[derive(Debug, Default)]
pub(super) struct Distribution {
    pub(super) count: f64,
    pub(super) sum: Option<f64>,
    /// Upper bounds and counts, or quantiles and values.
    pub(super) rows: Vec<(f64, f64)>,
    bounds: Vec<f64>,
    counts: Vec<u64>,
}

impl Distribution {
    fn clear(&mut self) {
        (self.count, self.sum) = (0.0, None);
        self.rows.clear();
        self.bounds.clear();
        self.counts.clear();
    }

    fn push_bounds(&mut self, wire: Wire, limit: usize) -> Result<(), Unread> {
        each(wire, |bits| {
            self.bounds.push(f64::from_bits(bits));
            self.bounds.len() <= limit
        })
    }

    fn push_counts(&mut self, wire: Wire, limit: usize) -> Result<(), Unread> {
        each(wire, |count| {
            self.counts.push(count);
            self.counts.len() <= limit
        })
    }

    /// Without buckets a histogram has a count and a sum only. A bound of infinity is the bucket that is always there.
    fn finish_buckets(&mut self) -> Result<(), BadDataPoint> {
        let (bounds, counts) = (self.bounds.len(), self.counts.len());
        let fits = counts == bounds + 1 || counts == 0 && bounds == 0;
        let is_order = |pair: &[f64]| pair.first() < pair.last();
        let rises = self.bounds.windows(2).all(is_order) && !self.bounds.iter().any(|b| b.is_nan());
        if !fits || !rises {
            return Err(BadDataPoint::Bounds);
        }
        let mut total = 0u64;
        for (&bound, &count) in self.bounds.iter().zip(&self.counts) {
            total = total.saturating_add(count);
            if bound != f64::INFINITY {
                self.rows.push((bound, nearest_count(total)));
            }
        }
        Ok(())
    }
}

/// Gives each number of eight bytes to `push`, which says whether there is room for more.
fn each(wire: Wire, mut push: impl FnMut(u64) -> bool) -> Result<(), Unread> {
    let Some(numbers) = Numbers::of_fixed64(wire) else {
        return Ok(());
    };
    for number in numbers {
        if !push(number?) {
            return Err(BadDataPoint::BucketCount.into());
        }
    }
    Ok(())
}

/// A point of a histogram with explicit bounds.
pub(super) fn read_histogram(
    message: &[u8],
    labels: &mut LabelBuffer,
    parts: &mut Distribution,
    limits: &OtlpLimits,
) -> Result<Moment, Unread> {
    labels.clear();
    parts.clear();
    let mut moment = Moment::default();
    for field in MessageFields::of(message) {
        match field? {
            (2, Wire::Fixed64(ns)) => moment.created_ns = ns,
            (3, Wire::Fixed64(ns)) => moment.time_ns = ns,
            (4, Wire::Fixed64(count)) => parts.count = nearest_count(count),
            (5, Wire::Fixed64(bits)) => parts.sum = Some(f64::from_bits(bits)),
            (6, counts) => parts.push_counts(counts, limits.buckets.saturating_add(1))?,
            (7, bounds) => parts.push_bounds(bounds, limits.buckets)?,
            (8, Wire::Bytes(_)) => moment.exemplars += 1,
            (9, Wire::Bytes(attribute)) => labels.push_attribute(attribute, SKIPPED, limits)?,
            (10, Wire::Varint(flags)) => moment.flags = flags,
            _ => {}
        }
    }
    parts.finish_buckets()?;
    Ok(moment.checked()?)
}

/// A point of a summary; a sum that is not said is 0.
pub(super) fn read_summary(
    message: &[u8],
    labels: &mut LabelBuffer,
    parts: &mut Distribution,
    limits: &OtlpLimits,
) -> Result<Moment, Unread> {
    labels.clear();
    parts.clear();
    parts.sum = Some(0.0);
    let mut moment = Moment::default();
    for field in MessageFields::of(message) {
        match field? {
            (2, Wire::Fixed64(ns)) => moment.created_ns = ns,
            (3, Wire::Fixed64(ns)) => moment.time_ns = ns,
            (4, Wire::Fixed64(count)) => parts.count = nearest_count(count),
            (5, Wire::Fixed64(bits)) => parts.sum = Some(f64::from_bits(bits)),
            (6, Wire::Bytes(_)) if parts.rows.len() >= limits.buckets => {
                return Err(BadDataPoint::BucketCount.into());
            }
            (6, Wire::Bytes(quantile)) => parts.rows.push(read_quantile(quantile)?),
            (7, Wire::Bytes(attribute)) => labels.push_attribute(attribute, SKIPPED, limits)?,
            (8, Wire::Varint(flags)) => moment.flags = flags,
            _ => {}
        }
    }
    Ok(moment.checked()?)
}

fn read_quantile(message: &[u8]) -> Result<(f64, f64), BadProtobuf> {
    let (mut quantile, mut value) = (0.0, 0.0);
    for field in MessageFields::of(message) {
        match field? {
            (1, Wire::Fixed64(bits)) => quantile = f64::from_bits(bits),
            (2, Wire::Fixed64(bits)) => value = f64::from_bits(bits),
            _ => {}
        }
    }
    Ok((quantile, value))
}

fn nearest(number: i64) -> f64 {
    number as f64
}

fn nearest_count(count: u64) -> f64 {
    count as f64
}
