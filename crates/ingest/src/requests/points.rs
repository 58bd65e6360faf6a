//! Answers to FIND, SAMPLES and LABELS, which read the store by labels.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, OnceLock};

use kymo_series::{
    Budget, Matcher, Op, ReadError, Reader as _, RowValue, RowsAs, Sample, SampleSink, SeriesId,
    TimeRange,
};
use kymo_store::Store;
use kymo_wire::keeper::{
    Answer, Find, FoundSeries, LabelMatcher, LabelsOf, MatchOp, SamplesOf, SamplesPiece,
};

use crate::reader::StoreReader;

/// Most series, or texts, of a frame.
const FRAME_SERIES: usize = 1024;
/// Most samples of a frame.
const FRAME_SAMPLES: usize = 64 << 10;
/// Bytes of frames that are sent at once.
const BUFFER: usize = 64 << 10;
/// Series after which all frames are sent: a client waits for some seconds, and a disk may be slow.
const FLUSHED: usize = 16;
/// Most samples of an answer; a request may ask for fewer.
const SAMPLES_MAX: u64 = 50_000_000;

/// The reader of a keeper's store, made at the first request; all sockets of the keeper share it.
#[derive(Clone, Default)]
pub struct SharedReader(Arc<OnceLock<StoreReader>>);

impl SharedReader {
    fn get(&self, store: &Store) -> &StoreReader {
        self.0.get_or_init(|| StoreReader::new(store.clone()))
    }

    /// Answers FIND.
    pub(super) fn find(&self, store: &Store, find: &Find, out: &mut dyn Write) -> io::Result<()> {
        let reader = self.get(store);
        let found = matchers(find).and_then(|matchers| {
            let mut budget = Budget {
                series: find.series_max,
                ..Budget::UNLIMITED
            };
            reader.select(&matchers, range(find), &mut budget)
        });
        let ids = match found {
            Ok(ids) => ids,
            Err(error) => return refuse("find series", &error, out),
        };
        let mut parts = ids.chunks(FRAME_SERIES).peekable();
        if parts.peek().is_none() {
            return send(out, &Answer::Found(Vec::new(), false));
        }
        while let Some(part) = parts.next() {
            let found = part.iter().filter_map(|&id| {
                let labels = reader.labels(id)?;
                Some(FoundSeries { id: id.0, labels })
            });
            let found = found.collect();
            send(out, &Answer::Found(found, parts.peek().is_some()))?;
        }
        Ok(())
    }

    /// Answers SAMPLES, series by series.
    pub(super) fn samples(
        &self,
        store: &Store,
        of: &SamplesOf,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let reader = self.get(store);
        let range = TimeRange {
            from_ms: of.from_ms,
            thru_ms: of.thru_ms,
        };
        let value = RowValue::ALL.get(usize::from(of.row_value));
        let rows = RowsAs {
            value: value.copied().unwrap_or(RowValue::Mean),
            before: of.rows_before,
        };
        let mut budget = Budget {
            samples: of.samples_max.min(SAMPLES_MAX),
            ..Budget::UNLIMITED
        };
        let mut out = BufWriter::with_capacity(BUFFER, out);
        for (place, &id) in of.ids.iter().enumerate() {
            if place % FLUSHED == 0 {
                out.flush()?;
            }
            let mut pieces = SampleFrames {
                out: &mut out,
                sent: Ok(()),
            };
            let read = reader.samples(&[SeriesId(id)], range, rows, &mut budget, &mut pieces);
            pieces.sent?;
            if let Err(error) = read {
                refuse("read samples", &error, &mut out)?;
                return out.flush();
            }
        }
        send(&mut out, &Answer::Samples(SamplesPiece::default(), false))?;
        out.flush()
    }

    /// Answers LABELS.
    pub(super) fn labels(
        &self,
        store: &Store,
        of: &LabelsOf,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let reader = self.get(store);
        let found = matchers(&of.find).and_then(|matchers| match &*of.label {
            "" => reader.label_names(&matchers, range(&of.find)),
            label => reader.label_values(label, &matchers, range(&of.find)),
        });
        let texts = match found {
            Ok(texts) => texts,
            Err(error) => return refuse("list labels", &error, out),
        };
        let mut parts = texts.chunks(FRAME_SERIES).peekable();
        if parts.peek().is_none() {
            return send(out, &Answer::Labels(Vec::new(), false));
        }
        while let Some(part) = parts.next() {
            send(out, &Answer::Labels(part.to_vec(), parts.peek().is_some()))?;
        }
        Ok(())
    }
}

fn send(out: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    out.write_all(&answer.frame())
}

fn refuse(what: &str, error: &ReadError, out: &mut dyn Write) -> io::Result<()> {
    send(out, &Answer::Refused(format!("cannot {what}: {error}")))
}

fn range(find: &Find) -> TimeRange {
    TimeRange {
        from_ms: find.from_ms,
        thru_ms: find.thru_ms,
    }
}

fn matchers(find: &Find) -> Result<Vec<Matcher>, ReadError> {
    let matcher = |matcher: &LabelMatcher| {
        let op = match matcher.op {
            MatchOp::Equal => Op::Equal,
            MatchOp::NotEqual => Op::NotEqual,
            MatchOp::Matches => Op::Matches,
            MatchOp::NotMatches => Op::NotMatches,
        };
        let made = Matcher::new(&matcher.label, op, &matcher.value);
        made.map_err(|error| ReadError::Failed(error.to_string()))
    };
    find.matchers.iter().map(matcher).collect()
}

/// Sends samples as they are read.
struct SampleFrames<'a> {
    out: &'a mut dyn Write,
    sent: io::Result<()>,
}

impl SampleSink for SampleFrames<'_> {
    fn samples(&mut self, id: SeriesId, samples: &[Sample], resolution_s: u32) {
        for part in samples.chunks(FRAME_SAMPLES) {
            if self.sent.is_err() {
                return;
            }
            let piece = SamplesPiece {
                id: id.0,
                resolution_s,
                samples: part.iter().map(|of| (of.t_ms, of.v)).collect(),
            };
            self.sent = send(self.out, &Answer::Samples(piece, true));
        }
    }
}
