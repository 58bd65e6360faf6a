//! All that the keeper takes, in the order in which it took it: for those who carry it on.

use super::body::{Put, Take};
use super::points::text;
use super::put_flag;
use kymo_base::label_set::Labels;
use kymo_base::varint::{len, put, take, unzigzag, zigzag};

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailFrom {
    /// Where the tail of this name has got to; with what comes from now on, if it is new.
    Acknowledged,
    /// With what comes from now on.
    Now,
    /// With the oldest values that the journal has.
    Oldest,
    /// At a position. A tail with a name has everything before it.
    At(u64),
}

/// A question of a tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailOf {
    /// Name of the tail: the keeper remembers how far the tail has got, and keeps the rest. Empty: neither.
    pub name: String,
    /// Where it begins.
    pub from: TailFrom,
    /// Milliseconds to wait for something.
    pub wait_ms: u32,
    /// An answer has no more samples than these, and those of the journal's frame that it ends in.
    pub samples_max: u32,
}

/// How the values of a series move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailSeriesKind {
    /// Not known.
    Untyped,
    /// They go both ways.
    Gauge,
    /// They grow until they begin again.
    Counter,
    /// They are a part of a histogram.
    Histogram,
}

impl TailSeriesKind {
    const ALL: [TailSeriesKind; 4] = [
        TailSeriesKind::Untyped,
        TailSeriesKind::Gauge,
        TailSeriesKind::Counter,
        TailSeriesKind::Histogram,
    ];
}

/// A series that samples are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailSeries {
    /// The series' number, on this connection.
    pub id: u64,
    /// How its values move.
    pub kind: TailSeriesKind,
    /// The labels of the series.
    pub labels: Labels,
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailSample {
    /// The number of its series.
    pub id: u64,
    /// Milliseconds since 1970.
    pub t_ms: i64,
    /// The value.
    pub v: f64,
}

/// A part of what a tail reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailPiece {
    /// Where to go on, when this piece and those before it are dealt with.
    pub position: u64,
    /// Values that the tail of this name has missed since it is there.
    pub missed: u64,
    /// Bytes of the journal that were gone, or damaged, before this piece.
    pub lost_bytes: u64,
    /// Series that the connection does not know yet, or that have other names now.
    pub series: Vec<TailSeries>,
    /// Samples, in the journal's order.
    pub samples: Vec<TailSample>,
}

impl TailOf {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.text(self.name.as_bytes());
        let (kind, position) = match self.from {
            TailFrom::Acknowledged => (0, 0),
            TailFrom::Now => (1, 0),
            TailFrom::Oldest => (2, 0),
            TailFrom::At(position) => (3, position),
        };
        out.u8(kind);
        out.u64(position);
        out.u32(self.wait_ms);
        out.u32(self.samples_max);
    }

    pub(super) fn take(body: &mut Take) -> Option<TailOf> {
        let name = text(body)?;
        let from = match (body.u8()?, body.u64()?) {
            (0, 0) => TailFrom::Acknowledged,
            (1, 0) => TailFrom::Now,
            (2, 0) => TailFrom::Oldest,
            (3, position) => TailFrom::At(position),
            _ => return None,
        };
        Some(TailOf {
            name,
            from,
            wait_ms: body.u32()?,
            samples_max: body.u32()?,
        })
    }
}

impl TailPiece {
    /// Appends it: numbers and moments as differences to those of the sample before, which mostly are one byte each.
    pub(super) fn put(&self, more: &bool, out: &mut Vec<u8>) {
        put_flag(more, out);
        out.u64(self.position);
        out.u64(self.missed);
        out.u64(self.lost_bytes);
        out.length(self.series.len());
        for series in &self.series {
            let kind = TailSeriesKind::ALL.iter().position(|it| *it == series.kind);
            out.u64(series.id);
            out.u8(kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(0));
            out.text(series.labels.text());
        }
        out.length(self.samples.len());
        let (mut id, mut t_ms) = (0, 0);
        for sample in &self.samples {
            put(out, zigzag(sample.id, id));
            put(out, zigzag(sample.t_ms.cast_unsigned(), t_ms));
            out.f64(sample.v);
            (id, t_ms) = (sample.id, sample.t_ms.cast_unsigned());
        }
    }

    pub(super) fn take(body: &mut Take) -> Option<(TailPiece, bool)> {
        let more = body.flag()?;
        let (position, missed, lost_bytes) = (body.u64()?, body.u64()?, body.u64()?);
        let count = body.u32()?;
        let series = (0..count).map(|_| {
            Some(TailSeries {
                id: body.u64()?,
                kind: *TailSeriesKind::ALL.get(usize::from(body.u8()?))?,
                labels: Labels::parse(body.text()?).ok()?,
            })
        });
        let series = series.collect::<Option<_>>()?;
        let count = usize::try_from(body.u32()?).ok()?;
        // A sample has ten bytes at least: nothing is allocated for what is not there.
        if count.checked_mul(10)? > body.rest().len() {
            return None;
        }
        let (mut id, mut t_ms) = (0, 0);
        let samples = (0..count).map(|_| {
            id = unzigzag(number(body)?, id);
            t_ms = unzigzag(number(body)?, t_ms);
            Some(TailSample {
                id,
                t_ms: t_ms.cast_signed(),
                v: body.f64()?,
            })
        });
        let samples = samples.collect::<Option<_>>()?;
        let piece = TailPiece {
            position,
            missed,
            lost_bytes,
            series,
            samples,
        };
        Some((piece, more))
    }
}

/// A varint that is no longer than it has to be: one text for one number.
fn number(body: &mut Take) -> Option<u64> {
    let mut rest = body.rest();
    let before = rest.len();
    let number = take(&mut rest)?;
    let is_short = before - rest.len() == len(number);
    *body = Take::of(rest);
    is_short.then_some(number)
}
