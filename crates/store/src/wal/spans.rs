//! Journal files by name and head: what each has of the journal.

use std::io;
use std::path::Path;

use kymo_sys::disk::{Disk, NameKind, OpenMode};

use crate::wal::frame::{FRAMES_OFFSET, FileHead};

pub(crate) const PREFIX: &str = "journal-";
/// Files that only a tail needs: no start reads them.
const KEPT_PREFIX: &str = "tail-";

/// The part of the journal that a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSpan {
    pub(crate) sequence: u64,
    /// The position of the first frame.
    pub(crate) base: u64,
    /// When the file was begun, nanoseconds since 1970.
    pub(crate) real_ns: i64,
    /// The file is there for tails alone.
    pub(crate) is_kept: bool,
}

impl FileSpan {
    pub(crate) fn of(head: &FileHead, is_kept: bool) -> FileSpan {
        FileSpan {
            sequence: head.sequence,
            base: head.base,
            real_ns: head.real_ns,
            is_kept,
        }
    }

    /// The name of the file.
    pub(crate) fn name(&self) -> String {
        match self.is_kept {
            true => kept_name(self.sequence),
            false => name_of(self.sequence),
        }
    }
}

/// Files in a folder that are kept for tails, with their heads. Those without a head are no use.
pub(crate) fn list_kept(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<FileSpan>> {
    let mut sequences: Vec<u64> = Vec::new();
    disk.list(folder, &mut |name, kind| {
        let digits = name.strip_prefix(KEPT_PREFIX);
        if kind == NameKind::File
            && let Some(sequence) = digits.and_then(|digits| digits.parse().ok())
        {
            sequences.push(sequence);
        }
    })?;
    sequences.retain(|&sequence| sequence < 1 << 62);
    sequences.sort_unstable();
    let spans = sequences.into_iter().filter_map(|sequence| {
        let head = read_head(disk, &folder.join(kept_name(sequence)), sequence)?;
        Some(FileSpan::of(&head, true))
    });
    Ok(spans.collect())
}

/// The head of a journal file; `None`: it has none, or that of another use.
pub(crate) fn read_head(disk: &dyn Disk, path: &Path, sequence: u64) -> Option<FileHead> {
    let file = disk.open(path, OpenMode::Read).ok()?;
    let mut page = vec![0; usize::try_from(FRAMES_OFFSET).ok()?];
    let count = file.read_at(&mut page, 0).ok()?;
    page.truncate(count);
    let head = FileHead::parse(&page, sequence).ok()??;
    (head.sequence == sequence).then_some(head)
}

pub(crate) fn kept_name(sequence: u64) -> String {
    format!("{KEPT_PREFIX}{sequence:012}")
}

pub(crate) fn name_of(sequence: u64) -> String {
    format!("{PREFIX}{sequence:012}")
}
