//! The cap on journal files that are kept for tails: the oldest file is removed, and each tail that had not acknowledged all of
//! it misses the values in it behind its position. The number of these values is on the disk before the file is removed.

use super::entries::{Count, Decoder};
use super::window::Window;
use crate::engine::Inner;
use crate::memtable::state::{State, nanos};
use crate::wal::tailed::{FilePlace, TailedFile};
use crate::wal::tails::{Missed, Tail, Tails};
use kymo_sys::disk::{OpenMode, is_full};
use std::io;

impl Inner {
    /// Removes files that only tails need, as long as these are too large together, too old, or the journal has no room.
    pub(crate) fn trim_tails(&self) {
        while !self.lock().journal.files.tailed.is_empty() {
            let mut tails = self.tails();
            let Some(file) = self.beyond_cap(&self.lock()) else {
                return;
            };
            if let Err(error) = self.drop_tailed(&mut tails, &file) {
                let line = format!("cannot remove a journal file that was kept for tails: {error}");
                self.lock().notice(line);
                return;
            }
        }
    }

    fn beyond_cap(&self, state: &State) -> Option<TailedFile> {
        let tailed = &state.journal.files.tailed;
        let oldest = tailed.front()?;
        let bytes: u64 = tailed.iter().map(|file| file.size_bytes).sum();
        let age_ns = self
            .clock
            .mono_ns()
            .cast_signed()
            .saturating_sub(oldest.ended_ns);
        let goes = bytes > self.settings.tail_bytes
            || age_ns.max(0).cast_unsigned() > nanos(self.settings.tail_age)
            || state.journal.lacks_room_for_tails();
        goes.then_some(*oldest)
    }

    fn drop_tailed(&self, tails: &mut Tails, file: &TailedFile) -> io::Result<()> {
        let behind = tails.iter().filter(|(_, tail)| tail.position < file.end);
        let behind: Vec<(String, Tail)> = behind.map(|(name, tail)| (name.into(), tail)).collect();
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
                "tail {name} has not taken all values in time: {values} are gone (tail_bytes, tail_age)"
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
        state.journal.remove_tailed(file)
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
