//! Keeps the store from growing without limit: drops series whose files are missing or that receive no values any more, and
//! points at the size limit. Also warns the administrator when there are more series than expected.

use crate::consolidation::schema::Schema;
use crate::engine::Inner;
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::names;
use crate::rrd_file::header::identity;
use crate::settings::Files;
use crate::wal::record::Record;
use kymo_base::name::DisplayName;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const MINUTE_NS: u64 = 60_000_000_000;
const HOUR_NS: u64 = 60 * MINUTE_NS;
/// Time for which the values of a missing file, or a silent series, are kept.
pub(crate) const GONE_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Returns true at most once an hour, for messages.
fn is_due(told_ns: &mut Option<u64>, now_ns: u64) -> bool {
    let due = told_ns.is_none_or(|told| now_ns.saturating_sub(told) >= HOUR_NS);
    if due {
        *told_ns = Some(now_ns);
    }
    due
}

/// A series that may be dropped, and its state at the time of the check.
struct Silent {
    id: u32,
    path: Arc<[u8]>,
    last: f64,
}

impl Inner {
    /// Drops series whose files have been missing for long, unless their file system is missing too.
    pub(crate) fn forget_gone(&self, ids: &[u32], now_ns: u64) {
        for &id in ids {
            let Some((path, device)) = self.place_of(id) else {
                continue;
            };
            let there = self.tree.stat(names::path(&path)).is_ok();
            let away = device.is_some_and(|device| !self.has_file_system(&path, device));
            let mut state = self.lock();
            let Some(series) = state.series.get_mut(id) else {
                continue;
            };
            if series.file.gone_since().is_none() || series.file.is_busy() {
                continue;
            }
            if there {
                // The file has returned, so no message is needed.
                series.file.come_back();
                continue;
            }
            if away {
                series.file.miss_from(now_ns);
                continue;
            }
            let path = DisplayName(&path);
            state.notice(format!(
                "dropped the values of {path}: the file has been missing for a week"
            ));
            // If the journal cannot be written, a later sweep tries again.
            let _forgotten = self.forget(&mut state, &[id], now_ns);
        }
    }

    fn place_of(&self, id: u32) -> Option<(Arc<[u8]>, Option<u64>)> {
        let state = self.lock();
        let series = state.series.get(id)?;
        let left = series.file.left();
        Some((series.path.clone(), left.map(|left| left.device)))
    }

    /// Returns true if the lowest existing folder of a path is on this device; otherwise a file system is not mounted, or the
    /// base is missing, and the file was not removed.
    fn has_file_system(&self, path: &[u8], device: u64) -> bool {
        let above = names::path(path).ancestors().skip(1);
        let mut there = above.filter_map(|folder| self.disk.metadata(folder).ok());
        let base = self.disk.metadata(&self.settings.base);
        let beneath = names::path(path).starts_with(&self.settings.base);
        (base.is_ok() || !beneath) && there.next().is_some_and(|stat| stat.device == device)
    }

    /// Drops series that received no values for as long as their longest archive reaches, if this has been so for a week of this
    /// process: a temporarily wrong clock must not cost any data. In a store with files, their files have all values by then, and
    /// are adopted again when touched.
    pub(crate) fn forget_silent(&self, now_ns: u64) {
        let silent = self.find_silent(now_ns);
        if silent.is_empty() {
            return;
        }
        let mine = silent.into_iter().filter(|silent| self.may_go(silent));
        let mine: Vec<Silent> = mine.collect();
        let mut state = self.lock();
        let still = mine.iter().filter(|silent| {
            let series = state.series.get(silent.id);
            series.is_some_and(|series| self.is_quiet(series) && series.values.last == silent.last)
        });
        let gone: Vec<&Silent> = still.collect();
        let ids: Vec<u32> = gone.iter().map(|silent| silent.id).collect();
        let forgotten = self.forget(&mut state, &ids, now_ns).map(|()| ids.len());
        if let Ok(forgotten @ 1..) = forgotten {
            state.notice(format!(
                "{forgotten} series that got no values for as long as their archives reach are no longer kept"
            ));
            drop(state);
            gone.iter()
                .for_each(|silent| self.remove_placeholder(&silent.path));
        }
    }

    /// Series that have been silent for long enough, by the state in memory.
    fn find_silent(&self, now_ns: u64) -> Vec<Silent> {
        let now = self.clock.now().real_ns as f64 / 1e9;
        let mut state = self.lock();
        let state = &mut *state;
        // If no stamp is newer, the clock may be ahead, so the newest stamp limits it.
        let stamps = state.series.iter().map(|(_, series)| series.values.last);
        let now = now.min(stamps.fold(f64::NEG_INFINITY, f64::max));
        let (mut since, mut found) = (HashMap::new(), Vec::new());
        for (id, series) in state.series.iter() {
            let schema = state.chunks.get(series.chunk).map(|chunk| &chunk.schema);
            let is_old = |schema| series.values.last + reach_s(schema) < now;
            if !self.is_quiet(series) || !schema.is_some_and(|schema| is_old(schema)) {
                continue;
            }
            let first_ns = *state.silent.get(&id).unwrap_or(&now_ns);
            since.insert(id, first_ns);
            if now_ns.saturating_sub(first_ns) > GONE_KEPT.as_nanos() as u64 {
                let (path, last) = (series.path.clone(), series.values.last);
                found.push(Silent { id, path, last });
            }
        }
        state.silent = since;
        found
    }

    /// Returns true if a series is not in use and all its values are in blocks.
    fn is_quiet(&self, series: &Series) -> bool {
        let (is_saved, file) = (series.values.is_saved(), &series.file);
        let is_missed = file.gone_since().is_some() && !self.outlives_file(series);
        is_saved && !file.is_busy() && !series.suspended && !is_missed
    }

    /// Returns true if dropping a series loses no data: its file has all values and is synced.
    fn may_go(&self, silent: &Silent) -> bool {
        if self.is_without_files() {
            return true;
        }
        let left = {
            let mut state = self.lock();
            let Some(series) = state.series.get(silent.id) else {
                return false;
            };
            let is_asked_for = self.settings.files == Files::OnDemand || !series.may_have_file();
            if self.needs_no_file(series) && is_asked_for {
                // There never was a file, and its rows would all be older than its archives.
                return true;
            }
            if !series.is_current() {
                state.queue(silent.id);
                return false;
            }
            // The next checkpoint syncs the file.
            let file = &series.file;
            file.left().filter(|_| file.started().is_none())
        };
        let stat = self.tree.stat(names::path(&silent.path));
        stat.is_ok_and(|stat| left == Some(identity(&stat)))
    }

    /// Once a minute: logs if there are more series than expected, or too many new ones. None is refused.
    pub(crate) fn look_at_limits(&self, state: &mut State, now_ns: u64) {
        let (max_series, max_new) = (self.settings.max_series, self.settings.max_new);
        if now_ns.saturating_sub(state.reported_at.minute_ns) < MINUTE_NS
            || state.reported_at.new == 0
        {
            return;
        }
        let first = state.reported_at.minute_ns == 0;
        let new = std::mem::take(&mut state.reported_at.new);
        state.reported_at.minute_ns = now_ns;
        if !first && new > max_new && is_due(&mut state.reported_at.fast_ns, now_ns) {
            state.notice(format!(
                "{new} new series in a minute, more than {max_new} (--max-new): does a name change all the time?"
            ));
        }
        let count = state.series.iter().count() as u64;
        let was_many = std::mem::replace(&mut state.reported_at.is_many, count > max_series);
        if count > max_series && !was_many {
            state.notice(format!(
                "there are {count} series, more than {max_series} (--max-series); all are kept"
            ));
        }
    }

    /// Drops points above the size limit, the oldest first, then the finest rows of series of points; archives are never dropped.
    pub(crate) fn keep_below_cap(&self) {
        let most = self.settings.store_bytes;
        let shortage = self.segments.keep_below(most, self);
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        let gone = [
            (
                shortage.samples_from,
                "samples are rows sooner than they should be",
            ),
            (
                shortage.fine_from,
                "the finest rows of samples go sooner than they should",
            ),
        ];
        for (at, (from, what)) in gone.into_iter().enumerate() {
            if from > 0 && !std::mem::replace(&mut state.reported_at.no_room[at], true) {
                state.notice(format!(
                    "{what}: there is no room for all in {most} bytes (--store-bytes, [store] bytes)"
                ));
            }
        }
        let Some(bytes) = shortage.left else { return };
        if is_due(&mut state.reported_at.bytes_ns, now_ns) {
            state.notice(format!(
                "archives alone take {bytes} bytes, more than {most} (--store-bytes); all are kept"
            ));
        }
    }

    /// Drops these series, first in the journal. If the journal cannot
    /// be written they stay, since they would return at the next start.
    pub(crate) fn forget(&self, state: &mut State, ids: &[u32], now_ns: u64) -> io::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        state.prepare(&*self.clock)?;
        for &id in ids {
            state.put(id, &Record::Gone { id }, now_ns);
        }
        state.journal.commit()?;
        ids.iter().for_each(|&id| state.forget_series(id));
        Ok(())
    }
}

/// Time that the longest archive covers, in seconds.
fn reach_s(schema: &Schema) -> f64 {
    let archives = schema.archives.iter();
    let reaches = archives.map(|archive| archive.row_cnt as f64 * archive.step as f64);
    reaches.fold(0.0, f64::max)
}
