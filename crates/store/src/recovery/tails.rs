//! Tails at a start: the registered tails, and the journal files that are kept for them.

use crate::memtable::state::State;
use crate::wal::frame::{FRAMES_OFFSET, FileHead};
use crate::wal::tailed::{self, JournalFile, JournalFiles, TailedFile};
use crate::wal::tails::{Missed, Tail, Tails};
use crate::wal::writer;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, OpenMode};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Restores the tails: files that they need are kept, others are removed. With lines for the log. `heads`: of the journal's
/// files, by sequence.
pub(super) fn restore(
    state: &mut State,
    disk: &Arc<dyn Disk>,
    folder: &Path,
    (heads, now): (Vec<FileHead>, Stamp),
) -> (Tails, Vec<String>) {
    let (mut tails, notice) = Tails::open(disk.clone(), folder);
    let mut notices: Vec<String> = notice.into_iter().collect();
    let journal = of_earlier_life(heads, now);
    let kept = read(&**disk, folder, &journal, now).and_then(|found| {
        found
            .headless
            .iter()
            .try_for_each(|path| disk.unlink(path))?;
        Ok(found.kept)
    });
    let kept = kept.unwrap_or_else(|error| {
        notices.push(format!(
            "cannot read journal files that are kept for tails: {error}"
        ));
        VecDeque::new()
    });
    state.journal.go_on_behind(journal, kept);
    go_on_before(&mut tails, state.journal.position);
    state.departed.begin_life(state.journal.position);
    let from = tails.needed_from();
    state.departed.keep_from(from);
    state.journal.files.needed_from = from;
    if let Err(error) = state.journal.drop_needless() {
        notices.push(format!(
            "cannot remove journal files that no tail needs: {error}"
        ));
    }
    (tails, notices)
}

fn of_earlier_life(heads: Vec<FileHead>, now: Stamp) -> Vec<JournalFile> {
    let heads = heads.into_iter();
    heads
        .map(|head| JournalFile::of_earlier_life(head, now))
        .collect()
}

/// The journal files of a store that is opened for reading. `heads`: of the journal's files, by sequence.
pub(crate) fn look(
    disk: &dyn Disk,
    folder: &Path,
    heads: Vec<FileHead>,
    now: Stamp,
) -> io::Result<JournalFiles> {
    let journal = of_earlier_life(heads, now);
    Ok(JournalFiles {
        tailed: read(disk, folder, &journal, now)?.kept,
        journal,
        needed_from: None,
    })
}

/// Renames files of tails back to journal files. If the power failed before new names were on the disk, the journal may have a
/// file that is older than some files of tails: these belong to the journal again.
pub(super) fn give_back(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    let mut journal = Vec::new();
    disk.list(folder, &mut |name, _| {
        journal.extend(writer::sequence_of(name))
    })?;
    let oldest = journal.iter().min();
    let tailed = tailed::list(disk, folder)?;
    for sequence in tailed
        .into_iter()
        .filter(|sequence| Some(sequence) > oldest && oldest.is_some())
    {
        let [from, to] = [tailed::name_of(sequence), writer::name_of(sequence)];
        disk.rename(&folder.join(from), &folder.join(to))?;
    }
    Ok(())
}

/// Moves a tail that has acknowledged more than the journal has to the journal's end: the journal is another one, or was damaged.
fn go_on_before(tails: &mut Tails, end: u64) {
    let beyond = tails.iter().filter(|(_, tail)| tail.position > end);
    let changes = beyond.map(|(name, tail)| {
        let missed = Missed {
            from: end,
            to: end,
            values: None,
        };
        let tail = Tail {
            position: end,
            missed: Some(missed),
            ..tail
        };
        (name.to_string(), Some(tail))
    });
    let changes: Vec<(String, Option<Tail>)> = changes.collect();
    // If this cannot be written, the next start finds it again.
    if !changes.is_empty() && tails.put(&changes).is_err() {
        tails.put_in_memory(&changes);
    }
}

/// Journal files that are kept for tails.
struct FoundFiles {
    /// Files with a valid head, oldest first.
    kept: VecDeque<TailedFile>,
    /// Files without one.
    headless: Vec<PathBuf>,
}

/// Lists the files that are kept for tails.
fn read(
    disk: &dyn Disk,
    folder: &Path,
    journal: &[JournalFile],
    now: Stamp,
) -> io::Result<FoundFiles> {
    let (mut heads, mut headless) = (Vec::new(), Vec::new());
    for sequence in tailed::list(disk, folder)? {
        let path = folder.join(tailed::name_of(sequence));
        let file = disk.open(&path, OpenMode::Read)?;
        let mut page = vec![0; usize::try_from(FRAMES_OFFSET).unwrap_or(0)];
        let count = file.read_at(&mut page, 0)?;
        page.truncate(count);
        match FileHead::parse(&page, sequence) {
            Ok(Some(head)) if head.sequence == sequence => {
                let size_bytes = file.metadata()?.size_bytes;
                heads.push((JournalFile::of_earlier_life(head, now), size_bytes));
            }
            Ok(_) | Err(_) => headless.push(path),
        }
    }
    let next = heads.iter().skip(1).map(|(file, _)| *file);
    let behind = journal.first().copied();
    let next = next.chain(behind).collect::<Vec<JournalFile>>().into_iter();
    let kept = heads
        .iter()
        .zip(next)
        .map(|((file, size_bytes), next)| TailedFile {
            head: file.head,
            end: next.head.base,
            size_bytes: *size_bytes,
            begun_ns: file.begun_ns,
            ended_ns: next.begun_ns,
        });
    Ok(FoundFiles {
        kept: kept.filter(|file| file.head.base < file.end).collect(),
        headless,
    })
}
