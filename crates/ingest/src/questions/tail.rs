//! TAIL: all that comes, in the journal's order. A connection has one tail at a time. It gets the labels of a series once.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use kymo_series::{Kind, Reader as _};
use kymo_store::{Store, TailReader, TailSink};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_wire::keeper::{
    Answer, TailFrom, TailOf, TailPiece, TailSample, TailSeries, TailSeriesKind,
};

use super::{Answers, Role};
use crate::listener::StopSignal;
use crate::reader::{StoreReader, column_id};

/// Longest wait for something to come.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The end of the keeper is looked at so often while nothing comes.
const SLICE: Duration = Duration::from_secs(1);
/// Samples of one answer at most.
const SAMPLES_MAX: usize = 1 << 20;
/// Samples of one frame.
const FRAME_SAMPLES: usize = 64 << 10;

/// The tail of a connection.
#[derive(Default)]
pub(super) struct ConnectionTail {
    reader: Option<TailReader>,
    /// Series whose labels the client has.
    introduced: HashSet<u64>,
}

impl ConnectionTail {
    /// Answers TAIL.
    pub(super) fn answer(
        &mut self,
        of: &TailOf,
        answers: &Answers,
        store: &Store,
        stop: &StopSignal,
        out: &mut UnixStream,
    ) -> io::Result<()> {
        if !of.name.is_empty() && !answers.role.may_keep_tails() {
            return refuse("this socket only reads, and remembers no tail", out);
        }
        let from = match of.from {
            TailFrom::Acknowledged => kymo_store::TailFrom::Acknowledged,
            TailFrom::Now => kymo_store::TailFrom::Now,
            TailFrom::Oldest => kymo_store::TailFrom::Oldest,
            TailFrom::At(position) => kymo_store::TailFrom::At(position),
        };
        let position = match store.begin_tail(&of.name, from) {
            Ok(position) => position,
            Err(error) => return refuse(&error.to_string(), out),
        };
        let reader = self.reader.take();
        let reader = reader.filter(|reader| reader.position() == position);
        let mut reader = reader.unwrap_or_else(|| store.tail(position));
        let wait = Duration::from_millis(of.wait_ms.into()).min(WAIT_MAX);
        let until_ns = RealClock.mono_ns().saturating_add(nanoseconds(wait));
        let mut found = Samples {
            most: usize::try_from(of.samples_max)
                .map_or(SAMPLES_MAX, |most| most.clamp(1, SAMPLES_MAX)),
            ..Samples::default()
        };
        let mut step = reader.read(&mut found);
        while step.position == position && step.lost_bytes == 0 {
            let left = until_ns.saturating_sub(RealClock.mono_ns());
            if left == 0 || is_over(stop, out) {
                break;
            }
            store.wait_for_tail(position, Duration::from_nanos(left).min(SLICE));
            step = reader.read(&mut found);
        }
        self.reader = Some(reader);
        let end = TailPiece {
            position: step.position,
            missed: store
                .missed_by_tail(&of.name)
                .saturating_add(step.lost_values),
            lost_bytes: step.lost_bytes,
            ..TailPiece::default()
        };
        self.send(found, end, answers.reader.get(store), out)
    }

    /// Sends samples, of whose pieces all but the last say that nothing is dealt with yet.
    fn send(
        &mut self,
        found: Samples,
        end: TailPiece,
        reader: &StoreReader,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.introduced.retain(|id| !found.changed.contains(id));
        let mut gone = HashMap::new();
        let mut parts = found.samples.chunks(FRAME_SAMPLES).peekable();
        loop {
            let part = parts.next().unwrap_or_default();
            let more = parts.peek().is_some();
            let mut piece = TailPiece::default();
            if !more {
                piece = end.clone();
            }
            piece.samples.reserve(part.len());
            for sample in part {
                let is_introduced = self.introduced.contains(&sample.id);
                if !is_introduced
                    && *gone.entry(sample.id).or_insert_with(|| {
                        let series = series(sample.id, reader);
                        let is_gone = series.is_none();
                        piece.series.extend(series);
                        is_gone
                    })
                {
                    // The series was removed meanwhile.
                    continue;
                }
                if !is_introduced {
                    self.introduced.insert(sample.id);
                }
                piece.samples.push(*sample);
            }
            out.write_all(&Answer::Tail(piece, more).frame())?;
            if !more {
                return Ok(());
            }
        }
    }
}

/// Answers the end of a tail.
pub(super) fn end(role: Role, store: &Store, name: &str, out: &mut dyn Write) -> io::Result<()> {
    if !role.may_keep_tails() {
        return refuse("this socket only reads, and remembers no tail", out);
    }
    match store.end_tail(name) {
        Ok(true) => out.write_all(&Answer::Done.frame()),
        Ok(false) => refuse("there is no tail of this name", out),
        Err(error) => refuse(&error.to_string(), out),
    }
}

fn refuse(why: &str, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&Answer::Refused(format!("cannot follow the store: {why}")).frame())
}

/// True if nothing more is to be waited for: the keeper ends, or the client has gone or asks something else.
fn is_over(stop: &StopSignal, client: &UnixStream) -> bool {
    let files = [stop.as_fd(), client.as_fd()];
    machine::wait_readable(&files, Duration::ZERO).contains(&true)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A series as clients of a tail know it; `None`: there is none any more.
fn series(id: u64, reader: &StoreReader) -> Option<TailSeries> {
    let id = kymo_series::SeriesId(id);
    let kind = match reader.kind_as_sent(id)? {
        Kind::Untyped => TailSeriesKind::Untyped,
        Kind::Gauge => TailSeriesKind::Gauge,
        Kind::Counter => TailSeriesKind::Counter,
        Kind::Histogram => TailSeriesKind::Histogram,
    };
    Some(TailSeries {
        id: id.0,
        kind,
        labels: reader.labels(id)?,
    })
}

/// Samples that were read.
#[derive(Default)]
struct Samples {
    samples: Vec<TailSample>,
    most: usize,
    /// Series that are gone, or have other names.
    changed: HashSet<u64>,
}

impl TailSink for Samples {
    fn value(&mut self, series: u32, column: u16, t_ms: i64, v: f64) {
        let id = column_id(series, column).0;
        self.samples.push(TailSample { id, t_ms, v });
    }

    fn changed(&mut self, series: u32) {
        // A file has few columns, and other names are rare.
        self.changed
            .extend((0..16).map(|column| column_id(series, column).0));
    }

    fn is_full(&self) -> bool {
        self.samples.len() >= self.most
    }
}
