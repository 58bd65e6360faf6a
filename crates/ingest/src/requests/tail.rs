//! Answers to TAIL: records of the journal after a position, piece by piece; and the registered tails.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use kymo_store::{
    Missed, PointsKind, Position, Store, TailError, TailFrom, TailReader, TailSample, TailSeries,
    TailSink,
};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::keeper::{
    Answer, DefinedColumn, DefinedSeries, MissedPart, NumberedSample, PointKind, TAIL_WAIT_MAX_MS,
    TailAccount, TailAfter, TailEvent, TailPiece, TailPlace,
};

use crate::common::seats::Seat;
use crate::reader::{labels_of, scale_of};

/// Bytes of the journal read at once. The position in a frame moves on by whole readings.
const READ_BYTES: u64 = 256 << 10;
/// Most samples of a frame, approximately.
const FRAME_SAMPLES: usize = 64 << 10;
/// Refusal of clients that may not follow the journal.
pub(super) const NOT_FOR_YOU: &str =
    "cannot tail: this is for processes of kymo, and for whoever has started kymo serve";

/// The tail of one connection. The client's next request usually continues where the last answer ended.
#[derive(Default)]
pub(super) struct Tail {
    reader: Option<TailReader>,
    /// Factors of series that the store has in another unit than their labels say.
    scales: HashMap<u32, f64>,
}

impl Tail {
    /// Answers TAIL.
    pub(super) fn answer(
        &mut self,
        store: &Store,
        after: &TailAfter,
        seat: &Seat,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut reader = match self.begin(store, after) {
            Ok(reader) => reader,
            Err(error) => return refuse(&after.name, &error, out),
        };
        let mut pieces = TailFrames {
            out,
            position: reader.position().0,
            piece: TailPiece::default(),
            samples: 0,
            scales: &mut self.scales,
            sent: Ok(()),
        };
        let read = follow(&mut reader, after, seat, &mut pieces);
        let TailFrames {
            mut piece, sent, ..
        } = pieces;
        sent?;
        if let Err(error) = read {
            return refuse(&after.name, &error, out);
        }
        piece.position = reader.position().0;
        self.reader = Some(reader);
        out.write_all(&Answer::Tailed(piece, false).frame())
    }

    /// A reader at the requested position. The client acknowledges everything before it.
    fn begin(&mut self, store: &Store, after: &TailAfter) -> Result<TailReader, TailError> {
        let name = Some(after.name.as_str()).filter(|name| !name.is_empty());
        let from = match after.from {
            TailPlace::Position(position) => TailFrom::Position(Position(position)),
            TailPlace::Now => TailFrom::Now,
            TailPlace::Oldest => TailFrom::Oldest,
        };
        let goes_on = |reader: &TailReader| {
            reader.name() == name && from == TailFrom::Position(reader.position())
        };
        let mut reader = match self.reader.take().filter(goes_on) {
            Some(reader) => reader,
            None => {
                self.scales.clear();
                store.tail(name, from)?
            }
        };
        if let TailPlace::Position(_) = after.from {
            reader.acknowledge()?;
        }
        Ok(reader)
    }
}

/// Reads available records, or waits for new ones.
fn follow(
    reader: &mut TailReader,
    after: &TailAfter,
    seat: &Seat,
    pieces: &mut TailFrames<'_>,
) -> Result<(), TailError> {
    let begun_ns = RealClock.mono_ns();
    let wait = Duration::from_millis(after.wait_ms.min(TAIL_WAIT_MAX_MS).into());
    let mut left = u64::from(after.bytes_max);
    loop {
        while left > 0 && pieces.sent.is_ok() {
            let before = reader.position().0;
            reader.read(left.min(READ_BYTES), pieces)?;
            let read = reader.position().0.saturating_sub(before);
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
            pieces.position = reader.position().0;
        }
        let passed = Duration::from_nanos(RealClock.mono_ns().saturating_sub(begun_ns));
        let rest = wait.saturating_sub(passed);
        let has_more = || seat.rest_while(|| reader.wait(rest));
        if pieces.has_some() || left == 0 || !has_more() {
            return Ok(());
        }
    }
}

fn refuse(name: &str, error: &TailError, out: &mut dyn Write) -> io::Result<()> {
    let what = match name {
        "" => "the journal",
        name => name,
    };
    out.write_all(&Answer::Refused(format!("cannot tail {what}: {error}")).frame())
}

/// Ends a registered tail.
pub(super) fn end(store: &Store, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let answer = match store.end_tail(name) {
        Ok(true) => Answer::Done,
        Ok(false) => Answer::Refused(format!("cannot end tail {name}: {}", TailError::Unknown)),
        Err(error) => Answer::Refused(format!("cannot end tail {name}: {error}")),
    };
    out.write_all(&answer.frame())
}

/// Answers with the registered tails.
pub(super) fn list(store: &Store, out: &mut dyn Write) -> io::Result<()> {
    let tails = store.tails().into_iter().map(|tail| TailAccount {
        name: tail.name,
        position: tail.position,
        backlog_bytes: tail.backlog_bytes,
        backlog_age_s: tail.backlog_age_s,
        missed_values: tail.missed_values,
    });
    out.write_all(&Answer::Tails(tails.collect()).frame())
}

/// Sends records in frames as they are read.
struct TailFrames<'a> {
    out: &'a mut dyn Write,
    /// Everything before this position is in the frames up to this one.
    position: u64,
    piece: TailPiece,
    /// Samples in the piece.
    samples: usize,
    scales: &'a mut HashMap<u32, f64>,
    sent: io::Result<()>,
}

impl TailFrames<'_> {
    /// True if there is something to send, or if sending failed.
    fn has_some(&self) -> bool {
        !self.piece.events.is_empty() || self.sent.is_err()
    }

    fn send(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        self.samples = 0;
        let piece = TailPiece {
            position: self.position,
            ..piece
        };
        if self.sent.is_ok() {
            self.sent = self.out.write_all(&Answer::Tailed(piece, true).frame());
        }
    }
}

impl TailSink for TailFrames<'_> {
    fn defined(&mut self, series: &TailSeries) {
        let scale = scale_of(&series.known);
        if scale != 1.0 {
            self.scales.insert(series.known.id, scale);
        }
        self.piece.events.push(TailEvent::Defined(defined(series)));
    }

    fn gone(&mut self, series: u32) {
        self.piece.events.push(TailEvent::Gone(series));
    }

    fn missed(&mut self, missed: Missed) {
        let Missed { from, to, values } = missed;
        let missed = MissedPart { from, to, values };
        self.piece.events.push(TailEvent::Missed(missed));
    }

    fn samples(&mut self, samples: &[TailSample]) {
        let numbered = samples.iter().map(|sample| NumberedSample {
            series: sample.series,
            column: sample.column,
            t_ms: sample.t_ms,
            // Without a factor the bits stay the same: a stale marker is a certain NaN.
            v: match self.scales.is_empty() {
                true => sample.v,
                false => scaled(sample, self.scales),
            },
        });
        match self.piece.events.last_mut() {
            Some(TailEvent::Samples(before)) => before.extend(numbered),
            _ => {
                let numbered = numbered.collect();
                self.piece.events.push(TailEvent::Samples(numbered));
            }
        }
        self.samples += samples.len();
        if self.samples >= FRAME_SAMPLES {
            self.send();
        }
    }
}

fn scaled(sample: &TailSample, scales: &HashMap<u32, f64>) -> f64 {
    let scale = scales.get(&sample.series);
    scale.map_or(sample.v, |scale| sample.v * scale)
}

fn defined(series: &TailSeries) -> DefinedSeries {
    let TailSeries { known, heartbeat_s } = series;
    let columns = (0..).zip(&known.columns.columns);
    let columns = columns.map(|(at, (name, kind))| DefinedColumn {
        name: name.clone(),
        kind: kind.clone(),
        labels: labels_of(known, at),
    });
    let number = |seconds: u64| u32::try_from(seconds).unwrap_or(u32::MAX);
    DefinedSeries {
        series: known.id,
        name: known.name.clone(),
        kind: known.points.map(|(_, kind)| match kind {
            PointsKind::Untyped => PointKind::Untyped,
            PointsKind::Gauge => PointKind::Gauge,
            PointsKind::Counter => PointKind::Counter,
            PointsKind::Histogram => PointKind::Histogram,
        }),
        step_s: number(known.columns.step),
        heartbeat_s: number(*heartbeat_s),
        columns: columns.collect(),
    }
}
