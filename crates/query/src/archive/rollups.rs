//! Roll-ups beside the ring, `rollups/BOOT-FOLDER/BLOCK.rol`: how long ranges are read without reading all of
//! them. They are made in the background, newest first, and go when their block has gone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kymo_recording::folder::BLOCK_SUFFIX;
use kymo_recording::reader::Listed;
use kymo_sys::disk::{Disk as _, NameKind, OpenMode, RealDisk};

use super::RECORDED_MAX;
use super::blocks::{Blocks, Run, wall_ns};
use super::what::{RecordingSource, own};
use crate::rollup;
use crate::series::{Grid, Series};
use crate::sheet::Pick;

/// How often new blocks are looked for.
const LOOK: Duration = Duration::from_secs(60);
/// Rest after each roll-up, as a multiple of the time for making it: a tenth of a CPU at most.
const REST: u32 = 9;
/// Largest roll-up that is read.
const BYTES_MAX: usize = 64 << 20;
/// Minutes before a block that its first interval may reach back to.
const LEAD: u32 = 10;
const SUFFIX: &str = ".rol";
/// Longest span of a block. A block spans minutes, or hours where samples are rare; in one that spans days
/// the clock was set.
const SPAN_MAX_S: u64 = 6 * 3600;

/// The folder of roll-ups in a data folder.
pub const ROLLUPS_FOLDER: &str = "rollups";

/// The folder of the roll-ups.
#[derive(Clone)]
pub struct Rollups {
    dir: PathBuf,
}

impl Rollups {
    /// Roll-ups in a folder, which is made when the first one is.
    pub fn new(dir: PathBuf) -> Rollups {
        Rollups { dir }
    }

    /// Where the roll-up of a block is.
    fn path(&self, blocks: &Blocks, block: &Listed) -> Option<PathBuf> {
        let folder = blocks.folders.get(block.folder)?.file_name()?;
        let name = block.name.format();
        let stem = name.strip_suffix(BLOCK_SUFFIX)?;
        Some(self.dir.join(folder).join(format!("{stem}{SUFFIX}")))
    }

    /// The roll-up of a block, if there is one.
    pub(super) fn read(&self, blocks: &Blocks, block: &Listed) -> Option<Vec<u8>> {
        let file = RealDisk
            .open(&self.path(blocks, block)?, OpenMode::Read)
            .ok()?;
        let size = usize::try_from(file.metadata().ok()?.size_bytes).ok()?;
        if size > BYTES_MAX {
            return None;
        }
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], u64::try_from(filled).ok()?) {
                Ok(0) | Err(_) => return None,
                Ok(read) => filled += read,
            }
        }
        Some(bytes)
    }

    /// Makes missing roll-ups, for ever.
    pub(super) fn keep_up(&self, what: &RecordingSource) {
        let mut tried = HashSet::new();
        loop {
            if let Some(ring) = what.ring()
                && let Ok(blocks) = Blocks::list(&own(ring))
            {
                self.make_missing(what, &blocks, &mut tried);
                self.remove_orphans(&blocks);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// One that could not be made, or was of other columns, is tried once.
    fn make_missing(&self, what: &RecordingSource, blocks: &Blocks, tried: &mut HashSet<PathBuf>) {
        for (n, block) in blocks.blocks.iter().enumerate().rev() {
            let Some(path) = self.path(blocks, block) else {
                continue;
            };
            if tried.contains(&path) {
                continue;
            }
            let start = Instant::now();
            let usable = self
                .read(blocks, block)
                .is_some_and(|bytes| is_usable(&bytes));
            if !usable {
                let next_seq = blocks.blocks.get(n + 1).map(|next| next.name.first_seq);
                // The cache is no loss: it is not worth a word.
                let _ = make(what, blocks, block, next_seq)
                    .and_then(|bytes| write(&path, &bytes).map_err(|error| error.to_string()));
                std::thread::sleep(start.elapsed() * REST);
            }
            tried.insert(path);
        }
    }

    /// Removes the roll-ups of blocks that have left the ring.
    fn remove_orphans(&self, blocks: &Blocks) {
        let known: HashSet<PathBuf> = blocks
            .blocks
            .iter()
            .filter_map(|block| self.path(blocks, block))
            .collect();
        for folder in names(&self.dir, NameKind::Directory) {
            let files = names(&folder, NameKind::File);
            let (kept, gone): (Vec<_>, Vec<_>) =
                files.into_iter().partition(|file| known.contains(file));
            for file in &gone {
                let _ = RealDisk.unlink(file);
            }
            if kept.is_empty() {
                let _ = RealDisk.rmdir(&folder);
            }
        }
    }
}

fn is_usable(bytes: &[u8]) -> bool {
    let grid = Grid::new(0, rollup::STEP_NS, 1, rollup::STEP_NS);
    rollup::merge(bytes, &[], &mut Series::new(grid, 0))
}

fn names(dir: &Path, wanted: NameKind) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let _ = RealDisk.list(dir, &mut |name, kind| {
        if kind == wanted {
            found.push(dir.join(name));
        }
    });
    found
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    RealDisk.create_dir_all(folder)?;
    let unfinished = path.with_extension("tmp");
    let file = RealDisk.open(&unfinished, OpenMode::Create)?;
    file.set_len(0)?;
    file.write_at(bytes, 0)?;
    RealDisk.rename(&unfinished, path)
}

/// Reads a block, with what its first rates need, and rolls it up.
fn make(
    what: &RecordingSource,
    blocks: &Blocks,
    block: &Listed,
    next_seq: Option<u64>,
) -> Result<Vec<u8>, String> {
    let end_seq = match next_seq {
        Some(next_seq) => next_seq,
        None => blocks.last_seq(block)? + 1,
    };
    let seconds = block.name.wall_max_s - block.name.wall_min_s.min(block.name.wall_max_s);
    if seconds > SPAN_MAX_S {
        return Err("cannot roll up a block of days".into());
    }
    // The first interval begins before the block, and both ends may be parts of minutes.
    let first = wall_ns(block.name.wall_min_s).div_euclid(rollup::STEP_NS) - i64::from(LEAD);
    let grid = Grid {
        from_ns: first * rollup::STEP_NS,
        step_ns: rollup::STEP_NS,
        count: usize::try_from(seconds / 60 + 2 + u64::from(LEAD)).unwrap_or(usize::MAX),
    };
    let run = Run::of(std::slice::from_ref(block), end_seq);
    let mut series = Series::new(grid, RECORDED_MAX);
    series.take_in(
        &mut run.open(what, Pick::kinds(&Pick::all()))?,
        &Pick::all(),
    )?;
    if series.full {
        return Err("cannot roll up so many fields".into());
    }
    let mut bytes = Vec::new();
    rollup::encode(&series, &mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}
