//! The journal files by their positions, and the files that only tails still need.
//!
//! A file that only tails need is renamed, so that a start does not read it again and it does not count as a part of the
//! journal.

use crate::wal::frame::FileHead;
use kymo_sys::clock::Stamp;
use kymo_sys::disk::{Disk, NameKind};
use std::collections::VecDeque;
use std::io;
use std::path::Path;

const PREFIX: &str = "tailed-";

/// A journal file, as a tail reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalFile {
    pub(crate) head: FileHead,
    /// Monotonic nanoseconds of the file's beginning: below zero if the machine has started since.
    pub(crate) begun_ns: i64,
}

impl JournalFile {
    /// A file that an earlier run of the store began.
    pub(crate) fn of_earlier_life(head: FileHead, now: Stamp) -> JournalFile {
        let age_ns = now.real_ns.saturating_sub(head.real_ns).max(0);
        let begun_ns = now.mono_ns.cast_signed().saturating_sub(age_ns);
        JournalFile { head, begun_ns }
    }
}

/// A file that only tails need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailedFile {
    pub(crate) head: FileHead,
    /// Position at which the frames end.
    pub(crate) end: u64,
    pub(crate) size_bytes: u64,
    /// Monotonic nanoseconds of the file's beginning.
    pub(crate) begun_ns: i64,
    /// Monotonic nanoseconds of the last frame.
    pub(crate) ended_ns: i64,
}

/// The file of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) head: FileHead,
    /// The base of the next file; the largest number if there is none.
    pub(crate) end: u64,
    pub(crate) is_tailed: bool,
    /// The next file begins with all that memory held.
    pub(crate) is_carried_over: bool,
}

/// All files that can be read.
#[derive(Debug, Default)]
pub(crate) struct JournalFiles {
    /// Files that only tails need, oldest first.
    pub(crate) tailed: VecDeque<TailedFile>,
    /// Files of the journal, behind those.
    pub(crate) journal: Vec<JournalFile>,
    /// Position before which all tails have acknowledged; `None`: no tail is registered.
    pub(crate) needed_from: Option<u64>,
}

impl JournalFiles {
    /// Adds a new file.
    pub(crate) fn begin(&mut self, head: FileHead, begun_ns: i64) {
        self.journal.push(JournalFile { head, begun_ns });
    }

    fn end_of(&self, at: usize) -> u64 {
        let next = self.journal.get(at + 1);
        next.map_or(u64::MAX, |next| next.head.base)
    }

    /// Removes a file from the journal, and returns it if a tail needs it. The caller renames it.
    pub(crate) fn leave_to_tails(&mut self, sequence: u64) -> Option<TailedFile> {
        let is_it = |file: &JournalFile| file.head.sequence == sequence;
        let at = self.journal.iter().position(is_it)?;
        let (end, next) = (self.end_of(at), self.journal.get(at + 1).copied());
        let file = self.journal.remove(at);
        let is_needed = self.needed_from.is_some_and(|from| from < end);
        (is_needed && file.head.base < end).then_some(TailedFile {
            head: file.head,
            end,
            size_bytes: 0,
            begun_ns: file.begun_ns,
            ended_ns: next.map_or(file.begun_ns, |next| next.begun_ns),
        })
    }

    /// Removes and returns the files that no registered tail needs.
    pub(crate) fn take_needless(&mut self) -> Vec<TailedFile> {
        let from = self.needed_from.unwrap_or(u64::MAX);
        let (kept, needless) = self.tailed.drain(..).partition(|file| file.end > from);
        self.tailed = kept;
        Vec::from(needless)
    }

    /// The oldest position that can be read.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let journal = self.journal.first().map(|file| file.head.base);
        let tailed = self.tailed.front().map(|file| file.head.base);
        tailed.or(journal)
    }

    /// The first file with bytes at or behind a position.
    pub(crate) fn place_of(&self, position: u64) -> Option<FilePlace> {
        let tailed = self.tailed.iter().map(|file| (file.head, file.end, true));
        let journal = self.journal.iter().enumerate();
        let journal = journal.map(|(at, file)| (file.head, self.end_of(at), false));
        let mut files = tailed.chain(journal);
        let (head, end, is_tailed) =
            files.find(|(head, end, _)| position < *end && head.base < *end)?;
        Some(FilePlace {
            head,
            end,
            is_tailed,
            is_carried_over: files.next().is_some_and(|(next, ..)| next.carries_over),
        })
    }

    /// Seconds since the record at a position was written, estimated from the times of the files; `end`: the journal's.
    pub(crate) fn age_s(&self, position: u64, end: u64, now_ns: i64) -> f64 {
        let tailed = self.tailed.iter();
        let tailed = tailed.map(|file| (file.head.base, file.begun_ns, file.ended_ns));
        let journal = self.journal.iter().enumerate().map(|(at, file)| {
            let next = self.journal.get(at + 1);
            let ended_ns = next.map_or(now_ns, |next| next.begun_ns);
            (file.head.base, file.begun_ns, ended_ns)
        });
        let mut files = tailed.chain(journal).peekable();
        while let Some((base, begun_ns, ended_ns)) = files.next() {
            let next = files.peek().map_or(end, |(base, ..)| *base);
            if position >= next {
                continue;
            }
            let part = position.saturating_sub(base) as f64 / (next - base.min(next - 1)) as f64;
            let at_ns = begun_ns as f64 + part * ended_ns.saturating_sub(begun_ns) as f64;
            return (now_ns as f64 - at_ns).max(0.0) / 1e9;
        }
        0.0
    }
}

pub(crate) fn name_of(sequence: u64) -> String {
    format!("{PREFIX}{sequence:012}")
}

/// Sequences of the files in a folder that only tails need.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> io::Result<Vec<u64>> {
    let mut sequences = Vec::new();
    disk.list(folder, &mut |name, kind| {
        let digits = name.strip_prefix(PREFIX);
        let sequence: Option<u64> = digits.and_then(|digits| digits.parse().ok());
        let is_ours = |sequence: &u64| kind == NameKind::File && *sequence < 1 << 62;
        sequences.extend(sequence.filter(is_ours));
    })?;
    sequences.sort_unstable();
    Ok(sequences)
}
