//! The start: what blocks and the journals of an earlier life say, and the files that a crash may have torn.

use crate::engine::Store;
use crate::error::{Error, Tried};
use crate::folder::claim::Claim;
use crate::folder::fence;
use crate::layout::{CHUNK, CHUNKS_MAX};
use crate::memtable::chunks::Chunks;
use crate::memtable::series::SeriesTable;
use crate::memtable::state::ReportedAt;
use crate::memtable::state::State;
use crate::names;
use crate::recovery::lost;
use crate::recovery::lost::Start;
use crate::recovery::replay;
use crate::recovery::replay::JournalSource;
use crate::recovery::stock_journal;
use crate::rrd_file::header::identity;
use crate::rrd_file::write_back::{Worker, is_ours};
use crate::segment::catalog::{Line, take_catalog};
use crate::segment::file;
use crate::segment::set::{Gap, SegmentSet};
use crate::settings::Settings;
use crate::stats::{Replayed, Stats};
use crate::wal::frame::{self, FRAMES_OFFSET, FileHead};
use crate::wal::value::Value;
use crate::wal::writer;
use crate::wal::writer::Journal;
use kymo_base::name::DisplayName;
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, NameKind, OpenMode};
use kymo_sys::tree::Tree;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Opens the store: takes its lock, replays journals, redoes what a crash may have torn.
    pub fn open(
        settings: Settings,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        let claim = Claim::take(&settings, &*disk)?;
        Store::open_claimed(settings, claim, disk, clock)
    }

    /// The same with locks that were taken before.
    pub fn open_claimed(
        settings: Settings,
        claim: Claim,
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Store, Replayed), Error> {
        open(settings, claim, disk, clock)
    }
}

/// A journal file longer than this is none of ours.
pub(crate) const SOURCE_MAX: u64 = 4 << 30;
/// So many times the journal files that there should be are not left for later.
const FILES_MAX: usize = 4;
/// Files that are redone together.
const ROUND: usize = 512;

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
    let mut sequences = writer::list(&*disk, &folder)?;
    if sequences.is_empty() {
        // A synced journal in a folder without a durable name is no journal.
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
    let journal = Journal::new(disk.clone(), &folder, size, sequences, 0);
    let mut state = new_state(journal, &*clock, settings.chunk_values);
    let taken = take(
        &mut state,
        &sources,
        (&segments, &found.gaps),
        &mut replayed.notices,
    );
    drop(sources);
    let (position, furthest) = (taken.position, taken.furthest);
    // Where something is missing or damaged the next journal file begins with all there is.
    let is_whole = replayed.notices.is_empty() && furthest <= position;
    replayed.notices.extend(taken.ignored);
    state.journal.go_on_at(position.max(furthest), is_whole);
    let (redo, renamed) = settle(&mut state, &*tree, &*clock, &settings, &mut replayed);
    let begun = state.prepare(&*clock);
    if let Err(error) = begun.and_then(|()| state.put_renamed(&renamed, clock.mono_ns())) {
        // The next one has to say which they are.
        state.journal.give_up();
        replayed.notices.push(format!(
            "cannot begin a journal file: {error}; nothing is accepted until it can"
        ));
    }
    let many = state.journal.files_len() > FILES_MAX * settings.journal_files;
    let store = Store::new(settings, disk, clock, tree, segments, state, claim);
    replayed.redone = redo_all(&store, &redo, &mut replayed.notices);
    // Not again after each start.
    store.inner.lock().made = replayed.redone;
    if store.inner.lock().has_lost {
        // That there are holes is to be on the disk before merges remove what tells of them.
        let synced = store.inner.sync_to(u64::MAX);
        synced.tried("sync the journal in", &store.inner.settings.folder)?;
    }
    if many {
        // Start after start that ends too soon must not fill the disk.
        store.inner.save_all();
        store.checkpoint();
    }
    stock_journal::replay(&store, &mut replayed);
    Ok((store, replayed))
}

/// What became of blocks and the journal.
pub(crate) struct Taken {
    /// Where the journal ends.
    position: u64,
    /// The highest position of a block.
    furthest: u64,
    /// ReportedAt, and no damage.
    pub(crate) ignored: Option<String>,
}

/// All that blocks and the journal say.
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
        said: lost::said(sources, &walked),
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

/// Series as the newest blocks of their chunks have them; up to which position that is, chunk by chunk.
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
            // Rows that were taken in, and no names yet; or whose they are nobody knows. They are not those of others.
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
        // Slots of series that are gone are not given to others: their rows may still be there.
        if let Some(last) = about.slots.min(CHUNK as u16).checked_sub(1) {
            state.chunks.put(chunk, last as u8, &schema, None);
        }
        for line in lines {
            let sane = line.path.first() == Some(&b'/') && names::refused(&line.path).is_none();
            let free = state.series.get(line.id).is_none();
            if sane && free && line.id < 1 << 28 {
                state.chunks.put(chunk, line.slot, &schema, Some(line.id));
                let id = line.id;
                take_line(state, chunk, line);
                if damaged {
                    // It may have held values.
                    state.lose(id);
                }
            }
        }
        if damaged {
            // Others may have been here.
            state.has_lost = true;
            state.chunks.close(chunk);
        }
    }
    state.chunks.reopen();
    saved
}

fn take_line(state: &mut State, chunk: u32, line: Line) {
    let series = state.series.insert(line.id, &line.path, (chunk, line.slot));
    series.applied = line.applied;
    series.last = line.applied;
    series.published = line.published;
    series.base = line.base;
    series.forgotten = line.forgotten;
    series.create_unsynced = line.create_unsynced;
    if let Some((_, upto, safe)) = line.left {
        series.upto = upto;
        series.safe = safe;
        series.live = line.live;
    }
    series.pending = line.held;
    series.last = series.newest();
    let after = series.pending.len();
    if let Some((left, ..)) = line.left {
        state.series.leave(line.id, left);
    }
    state.count(chunk, 0, after);
}

/// What is known of series when everything is read; those whose files are to be written again, in path order, and
/// those whose files have other names than the journal says.
fn settle(
    state: &mut State,
    tree: &dyn Tree,
    clock: &dyn Clock,
    settings: &Settings,
    replayed: &mut Replayed,
) -> (Vec<u32>, Vec<u32>) {
    let (now_ns, real_ns) = (clock.mono_ns(), clock.now().real_ns);
    // A series may have been found before the one whose place it has taken.
    state.series.index_again();
    // How old records are nobody knows.
    state.chunks.begin_at(now_ns);
    let (mut redo, mut renamed, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut left_torn: Vec<Arc<[u8]>> = Vec::new();
    let ids: Vec<u32> = state.series.iter().map(|(id, _)| id).collect();
    for id in ids {
        if let Some(path) = names.of(state, tree, id) {
            state.series.rename_file(id, &path);
            renamed.push(id);
        }
        let Some(series) = state.series.get_mut(id) else {
            continue;
        };
        let left = series.left.map_or(real_ns, |left| left.mtime_ns);
        let age_ns = u64::try_from(real_ns.saturating_sub(left)).unwrap_or(0);
        series.published_ns = now_ns;
        series.unseen = true;
        replayed.values += series.pending.len() as u64;
        replayed.files += u64::from(!series.pending.is_empty() || series.redo);
        let due_ns = state.due_after(now_ns, age_ns, settings);
        let Some(series) = state.series.get_mut(id) else {
            continue;
        };
        series.due_ns = due_ns;
        if !series.redo {
            continue;
        }
        let there = may_redo(tree, &series.path, series.base.is_none());
        match settings.files.is_some() && there {
            true => redo.push((series.path.clone(), id)),
            false => series.redo = false,
        }
        if settings.files.is_none() && tree.stat(names::path(&series.path)).is_ok() {
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
    (redo.into_iter().map(|(_, id)| id).collect(), renamed)
}

/// Names of files in a folder, by device and inode.
type Inodes = HashMap<(u64, u64), Vec<u8>>;

/// Those of folders that were looked at.
#[derive(Default)]
struct Names(HashMap<Vec<u8>, Inodes>);

impl Names {
    /// The name, in its folder, of a file that is to be written again and was renamed meanwhile: it is not to be
    /// made again.
    fn of(&mut self, state: &State, tree: &dyn Tree, id: u32) -> Option<Vec<u8>> {
        let series = state.series.get(id).filter(|series| series.redo)?;
        let left = series.left?;
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
                    files.insert((stat.device, stat.inode), path);
                }
            }
            files
        });
        let path = files.get(&(left.device, left.inode))?;
        let seen = identity(&tree.stat(names::path(path)).ok()?);
        let ours = is_ours(series.left, series.writing, &seen);
        (ours && state.series.by_path(path).is_none()).then(|| path.clone())
    }
}

/// Whether a file that may be torn can be written again.
fn may_redo(tree: &dyn Tree, path: &[u8], blank: bool) -> bool {
    match tree.stat(names::path(path)) {
        Ok(_) => true,
        Err(error) => blank && error.kind() == io::ErrorKind::NotFound,
    }
}

/// The journal files that can be read. They are synced: what follows relies on them.
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
            // Taken for its next use when the power went: its head was not written.
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
        // The process may have been killed before the names were.
        disk.sync_dir(folder).tried("sync", folder)?;
    }
    Ok(sources)
}

/// A file without a head: begun when the power went, and then empty; or damaged.
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

pub(crate) fn new_state(journal: Journal, clock: &dyn Clock, chunk_values: u64) -> State {
    let now = clock.now();
    State {
        series: SeriesTable::default(),
        chunks: Chunks::default(),
        journal,
        queue: Vec::new(),
        due: Vec::new(),
        reported_at: ReportedAt::default(),
        merges_left: true,
        silent: HashMap::new(),
        gone: Vec::new(),
        chunk_values,
        next: 0,
        writing_back: 0,
        flushes: false,
        undo: Vec::new(),
        stats_before: Stats::default(),
        dropped: Vec::new(),
        value: Value::default(),
        batches: 0,
        epoch: 1,
        cycles: [0; 2],
        syncing: false,
        checkpointing: false,
        checkpoints_end: false,
        no_file: None,
        sweep_ns: now.mono_ns,
        checkpoint_ns: now.mono_ns,
        sync_ns: now.mono_ns,
        made: 0,
        made_ns: now.mono_ns,
        random: now.real_ns as u64,
        stats: Stats::default(),
        notices: Vec::new(),
        has_lost: false,
    }
}

fn redo_all(store: &Store, ids: &[u32], notices: &mut Vec<String>) -> u64 {
    let (mut worker, mut redone) = (Worker::default(), 0);
    for round in ids.chunks(ROUND) {
        for (id, error) in store.inner.write_files(&mut worker, round) {
            match error {
                None => redone += 1,
                Some(error) => {
                    let mut state = store.inner.lock();
                    state.queue(id);
                    let path = state.series.get(id).map(|series| series.path.clone());
                    let path = path.unwrap_or_default();
                    let path = DisplayName(&path);
                    notices.push(format!(
                        "cannot write {path} yet: {error}; it is tried again"
                    ));
                }
            }
        }
    }
    redone
}
