//! Every byte of a store's folder that can be checked, checked: heads, checksums, what is in each frame. Nothing is
//! written, and a daemon may be at work meanwhile. What a start would not count is told, and is no damage.

mod block;
mod journal;

use crate::consolidation::schema::Schema;
use crate::error::{Error, Tried};
use crate::folder::read_only::{ReadOnly, TRIES};
use crate::segment::catalog::take_catalog;
use crate::segment::file;
use crate::segment::file::{BLOCKS_OFFSET, Numbers, OpenedSegment, Segment};
use kymo_sys::disk::Disk;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// Where in it, in bytes.
    pub offset: u64,
    /// What it is.
    pub what: String,
    /// How bad that is.
    pub weight: Weight,
}

/// What a finding means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Something that was on the disk cannot be read.
    Damage,
    /// Left over when all stopped, or just being written: it does not count, and nothing that was promised is missing.
    Note,
}

/// What is told while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Something was found.
    Found(Finding),
    /// So many bytes are done.
    Progress {
        /// Of the segments and the journal.
        done_bytes: u64,
        /// All there are.
        of_bytes: u64,
    },
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files of blocks.
    pub segments: u64,
    /// Blocks in them.
    pub blocks: u64,
    /// Frames in those.
    pub frames: u64,
    /// Files of the journal.
    pub journal_files: u64,
    /// Frames in those.
    pub journal_frames: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Findings that are damage.
    pub damaged: u64,
}

/// Definitions of chunks.
type Schemas = HashMap<u32, Schema>;

/// What was seen in one file, or in the journal.
#[derive(Default)]
struct Seen {
    findings: Vec<Finding>,
    counts: Summary,
    /// Up to which position chunks are in its blocks.
    saved: BTreeMap<u32, u64>,
}

impl Seen {
    fn find(&mut self, weight: Weight, path: &Path, offset: u64, what: impl Into<String>) {
        self.counts.damaged += u64::from(weight == Weight::Damage);
        self.findings.push(Finding {
            path: path.into(),
            offset,
            what: what.into(),
            weight,
        });
    }
}

/// A look at a whole folder.
struct Check<'a> {
    disk: Arc<dyn Disk>,
    folder: &'a Path,
    each: &'a mut dyn FnMut(Event),
    schemas: Schemas,
    done: BTreeSet<Numbers>,
    done_bytes: u64,
    of_bytes: u64,
    summary: Summary,
    /// The highest position of a block: the journal before it was on the disk.
    proven: u64,
    /// The same of blocks that count, chunk by chunk.
    saved: BTreeMap<u32, u64>,
}

/// Checks the store in `folder`, which is its own folder. `each` hears of what is found, and how far it is.
pub fn verify(
    disk: Arc<dyn Disk>,
    folder: &Path,
    each: &mut dyn FnMut(Event),
) -> Result<Summary, Error> {
    let disk: Arc<dyn Disk> = Arc::new(ReadOnly(disk));
    let of_bytes = size_of(&*disk, folder)?;
    let mut check = Check {
        disk,
        folder,
        each,
        schemas: HashMap::new(),
        done: BTreeSet::new(),
        done_bytes: 0,
        of_bytes,
        summary: Summary::default(),
        proven: 0,
        saved: BTreeMap::new(),
    };
    // What a daemon at work says later may be of blocks that come later.
    let said = check.said()?;
    check.segments()?;
    check.journal(&said)?;
    Ok(check.summary)
}

/// Bytes of the files that are checked.
fn size_of(disk: &dyn Disk, folder: &Path) -> Result<u64, Error> {
    let mut names = Vec::new();
    let listed = disk.list(folder, &mut |name, _| names.push(name.to_string()));
    listed.tried("list", folder)?;
    names.retain(|name| name.starts_with("segment-") || name.starts_with("journal-"));
    let sizes = names.iter().filter_map(|name| {
        let stat = disk.metadata(&folder.join(name)).ok()?;
        Some(stat.size_bytes)
    });
    Ok(sizes.sum())
}

impl Check<'_> {
    /// All segments. Those that a daemon merges meanwhile are gone when it is their turn, and another one is there.
    fn segments(&mut self) -> Result<(), Error> {
        for _ in 0..TRIES {
            let names = file::list(&*self.disk, self.folder).tried("list", self.folder)?;
            let new = names.iter().filter(|numbers| !self.done.contains(numbers));
            let new: Vec<Numbers> = new.copied().collect();
            if new.is_empty() {
                break;
            }
            for &numbers in &new {
                self.learn(numbers)?;
            }
            for numbers in new {
                self.segment(numbers)?;
            }
        }
        Ok(())
    }

    fn open(&self, path: &Path, numbers: Numbers) -> Result<Option<OpenedSegment>, Error> {
        match Segment::open(&*self.disk, path, numbers) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.tried("open", path).map(Some),
        }
    }

    /// The definitions that a segment's blocks tell of: others have the rows.
    fn learn(&mut self, numbers: Numbers) -> Result<(), Error> {
        let path = file::path_of(self.folder, numbers);
        let Some(OpenedSegment::Segment(segment)) = self.open(&path, numbers)? else {
            return Ok(());
        };
        // What cannot be read is found when it is checked.
        let (blocks, _) = segment.blocks().unwrap_or_default();
        for (offset, head) in blocks {
            self.proven = self.proven.max(head.position);
            let (false, Some(names)) = (self.schemas.contains_key(&head.chunk), head.names) else {
                continue;
            };
            let raw = segment.frame(offset, &names, crate::segment::block::FRAME_MAX);
            let catalog = raw.ok().flatten().and_then(|raw| take_catalog(&raw));
            if let Some(schema) = catalog.and_then(|(about, _)| Schema::parse(&about.front)) {
                self.schemas.insert(head.chunk, schema);
            }
        }
        Ok(())
    }

    fn segment(&mut self, numbers: Numbers) -> Result<(), Error> {
        let path = file::path_of(self.folder, numbers);
        let Some(opened) = self.open(&path, numbers)? else {
            return Ok(());
        };
        self.done.insert(numbers);
        let segment = match opened {
            OpenedSegment::Version(version) => {
                return Err(Error::version(path, version, file::VERSION));
            }
            OpenedSegment::Headless(why) => {
                let seen = self.headless(&path, numbers, &why);
                self.take(seen);
                return Ok(());
            }
            OpenedSegment::Segment(segment) => segment,
        };
        let mut seen = self.look_at(&segment, &path);
        for _ in 1..TRIES {
            if seen.counts.damaged == 0 {
                break;
            }
            // It may be written just now.
            seen = self.look_at(&segment, &path);
        }
        seen.counts.segments = 1;
        self.take(seen);
        Ok(())
    }

    fn headless(&self, path: &Path, numbers: Numbers, why: &str) -> Seen {
        let mut seen = Seen::default();
        let stat = self.disk.metadata(path);
        let size_bytes = stat.map_or(0, |stat| stat.size_bytes);
        let was_begun = !numbers.is_merged() && file::is_blank(&*self.disk, path).unwrap_or(false);
        let weight = match size_bytes > BLOCKS_OFFSET && !was_begun {
            true => Weight::Damage,
            false => Weight::Note,
        };
        seen.counts.segments = 1;
        seen.counts.bytes = size_bytes;
        seen.find(weight, path, 0, why);
        seen
    }

    /// All blocks that a start would count, each on its own.
    fn look_at(&mut self, segment: &Segment, path: &Path) -> Seen {
        let mut seen = Seen::default();
        let size_bytes = segment.file.metadata().map_or(0, |stat| stat.size_bytes);
        seen.counts.bytes = size_bytes;
        let (blocks, gaps) = match segment.blocks() {
            Ok(found) => found,
            Err(error) => {
                seen.find(Weight::Damage, path, 0, format!("cannot be read: {error}"));
                return seen;
            }
        };
        let synced = blocks.iter().map(|(_, head)| head.synced).max();
        let synced = match segment.numbers.is_merged() {
            true => u64::MAX,
            false => synced.unwrap_or(0).max(BLOCKS_OFFSET),
        };
        for &gap in gaps.iter().filter(|&&gap| gap < synced) {
            seen.find(Weight::Damage, path, gap, "a block's head is damaged");
        }
        let mut end = synced;
        for (offset, head) in blocks {
            let bytes = match segment.block(offset, &head) {
                Ok(bytes) => bytes,
                Err(error) => {
                    let what = format!("cannot be read: {error}");
                    seen.find(Weight::Damage, path, offset, what);
                    continue;
                }
            };
            if offset >= synced {
                if offset != end || !head.is_whole(&bytes) {
                    break;
                }
                end += bytes.len() as u64;
            }
            if !head.is_mark() {
                let saved = seen.saved.entry(head.chunk).or_default();
                *saved = head.position.max(*saved);
            }
            block::check(&self.schemas, &head, &bytes, (path, offset), &mut seen);
            self.progress(offset + bytes.len() as u64);
        }
        if synced != u64::MAX && end < size_bytes {
            let what = format!(
                "the last {} bytes are no whole blocks, and do not count",
                size_bytes - end
            );
            seen.find(Weight::Note, path, end, what);
        }
        seen
    }

    fn progress(&mut self, more_bytes: u64) {
        let done_bytes = self.done_bytes + more_bytes;
        (self.each)(Event::Progress {
            done_bytes,
            of_bytes: self.of_bytes.max(done_bytes),
        });
    }

    fn take(&mut self, seen: Seen) {
        let (sum, one) = (&mut self.summary, &seen.counts);
        for (sum, one) in [
            (&mut sum.segments, one.segments),
            (&mut sum.blocks, one.blocks),
            (&mut sum.frames, one.frames),
            (&mut sum.journal_files, one.journal_files),
            (&mut sum.journal_frames, one.journal_frames),
            (&mut sum.bytes, one.bytes),
            (&mut sum.damaged, one.damaged),
        ] {
            *sum += one;
        }
        for (chunk, position) in seen.saved {
            let saved = self.saved.entry(chunk).or_default();
            *saved = position.max(*saved);
        }
        for finding in seen.findings {
            (self.each)(Event::Found(finding));
        }
        self.done_bytes += one.bytes;
        self.progress(0);
    }
}
