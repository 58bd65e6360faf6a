//! The counters of a publisher: one read has all cells of most, and they are added up over its slots.

use kymo_base::limits::SHM_METRICS_MAX;

use crate::head::Head;
use crate::header::Header;
use crate::layout::{HEAD_WORDS, LIVE_BYTES, LIVE_CLOSED, LIVE_METRICS, LIVE_SLOTS, METRIC_FIXED};
use crate::mapping::as_bytes;
use crate::metric::{GaugeType, Metric, MetricKind};
use crate::reader::bytes::{Bytes, ReadError};
use crate::reader::lives::{Lives, Tenure};
use crate::version::Memory;

/// Words that are read at once, but for slots that have more.
const CHUNK_WORDS: usize = 8192;
const LIVE_WORDS: usize = LIVE_BYTES / 8;

/// Memory that scans of many publishers share.
#[derive(Default)]
pub struct Scratch {
    pub(crate) words: Vec<u64>,
    heads: Vec<u64>,
    /// Slots whose owner lives.
    owned: Vec<bool>,
}

impl Scratch {
    pub(crate) fn room(&mut self, words: usize) -> &mut [u64] {
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        &mut self.words[..words]
    }
}

/// A gauge: its cell, how it is read, and its sum over the slots whose owner lives.
struct GaugeSum {
    cell: usize,
    kind: GaugeType,
    sum: u64,
}

/// The metrics of a publisher and their cells.
pub(crate) struct Table {
    pub(crate) metrics: Vec<Metric>,
    pub(crate) totals: Vec<u64>,
    pub(crate) slots_used: usize,
    pub(crate) closed: bool,
    /// A description made no sense.
    pub(crate) bad: bool,
    gauges: Vec<GaugeSum>,
    /// Bytes of the table that were read.
    described: u64,
}

impl Table {
    pub(crate) fn new(header: &Header) -> Table {
        Table {
            metrics: Vec::new(),
            totals: vec![0; header.cells],
            slots_used: 1,
            closed: false,
            bad: false,
            gauges: Vec::new(),
            described: 0,
        }
    }

    pub(crate) fn scan(
        &mut self,
        bytes: &Bytes,
        header: &Header,
        most: usize,
        lives: &mut Lives,
        scratch: &mut Scratch,
    ) -> Result<(), ReadError> {
        let stride =
            usize::try_from(header.cell_section.stride / 8).map_err(|_| ReadError::Short)?;
        let at_once = (CHUNK_WORDS / stride.max(1)).max(1);
        // The live section, and the cells of as many slots as were in use before.
        let expected = self.slots_used.min(at_once).min(header.slots).min(most);
        let words = scratch.room(LIVE_WORDS + expected * stride);
        bytes.read(header.live, words)?;
        bytes.acquire();
        let described = words[LIVE_METRICS];
        self.closed = words[LIVE_CLOSED] != 0;
        self.slots_used = slots_in(words, header).min(most);
        if described > self.described && !self.bad {
            self.describe(bytes, header, described.min(header.metrics_room))?;
        }
        if self.gauges.is_empty() {
            scratch.owned.clear();
        } else {
            read_owners(bytes, header, self.slots_used, lives, scratch)?;
        }
        self.totals.fill(0);
        self.gauges.iter_mut().for_each(|gauge| gauge.sum = 0);
        let mut first = expected.min(self.slots_used);
        self.add(
            &scratch.words[LIVE_WORDS..][..first * stride],
            stride,
            0,
            &scratch.owned,
        );
        while first < self.slots_used {
            let count = at_once.min(self.slots_used - first);
            let at = header.cell_section.offset + header.cell_section.stride * first as u64;
            bytes.read(at, scratch.room(count * stride))?;
            self.add(
                &scratch.words[..count * stride],
                stride,
                first,
                &scratch.owned,
            );
            first += count;
        }
        for gauge in &self.gauges {
            self.totals[gauge.cell] = gauge.sum;
        }
        Ok(())
    }

    /// Adds the cells of slots from `first` on.
    fn add(&mut self, words: &[u64], stride: usize, first: usize, owned: &[bool]) {
        if stride == 0 {
            return;
        }
        for (number, cells) in words.chunks_exact(stride).enumerate() {
            for (total, cell) in self.totals.iter_mut().zip(cells) {
                *total = total.wrapping_add(*cell);
            }
            if !owned.get(first + number).is_some_and(|owned| *owned) {
                continue;
            }
            for gauge in &mut self.gauges {
                let cell = cells[gauge.cell];
                gauge.sum = match gauge.kind {
                    GaugeType::Unsigned | GaugeType::Signed => gauge.sum.wrapping_add(cell),
                    GaugeType::Double => {
                        (f64::from_bits(gauge.sum) + f64::from_bits(cell)).to_bits()
                    }
                };
            }
        }
    }

    /// Reads the descriptions up to `end`.
    fn describe(&mut self, bytes: &Bytes, header: &Header, end: u64) -> Result<(), ReadError> {
        let length = usize::try_from(end - self.described).map_err(|_| ReadError::Short)?;
        if end > SHM_METRICS_MAX as u64 {
            self.bad = true;
            return Ok(());
        }
        let mut words = vec![0; length / 8];
        bytes.read(header.metrics + self.described, &mut words)?;
        let mut rest = as_bytes(&words);
        while rest.len() >= METRIC_FIXED {
            let Ok((metric, behind)) = Metric::parse(rest, header.cells) else {
                self.bad = true;
                break;
            };
            if let Some(metric) = metric {
                if let MetricKind::Gauge(kind) = metric.kind {
                    let cell = metric.first_cell;
                    self.gauges.push(GaugeSum { cell, kind, sum: 0 });
                }
                self.metrics.push(metric);
            }
            rest = behind;
        }
        self.bad |= !rest.is_empty() || !end.is_multiple_of(8);
        self.described = end;
        Ok(())
    }
}

/// Slots in use, by the live section.
pub(crate) fn slots_in(live: &[u64], header: &Header) -> usize {
    let count = usize::try_from(live[LIVE_SLOTS]).unwrap_or(usize::MAX);
    count.min(header.slots)
}

/// Which slots have an owner that lives.
fn read_owners(
    bytes: &Bytes,
    header: &Header,
    slots: usize,
    lives: &mut Lives,
    scratch: &mut Scratch,
) -> Result<(), ReadError> {
    lives.begin();
    scratch.owned.clear();
    let stride = usize::try_from(header.heads.stride / 8)
        .map_err(|_| ReadError::Short)?
        .max(HEAD_WORDS);
    let at_once = (CHUNK_WORDS / stride).max(1);
    while scratch.owned.len() < slots {
        let first = scratch.owned.len();
        let count = at_once.min(slots - first);
        let at = header.heads.offset + header.heads.stride * first as u64;
        scratch.heads.resize(count * stride, 0);
        bytes.read(at, &mut scratch.heads)?;
        bytes.acquire();
        let heads = scratch.heads.chunks_exact(stride);
        for (slot, words) in (first..).zip(heads) {
            let mut head = Head::default();
            head.0.copy_from_slice(&words[..HEAD_WORDS]);
            let tenure = lives.of(slot, &head, header, bytes);
            scratch.owned.push(tenure == Tenure::Lives);
        }
    }
    lives.end();
    Ok(())
}
