//! The cap on journal files that are kept for tails: a tail that is too far behind misses the values of the oldest file behind
//! its position. If all files together are too large, all tails do. The number of these values is on the disk before the file
//! is removed.

use super::entries::{Count, Decoder};
use super::window::Window;
use crate::engine::Inner;
use crate::memtable::state::{State, nanos};
use crate::wal::tailed::{FilePlace, TailedFile};
use crate::wal::tails::{Missed, Tail, Tails};
use kymo_sys::disk::{OpenMode, is_full};
use std::io;
use std::time::Duration;

impl Inner {
    /// Takes files that only tails need from tails that are too far behind, and from all tails as long as these files are too
    /// large together or the journal has no room. A file that no tail needs any more is removed.
    pub(crate) fn trim_tails(&self) {
        while !self.lock().journal.files.tailed.is_empty() {
            let mut tails = self.tails();
            let Some((file, behind)) = self.beyond_cap(&tails, &self.lock()) else {
                return;
            };
            if let Err(error) = self.take_from(&mut tails, &file, behind) {
                let line = format!("cannot remove a journal file that was kept for tails: {error}");
                self.lock().notice(line);
                return;
            }
        }
    }

    /// The oldest file that a tail loses, and the tails that lose it.
    fn beyond_cap(
        &self,
        tails: &Tails,
        state: &State,
    ) -> Option<(TailedFile, Vec<(String, Tail)>)> {
        let tailed = &state.journal.files.tailed;
        let behind = |file: &TailedFile, is_late: &dyn Fn(&str) -> bool| {
            let late = tails
                .iter()
                .filter(|(name, tail)| tail.position < file.end && is_late(name));
            late.map(|(name, tail)| (name.into(), tail)).collect()
        };
        let bytes: u64 = tailed.iter().map(|file| file.size_bytes).sum();
        if bytes > self.settings.tail_bytes || state.journal.lacks_room_for_tails() {
            let oldest = tailed.front()?;
            return Some((*oldest, behind(oldest, &|_| true)));
        }
        let now_ns = self.clock.mono_ns().cast_signed();
        tailed.iter().find_map(|file| {
            let age_ns = now_ns.saturating_sub(file.ended_ns).max(0).cast_unsigned();
            let late: Vec<(String, Tail)> =
                behind(file, &|name| age_ns > nanos(self.tail_age(name)));
            (!late.is_empty()).then_some((*file, late))
        })
    }

    /// Time that a tail may be behind.
    fn tail_age(&self, name: &str) -> Duration {
        let own = self
            .settings
            .tail_ages
            .iter()
            .find(|(tail, _)| tail == name);
        own.map_or(self.settings.tail_age, |(_, age)| *age)
    }

    /// Takes a file from these tails; removes it if no other tail needs it.
    fn take_from(
        &self,
        tails: &mut Tails,
        file: &TailedFile,
        behind: Vec<(String, Tail)>,
    ) -> io::Result<()> {
        let from: Vec<u64> = behind.iter().map(|(_, tail)| tail.position).collect();
        // If the file cannot be read, the number of missing values is not known.
        let counts = self.count_values(file, &from).unwrap_or_default();
        let (mut changes, mut lines) = (Vec::new(), Vec::new());
        for (at, (name, mut tail)) in behind.into_iter().enumerate() {
            let missed = Missed {
                from: tail.position,
                to: file.end,
                values: counts.as_ref().map(|counts| counts[at]),
            };
            let values = missed
                .values
                .map_or("not known how many".into(), |count| count.to_string());
            lines.push(format!(
                "tail {name} has not taken all values in time: {values} are gone (backlog, tail_age, tail_bytes)"
            ));
            tail.lose(missed);
            changes.push((name, Some(tail)));
        }
        match tails.put(&changes) {
            // Room comes first, even if the new state cannot be written; after a crash the number of missing values is then not
            // known.
            Err(error) if is_full(&error) => tails.put_in_memory(&changes),
            written => written?,
        }
        let mut state = self.lock();
        state.journal.files.needed_from = tails.needed_from();
        state.departed.keep_from(tails.needed_from());
        state.journal.has_room();
        lines.into_iter().for_each(|line| state.notice(line));
        match tails.needed_from().is_some_and(|from| from < file.end) {
            true => Ok(()),
            false => state.journal.remove_tailed(file),
        }
    }

    /// Counts the values in a file behind each of these positions; `None`: the file is damaged.
    fn count_values(&self, file: &TailedFile, from: &[u64]) -> io::Result<Option<Vec<u64>>> {
        let place = FilePlace {
            head: file.head,
            end: file.end,
            is_tailed: true,
            is_carried_over: false,
        };
        let (path, mut decoder) = {
            let state = self.lock();
            let next_id = state.series.next_id();
            (state.journal.path_of(&place), Decoder::below(next_id))
        };
        let opened = self.disk.open(&path, OpenMode::Read)?;
        let (mut window, mut position) = (Window::default(), file.head.base);
        let mut counts = vec![0; from.len()];
        while position < file.end {
            let frame = window.frame(&*opened, &file.head, position, file.end)?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let mut counted = Count::default();
            let taken = decoder.frame(window.rest(), &frame, &file.head, &mut counted);
            if taken.is_none() {
                return Ok(None);
            }
            for (count, _) in counts
                .iter_mut()
                .zip(from)
                .filter(|(_, from)| **from <= position)
            {
                *count += counted.values;
            }
            window.take(frame.end - frame.position);
            position = frame.end;
        }
        Ok(Some(counts))
    }
}
