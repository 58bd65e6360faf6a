//! Numbers about a store's folder as a start would find it. Nothing is written, and a daemon may be running.

use crate::error::{Error, Tried};
use crate::folder::read_only::ReadOnly;
use crate::memtable::buffer::Texts;
use crate::memtable::state::State;
use crate::recovery::replay::JournalSource;
use crate::recovery::tails;
use crate::segment::file::BLOCKS_OFFSET;
use crate::segment::set::SegmentSet;
use crate::tail::TailStatus;
use crate::tools::look::{Contents, beside_a_daemon};
use crate::tools::space;
use crate::tools::space::both;
use crate::tools::space::{Reach, Sizes};
use crate::wal::frame;
use crate::wal::frame::{FRAMES_OFFSET, FileHead};
use crate::wal::tailed::JournalFiles;
use crate::wal::tails::{TAILS_FILE, TAILS_NAME, list_of};
use crate::wal::value::stamp_of;
use kymo_sys::clock::Clock;
use kymo_sys::disk::{Disk, NameKind};
use kymo_sys::kept_file::{self, Found};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the folder's files by purpose; the sum is that of all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Rows of archives.
    pub rows: u64,
    /// States of series.
    pub states: u64,
    /// Values as they were sent.
    pub points: u64,
    /// Names of series, and states of their files.
    pub names: u64,
    /// Heads of segments and blocks.
    pub heads: u64,
    /// Records of the journal.
    pub journal: u64,
    /// Journal files that only tails need.
    pub tailed: u64,
    /// The rest: room for records, and what the next merge, checkpoint or start removes.
    pub free: u64,
}

/// Data in the journal that is in no block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Unsaved {
    /// Number of values.
    pub values: u64,
    /// Stamp of the oldest value.
    pub oldest: Option<f64>,
    /// Number of series that are in no block.
    pub series: u64,
}

/// Status of a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Bytes by purpose.
    pub bytes: Bytes,
    /// JournalFiles of blocks.
    pub segments: u64,
    /// Number of valid blocks.
    pub blocks: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of series.
    pub series: u64,
    /// Number of series that are forgotten, or have not been touched since their creation.
    pub forgotten: u64,
    /// Number of series that never had a file.
    pub without_files: u64,
    /// Data that waits for a block.
    pub unsaved: Unsaved,
    /// Ends of the oldest and of the newest row, seconds since 1970.
    pub rows: Option<(f64, f64)>,
    /// Ends of the oldest and of the newest of the finest rows of series of points.
    pub fine_rows: Option<(f64, f64)>,
    /// Stamps of the oldest and of the newest point.
    pub points: Option<(f64, f64)>,
    /// The registered tails, by name.
    pub tails: Vec<TailStatus>,
    /// Notices that a start would log.
    pub notices: Vec<String>,
}

/// Reads the status of the store in `folder`, its own folder.
pub fn status(disk: Arc<dyn Disk>, clock: &dyn Clock, folder: &Path) -> Result<Status, Error> {
    let disk: Arc<dyn Disk> = Arc::new(ReadOnly(disk));
    beside_a_daemon(|| look(&disk, clock, folder))
}

fn look(disk: &Arc<dyn Disk>, clock: &dyn Clock, folder: &Path) -> Result<Status, Error> {
    let Contents {
        sources,
        segments,
        state,
        notices,
        // Names do not matter, and a relative folder is no base.
    } = Contents::read(disk, clock, (folder, Path::new("/")), 0)?;
    let sizes = segments.sizes();
    let (rows, fine_rows, points) =
        reaches(&segments, &state).tried("read the segments of", folder)?;
    let files = tails::look(&**disk, folder, heads_of(&sources), clock.now());
    let files = files.tried("read the journal in", folder)?;
    let kept: u64 = files.tailed.iter().map(|file| file.size_bytes).sum();
    let mut status = Status {
        bytes: bytes(&sizes, &sources, kept, size_of(&**disk, folder)?),
        tails: tails_of(disk, folder, &sources, &files, clock)
            .tried("read the tails in", folder)?,
        segments: sizes.segments,
        blocks: sizes.blocks,
        chunks: sizes.chunks,
        rows,
        fine_rows,
        points,
        notices,
        ..Status::default()
    };
    count(&state, &mut status);
    Ok(status)
}

fn heads_of(sources: &[JournalSource]) -> Vec<FileHead> {
    sources.iter().map(|source| source.head).collect()
}

fn tails_of(
    disk: &Arc<dyn Disk>,
    folder: &Path,
    sources: &[JournalSource],
    files: &JournalFiles,
    clock: &dyn Clock,
) -> io::Result<Vec<TailStatus>> {
    let path = folder.join(TAILS_NAME);
    let Found::Read(contents) = kept_file::read(&**disk, &path, &TAILS_FILE)? else {
        return Ok(Vec::new());
    };
    let frames = sources
        .iter()
        .flat_map(|source| frame::walk(&source.bytes, &source.head));
    let end = frames.map(|frame| frame.end).max().unwrap_or(0);
    let now = (end, clock.mono_ns().cast_signed());
    let tails = list_of(contents.bodies()).into_iter();
    Ok(tails
        .map(|(name, tail)| TailStatus::of(&name, tail, files, now))
        .collect())
}

/// Bytes of all files in the folder.
fn size_of(disk: &dyn Disk, folder: &Path) -> Result<u64, Error> {
    let mut names = Vec::new();
    let listed = disk.list(folder, &mut |name, kind| {
        if kind == NameKind::File {
            names.push(name.to_string());
        }
    });
    listed.tried("list", folder)?;
    let sizes = names
        .iter()
        .filter_map(|name| disk.metadata(&folder.join(name)).ok());
    Ok(sizes.map(|stat| stat.size_bytes).sum())
}

fn bytes(sizes: &Sizes, sources: &[JournalSource], tailed: u64, all: u64) -> Bytes {
    let frames = sources
        .iter()
        .flat_map(|source| frame::walk(&source.bytes, &source.head));
    let frames: u64 = frames.map(|frame| frame.end - frame.position).sum();
    let mut bytes = Bytes {
        rows: sizes.row_bytes,
        states: sizes.state_bytes,
        points: sizes.point_bytes,
        names: sizes.name_bytes,
        heads: sizes.head_bytes + sizes.segments * BLOCKS_OFFSET,
        journal: frames + sources.len() as u64 * FRAMES_OFFSET,
        tailed,
        free: 0,
    };
    let Bytes {
        rows,
        states,
        points,
        names,
        heads,
        journal,
        ..
    } = bytes;
    bytes.free = all.saturating_sub(rows + states + points + names + heads + journal + tailed);
    bytes
}

fn reaches(segments: &SegmentSet, state: &State) -> io::Result<(Reach, Reach, Reach)> {
    let (mut rows, mut fine_rows, mut points) = (None, None, None);
    for chunk in segments.chunks() {
        let blocks = segments.blocks(chunk);
        points = both(points, space::points(&blocks)?);
        if let Some(chunk) = state.chunks.get(chunk) {
            let all = 0..chunk.schema.archives.len();
            rows = both(rows, space::rows(&blocks, &chunk.schema, all)?);
            if chunk.schema.has_tiers() {
                fine_rows = both(fine_rows, space::rows(&blocks, &chunk.schema, 0..1)?);
            }
        }
    }
    Ok((rows, fine_rows, points))
}

fn count(state: &State, status: &mut Status) {
    for (_, series) in state.series.iter() {
        status.series += 1;
        status.forgotten += u64::from(series.forgotten);
        status.without_files += u64::from(series.file.left().is_none());
        status.unsaved.series += u64::from(series.values.state.is_some());
        status.unsaved.values += series.values.unsaved_len() as u64;
        let mut texts = Texts::default();
        series.values.texts_into(&mut texts);
        let points = series
            .values
            .points
            .iter()
            .flat_map(|points| points.points());
        let points = points.map(|point| point.seconds());
        for stamp in texts.iter().filter_map(stamp_of).chain(points) {
            let oldest = status.unsaved.oldest.unwrap_or(stamp);
            status.unsaved.oldest = Some(oldest.min(stamp));
        }
    }
}
