//! The start: the lock, the journals of an earlier life, and the files that a crash may have torn.

use crate::entry::{Begin, Entry};
use crate::error::{Error, Tried};
use crate::files::{File, Files};
use crate::frame::{FRAMES_OFFSET, FileHead};
use crate::journal::{self, Journal};
use crate::names;
use crate::replay::{self, Past, Source, Story};
use crate::settings::Settings;
use crate::state::State;
use crate::stock;
use crate::store::{Replayed, Stats, Store};
use crate::values::Values;
use crate::write::Worker;
use kymo_base::name::DisplayName;
use kymo_rrd::{Header, Rrd, UNKNOWN};
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use kymo_sys::tree::{Existing, Reach, Safe, Tree};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A journal file longer than this is none of ours.
const SOURCE_MAX: u64 = 4 << 30;
/// Most cells of a file that is made again: 1 GiB.
const CELLS_MAX: u64 = 1 << 27;
/// More journal files than this are not left for later.
const FILES_MAX: usize = 8;
/// Files that are redone together.
const ROUND: usize = 512;

pub(crate) fn open(
    settings: Settings,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
) -> Result<(Store, Replayed), Error> {
    let folder = settings.folder.clone();
    disk.create_dir_all(&folder).tried("make", &folder)?;
    let lock = take_lock(&*disk, &folder)?;
    let reach = match settings.beneath {
        true => Reach::Beneath,
        false => Reach::Anywhere,
    };
    let tree = disk
        .tree(&settings.base, reach)
        .tried("open", &settings.base)?;
    let mut replayed = Replayed::default();
    let mut sequences = journal::list(&*disk, &folder)?;
    if sequences.is_empty() {
        // A synced journal in a folder without a durable name is no journal.
        for above in folder.ancestors().skip(1) {
            let _of_others = disk.sync_dir(above);
        }
    }
    let sources = read_sources(&*disk, &folder, &mut sequences, &mut replayed.notices)?;
    let mut story = replay::replay(&sources);
    drop(sources);
    replayed.notices.append(&mut story.notices);
    let oldest = sequences.first().copied().unwrap_or(0);
    let size = settings.journal_file_bytes;
    let journal = Journal::new(disk.clone(), &folder, size, sequences, story.position);
    let mut state = new_state(journal, &*clock);
    let taken = take_pasts(
        &mut state,
        &*tree,
        &*clock,
        &settings,
        story,
        oldest,
        &mut replayed,
    );
    if let Err(error) = state.prepare(&*clock) {
        replayed.notices.push(format!(
            "cannot begin a journal file: {error}; nothing is accepted until it can"
        ));
    }
    let many = state.journal.files_len() > FILES_MAX;
    let store = Store::new(settings, disk, clock, tree, state, lock);
    replayed.redone = redo_all(&store, &taken.redo, &mut replayed.notices);
    forget_again(&store, &taken.strangers);
    if many {
        // Start after start that ends too soon must not fill the disk.
        store.checkpoint();
    }
    stock::replay(&store, &mut replayed);
    Ok((store, replayed))
}

fn take_lock(disk: &dyn Disk, folder: &Path) -> Result<Box<dyn DiskFile>, Error> {
    let path = folder.join("lock");
    let file = disk.open(&path, OpenMode::Create).tried("open", &path)?;
    if !file.try_lock().tried("lock", &path)? {
        let mut holder = [0; 20];
        let count = file.read_at(&mut holder, 0).unwrap_or(0);
        let holder = String::from_utf8_lossy(&holder[..count]).trim().to_string();
        return Err(Error::Locked { path, holder });
    }
    let holder = format!("{:<19}\n", std::process::id());
    // Only for the message that another one prints; a full disk does not matter.
    let _full = file.write_at(holder.as_bytes(), 0);
    Ok(file)
}

/// The journal files that can be read. They are synced: what follows relies on them.
fn read_sources(
    disk: &dyn Disk,
    folder: &Path,
    sequences: &mut Vec<u64>,
    notices: &mut Vec<String>,
) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for &sequence in &*sequences {
        let path = folder.join(journal::name_of(sequence));
        let read = read_source(disk, &path);
        match read.map(|bytes| (FileHead::parse(&bytes, sequence), bytes)) {
            Ok((Err(version), _)) => return Err(Error::Version { path, version }),
            Ok((Ok(Some(head)), bytes)) if head.sequence == sequence => {
                sources.push(Source { head, bytes });
            }
            // Taken for its next use when the power went: its head was not written.
            Ok((Ok(Some(_)), _)) => set_aside(disk, &path, &[], notices),
            Ok((_, bytes)) => set_aside(disk, &path, &bytes, notices),
            Err(error) => notices.push(format!("cannot read {}: {error}", path.display())),
        }
    }
    sequences.retain(|&sequence| {
        disk.metadata(&folder.join(journal::name_of(sequence)))
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

fn new_state(journal: Journal, clock: &dyn Clock) -> State {
    let now = clock.now();
    State {
        files: Files::default(),
        journal,
        queue: Vec::new(),
        flushes: false,
        undo: Vec::new(),
        turns: 0,
        epoch: 1,
        cycles: [0; 2],
        syncing: false,
        checkpointing: false,
        checkpoints_end: false,
        no_file: None,
        sweep_ns: now.mono_ns,
        checkpoint_ns: now.mono_ns,
        sync_ns: now.mono_ns,
        random: now.real_ns as u64,
        stats: Stats::default(),
        notices: Vec::new(),
    }
}

/// Files that were taken into memory.
#[derive(Default)]
struct Taken {
    /// To be written once more, in path order.
    redo: Vec<u32>,
    /// Written once, but nobody's since: made without an update, or forgotten.
    strangers: Vec<u32>,
}

/// Takes files into memory.
fn take_pasts(
    state: &mut State,
    tree: &dyn Tree,
    clock: &dyn Clock,
    settings: &Settings,
    story: Story,
    oldest: u64,
    replayed: &mut Replayed,
) -> Taken {
    let now_ns = clock.mono_ns();
    let mut taken = Taken::default();
    let pasts: BTreeMap<Box<[u8]>, Past> = story.pasts;
    for (path, mut past) in pasts {
        if path.first() != Some(&b'/') || names::refused(&path).is_some() {
            let path = DisplayName(&path);
            replayed
                .notices
                .push(format!("cannot take values for {path}: it is no path"));
            continue;
        }
        let found = look(tree, &path, &mut past);
        if let Err(error) = &found {
            let path = DisplayName(&path);
            replayed
                .notices
                .push(format!("cannot open {path}: {error}"));
        }
        let begin = found.unwrap_or(None);
        if past.values.is_empty() && begin.is_none() {
            continue;
        }
        replayed.files += 1;
        replayed.values += past.values.len() as u64;
        let flushed_ns = state.flushed_at(now_ns, settings.jitter);
        let id = state.files.insert(&path);
        if !past.known {
            taken.strangers.push(id);
        }
        if let Some(file) = state.files.get_mut(id) {
            fill(file, past, begin, oldest, flushed_ns);
            if file.redo.is_some() {
                taken.redo.push(id);
            }
        }
    }
    taken
}

/// Once they are written nothing is left to be known of them.
fn forget_again(store: &Store, strangers: &[u32]) {
    let mut state = store.inner.lock();
    for &id in strangers {
        if let Some(file) = state.files.get_mut(id) {
            file.forgotten |= file.is_idle();
            if file.forgotten {
                state.put(id, &Entry::Forget { id });
            }
        }
    }
    if state.journal.commit().is_err() {
        state.forget_introductions();
    }
}

fn fill(file: &mut File, past: Past, begin: Option<Begin>, oldest: u64, flushed_ns: u64) {
    let mut values = Values::default();
    past.values.iter().for_each(|(_, text)| values.push(text));
    let upto = past.end.map_or(f64::NEG_INFINITY, |(_, upto)| upto);
    file.values = values;
    file.forgotten = false;
    file.last = past.newest();
    file.upto = begin.as_ref().map_or(upto, |begin| begin.after);
    file.flushed_ns = flushed_ns;
    file.pending_since = oldest;
    file.taken_since = oldest;
    // What is known of the file stays true when it is repeated.
    let begin = begin.map(|begin| Begin {
        fresh: false,
        ..begin
    });
    file.redo = begin.map(Box::new);
}

/// Where a redo of a file starts; `None`: it was not written since the last checkpoint, or others changed it,
/// so that it is kept as it is and takes what is newer.
fn look(tree: &dyn Tree, path: &[u8], past: &mut Past) -> io::Result<Option<Begin>> {
    if past.begins.is_empty() {
        return Ok(None);
    }
    let newest = past.begins[past.begins.len() - 1].1.clone();
    let mut first = past.begins.swap_remove(0).1;
    let stat = match tree.stat(names::path(path)) {
        Ok(stat) => stat,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !first.front.is_empty() => {
            return make_again(tree, path, first).map(Some);
        }
        // UPDATE will say so; the values wait for its return.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let theirs = (stat.device, stat.inode) != (newest.device, newest.inode)
        || past
            .end
            .is_some_and(|(left, _)| !past.open && stat.mtime_ns > left.mtime_ns);
    if theirs {
        return Ok(None);
    }
    if first.front.is_empty() {
        // The file may have got a new inode of ours in between; the oldest header is where to start.
        (first.device, first.inode) = (stat.device, stat.inode);
        return Ok(Some(first));
    }
    make_again(tree, path, first).map(Some)
}

/// A file that we made and that is not on the disk, or not all of it.
fn make_again(tree: &dyn Tree, path: &[u8], mut begin: Begin) -> io::Result<Begin> {
    let bytes = [&begin.front[..], &begin.live].concat();
    let header = Header::parse(&bytes).map_err(|error| io::Error::other(error.text))?;
    if header.cell_count() > CELLS_MAX {
        return Err(io::Error::other("it is too large to be made again"));
    }
    let cells = vec![UNKNOWN; header.cell_count() as usize];
    let bytes = Rrd { header, cells }.to_bytes();
    let path = names::path(path);
    let stat = tree.put(path, &bytes, Existing::Replace, Safe::Unsynced)?;
    (begin.device, begin.inode) = (stat.device, stat.inode);
    Ok(begin)
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
                    let path = state.files.get(id).map(|file| file.path.clone());
                    let path = path.unwrap_or_default();
                    let path = DisplayName(&path);
                    notices.push(format!("cannot write {path} once more yet: {error:?}"));
                }
            }
        }
    }
    redone
}
