//! One publisher's file, and the values of its last scans.

use std::ffi::OsStr;

use kymo_shm::{
    Access, Activity, Header, Liveness, Metric, MetricKind, OpenError, ReadError, Reader, Sampled,
    Scratch, State, Value,
};
use kymo_wire::keeper::{self, Latency, Life, PREPARED};

use super::answer_bytes::{description_bytes, labels_bytes, slots_bytes};
use super::budgets::{Budgets, FileSize};
use super::folder::Folder;
use super::labels::MetricOwner;
use super::quantile;
use super::retired::{Legacy, Retired};
use super::series::{Id, Table};

/// Words of a slot's head.
const HEAD_WORDS: usize = 8;
/// Most bytes of a metric's help in an answer.
const HELP_MAX: usize = 256;

/// A time by two clocks: one that does not go back, and the clock of the day.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    pub(super) mono_ns: u64,
    pub(super) real_ns: i64,
}

/// A file that is read.
pub(super) struct Publisher {
    pub(super) size: FileSize,
    reader: Reader,
    life: Life,
    /// Entries of the known metrics, in their order; `None`: the metric has no series.
    ids: Vec<Option<Id>>,
    /// Cells at the scan before the last one, and its time.
    before: Vec<u64>,
    before_ns: u64,
    scanned_ns: u64,
    /// For each slot: time at which its state was seen first, by the clock of the day.
    since_ns: Vec<u64>,
}

/// Size of slots for the owner's limits.
fn size_of(header: &Header, slots: usize) -> FileSize {
    FileSize {
        slots,
        words: slots.saturating_mul(header.cells + HEAD_WORDS),
        text_room: slots.saturating_mul(header.text_bytes),
    }
}

impl Publisher {
    /// Opens a file. The owner is known from then on, even if the file is not read.
    pub(super) fn open(folder: &Folder, name: &OsStr) -> Result<Publisher, OpenError> {
        // Not by a mapping: if a file of the keeper's own user became shorter, the keeper would end.
        let mut reader = Reader::open(folder, name, Access::Read)?;
        // The first scan finds out that a file cannot be read.
        let slots = reader.slots_in_use().unwrap_or(0);
        reader.read_at_most(slots);
        Ok(Publisher {
            size: size_of(reader.header(), slots),
            life: Life::Alive,
            ids: Vec::new(),
            before: Vec::new(),
            before_ns: 0,
            scanned_ns: 0,
            since_ns: Vec::new(),
            reader,
        })
    }

    /// New size of the file, if more slots are in use than are read.
    pub(super) fn grown(&self) -> Option<FileSize> {
        let slots = self.reader.slots_in_use().ok()?;
        (slots > self.size.slots).then(|| size_of(self.reader.header(), slots))
    }

    /// Reads all slots of this size from now on.
    pub(super) fn grow(&mut self, size: FileSize) {
        self.size = size;
        self.reader.read_at_most(size.slots);
    }

    pub(super) fn uid(&self) -> u32 {
        self.reader.owner()
    }

    pub(super) fn header(&self) -> &Header {
        self.reader.header()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.life == Life::Ended
    }

    /// Ends the publisher because its name is gone.
    pub(super) fn end(&mut self) {
        self.life = Life::Ended;
    }

    /// Reads all cells. The owner's life is checked before: an ended program changes nothing any more, so this scan has its
    /// last values.
    pub(super) fn scan(&mut self, scratch: &mut Scratch, now: Moment) -> Result<(), ReadError> {
        if self
            .reader
            .liveness()
            .is_ok_and(|found| found == Liveness::Ended)
        {
            self.life = Life::Ended;
        }
        let before = self.reader.totals().to_vec();
        self.reader.scan(scratch)?;
        if self.scanned_ns > 0 {
            (self.before, self.before_ns) = (before, self.scanned_ns);
        }
        self.scanned_ns = now.mono_ns;
        Ok(())
    }

    /// Adds entries for new metrics.
    pub(super) fn join(
        &mut self,
        table: &mut Table,
        user: &[u8],
        budgets: &mut Budgets,
        retired: &Retired,
    ) {
        let (uid, known) = (self.uid(), self.ids.len());
        let publisher = &self.reader.header().name;
        let whose = MetricOwner { publisher, user };
        for metric in self.reader.metrics().iter().skip(known) {
            self.ids
                .push(table.join(whose, uid, metric, budgets, retired));
        }
    }

    /// Tries again to add metrics that have no series.
    pub(super) fn join_again(
        &mut self,
        table: &mut Table,
        user: &[u8],
        budgets: &mut Budgets,
        retired: &Retired,
    ) {
        let uid = self.uid();
        let publisher = &self.reader.header().name;
        let whose = MetricOwner { publisher, user };
        let refused = self.reader.metrics().iter().zip(&mut self.ids);
        for (metric, id) in refused.filter(|(_, id)| id.is_none()) {
            *id = table.join(whose, uid, metric, budgets, retired);
        }
    }

    pub(super) fn leave(&self, table: &mut Table, budgets: &mut Budgets) {
        for id in self.ids.iter().flatten() {
            table.leave(*id);
        }
        budgets.give_file(self.uid(), self.size);
    }

    fn entries(&self) -> impl Iterator<Item = (&Metric, Id)> {
        let pairs = self.reader.metrics().iter().zip(&self.ids);
        pairs.filter_map(|(metric, id)| Some((metric, (*id)?)))
    }

    fn cells<'a>(&self, all: &'a [u64], metric: &Metric) -> &'a [u64] {
        all.get(metric.first_cell..metric.first_cell + metric.kind.cells())
            .unwrap_or_default()
    }

    pub(super) fn add(&self, table: &mut Table) {
        for (metric, id) in self.entries() {
            match self.reader.value(metric) {
                Value::Gauge(gauge) => table.add(id, &[], gauge),
                _ => table.add(id, self.cells(self.reader.totals(), metric), 0.0),
            }
        }
    }

    /// Totals that an ended program leaves, of metrics with series.
    pub(super) fn legacy(&self, table: &Table) -> Legacy {
        let totals = self
            .entries()
            .filter_map(|(metric, id)| table.legacy(id, self.cells(self.reader.totals(), metric)));
        Legacy {
            epoch: self.header().epoch,
            totals: totals.collect(),
        }
    }

    /// Samples the activity of slots. Returns the bytes of copied texts.
    pub(super) fn sample(
        &mut self,
        scratch: &mut Scratch,
        now: Moment,
    ) -> Result<usize, ReadError> {
        let Sampled { changed, .. } = self.reader.sample(scratch)?;
        let slots = self.reader.activities();
        self.since_ns.resize(slots.len(), 0);
        if changed == 0 {
            return Ok(0);
        }
        let real_ns = u64::try_from(now.real_ns).unwrap_or(0);
        let mut bytes = 0;
        for (slot, since_ns) in slots.iter().zip(&mut self.since_ns) {
            if slot.is_changed {
                *since_ns = real_ns;
                bytes += slot
                    .command
                    .as_ref()
                    .map_or(0, |command| command.text.len());
            }
        }
        Ok(bytes)
    }

    /// The publisher in an answer, without its slots.
    pub(super) fn answer(&self, user: Vec<u8>) -> keeper::Publisher {
        let metrics = self.entries().map(|(metric, _)| self.metric(metric));
        keeper::Publisher {
            metrics: metrics.collect(),
            ..self.described(user)
        }
    }

    /// The publisher in an answer, without its slots and metrics.
    pub(super) fn described(&self, user: Vec<u8>) -> keeper::Publisher {
        let header = self.header();
        let refused = self.ids.iter().filter(|id| id.is_none()).count();
        keeper::Publisher {
            name: header.name.clone(),
            labels: common_labels(self.reader.metrics()),
            user,
            uid: self.uid(),
            pid: header.pid,
            started_ns: header.created_ns,
            life: self.life,
            slots_used: number(self.reader.slots_used()),
            cells: number(header.cells),
            refused: number(refused + usize::from(self.reader.has_bad_metrics())),
            ..keeper::Publisher::default()
        }
    }

    /// Most bytes of [`Publisher::answer`] with its slots, with their texts or without.
    pub(super) fn answer_bytes(&self, texts: bool) -> usize {
        let metrics = self.entries();
        let metrics = metrics.map(|(metric, _)| description_bytes(&metric.description));
        self.described_bytes(texts) + metrics.sum::<usize>()
    }

    /// Most bytes of [`Publisher::described`] with its slots.
    pub(super) fn described_bytes(&self, texts: bool) -> usize {
        let labels = labels_bytes(&common_labels(self.reader.metrics()));
        labels + slots_bytes(texts, self.slots())
    }

    fn metric(&self, metric: &Metric) -> keeper::Metric {
        let description = &metric.description;
        let (scale, value) = (description.scale, self.reader.value(metric));
        let before = self.cells(&self.before, metric);
        let seconds = self.scanned_ns.saturating_sub(self.before_ns) as f64 / 1e9;
        let rate = |more: f64| match before.is_empty() || seconds <= 0.0 {
            true => f64::NAN,
            false => more / seconds,
        };
        let mut latency = Latency::NONE;
        let (kind, value, rate) = match value {
            Value::Counter(value) => {
                let more = value.wrapping_sub(before.first().copied().unwrap_or(0));
                let (value, more) = (value as f64 * scale, more as f64 * scale);
                (keeper::MetricKind::Counter, value, rate(more))
            }
            Value::Gauge(value) => (keeper::MetricKind::Gauge, value * scale, f64::NAN),
            Value::Histogram(histogram) => {
                let mut more = 0;
                if let (MetricKind::Histogram(buckets), false) = (metric.kind, before.is_empty()) {
                    let now = self.cells(self.reader.totals(), metric);
                    let gain = quantile::gain(buckets, before, now);
                    latency = Latency {
                        samples: gain.samples,
                        quantiles: gain.quantiles.map(|value| value * scale),
                    };
                    more = gain.count;
                }
                let count = histogram.count() as f64;
                (keeper::MetricKind::Histogram, count, rate(more as f64))
            }
        };
        keeper::Metric {
            name: description.name.clone(),
            unit: description.unit.clone(),
            help: cut(&description.help, HELP_MAX).to_vec(),
            labels: description.labels.clone(),
            kind,
            value,
            rate,
            latency,
        }
    }

    /// Slots of living processes: number, activity, and the time since which the state holds.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &Activity, u64)> {
        let slots = self.reader.activities().iter().zip(&self.since_ns);
        let owned = slots
            .enumerate()
            .filter(|(_, (slot, _))| is_somebodys(slot));
        owned.map(|(number, (slot, since_ns))| (number, slot, *since_ns))
    }
}

/// Labels that all metrics have, with the same values: they distinguish publishers of one name and owner.
fn common_labels(metrics: &[Metric]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some((first, others)) = metrics.split_first() else {
        return Vec::new();
    };
    let has = |label| {
        let mut others = others.iter();
        others.all(|metric| metric.description.labels.contains(label))
    };
    let labels = first.description.labels.iter();
    labels.filter(|label| has(label)).cloned().collect()
}

/// True if a living process owns the slot.
fn is_somebodys(slot: &Activity) -> bool {
    slot.owner.is_some() && !slot.has_ended && slot.state != State::Gone
}

/// A count as answers have it.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The first `most` bytes of a text.
pub(super) fn cut(text: &[u8], most: usize) -> &[u8] {
    &text[..text.len().min(most)]
}

/// True if a slot of this state is in a command or a transaction.
pub(super) fn is_at_work(state: u8) -> bool {
    [
        State::Active,
        State::IdleInTransaction,
        State::IdleInAbortedTransaction,
    ]
    .iter()
    .any(|each| each.byte() == state)
        || state == PREPARED
}
