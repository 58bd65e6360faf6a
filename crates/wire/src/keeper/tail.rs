//! TAIL: the records of the journal behind a position, for a client that forwards them. Series have numbers; each is defined
//! before its first value.

use super::body::{Put, Take};
use super::put_flag;
use kymo_base::label_set::Labels;
use kymo_base::varint::{len, put, take, unzigzag, zigzag};

/// Longest wait of a TAIL, in milliseconds.
pub const TAIL_WAIT_MAX_MS: u32 = 60_000;
/// Most columns of a series in an answer.
const COLUMNS_MAX: usize = 4096;
/// Least bytes of a sample: a series, a stamp and a value.
const SAMPLE_MIN: usize = 10;

/// KeeperRequest for the events behind a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailAfter {
    /// Name of a registered tail, which is registered if it is not yet; empty: no registered one.
    pub name: String,
    /// Begin of the tail.
    pub from: TailPlace,
    /// Most bytes of the journal, about.
    pub bytes_max: u32,
    /// Longest wait for a first event, milliseconds.
    pub wait_ms: u32,
}

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailPlace {
    /// At this position; a registered tail acknowledges all events before it.
    Position(u64),
    /// With future events; a registered tail goes on where it has acknowledged.
    Now,
    /// With the oldest events; a registered tail goes on where it has acknowledged.
    Oldest,
}

/// Some events of the journal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailPiece {
    /// A client that has this piece and those before it has all events before this position.
    pub position: u64,
    /// Events, in their order.
    pub events: Vec<TailEvent>,
}

/// An event of the journal.
#[derive(Clone, Debug, PartialEq)]
pub enum TailEvent {
    /// Defines the series that a number stands for from now on.
    Defined(DefinedSeries),
    /// The series does not exist any more.
    Gone(u32),
    /// A part of the journal is lost.
    Missed(MissedPart),
    /// Samples, in their order.
    Samples(Vec<NumberedSample>),
}

/// A series of a tail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinedSeries {
    /// Number of the series on this connection.
    pub series: u32,
    /// Path below the base, with `.rrd`, or a label set.
    pub name: Vec<u8>,
    /// Kind of the values; `None`: the series has archives, and its columns have the kinds.
    pub kind: Option<PointKind>,
    /// Seconds of a primary data point.
    pub step_s: u32,
    /// Seconds without a value after which the values are unknown.
    pub heartbeat_s: u32,
    /// Columns of the series.
    pub columns: Vec<DefinedColumn>,
}

/// Kinds of series of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Not known.
    Untyped,
    /// Goes up and down.
    Gauge,
    /// Grows, until it begins again.
    Counter,
    /// A part of a histogram, which is a counter.
    Histogram,
}

impl PointKind {
    const ALL: [PointKind; 4] = [
        PointKind::Untyped,
        PointKind::Gauge,
        PointKind::Counter,
        PointKind::Histogram,
    ];

    /// Appends a kind, or 0 for none.
    pub(super) fn put(kind: Option<PointKind>, out: &mut Vec<u8>) {
        let kind = PointKind::ALL.iter().position(|each| Some(*each) == kind);
        let kind = kind.and_then(|kind| u8::try_from(kind).ok());
        out.u8(kind.map_or(0, |kind| kind + 1));
    }

    /// Reads a kind; the inner `None`: there is none.
    pub(super) fn take(body: &mut Take) -> Option<Option<PointKind>> {
        match body.u8()?.checked_sub(1) {
            None => Some(None),
            Some(kind) => Some(Some(*PointKind::ALL.get(usize::from(kind))?)),
        }
    }
}

/// A column of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinedColumn {
    /// Name of the column.
    pub name: Vec<u8>,
    /// `GAUGE`, `DERIVE` ...
    pub kind: Vec<u8>,
    /// Labels of the column, as in FIND; `None`: they exceed the limits of a label set.
    pub labels: Option<Labels>,
}

/// A lost part of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedPart {
    /// First position of the part.
    pub from: u64,
    /// Position behind the part.
    pub to: u64,
    /// Number of values in the part; `None`: not known.
    pub values: Option<u64>,
}

/// A value of one column of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberedSample {
    /// Number of the series.
    pub series: u32,
    /// Number of the column, from 0.
    pub column: u16,
    /// Moment, milliseconds since 1970.
    pub t_ms: i64,
    /// The value, as it was sent.
    pub v: f64,
}

/// A registered tail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailAccount {
    /// Name of the tail.
    pub name: String,
    /// Position before which all events are acknowledged.
    pub position: u64,
    /// Bytes of the journal behind `position`.
    pub backlog_bytes: u64,
    /// Seconds since the first of these bytes was written, about.
    pub backlog_age_s: f64,
    /// Values that the tail has missed since it was registered.
    pub missed_values: u64,
}

fn text(body: &mut Take) -> Option<String> {
    String::from_utf8(body.text()?.to_vec()).ok()
}

impl TailAfter {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.text(self.name.as_bytes());
        let (kind, position) = match self.from {
            TailPlace::Position(position) => (0, position),
            TailPlace::Now => (1, 0),
            TailPlace::Oldest => (2, 0),
        };
        out.u8(kind);
        out.u64(position);
        out.u32(self.bytes_max);
        out.u32(self.wait_ms);
    }

    pub(super) fn take(body: &mut Take) -> Option<TailAfter> {
        let name = text(body)?;
        let from = match (body.u8()?, body.u64()?) {
            (0, position) => TailPlace::Position(position),
            (1, 0) => TailPlace::Now,
            (2, 0) => TailPlace::Oldest,
            _ => return None,
        };
        Some(TailAfter {
            name,
            from,
            bytes_max: body.u32()?,
            wait_ms: body.u32()?,
        })
    }
}

pub(super) fn put_name(name: &str, out: &mut Vec<u8>) {
    out.text(name.as_bytes());
}

pub(super) fn take_name(body: &mut Take) -> Option<String> {
    text(body)
}

const DEFINED: u8 = 1;
const GONE: u8 = 2;
const MISSED: u8 = 3;
const SAMPLES: u8 = 4;

impl TailPiece {
    pub(super) fn put(&self, more: &bool, out: &mut Vec<u8>) {
        put_flag(more, out);
        out.u64(self.position);
        for event in &self.events {
            match event {
                TailEvent::Defined(series) => {
                    out.u8(DEFINED);
                    series.put(out);
                }
                TailEvent::Gone(series) => {
                    out.u8(GONE);
                    out.u32(*series);
                }
                TailEvent::Missed(missed) => {
                    out.u8(MISSED);
                    missed.put(out);
                }
                TailEvent::Samples(samples) => {
                    out.u8(SAMPLES);
                    put_samples(out, samples);
                }
            }
        }
    }

    pub(super) fn take(body: &mut Take) -> Option<(TailPiece, bool)> {
        let (more, position) = (body.flag()?, body.u64()?);
        let mut events = Vec::new();
        while !body.rest().is_empty() {
            events.push(match body.u8()? {
                DEFINED => TailEvent::Defined(DefinedSeries::take(body)?),
                GONE => TailEvent::Gone(body.u32()?),
                MISSED => TailEvent::Missed(MissedPart::take(body)?),
                SAMPLES => TailEvent::Samples(take_samples(body)?),
                _ => return None,
            });
        }
        Some((TailPiece { position, events }, more))
    }
}

impl DefinedSeries {
    fn put(&self, out: &mut Vec<u8>) {
        out.u32(self.series);
        out.text(&self.name);
        PointKind::put(self.kind, out);
        out.u32(self.step_s);
        out.u32(self.heartbeat_s);
        out.u16(self.columns.len());
        for column in &self.columns {
            out.text(&column.name);
            out.text(&column.kind);
            out.text(column.labels.as_ref().map_or(b"", |labels| labels.text()));
        }
    }

    fn take(body: &mut Take) -> Option<DefinedSeries> {
        let (series, name) = (body.u32()?, body.text()?.to_vec());
        let kind = PointKind::take(body)?;
        let (step_s, heartbeat_s) = (body.u32()?, body.u32()?);
        let count = body.count(COLUMNS_MAX)?;
        let columns = (0..count).map(|_| {
            let (name, kind) = (body.text()?.to_vec(), body.text()?.to_vec());
            let labels = match body.text()? {
                b"" => None,
                labels => Some(Labels::parse(labels).ok()?),
            };
            Some(DefinedColumn { name, kind, labels })
        });
        Some(DefinedSeries {
            series,
            name,
            kind,
            step_s,
            heartbeat_s,
            columns: columns.collect::<Option<_>>()?,
        })
    }
}

impl MissedPart {
    fn put(&self, out: &mut Vec<u8>) {
        out.u64(self.from);
        out.u64(self.to);
        out.u8(self.values.is_some().into());
        out.u64(self.values.unwrap_or(0));
    }

    fn take(body: &mut Take) -> Option<MissedPart> {
        let (from, to) = (body.u64()?, body.u64()?);
        let values = match (body.flag()?, body.u64()?) {
            (true, values) => Some(values),
            (false, 0) => None,
            (false, _) => return None,
        };
        Some(MissedPart { from, to, values })
    }
}

/// Appends samples. Each one is: twice the distance from the series before, plus 1 if a column other than the first follows;
/// the distance from the stamp before; eight bytes of the value.
fn put_samples(out: &mut Vec<u8>, samples: &[NumberedSample]) {
    out.length(samples.len());
    out.reserve(SAMPLE_MIN * samples.len());
    let (mut series, mut t_ms) = (0_u32, 0_i64);
    for sample in samples {
        let step = zigzag(u64::from(sample.series), u64::from(series));
        put(out, step << 1 | u64::from(sample.column > 0));
        if sample.column > 0 {
            put(out, sample.column.into());
        }
        put(
            out,
            zigzag(sample.t_ms.cast_unsigned(), t_ms.cast_unsigned()),
        );
        out.f64(sample.v);
        (series, t_ms) = (sample.series, sample.t_ms);
    }
}

fn take_samples(body: &mut Take) -> Option<Vec<NumberedSample>> {
    let count = usize::try_from(body.u32()?).ok()?;
    let mut rest = body.rest();
    // A false count allocates nothing.
    if count.checked_mul(SAMPLE_MIN)? > rest.len() {
        return None;
    }
    let (mut series, mut t_ms) = (0_u32, 0_i64);
    let mut samples = Vec::with_capacity(count);
    for _ in 0..count {
        let code = take_shortest(&mut rest)?;
        series = u32::try_from(unzigzag(code >> 1, series.into())).ok()?;
        let column = match code & 1 {
            0 => 0,
            _ => u16::try_from(take_shortest(&mut rest)?)
                .ok()
                .filter(|&column| column > 0)?,
        };
        t_ms = unzigzag(take_shortest(&mut rest)?, t_ms.cast_unsigned()).cast_signed();
        let (bytes, behind) = rest.split_first_chunk()?;
        rest = behind;
        samples.push(NumberedSample {
            series,
            column,
            t_ms,
            v: f64::from_le_bytes(*bytes),
        });
    }
    *body = Take::of(rest);
    Some(samples)
}

/// Reads a varint; `None`: it is longer than necessary.
fn take_shortest(rest: &mut &[u8]) -> Option<u64> {
    let left = rest.len();
    let number = take(rest)?;
    (left - rest.len() == len(number)).then_some(number)
}

pub(super) fn put_accounts(tails: &[TailAccount], out: &mut Vec<u8>) {
    out.u16(tails.len());
    for tail in tails {
        out.text(tail.name.as_bytes());
        out.u64(tail.position);
        out.u64(tail.backlog_bytes);
        out.f64(tail.backlog_age_s);
        out.u64(tail.missed_values);
    }
}

pub(super) fn take_accounts(body: &mut Take) -> Option<Vec<TailAccount>> {
    let count = body.count(COLUMNS_MAX)?;
    let tails = (0..count).map(|_| {
        Some(TailAccount {
            name: text(body)?,
            position: body.u64()?,
            backlog_bytes: body.u64()?,
            backlog_age_s: body.f64()?,
            missed_values: body.u64()?,
        })
    });
    tails.collect()
}
