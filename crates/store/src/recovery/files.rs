//! The .rrd files at a start: finds files that were renamed while
//! no daemon ran, and rewrites files that a crash may have torn.

use crate::engine::Inner;
use crate::memtable::state::State;
use crate::names;
use crate::rrd_file::header::identity;
use crate::rrd_file::write_back::Worker;
use crate::stats::Replayed;
use kymo_base::name::DisplayName;
use kymo_sys::disk::NameKind;
use kymo_sys::tree::Tree;
use std::collections::HashMap;
use std::io;

/// Number of files that are rewritten in one round.
const ROUND: usize = 512;

impl Inner {
    /// Determines the state of the files after all is read, and begins the first journal file of this process. Returns
    /// the series whose files must be written again, in path order.
    pub(super) fn settle_files(&self, replayed: &mut Replayed) -> Vec<u32> {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        // A series may have been indexed before the one that it replaced.
        state.series.index_again();
        // The journal does not have the age of its records.
        state.chunks.begin_at(now_ns);
        let mut renamed = std::mem::take(&mut state.to_rename);
        renamed.extend(self.rename_torn(&mut state));
        let renamed: Vec<u32> = renamed.into_iter().collect();
        let redo = self.begin_lives(&mut state, now_ns, replayed);
        let begun = state.prepare(&*self.clock);
        let put = begun.and_then(|()| state.put_renamed(&renamed, self.clock.mono_ns()));
        if let Err(error) = put {
            // The next journal file must then have these names.
            state.journal.give_up();
            replayed.notices.push(format!(
                "cannot begin a journal file: {error}; nothing is accepted until it can"
            ));
        }
        redo
    }

    /// Finds files that were renamed since the journal was written.
    fn rename_torn(&self, state: &mut State) -> Vec<u32> {
        let (mut renamed, mut names) = (Vec::new(), Names::default());
        let ids: Vec<u32> = state.series.iter().map(|(id, _)| id).collect();
        for id in ids {
            if let Some(path) = names.of(state, &*self.tree, id) {
                state.series.rename_file(id, &path);
                renamed.push(id);
            }
        }
        renamed
    }

    fn begin_lives(&self, state: &mut State, now_ns: u64, replayed: &mut Replayed) -> Vec<u32> {
        let real_ns = self.clock.now().real_ns;
        let (mut redo, mut left_torn) = (Vec::new(), Vec::new());
        let ids: Vec<u32> = state.series.iter().map(|(id, _)| id).collect();
        for id in ids {
            let Some(series) = state.series.get(id) else {
                continue;
            };
            let left = series.file.left();
            let left = left.map_or(real_ns, |left| left.mtime_ns);
            let age_ns = u64::try_from(real_ns.saturating_sub(left)).unwrap_or(0);
            let due_ns = state.due_after(now_ns, age_ns, &self.settings);
            let Some(series) = state.series.get_mut(id) else {
                continue;
            };
            series.values.published_ns = now_ns;
            series.file.begin_life(due_ns);
            let pending = series.values.pending.len();
            replayed.values += pending as u64;
            replayed.files += u64::from(pending > 0 || series.file.must_redo());
            if !series.file.must_redo() {
                continue;
            }
            let there = may_redo(&*self.tree, &series.path, series.base.is_none());
            match !self.is_without_files() && there {
                true => redo.push((series.path.clone(), id)),
                false => series.file.leave_as_it_is(),
            }
            let is_there = |path: &[u8]| self.tree.stat(names::path(path)).is_ok();
            if self.is_without_files() && is_there(&series.path) {
                left_torn.push(series.path.clone());
            }
        }
        if let Some(path) = left_torn.iter().min() {
            replayed.notices.push(format!(
                "{} .rrd files may have been cut short by the crash ({} is one): --files never leaves them so",
                left_torn.len(),
                DisplayName(path)
            ));
        }
        redo.sort_unstable();
        redo.into_iter().map(|(_, id)| id).collect()
    }

    /// Writes these files again.
    pub(super) fn redo_files(&self, ids: &[u32], replayed: &mut Replayed) {
        let mut worker = Worker::default();
        for round in ids.chunks(ROUND) {
            for (id, error) in self.write_files(&mut worker, round) {
                let Some(error) = error else {
                    replayed.redone += 1;
                    continue;
                };
                let mut state = self.lock();
                state.queue(id);
                let path = state.series.get(id).map(|series| series.path.clone());
                let path = path.unwrap_or_default();
                let path = DisplayName(&path);
                replayed.notices.push(format!(
                    "cannot write {path} yet: {error}; it is tried again"
                ));
            }
        }
        // Counts towards the next checkpoint, after which a start does not rewrite these files again.
        self.lock().tasks.made = replayed.redone;
    }
}

/// Paths of the files in a folder by inode; the device may have another number than before the crash.
type Inodes = HashMap<u64, Vec<u8>>;

/// Inodes of the folders that have been listed.
#[derive(Default)]
struct Names(HashMap<Vec<u8>, Inodes>);

impl Names {
    /// The path of a torn file that was renamed meanwhile, in the same folder, so that it is not created a second time.
    fn of(&mut self, state: &State, tree: &dyn Tree, id: u32) -> Option<Vec<u8>> {
        let series = state.series.get(id)?;
        let left = series.file.left().filter(|_| series.file.must_redo())?;
        let missing = tree.stat(names::path(&series.path)).err()?.kind() == io::ErrorKind::NotFound;
        let cut = series.path.iter().rposition(|&byte| byte == b'/');
        let folder = series.path[..cut.filter(|_| missing)?].to_vec();
        let files = self.0.entry(folder).or_insert_with_key(|folder| {
            let (mut found, mut files) = (Vec::new(), Inodes::new());
            let _unreadable = tree.list(names::path(folder), &mut |name, kind| {
                if kind == NameKind::File && name.ends_with(b".rrd") {
                    found.push([folder, &b"/"[..], name].concat());
                }
            });
            for path in found {
                if let Ok(stat) = tree.stat(names::path(&path)) {
                    files.insert(stat.inode, path);
                }
            }
            files
        });
        let path = files.get(&left.inode)?;
        let seen = identity(&tree.stat(names::path(path)).ok()?);
        let ours = series.file.was_cut_short(&seen);
        (ours && state.series.by_path(path).is_none()).then(|| path.clone())
    }
}

/// Returns true if a file that may be torn can be written again.
fn may_redo(tree: &dyn Tree, path: &[u8], blank: bool) -> bool {
    match tree.stat(names::path(path)) {
        Ok(_) => true,
        Err(error) => blank && error.kind() == io::ErrorKind::NotFound,
    }
}
