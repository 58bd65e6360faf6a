//! Saves a chunk: takes its values out of memory, applies them, and appends the result as a block.
//!
//! The journal is synced up to the block's position first, since a block must not be ahead of the journal.

use crate::compaction::dead::Liveness;
use crate::consolidation::apply::Applier;
use crate::consolidation::rows::Column;
use crate::consolidation::schema::Schema;
use crate::engine::Inner;
use crate::flush::points::{PointsMember, SamplesJob, build_part as build_points};
use crate::layout::{CHUNK, STRIPE};
use crate::memtable::buffer::{Pending, Texts};
use crate::memtable::state::State;
use crate::names;
use crate::segment::block::States;
use crate::segment::builder::Builder;
use crate::segment::catalog::{CatalogHead, Line, put_catalog};
use crate::segment::placed::Placed;
use crate::segment::points;
use crate::segment::set::{SegmentSet, states_and_damage};
use crate::wal::point::PointBuffer;
use crate::wal::record::Packed;
use crate::wal::value::stamp_of;
use kymo_base::name::DisplayName;
use kymo_rrd::update::Now;
use kymo_sys::clock::Clock;
use std::io;
use std::sync::Arc;

/// Pause after a failed attempt to save a chunk.
const RETRY_NS: u64 = 5_000_000_000;

/// Memory that is reused from chunk to chunk.
pub(crate) struct Saver {
    builder: Builder,
    applier: Applier,
    texts: Texts,
    columns: Vec<Column>,
    entries: points::PointsWriter,
    samples: SamplesJob,
}

/// A series that is being saved.
struct Member {
    id: u32,
    slot: u8,
    path: Arc<[u8]>,
    values: Arc<Pending>,
    points: Arc<PointBuffer>,
    state: Option<Packed>,
    line: Line,
    refused: Vec<String>,
    /// The state of the series is unreadable.
    lost: bool,
}

impl Member {
    fn of_points(&mut self, is_kept: bool) -> PointsMember<'_> {
        PointsMember {
            is_kept,
            slot: self.slot,
            points: &self.points,
            state: self.state.as_ref(),
            line: &mut self.line,
        }
    }
}

/// A chunk that is being saved.
struct FlushJob {
    chunk: u32,
    schema: Arc<Schema>,
    position: u64,
    members: Vec<Member>,
    blocks: Arc<Vec<Placed>>,
    since: (u64, u64),
    slots: u16,
    next_id: u32,
    /// Some states are unreadable, so older ones are used.
    damaged: bool,
}

impl Saver {
    pub(crate) fn new() -> io::Result<Saver> {
        Ok(Saver {
            builder: Builder::new(0)?,
            applier: Applier::default(),
            texts: Texts::default(),
            columns: Vec::new(),
            entries: points::PointsWriter::default(),
            samples: SamplesJob::default(),
        })
    }
}

impl Inner {
    /// Saves the due chunks; returns their number.
    pub(crate) fn save_due(&self, saver: &mut Saver) -> usize {
        let now_ns = self.clock.mono_ns();
        let due = std::mem::take(&mut self.lock().tasks.due);
        let mut saved = 0;
        for chunk in due {
            let resting = {
                let mut state = self.lock();
                let known = state.chunks.get_mut(chunk);
                known.is_none_or(|known| {
                    known.queued = false;
                    known.not_before_ns > now_ns
                })
            };
            if !resting && self.save(saver, chunk) {
                saved += 1;
            }
        }
        saved
    }

    /// Saves a chunk unless another thread does; returns true if it was saved.
    pub(crate) fn save(&self, saver: &mut Saver, chunk: u32) -> bool {
        let Some(mut job) = self.take_job(chunk) else {
            return false;
        };
        let done = self
            .sync_to(job.position)
            .and_then(|()| self.build(saver, &mut job))
            .and_then(|()| self.segments.append(&mut saver.builder));
        let mut state = self.lock();
        match done {
            Ok(()) => {
                finish(&mut state, &self.segments, job, &*self.clock);
                true
            }
            Err(error) => {
                state.notice(format!(
                    "cannot flush {} series: {error}; their values stay in memory and in the journal",
                    job.members.len()
                ));
                put_back(
                    &mut state,
                    &self.segments,
                    job,
                    self.clock.mono_ns() + RETRY_NS,
                );
                false
            }
        }
    }

    fn take_job(&self, chunk_id: u32) -> Option<FlushJob> {
        let mut state = self.lock();
        let state = &mut *state;
        let chunk = state
            .chunks
            .get_mut(chunk_id)
            .filter(|chunk| !chunk.saving)?;
        chunk.saving = true;
        let since = (chunk.since, chunk.since_ns);
        chunk.since = 0;
        chunk.pending = 0;
        chunk.active = 0;
        let blocks = self.segments.pin(chunk_id);
        let schema = chunk.schema.clone();
        let slots = chunk.members.len() as u16;
        let (base, mut members) = (state.journal.base.clone(), Vec::new());
        for (slot, id) in chunk.members.iter().enumerate() {
            let Some(series) = id.and_then(|id| state.series.get_mut(id)) else {
                continue;
            };
            let (held, values) = match series.suspended {
                true => (series.values.pending.clone(), Arc::default()),
                false => {
                    let values = Arc::new(std::mem::take(&mut series.values.pending));
                    series.values.flushing = Some(values.clone());
                    (Pending::default(), values)
                }
            };
            let points = series.values.points.as_mut().map(|points| points.take());
            members.push(Member {
                id: id.unwrap_or_default(),
                slot: slot as u8,
                path: series.path.clone(),
                values,
                points: points.unwrap_or_default(),
                state: series.values.state.clone(),
                line: Line {
                    slot: slot as u8,
                    id: id.unwrap_or_default(),
                    path: names::stored(&base, &series.path),
                    forgotten: series.forgotten,
                    create_unsynced: series.file.is_create_unsynced(),
                    applied: series.values.applied,
                    published: series.values.published,
                    base: series.base,
                    left: series.file.for_block(),
                    live: series.file.live(),
                    held,
                },
                refused: Vec::new(),
                lost: false,
            });
        }
        Some(FlushJob {
            chunk: chunk_id,
            schema,
            position: state.journal.position,
            members,
            blocks,
            since,
            slots,
            next_id: state.series.next_id(),
            damaged: false,
        })
    }

    /// Applies the values and builds the block.
    fn build(&self, saver: &mut Saver, job: &mut FlushJob) -> io::Result<()> {
        let real_ns = self.clock.now().real_ns;
        let now = Now {
            sec: real_ns.div_euclid(1_000_000_000),
            usec: real_ns.rem_euclid(1_000_000_000) / 1000,
        };
        let archives = job.schema.archives.len();
        saver.builder.begin(job.chunk, job.position, archives);
        saver.columns.resize_with(archives, Column::default);
        let mut from = 0;
        for stripe in 0..(CHUNK / STRIPE) as u8 {
            let rest = &job.members[from..];
            let count = rest
                .iter()
                .take_while(|member| member.slot / STRIPE as u8 == stripe)
                .count();
            let members = from..from + count;
            from += count;
            let moved = |member: &Member| {
                let has_values = !member.values.is_empty() || !member.points.is_empty();
                has_values || member.state.is_some()
            };
            if !job.members[members.clone()].iter().any(moved) {
                continue;
            }
            let (known, damaged) = states_and_damage(&job.blocks, &job.schema, stripe)?;
            job.damaged |= damaged;
            match job.schema.points {
                Some(_) => {
                    let is_kept = self.settings.keeps_values;
                    let members = job.members[members].iter_mut();
                    let members = members.map(|member| member.of_points(is_kept));
                    let Saver {
                        builder, samples, ..
                    } = &mut *saver;
                    build_points(builder, samples, stripe, members, &known)?;
                }
                None => {
                    let keeps_values = self.settings.keeps_values;
                    build_part(saver, job, stripe, (members, &known), (now, keeps_values))?;
                }
            }
        }
        let mut catalog = Vec::new();
        let lines = job.members.iter().filter(|member| !member.lost);
        let lines: Vec<Line> = lines.map(|member| member.line.clone()).collect();
        let about = CatalogHead {
            front: job.schema.front.clone(),
            slots: job.slots,
            next_id: job.next_id,
        };
        put_catalog(&mut catalog, &about, &lines);
        saver.builder.names(&catalog)
    }

    /// Merges some segments if that is worth its cost; returns true if more merges may be.
    pub(crate) fn merge(&self) -> bool {
        const AT_ONCE: usize = 4;
        for _ in 0..AT_ONCE {
            match self.segments.merge(self) {
                Ok(Some(_)) => {}
                Ok(None) => return false,
                Err(error) => {
                    self.lock()
                        .notice(format!("cannot merge segments: {error}"));
                    return false;
                }
            }
        }
        true
    }
}

impl Liveness for Inner {
    fn schema(&self, chunk: u32) -> Option<Arc<Schema>> {
        let state = self.lock();
        let chunk = state.chunks.get(chunk)?;
        (!chunk.is_empty()).then(|| chunk.schema.clone())
    }

    fn settle(&self, emptied: &[u32]) -> io::Result<()> {
        let mut state = self.lock();
        if !emptied.is_empty() {
            state.prepare(&*self.clock)?;
            state.put_saved(emptied.iter().map(|&chunk| (chunk, 0)));
            state.journal.commit()?;
        }
        let any = !state.gone.is_empty() || !emptied.is_empty();
        drop(state);
        if any { self.sync_to(u64::MAX) } else { Ok(()) }
    }

    fn is_alive(&self, chunk: u32, slot: u8) -> bool {
        let state = self.lock();
        let members = state.chunks.get(chunk).map(|chunk| &chunk.members);
        members.is_some_and(|members| members.get(usize::from(slot)).copied().flatten().is_some())
    }

    fn stamps(&self, chunk: u32) -> Vec<Option<i64>> {
        self.lock().saved_stamps(chunk)
    }
}

/// Adds the frames of a stripe.
fn build_part(
    saver: &mut Saver,
    job: &mut FlushJob,
    stripe: u8,
    (members, known): (std::ops::Range<usize>, &States),
    (now, keeps_values): (Now, bool),
) -> io::Result<()> {
    let Saver {
        builder,
        applier,
        texts,
        columns,
        entries,
        ..
    } = saver;
    let schema = job.schema.clone();
    columns.iter_mut().for_each(Column::clear);
    let (mut new, mut points): (States, Vec<u8>) = (Vec::new(), Vec::new());
    for member in &mut job.members[members] {
        let at = member.slot % STRIPE as u8;
        let in_block = known.iter().find(|(slot, _)| *slot == at);
        let fresh = member.state.as_ref().map(Packed::words);
        let words = fresh.as_deref().or(in_block.map(|(_, words)| &words[..]));
        let Some(words) = words else {
            member.lost = true;
            continue;
        };
        let Some(words) = apply_values(applier, texts, (&schema, words), member, now) else {
            new.push((at, words.to_vec()));
            continue;
        };
        let Some(header) = applier.header() else {
            continue;
        };
        let last_up = header.last_up;
        builder.stamp = builder.stamp.max(last_up.max(0) as u64);
        new.push((at, words));
        if !keeps_values {
            continue;
        }
        for (archive, column) in columns.iter_mut().enumerate() {
            let rows = &applier.captured.archives[archive];
            column.push(at, schema.newest(archive, last_up), rows);
        }
        if !member.values.is_empty() {
            entries.put(&mut points, at, &member.values);
        }
    }
    builder.part(stripe);
    builder.state(&new)?;
    if !points.is_empty() {
        builder.points(&points)?;
    }
    for (archive, column) in columns.iter().enumerate() {
        builder.rows(archive, column, column.newest)?;
    }
    Ok(())
}

/// The state of a member after its values; `None` if they cannot be applied and the state stays unchanged.
fn apply_values(
    applier: &mut Applier,
    texts: &mut Texts,
    (schema, words): (&Schema, &[u64]),
    member: &mut Member,
    now: Now,
) -> Option<Vec<u64>> {
    texts.clear();
    member.values.texts_into(texts);
    let values: Vec<&[u8]> = texts.iter().collect();
    if let Err(error) = applier.apply(schema, words, &member.path, &values, now) {
        member.refused.push(error.text);
        return None;
    }
    let refused = applier.refused.drain(..).map(|(_, error)| error.text);
    member.refused.extend(refused);
    let mut words = Vec::with_capacity(schema.words);
    applier.pack(schema, &mut words);
    member.line.applied = schema.stamp_of(&words);
    let newest = values.last().and_then(|text| stamp_of(text));
    if let Some(stamp) = newest.filter(|_| member.refused.is_empty()) {
        // The stamp in the state may be smaller than the value's by rounding.
        member.line.applied = member.line.applied.max(stamp);
    }
    member.line.published = member.line.published.max(member.line.applied);
    Some(words)
}

/// Removes the saved values from memory after the block was appended.
fn finish(state: &mut State, segments: &SegmentSet, job: FlushJob, clock: &dyn Clock) {
    segments.unpin(job.chunk);
    let mut gone_back = Vec::new();
    if job.damaged {
        state.notice(format!(
            "states of chunk {} are damaged: older ones are used, and what came since is unknown",
            job.chunk
        ));
    }
    if let Some(chunk) = state.chunks.get_mut(job.chunk) {
        chunk.saving = false;
    }
    state.gone.retain(|(chunk, id)| {
        *chunk != job.chunk || job.members.iter().any(|member| member.id == *id)
    });
    for member in job.members {
        let refused = member.refused.len() as u64;
        state.stats.values_refused += refused;
        for text in &member.refused {
            state.notice(format!(
                "cannot keep a value: {}",
                DisplayName(text.as_bytes())
            ));
        }
        if member.lost {
            let path = DisplayName(&member.path);
            state.notice(format!(
                "cannot read the state of {path}: its rows begin with the next value"
            ));
            state.has_lost = true;
            state.forget_series(member.id);
            continue;
        }
        let Some(series) = state.series.get_mut(member.id) else {
            continue;
        };
        if !series.suspended || !member.values.is_empty() {
            let count = series.values.taken_unpublished() as u64;
            state.stats.updates_written += u64::from(count > 0);
            state.stats.data_sets_written += count.saturating_sub(refused);
        }
        series.values.flushing = None;
        series
            .values
            .points
            .iter_mut()
            .for_each(|points| points.flushing = None);
        series.values.state = None;
        series.renamed &= series.path != member.path;
        series.values.applied = member.line.applied;
        if refused > 0 && series.values.pending.is_empty() {
            gone_back.extend(series.values.go_back().map(|stamp| (member.id, stamp)));
        }
        series.values.published = series.values.published.max(series.values.applied);
    }
    state.put_newest(gone_back, clock);
}

/// Puts the values back before newer ones after a failed attempt.
fn put_back(state: &mut State, segments: &SegmentSet, job: FlushJob, not_before_ns: u64) {
    segments.unpin(job.chunk);
    for member in &job.members {
        let Some(series) = state.series.get_mut(member.id) else {
            continue;
        };
        series.values.flushing = None;
        if !member.values.is_empty() {
            let before = series.values.pending.len();
            series.values.pending.prepend(&member.values);
            let after = series.values.pending.len();
            state.count(job.chunk, before, after);
        }
        state.put_back_points(member.id, job.chunk);
    }
    if let Some(chunk) = state.chunks.get_mut(job.chunk) {
        chunk.saving = false;
        chunk.not_before_ns = not_before_ns;
        if job.since.0 > 0 {
            (chunk.since, chunk.since_ns) = job.since;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fresh, Settings, Store};
    use kymo_rrd::create::{Create, create};
    use kymo_sys::clock::Stamp;
    use kymo_sys::disk::Disk;
    use kymo_sys::sim_clock::SimClock;
    use kymo_sys::sim_disk::SimDisk;
    use std::path::Path;

    const BIRTH: i64 = 1_000_000_000;

    fn store() -> Store {
        let disk = SimDisk::new(1);
        for folder in ["/j", "/db"] {
            disk.create_dir_all(Path::new(folder)).unwrap();
        }
        let clock = SimClock::new(Stamp {
            real_ns: BIRTH * 1_000_000_000,
            mono_ns: 1,
            boot_ns: 1,
        });
        let settings = Settings::new("/j", "/db");
        let opened = Store::open(settings, Arc::new(disk), Arc::new(clock));
        let request = Create {
            file_name: b"/db/a.rrd",
            step: 10,
            start: Some(BIRTH),
            definitions: &[b"DS:x:GAUGE:60:U:U", b"RRA:AVERAGE:0.5:1:5"],
        };
        let rrd = create(&request, BIRTH, &mut { 1 }, None, &[]).unwrap();
        let (store, _) = opened.unwrap();
        store.install(b"a.rrd", &rrd, true).unwrap();
        store
    }

    /// Regression test: a block was readable a moment before its values were published, so that FIRST and INFO included
    /// them while PENDING still listed them.
    #[test]
    fn values_on_their_way_into_a_block_are_pending_for_all_who_ask() {
        let store = store();
        store.touch(b"a.rrd").unwrap();
        let mut batch = store.write_batch();
        batch.update(b"a.rrd", [&b"1000000010:1"[..]]).unwrap();
        batch.commit().unwrap();
        let seen = || {
            let header = store.read(b"a.rrd", Fresh::AsIs).unwrap().header;
            let pending = store.write_batch().pending(b"a.rrd", &mut |_| {});
            (header.last_up - BIRTH, pending)
        };
        assert_eq!(seen(), (0, Some(1)));
        let inner = &*store.inner;
        let (mut saver, mut job) = (Saver::new().unwrap(), inner.take_job(0).unwrap());
        inner.build(&mut saver, &mut job).unwrap();
        inner.segments.append(&mut saver.builder).unwrap();
        assert_eq!(seen(), (0, Some(1)));
        finish(&mut inner.lock(), &inner.segments, job, &*inner.clock);
        assert_eq!(seen(), (10, Some(0)));
    }

    /// Regression test: PENDING still listed values that were being saved after FORGET, and an older value could be
    /// accepted and then be lost.
    #[test]
    fn a_file_is_forgotten_while_a_block_takes_its_values() {
        let store = store();
        let update = |value: &str| {
            store.touch(b"a.rrd").unwrap();
            let mut batch = store.write_batch();
            let taken = batch.update(b"a.rrd", [value.as_bytes()]);
            batch.commit().unwrap();
            taken.is_ok()
        };
        let pending = || {
            let mut texts = Vec::new();
            let mut each = |text: &[u8]| texts.push(String::from_utf8_lossy(text).into_owned());
            store.write_batch().pending(b"a.rrd", &mut each);
            texts
        };
        assert!(update("1000000010:1") && update("1000000020:2"));
        let inner = &*store.inner;
        let (mut saver, mut job) = (Saver::new().unwrap(), inner.take_job(0).unwrap());
        assert!(update("1000000030:3"));
        assert_eq!(pending().len(), 3);
        let mut batch = store.write_batch();
        assert!(batch.forget(b"a.rrd"));
        batch.commit().unwrap();
        assert_eq!(store.write_batch().stats().data_sets_written, 2);
        assert!(!update("1000000015:9"), "the block has a later value");
        assert!(update("1000000025:4"));
        assert_eq!(pending(), ["1000000025:4"]);
        inner.build(&mut saver, &mut job).unwrap();
        inner.segments.append(&mut saver.builder).unwrap();
        finish(&mut inner.lock(), &inner.segments, job, &*inner.clock);
        assert_eq!(pending(), ["1000000025:4"]);
        assert_eq!(store.write_batch().stats().data_sets_written, 2);
        let header = store.read(b"a.rrd", Fresh::Flushed).unwrap().header;
        assert_eq!(header.last_up - BIRTH, 25);
    }
}
