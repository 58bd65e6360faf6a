//! Verifies all checkable bytes of a store's folder: heads, checksums, and the content of each frame. Nothing is
//! written, and a daemon may be running. Data that a start would ignore is reported as a note, not as damage.

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

/// A finding of the verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// Offset in the file.
    pub offset: u64,
    /// Description.
    pub what: String,
    /// Severity.
    pub weight: Weight,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Data that was on the disk is unreadable.
    Damage,
    /// A leftover of a crash, or data being written: it does not count, and no promised data is missing.
    Note,
}

/// An event during the verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A finding.
    Found(Finding),
    /// Progress.
    Progress {
        /// Verified bytes of the segments and the journal.
        done_bytes: u64,
        /// All bytes of these.
        of_bytes: u64,
    },
}

/// Counts of verified objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Segments.
    pub segments: u64,
    /// Blocks.
    pub blocks: u64,
    /// Frames of blocks.
    pub frames: u64,
    /// Journal files.
    pub journal_files: u64,
    /// Frames of the journal.
    pub journal_frames: u64,
    /// Bytes of all these files.
    pub bytes: u64,
    /// Findings that are damage.
    pub damaged: u64,
}

/// Definitions of chunks.
type Schemas = HashMap<u32, Schema>;

/// Findings in one file or in the journal.
#[derive(Default)]
struct Seen {
    findings: Vec<Finding>,
    counts: Summary,
    /// Position up to which each chunk is in its blocks.
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

/// State of a verification.
struct Check<'a> {
    disk: Arc<dyn Disk>,
    folder: &'a Path,
    each: &'a mut dyn FnMut(Event),
    schemas: Schemas,
    done: BTreeSet<Numbers>,
    done_bytes: u64,
    of_bytes: u64,
    summary: Summary,
    /// Highest position of any block, before which the journal was on the disk.
    proven: u64,
    /// For each chunk, the highest position of its valid blocks.
    saved: BTreeMap<u32, u64>,
}

/// Verifies the store in `folder`, its own folder. `each` gets findings and progress.
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
    // Read first, since a running daemon may later report blocks that are not listed yet.
    let synced_positions = check.synced_positions()?;
    check.segments()?;
    check.journal(&synced_positions)?;
    Ok(check.summary)
}

/// Bytes of the files to verify.
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
    /// Verifies all segments. Those that a daemon merges meanwhile disappear, and new ones are verified too.
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

    /// Collects the definitions in a segment's blocks, which the rows in other segments need.
    fn learn(&mut self, numbers: Numbers) -> Result<(), Error> {
        let path = file::path_of(self.folder, numbers);
        let Some(OpenedSegment::Segment(segment)) = self.open(&path, numbers)? else {
            return Ok(());
        };
        // Unreadable blocks are reported when they are verified.
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
            // A daemon may have been writing the segment, so check it again.
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

    /// Verifies each block that a start would use.
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
