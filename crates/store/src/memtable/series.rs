//! The series that are known, one for each .rrd file, and what memory holds of each.

use crate::memtable::buffer::{Pending, Texts};
use crate::names;
use crate::stats::Stats;
use crate::wal::live::Live;
use crate::wal::record::{Identity, Packed};
use crate::wal::value::stamp_of;
use kymo_sys::prefetch::prefetch;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Other spellings of one file that are remembered; more are found again by looking at the disk.
const SPELLINGS_MAX: usize = 8;

/// What is known of one series.
#[derive(Debug)]
pub(crate) struct Series {
    /// Absolute, without links and dots.
    pub(crate) path: Arc<[u8]>,
    pub(crate) chunk: u32,
    pub(crate) slot: u8,
    /// Accepted, and not on its way into a block.
    pub(crate) pending: Pending,
    /// On its way into a block.
    pub(crate) flushing: Option<Arc<Pending>>,
    /// Its state, if no block has it.
    pub(crate) state: Option<Packed>,
    /// Values that were accepted so far.
    pub(crate) version: u64,
    /// The newest stamp that was accepted.
    pub(crate) last: f64,
    /// The stamp of its newest state in a block, or the one it began with.
    pub(crate) applied: f64,
    /// Values up to this stamp count as written: PENDING does not tell them, INFO does.
    pub(crate) published: f64,
    /// Rows up to this stamp are in the file it was taken over from.
    pub(crate) base: Option<i64>,
    /// How we left its file.
    pub(crate) left: Option<Identity>,
    /// Checksums of its header then, if they are known.
    pub(crate) live: Option<Live>,
    /// The stamp of what its file has, and of what it has on the disk for certain.
    pub(crate) upto: f64,
    pub(crate) safe: f64,
    /// The journal file that has the oldest START since a checkpoint; 0: none. See [`SeriesTable::start`].
    pub(crate) started: u64,
    /// And the newest one's epoch.
    pub(crate) begun: u32,
    /// A write may have been cut short: the next one begins at `safe`.
    pub(crate) redo: bool,
    /// We made its file, and nobody knows whether that is on the disk.
    pub(crate) create_unsynced: bool,
    /// A write was announced in an earlier life, and not that it ended.
    pub(crate) writing: bool,
    /// Monotonic nanoseconds when its file is to be brought up to date, and from which on the interval for `published` counts.
    pub(crate) due_ns: u64,
    pub(crate) published_ns: u64,
    /// FORGET came: nobody sees it until it is touched again.
    pub(crate) forgotten: bool,
    pub(crate) suspended: bool,
    pub(crate) queued: bool,
    /// Somebody writes or replaces its file.
    pub(crate) busy: bool,
    /// Its file has another path than blocks say.
    pub(crate) renamed: bool,
    /// Nobody has looked at its file since the start: it may be another one.
    pub(crate) unseen: bool,
    /// Since when its file is missing, monotonic.
    pub(crate) gone_since: Option<u64>,
    /// The batch that last changed it.
    pub(crate) batch: u64,
    /// The name that it was last found by, and others before.
    spelled: Option<Arc<[u8]>>,
    spellings: Vec<Arc<[u8]>>,
}

/// All of them. A number is never used again.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    slots: Vec<Option<Box<Series>>>,
    next_id: u32,
    by_name: HashMap<Arc<[u8]>, u32>,
    by_path: HashMap<Arc<[u8]>, u32>,
    /// Files as they were left, by device and inode.
    by_inode: HashMap<(u64, u64), u32>,
    /// Those with a START that no checkpoint has settled: few where files are seldom written.
    started: BTreeSet<u32>,
    /// Names that wait for a series which takes another's place.
    heir: Option<(u32, Vec<Arc<[u8]>>)>,
}

impl SeriesTable {
    pub(crate) fn get(&self, id: u32) -> Option<&Series> {
        self.slots.get(id as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Series> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// A number for a new series.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.max(self.slots.len() as u32)
    }

    /// Numbers below this one were given to others.
    pub(crate) fn go_on_at(&mut self, id: u32) {
        // No more than the numbers that are believed anyway.
        self.next_id = self.next_id.max(id.min(1 << 28));
    }

    /// The file that a client's name stands for, if it is known by that name.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn by_path(&self, path: &[u8]) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    pub(crate) fn by_inode(&self, device: u64, inode: u64) -> Option<u32> {
        self.by_inode.get(&(device, inode)).copied()
    }

    /// How a series' file was left.
    pub(crate) fn leave(&mut self, id: u32, left: Identity) {
        let Some(series) = self.get_mut(id) else {
            return;
        };
        let before = series.left.replace(left);
        let place = |left: &Identity| (left.device, left.inode);
        if before.as_ref().map(place) != Some(place(&left)) {
            self.let_go(id, before);
            self.by_inode.insert(place(&left), id);
        }
    }

    /// After a start: who came later has a path and a file, whatever was there before.
    pub(crate) fn index_again(&mut self) {
        for (id, series) in (0..).zip(&self.slots) {
            let Some(series) = series else { continue };
            self.by_path.insert(series.path.clone(), id);
            if let Some(left) = &series.left {
                self.by_inode.insert((left.device, left.inode), id);
            }
        }
    }

    /// A file is no longer found by its inode.
    fn let_go(&mut self, id: u32, left: Option<Identity>) {
        let place = left.map(|left| (left.device, left.inode));
        if let Some(place) = place.filter(|place| self.by_inode.get(place) == Some(&id)) {
            self.by_inode.remove(&place);
        }
    }

    /// A START of a series is in a journal file.
    pub(crate) fn start(&mut self, id: u32, sequence: u64) {
        let Some(series) = self.get_mut(id).filter(|series| series.started == 0) else {
            return;
        };
        series.started = sequence;
        self.started.insert(id);
    }

    /// Series with a START that no checkpoint has settled.
    pub(crate) fn started(&self) -> impl Iterator<Item = &Series> {
        self.started.iter().filter_map(|&id| self.get(id))
    }

    /// What a series' file has is on the disk.
    pub(crate) fn settle(&mut self, id: u32) {
        self.started.remove(&id);
        if let Some(series) = self.get_mut(id) {
            series.started = 0;
            series.redo = false;
            series.create_unsynced = false;
            series.safe = series.upto;
        }
    }

    /// [`SeriesTable::settle`] for those whose last write began before this epoch, and was not cut short.
    pub(crate) fn settle_before(&mut self, epoch: u32) {
        debug_assert!(
            self.iter()
                .all(|(id, series)| (series.started > 0) == self.started.contains(&id))
        );
        let settled = |series: &Series| series.begun != epoch && !series.redo;
        let ids = self.started.iter().copied();
        let ids: Vec<u32> = ids
            .filter(|&id| self.get(id).is_some_and(settled))
            .collect();
        ids.into_iter().for_each(|id| self.settle(id));
    }

    /// A series' file has another path, and none of its old names.
    pub(crate) fn rename_file(&mut self, id: u32, path: &[u8]) {
        let path: Arc<[u8]> = path.into();
        let Some(series) = self.get_mut(id) else {
            return;
        };
        series.renamed = true;
        series.gone_since = None;
        let before = std::mem::replace(&mut series.path, path.clone());
        let spellings = series.take_spellings();
        self.unname(id, &before, &spellings);
        self.by_path.insert(path, id);
    }

    fn unname(&mut self, id: u32, path: &[u8], spellings: &[Arc<[u8]>]) {
        for spelling in spellings {
            if self.by_name.get(spelling) == Some(&id) {
                self.by_name.remove(spelling);
            }
        }
        if self.by_path.get(path) == Some(&id) {
            self.by_path.remove(path);
        }
    }

    /// A series of this number and path. Whoever had the path is still there, but no longer found by it.
    pub(crate) fn insert(&mut self, id: u32, path: &[u8], (chunk, slot): (u32, u8)) -> &mut Series {
        let path: Arc<[u8]> = path.into();
        let series = Series {
            path: path.clone(),
            chunk,
            slot,
            pending: Pending::default(),
            flushing: None,
            state: None,
            version: 0,
            last: f64::NEG_INFINITY,
            applied: f64::NEG_INFINITY,
            published: f64::NEG_INFINITY,
            base: None,
            left: None,
            live: None,
            upto: f64::NEG_INFINITY,
            safe: f64::NEG_INFINITY,
            started: 0,
            begun: 0,
            redo: false,
            create_unsynced: false,
            writing: false,
            due_ns: 0,
            published_ns: 0,
            forgotten: false,
            suspended: false,
            queued: false,
            busy: false,
            renamed: false,
            unseen: false,
            gone_since: None,
            batch: 0,
            spelled: None,
            spellings: Vec::new(),
        };
        let at = id as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.by_path.insert(path, id);
        let mut series = Box::new(series);
        if let Some((_, spellings)) = self.heir.take_if(|(heir, _)| *heir == id) {
            series.spellings = spellings;
            series.spelled = series.spellings.pop();
        }
        self.slots[at].insert(series)
    }

    /// Names below a folder, sorted: of series and of folders that they are in, or of all series.
    pub(crate) fn below(&self, folder: &[u8], recursive: bool) -> Vec<Vec<u8>> {
        let inside = self.by_path.keys().filter_map(|path| {
            let rest = path.strip_prefix(folder)?.strip_prefix(b"/")?;
            let end = rest.iter().position(|&byte| byte == b'/');
            let end = end.filter(|_| !recursive).unwrap_or(rest.len());
            Some(rest[..end].to_vec())
        });
        let names: BTreeSet<Vec<u8>> = inside.collect();
        names.into_iter().collect()
    }

    /// Another name for a file.
    pub(crate) fn spell(&mut self, id: u32, name: &[u8]) {
        if self.by_name.get(name) == Some(&id) {
            return;
        }
        let Some(series) = self
            .slots
            .get_mut(id as usize)
            .and_then(Option::as_deref_mut)
        else {
            return;
        };
        if series.spellings.len() == SPELLINGS_MAX {
            self.by_name.remove(&series.spellings.remove(0));
        }
        let name: Arc<[u8]> = name.into();
        series
            .spellings
            .extend(series.spelled.replace(name.clone()));
        let before = self.by_name.insert(name.clone(), id);
        if let Some(series) = before.and_then(|id| self.get_mut(id)) {
            series.unspell(&name);
        }
    }

    /// A series is gone, and another has its names.
    pub(crate) fn rename(&mut self, old: u32, new: u32) {
        let Some(mut series) = self.take(old) else {
            return;
        };
        let spellings = series.take_spellings();
        for spelling in &spellings {
            self.by_name.insert(spelling.clone(), new);
        }
        self.heir = Some((new, spellings));
        self.let_go(old, series.left);
    }

    pub(crate) fn remove(&mut self, id: u32) {
        let Some(mut series) = self.take(id) else {
            return;
        };
        let spellings = series.take_spellings();
        self.unname(id, &series.path, &spellings);
        self.let_go(id, series.left);
    }

    fn take(&mut self, id: u32) -> Option<Box<Series>> {
        self.started.remove(&id);
        self.slots.get_mut(id as usize)?.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Series)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(id, slot)| Some((id as u32, slot.as_deref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Series)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(id, slot)| Some((id as u32, slot.as_deref_mut()?)))
    }

    /// The series a name stands for as far as its text tells, forgotten ones too.
    pub(crate) fn find(&self, name: &[u8], spelled: impl FnOnce() -> Vec<u8>) -> Option<u32> {
        self.by_name(name)
            .or_else(|| self.by_path(&names::normal(&spelled())))
    }

    /// A series is asked for: those behind it will be soon.
    pub(crate) fn expect_next(&self, id: u32) {
        /// How far ahead: their place in memory must be there before what they point to.
        const NEAR: u32 = 4;
        const FAR: u32 = 12;
        let ahead = |by| self.slots.get(id.wrapping_add(by) as usize);
        if let Some(Some(series)) = ahead(FAR) {
            prefetch(&**series);
        }
        if let Some(Some(series)) = ahead(NEAR) {
            series.spelled.iter().for_each(|name| prefetch(&**name));
            series.pending.expect_push();
        }
    }

    /// Whether clients may know of a series.
    pub(crate) fn is_known(&self, id: u32) -> bool {
        self.get(id).is_some_and(|series| !series.forgotten)
    }
}

impl Series {
    /// The newest stamp among the values that are there, or of the state.
    pub(crate) fn newest(&self) -> f64 {
        let mut newest = self.applied;
        self.each_stamp(&mut |stamp| newest = newest.max(stamp));
        newest
    }

    /// Stamps of all values that are in no block.
    fn each_stamp(&self, each: &mut dyn FnMut(f64)) {
        self.flushing
            .iter()
            .for_each(|taken| taken.each_stamp(each));
        self.pending.each_stamp(each);
    }

    /// The values since a version; `None`: they are not all here. Where some were dropped there are older ones before
    /// them, which are passed over by their stamps.
    pub(crate) fn values_since(&self, version: u64) -> Option<Texts> {
        let missing = self.version.checked_sub(version)?;
        let taken = self.flushing.as_ref().map_or(0, |taken| taken.len());
        let here = (taken + self.pending.len()) as u64;
        let skip = here.checked_sub(missing)? as usize;
        let mut texts = Texts::default();
        if let Some(old) = self.flushing.as_ref().filter(|_| skip < taken) {
            old.texts_from(skip, &mut texts);
        }
        self.pending
            .texts_from(skip.saturating_sub(taken), &mut texts);
        Some(texts)
    }

    /// Values that are not counted as written.
    pub(crate) fn each_unpublished(&self, each: &mut dyn FnMut(&[u8])) -> usize {
        if self.last <= self.published {
            return 0;
        }
        let (mut texts, mut count) = (Texts::default(), 0);
        self.all_values(&mut texts);
        for text in texts.iter() {
            if stamp_of(text).is_some_and(|stamp| stamp > self.published) {
                count += 1;
                each(text);
            }
        }
        count
    }

    /// All values that are in no block.
    pub(crate) fn all_values(&self, texts: &mut Texts) {
        if let Some(taken) = &self.flushing {
            taken.texts_into(texts);
        }
        self.pending.texts_into(texts);
    }

    /// Whether it was last found by this name.
    pub(crate) fn is_spelled(&self, name: &[u8]) -> bool {
        let spelled = self.spelled.as_ref();
        spelled.is_some_and(|spelled| **spelled == *name)
    }

    fn take_spellings(&mut self) -> Vec<Arc<[u8]>> {
        let mut spellings = std::mem::take(&mut self.spellings);
        spellings.extend(self.spelled.take());
        spellings
    }

    fn unspell(&mut self, name: &[u8]) {
        self.spellings.retain(|spelling| **spelling != *name);
        if self.is_spelled(name) {
            self.spelled = self.spellings.pop();
        }
    }

    /// From now on all its values count as written.
    pub(crate) fn publish(&mut self, now_ns: u64, stats: &mut Stats) {
        self.published_ns = now_ns;
        if self.last <= self.published {
            return;
        }
        let count = self.count_after(self.published);
        if count > 0 {
            self.published = self.last;
            stats.updates_written += 1;
            stats.data_sets_written += count as u64;
        }
    }

    /// Values in no block with later stamps.
    pub(crate) fn count_after(&self, stamp: f64) -> usize {
        let mut count = 0;
        self.each_stamp(&mut |at| count += usize::from(at > stamp));
        count
    }

    /// Values on their way into a block that are not counted as written.
    pub(crate) fn taken_unpublished(&self) -> usize {
        let (mut count, published) = (0, self.published);
        if let Some(taken) = self.flushing.as_ref().filter(|_| self.last > published) {
            taken.each_stamp(&mut |at| count += usize::from(at > published));
        }
        count
    }

    /// Values were refused. A stamp from the far future must not refuse all that come: what its newest stamp is from now
    /// on, if that is another one.
    pub(crate) fn go_back(&mut self) -> Option<f64> {
        let newest = self.newest();
        let goes = newest < self.last;
        self.go_back_to(newest);
        goes.then_some(newest)
    }

    /// Its newest stamp is this one, and no later one counts as written.
    pub(crate) fn go_back_to(&mut self, newest: f64) {
        self.last = newest;
        self.published = self.published.min(newest);
    }

    /// Whether its file lacks something that counts as written.
    pub(crate) fn is_behind(&self) -> bool {
        self.redo || self.published > self.upto
    }
}
