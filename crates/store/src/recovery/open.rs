//! The start of a store: reads blocks and the journals of earlier processes, and builds the state from them.

use crate::engine::{Inner, Store};
use crate::error::{Error, Tried};
use crate::folder::claim::Claim;
use crate::folder::fence;
use crate::layout::{CHUNK, CHUNKS_MAX};
use crate::memtable::file_state::FileState;
use crate::memtable::state::State;
use crate::recovery::lost;
use crate::recovery::lost::Start;
use crate::recovery::moved;
use crate::recovery::replay;
use crate::recovery::replay::JournalSource;
use crate::recovery::stock_journal;
use crate::recovery::tails;
use crate::segment::catalog::{Line, take_catalog};
use crate::segment::file;
use crate::segment::set::{Gap, SegmentSet};
use crate::settings::Settings;
use crate::stats::Replayed;
use crate::wal::frame::{self, FRAMES_OFFSET, FileHead};
use crate::wal::writer;
use crate::wal::writer::Journal;
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, OpenMode};
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Opens the store: takes its lock, replays journals, rewrites files that a crash may have torn.
    pub fn open(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        let claim = Claim::take(&settings, &*disk)?;
        Store::open_claimed(settings, claim, disk, clock)
    }

    /// Opens the store with locks that the caller has taken.
    pub fn open_claimed(
        settings: Settings,
        claim: Claim,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        open(settings, claim, disk, clock)
    }
}

/// Longest journal file that is read; kymo writes no longer ones.
pub(crate) const SOURCE_MAX: u64 = 4 << 30;
/// If there are more than this many times the usual number of journal files, all chunks are saved at once.
const FILES_MAX: usize = 4;

pub(crate) fn open(
    mut settings: Settings,
    claim: Claim,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
) -> Result<(Store, Replayed), Error> {
    let folder = settings.folder.clone();
    let tree = fence::tree(&*disk, &mut settings)?;
    let mut replayed = Replayed {
        notices: claim.notices.clone(),
        ..Replayed::default()
    };
    tails::give_back(&*disk, &folder).tried("rename the journal files in", &folder)?;
    let mut sequences = writer::list(&*disk, &folder)?;
    if sequences.is_empty() {
        // A synced journal is useless if the name of its folder is not on the disk.
        for above in folder.ancestors().skip(1) {
            let _of_others = disk.sync_dir(above);
        }
    }
    let sources = read_sources(&*disk, &folder, &mut sequences, &mut replayed.notices)?;
    let opened = SegmentSet::open(disk.clone(), &folder, &*clock).tried("open", &folder)?;
    let (mut segments, found) =
        opened.map_err(|(path, version)| Error::version(path, version, file::VERSION))?;
    segments.segment_bytes = settings.segment_bytes;
    replayed.notices.extend_from_slice(&found.notices);
    let size = settings.journal_file_bytes;
    let journal = Journal::new(disk.clone(), (&folder, &settings.base), size, sequences, 0);
    let mut state = State::new(journal, &*clock, settings.chunk_values, settings.points);
    let taken = take(
        &mut state,
        &sources,
        (&segments, &found.gaps),
        &mut replayed.notices,
    );
    let heads: Vec<FileHead> = sources.iter().map(|source| source.head).collect();
    drop(sources);
    let (position, furthest) = (taken.position, taken.furthest);
    // After damage or loss, the next journal file begins with all that memory holds.
    let is_whole = replayed.notices.is_empty() && furthest <= position;
    replayed.notices.extend(taken.ignored);
    moved::follow(&mut state, &settings, &mut replayed.notices);
    replayed.notices.extend(moved::remember(&disk, &settings));
    state.journal.go_on_at(position.max(furthest), is_whole);
    let (tails, notices) = tails::restore(&mut state, &disk, &folder, (heads, clock.now()));
    replayed.notices.extend(notices);
    let store = Store::new(settings, disk, clock, tree, segments, (state, tails), claim);
    store.inner.begin(&mut replayed)?;
    stock_journal::replay(&store, &mut replayed);
    Ok((store, replayed))
}

impl Inner {
    /// Begins the work of this process after all is read.
    fn begin(&self, replayed: &mut Replayed) -> Result<(), Error> {
        let redo = self.settle_files(replayed);
        let many = self.lock().journal.files_len() > FILES_MAX * self.settings.journal_files;
        self.redo_files(&redo, replayed);
        if self.lock().has_lost {
            // Syncs the holes before merges remove the evidence for them.
            let synced = self.sync_to(u64::MAX);
            synced.tried("sync the journal in", &self.settings.folder)?;
        }
        if many {
            // Repeated starts that end too early must not fill the disk.
            self.save_all();
            self.checkpoint();
        }
        Ok(())
    }
}

/// Result of reading blocks and the journal.
pub(crate) struct Taken {
    /// End position of the journal.
    position: u64,
    /// Highest position of any block.
    furthest: u64,
    /// Message for the administrator that is no damage.
    pub(crate) ignored: Option<String>,
}

/// Builds the state from the blocks and the journal.
pub(crate) fn take(
    state: &mut State,
    sources: &[JournalSource],
    (segments, gaps): (&SegmentSet, &[Gap]),
    notices: &mut Vec<String>,
) -> Taken {
    state.has_lost = !gaps.is_empty();
    let saved = take_blocks(state, segments, notices);
    let position = |chunk: u32| saved.get(chunk as usize).copied().unwrap_or(0);
    let furthest = saved.iter().copied().max().unwrap_or(0);
    let walked = replay::walk(sources);
    let start = Start {
        segments,
        gaps,
        synced_positions: lost::synced_positions(sources, &walked),
        base: replay::base(sources),
    };
    start.lose(state, &saved, notices);
    let story = replay::replay(sources, &walked, state, &position, furthest);
    notices.extend(story.notices);
    Taken {
        position: story.position,
        furthest,
        ignored: story.ignored,
    }
}

/// Loads the series from the newest blocks of their chunks; returns the position up to which each chunk is saved.
fn take_blocks(state: &mut State, segments: &SegmentSet, notices: &mut Vec<String>) -> Vec<u64> {
    let mut saved = Vec::new();
    let chunks = segments.chunks().into_iter();
    for chunk in chunks.filter(|&chunk| chunk < CHUNKS_MAX) {
        saved.resize(saved.len().max(chunk as usize + 1), 0);
        saved[chunk as usize] = segments.position(chunk);
        let blocks = segments.blocks(chunk);
        let mut damaged = false;
        let catalog = blocks.iter().rev().find_map(|placed| {
            let head = placed.head().ok().flatten()?;
            let frame = head.names?;
            let catalog = placed.frame(&frame).ok().flatten();
            let catalog = catalog.and_then(|raw| take_catalog(&raw));
            damaged |= catalog.is_none();
            catalog
        });
        if damaged {
            notices.push(format!(
                "the names of chunk {chunk} are damaged: an older block's are used"
            ));
        }
        let Some((about, lines)) = catalog else {
            // Rows were imported and names are not written yet, or the
            // names are damaged. Other series must not get these slots.
            state.has_lost |= damaged;
            state.chunks.close(chunk);
            continue;
        };
        state.series.go_on_at(about.next_id);
        let Some(schema) = state.chunks.schema(&about.front) else {
            notices.push(format!("the definitions of chunk {chunk} are damaged"));
            state.chunks.close(chunk);
            continue;
        };
        // Slots of removed series are not reused, since their rows may still exist.
        if let Some(last) = about.slots.min(CHUNK as u16).checked_sub(1) {
            state.chunks.put(chunk, last as u8, &schema, None);
        }
        for mut line in lines {
            let free = state.series.get(line.id).is_none();
            let path = state.restored(line.id, &line.path);
            if let Some(path) = path.filter(|_| free && line.id < 1 << 28) {
                line.path = path;
                state.chunks.put(chunk, line.slot, &schema, Some(line.id));
                let id = line.id;
                take_line(state, chunk, line);
                if damaged {
                    // The damaged names may have held values.
                    state.lose(id);
                }
            }
        }
        if damaged {
            // The damaged names may have had further series.
            state.has_lost = true;
            state.chunks.close(chunk);
        }
    }
    state.chunks.reopen();
    saved
}

fn take_line(state: &mut State, chunk: u32, line: Line) {
    let file = FileState::of_block(line.left, line.live, line.create_unsynced);
    let place = (chunk, line.slot);
    let series = state.series.insert(line.id, &line.path, place, file);
    series.values.applied = line.applied;
    series.values.last = line.applied;
    series.values.published = line.published;
    series.base = line.base;
    series.forgotten = line.forgotten;
    series.values.pending = line.held;
    series.values.last = series.values.newest();
    let (id, after) = (line.id, series.values.pending.len());
    state.restore_points(id);
    state.count(chunk, 0, after);
}

/// Reads the journal files and syncs them, since later steps rely on them.
pub(crate) fn read_sources(
    disk: &dyn Disk,
    folder: &Path,
    sequences: &mut Vec<u64>,
    notices: &mut Vec<String>,
) -> Result<Vec<JournalSource>, Error> {
    let mut sources = Vec::new();
    for &sequence in &*sequences {
        let path = folder.join(writer::name_of(sequence));
        let read = read_source(disk, &path);
        match read.map(|bytes| (FileHead::parse(&bytes, sequence), bytes)) {
            Ok((Err(version), _)) => return Err(Error::version(path, version, frame::VERSION)),
            Ok((Ok(Some(head)), bytes)) if head.sequence == sequence => {
                sources.push(JournalSource { head, bytes });
            }
            // A file that was about to be reused at a power cut and has no new head yet.
            Ok((Ok(Some(_)), _)) => set_aside(disk, &path, &[], notices),
            Ok((_, bytes)) => set_aside(disk, &path, &bytes, notices),
            Err(error) => notices.push(format!("cannot read {}: {error}", path.display())),
        }
    }
    sequences.retain(|&sequence| {
        disk.metadata(&folder.join(writer::name_of(sequence)))
            .is_ok()
    });
    if !sources.is_empty() {
        // The process may have been killed before it synced the names.
        disk.sync_dir(folder).tried("sync", folder)?;
    }
    Ok(sources)
}

/// Removes a file without a head if it is empty, as after a power cut at its creation; else renames it.
fn set_aside(disk: &dyn Disk, original: &Path, bytes: &[u8], notices: &mut Vec<String>) {
    let frames = bytes.get(FRAMES_OFFSET as usize..).unwrap_or_default();
    let done = match frames.iter().all(|&byte| byte == 0) {
        true => disk.unlink(original),
        false => {
            let path = original.display();
            notices.push(format!(
                "{path} has no head (the power failed when it was begun?); it is kept as {path}.bad"
            ));
            disk.rename(original, Path::new(&format!("{path}.bad")))
        }
    };
    if let Err(error) = done {
        notices.push(format!("cannot put {} aside: {error}", original.display()));
    }
}

fn read_source(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, OpenMode::Write)?;
    let size_bytes = file.metadata()?.size_bytes;
    if size_bytes > SOURCE_MAX {
        return Err(io::Error::other("too long"));
    }
    let mut bytes = vec![0; size_bytes as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    file.sync_data()?;
    Ok(bytes)
}
