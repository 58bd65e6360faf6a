//! The known series, one for each .rrd file or label set, and their state in memory.

use crate::memtable::accepted::Accepted;
use crate::memtable::file_state::{FileState, Left};
use crate::memtable::spellings::Spellings;
use crate::memtable::writer::Hold;
use crate::names;
use crate::wal::record::Identity;
use kymo_sys::prefetch::prefetch;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// State of one series.
#[derive(Debug)]
pub(crate) struct Series {
    /// Absolute path without links and dots, or a label set.
    pub(crate) path: Arc<[u8]>,
    pub(crate) chunk: u32,
    pub(crate) slot: u8,
    /// Stamp up to which rows are in the file that the series was adopted from.
    pub(crate) base: Option<i64>,
    /// Set by FORGET: clients do not see the series until it is touched again.
    pub(crate) forgotten: bool,
    pub(crate) suspended: bool,
    /// The path of the file differs from the path in blocks.
    pub(crate) renamed: bool,
    pub(crate) values: Accepted,
    pub(crate) file: FileState,
    pub(crate) hold: Hold,
    names: Spellings,
}

/// All series by number; numbers are never reused.
#[derive(Debug, Default)]
pub(crate) struct SeriesTable {
    slots: Vec<Option<Box<Series>>>,
    next_id: u32,
    by_name: HashMap<Arc<[u8]>, u32>,
    by_path: HashMap<Arc<[u8]>, u32>,
    /// Series of files by device and inode, as the store left them.
    by_inode: HashMap<(u64, u64), u32>,
    /// Devices of files before the start, whose numbers may have changed since.
    devices_before: BTreeSet<u64>,
    /// Series with a START that no checkpoint has settled: few, if files are seldom written.
    started: BTreeSet<u32>,
    /// Spellings for a series that is about to replace another one.
    heir: Option<(u32, Spellings)>,
    /// Number of renames of series.
    renamed: u64,
    /// Present numbers of series of points, by numbers that callers may still hold.
    moved: HashMap<u32, u32>,
}

impl Series {
    /// Returns true for a series of points.
    pub(crate) fn has_points(&self) -> bool {
        self.values.points.is_some()
    }
}

impl SeriesTable {
    pub(crate) fn get(&self, id: u32) -> Option<&Series> {
        self.slots.get(id as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Series> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    /// Notes that a series of points has a new number.
    pub(crate) fn move_points(&mut self, old: u32, new: u32) {
        for now in self.moved.values_mut().filter(|now| **now == old) {
            *now = new;
        }
        self.moved.insert(old, new);
    }

    /// The present number of a series of points.
    pub(crate) fn moved(&self, id: u32) -> u32 {
        match self.moved.is_empty() {
            true => id,
            false => self.moved.get(&id).copied().unwrap_or(id),
        }
    }

    /// The number of the next new series.
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.max(self.slots.len() as u32)
    }

    /// Number of renames of series.
    pub(crate) fn renamed(&self) -> u64 {
        self.renamed
    }

    /// Reserves the numbers below `id`, which other series had.
    pub(crate) fn go_on_at(&mut self, id: u32) {
        // Limits the number, as a damaged file may have any.
        self.next_id = self.next_id.max(id.min(1 << 28));
    }

    /// The series with this spelling of its name, if it is known.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn by_path(&self, path: &[u8]) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The series whose file was left at this place, or was left there before the start, when the device may have had
    /// another number. The inode may be another file's by now.
    pub(crate) fn by_inode(&self, device: u64, inode: u64) -> Option<u32> {
        let on = |device: &u64| self.by_inode.get(&(*device, inode)).copied();
        let is_unseen = |id: &u32| self.get(*id).is_some_and(|it| it.file.is_unseen());
        let before = || self.devices_before.iter().filter_map(on).find(is_unseen);
        on(&device).or_else(before)
    }

    /// [`FileState::begin_write`] with a START in this journal file.
    pub(crate) fn begin_write(&mut self, id: u32, sequence: u64, epoch: u32) {
        if let Some(series) = self.get_mut(id) {
            series.file.begin_write(sequence, epoch);
            self.started.insert(id);
        }
    }

    /// [`FileState::finish_write`].
    pub(crate) fn finish_write(&mut self, id: u32, left: &Left, due_ns: u64) {
        self.leave(id, |file| file.finish_write(left, due_ns));
    }

    /// [`FileState::confirm`].
    pub(crate) fn confirm(&mut self, id: u32, identity: Identity) {
        self.leave(id, |file| file.confirm(identity));
    }

    /// [`FileState::replay_start`].
    pub(crate) fn replay_start(&mut self, id: u32, sequence: u64) {
        if let Some(series) = self.get_mut(id) {
            series.file.replay_start(sequence);
            self.started.insert(id);
        }
    }

    /// [`FileState::replay_end`].
    pub(crate) fn replay_end(&mut self, id: u32, identity: Identity, upto: f64) {
        self.leave(id, |file| file.replay_end(identity, upto));
    }

    /// Changes the state of a file, and keeps the index by inode up to date.
    fn leave(&mut self, id: u32, change: impl FnOnce(&mut FileState)) {
        let Some(series) = self.get_mut(id) else {
            return;
        };
        let before = series.file.left();
        change(&mut series.file);
        let place = |left: Option<Identity>| left.map(|left| left.place());
        let after = place(series.file.left());
        if place(before) != after {
            self.let_go(id, before);
            self.by_inode.extend(after.map(|place| (place, id)));
        }
    }

    /// Rebuilds the indices after a start, so that later series replace earlier ones of the same path or file.
    pub(crate) fn index_again(&mut self) {
        for (id, series) in (0..).zip(&self.slots) {
            let Some(series) = series else { continue };
            self.by_path.insert(series.path.clone(), id);
            if let Some(left) = series.file.left() {
                self.by_inode.insert(left.place(), id);
                self.devices_before.insert(left.device);
            }
        }
    }

    /// Removes a file from the index by inode.
    fn let_go(&mut self, id: u32, left: Option<Identity>) {
        let place = left.map(|left| left.place());
        if let Some(place) = place.filter(|place| self.by_inode.get(place) == Some(&id)) {
            self.by_inode.remove(&place);
        }
    }

    /// Series with a START that no checkpoint has settled.
    pub(crate) fn started(&self) -> impl Iterator<Item = &Series> {
        self.started.iter().filter_map(|&id| self.get(id))
    }

    /// Notes that the content of a series' file is on the disk.
    pub(crate) fn settle(&mut self, id: u32) {
        self.started.remove(&id);
        if let Some(series) = self.get_mut(id) {
            series.file.settle();
        }
    }

    /// [`SeriesTable::settle`] for the series that are settled by a checkpoint of this epoch.
    pub(crate) fn settle_before(&mut self, epoch: u32) {
        debug_assert!(
            self.iter()
                .all(|(id, series)| series.file.started().is_some() == self.started.contains(&id))
        );
        let settled = |series: &Series| series.file.is_settled_by(epoch);
        let ids = self.started.iter().copied();
        let ids: Vec<u32> = ids
            .filter(|&id| self.get(id).is_some_and(settled))
            .collect();
        ids.into_iter().for_each(|id| self.settle(id));
    }

    /// Changes the path of a series' file, and removes all its old names.
    pub(crate) fn rename_file(&mut self, id: u32, path: &[u8]) {
        let path: Arc<[u8]> = path.into();
        let Some(series) = self.get_mut(id) else {
            return;
        };
        series.renamed = true;
        series.file.come_back();
        let before = std::mem::replace(&mut series.path, path.clone());
        let names = std::mem::take(&mut series.names);
        self.unname(id, &before, &names);
        self.by_path.insert(path, id);
        self.renamed += 1;
    }

    fn unname(&mut self, id: u32, path: &[u8], names: &Spellings) {
        for spelling in names.iter() {
            if self.by_name.get(spelling) == Some(&id) {
                self.by_name.remove(spelling);
            }
        }
        if self.by_path.get(path) == Some(&id) {
            self.by_path.remove(path);
        }
    }

    /// Inserts a series with this number and path. A series that had the path stays, but is not found by it any more.
    pub(crate) fn insert(
        &mut self,
        id: u32,
        path: &[u8],
        (chunk, slot): (u32, u8),
        file: FileState,
    ) -> &mut Series {
        let path: Arc<[u8]> = path.into();
        let heir = self.heir.take_if(|(heir, _)| *heir == id);
        let series = Series {
            path: path.clone(),
            chunk,
            slot,
            base: None,
            forgotten: false,
            suspended: false,
            renamed: false,
            values: Accepted::default(),
            file,
            hold: Hold::default(),
            names: heir.map(|(_, names)| names).unwrap_or_default(),
        };
        let at = id as usize;
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.by_path.insert(path, id);
        if let Some(left) = file.left() {
            self.by_inode.insert(left.place(), id);
        }
        if file.started().is_some() {
            self.started.insert(id);
        }
        self.slots[at].insert(Box::new(series))
    }

    /// Sorted names below a folder: of the picked series and their folders, or with `recursive` of all picked series.
    pub(crate) fn below(
        &self,
        folder: &[u8],
        recursive: bool,
        picks: impl Fn(&Series) -> bool,
    ) -> Vec<Vec<u8>> {
        let picked = self
            .by_path
            .iter()
            .filter(|(_, id)| self.get(**id).is_some_and(&picks));
        let inside = picked.filter_map(|(path, _)| {
            let rest = path.strip_prefix(folder)?.strip_prefix(b"/")?;
            let end = rest.iter().position(|&byte| byte == b'/');
            let end = end.filter(|_| !recursive).unwrap_or(rest.len());
            Some(rest[..end].to_vec())
        });
        let names: BTreeSet<Vec<u8>> = inside.collect();
        names.into_iter().collect()
    }

    /// Adds a spelling of a series' name.
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
        let name: Arc<[u8]> = name.into();
        if let Some(dropped) = series.names.push(name.clone()) {
            self.by_name.remove(&dropped);
        }
        let before = self.by_name.insert(name.clone(), id);
        if let Some(series) = before.and_then(|id| self.get_mut(id)) {
            series.names.remove(&name);
        }
    }

    /// Removes a series and gives its spellings to another one.
    pub(crate) fn rename(&mut self, old: u32, new: u32) {
        let Some(series) = self.take(old) else {
            return;
        };
        for spelling in series.names.iter() {
            self.by_name.insert(spelling.clone(), new);
        }
        self.heir = Some((new, series.names));
        self.let_go(old, series.file.left());
    }

    pub(crate) fn remove(&mut self, id: u32) {
        let Some(series) = self.take(id) else {
            return;
        };
        self.unname(id, &series.path, &series.names);
        self.let_go(id, series.file.left());
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

    /// The series of a name by its text, including forgotten ones.
    pub(crate) fn find(&self, name: &[u8], spelled: impl FnOnce() -> Vec<u8>) -> Option<u32> {
        self.by_name(name)
            .or_else(|| self.by_path(&names::normal(&spelled())))
    }

    /// Prefetches the series after this one, since they will soon be requested.
    pub(crate) fn expect_next(&self, id: u32) {
        /// Distances of the prefetches: a series must be in the cache before the memory that it points to.
        const NEAR: u32 = 4;
        const FAR: u32 = 12;
        let ahead = |by| self.slots.get(id.wrapping_add(by) as usize);
        if let Some(Some(series)) = ahead(FAR) {
            prefetch(&**series);
        }
        if let Some(Some(series)) = ahead(NEAR) {
            series.names.expect();
            series.values.pending.expect_push();
        }
    }

    /// Returns true if clients may see a series.
    pub(crate) fn is_known(&self, id: u32) -> bool {
        self.get(id).is_some_and(|series| !series.forgotten)
    }
}

impl Series {
    /// Returns true if this is the last used spelling.
    pub(crate) fn is_spelled(&self, name: &[u8]) -> bool {
        self.names.is_last(name)
    }

    /// Returns true if the series may have a file.
    pub(crate) fn may_have_file(&self) -> bool {
        names::is_file(&self.path)
    }

    /// Returns true if its file lacks published values.
    pub(crate) fn is_behind(&self) -> bool {
        self.file.must_redo() || self.values.published > self.file.upto()
    }

    /// Returns true if its file needs no update before it is read.
    pub(crate) fn is_current(&self) -> bool {
        !self.may_have_file() || self.file.has(self.wanted())
    }

    /// Stamp up to which its file is to have values; for a forgotten series, that of its published ones.
    pub(crate) fn wanted(&self) -> f64 {
        match self.forgotten {
            true => self.values.published,
            false => self.values.last,
        }
    }
}
