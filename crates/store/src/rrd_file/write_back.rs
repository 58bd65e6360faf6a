//! .rrd files as views: updates them in place from the segments, and checks for changes by other programs.
//!
//! Before a write, the journal on the disk has a START for the file; after it, an END with the state in which it was left. A file
//! that was cut short is written again from the last stamp that is certainly on the disk.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema;
use crate::engine::Inner;
use crate::error::FileError;
use crate::memtable::buffer::Texts;
use crate::memtable::file_state::{FileState, Left};
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::names;
use crate::read::snapshot::Snapshot;
use crate::read::view::View;
use crate::rrd_file::diff;
use crate::rrd_file::file_rows::RowWriter;
use crate::rrd_file::header::{identity, open_locked, read_header, seasons};
use crate::rrd_file::pieces::write_file;
use crate::rrd_file::placeholder::is_hollow;
use crate::settings::Files;
use crate::wal::live::Live;
use crate::wal::record::{Identity, Record};
use crate::wal::value::stamp_of;
use kymo_base::name::DisplayName;
use kymo_rrd::{Header, Kind};
use kymo_sys::disk::{DiskFile, Metadata, RecordLock};
use kymo_sys::tree::{Existing, Safe};
use std::io::{self, Write};
use std::sync::Arc;

/// Attempts to write a file that others change at the same time, before it is left for later.
const TRIES: usize = 3;

/// Memory that is reused from file to file.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) applier: Applier,
    pub(crate) rows: RowWriter,
}

/// A file to write.
pub(crate) struct FileJob {
    pub(crate) id: u32,
    pub(crate) path: Arc<[u8]>,
    pub(crate) snapshot: Option<Snapshot>,
    /// Stamp of the newest value to write.
    pub(crate) target: f64,
    /// State of the file when it was reserved.
    pub(crate) file: FileState,
    pub(crate) started: Option<u32>,
    outcome: Option<Result<Written, FileError>>,
}

/// Result of a finished write.
struct Written {
    identity: Identity,
    live: Live,
    /// The newest stamp in the file.
    upto: f64,
    /// Number of unreadable frames of blocks.
    damaged: u64,
    /// Index and error text of each refused value.
    refused: Vec<(usize, String)>,
    values: Texts,
}

/// Result of a write attempt.
enum FoundFile {
    Ours(Written),
    /// Another program changed the file.
    Theirs,
}

impl Inner {
    /// Updates files in the given order; returns the id and error of
    /// each. Skips files that are current or that another thread writes.
    pub(crate) fn write_files(
        &self,
        worker: &mut Worker,
        ids: &[u32],
    ) -> Vec<(u32, Option<FileError>)> {
        let mut outcomes = Vec::new();
        let mut ids = match self.is_without_files() {
            false => ids.to_vec(),
            true => Vec::new(),
        };
        for _ in 0..TRIES {
            let mut jobs = self.take_jobs(&ids);
            ids.clear();
            if jobs.is_empty() {
                break;
            }
            let mut theirs = Vec::new();
            match self.announce(&mut jobs) {
                Ok(()) => {
                    for job in &mut jobs {
                        job.outcome = match self.write(worker, job) {
                            Ok(FoundFile::Ours(written)) => Some(Ok(written)),
                            Ok(FoundFile::Theirs) => {
                                theirs.push(job.id);
                                None
                            }
                            Err(error) => Some(Err(error)),
                        };
                    }
                }
                Err(error) => fail_all(&mut jobs, &error),
            }
            self.finish(jobs, &mut outcomes);
            for id in theirs {
                match self.take_in(worker, id) {
                    Ok(new) => ids.push(new),
                    Err(error) => outcomes.push((id, Some(error))),
                }
            }
        }
        // These files changed at each attempt.
        outcomes.extend(ids.into_iter().map(|id| (id, Some(FileError::Locked))));
        outcomes
    }

    fn take_jobs(&self, ids: &[u32]) -> Vec<FileJob> {
        let mut state = self.lock();
        let mut jobs = Vec::new();
        for &id in ids {
            let Some(series) = state.series.get_mut(id) else {
                continue;
            };
            series.file.dequeue();
            if series.is_current() || series.suspended {
                continue;
            }
            if !series.file.reserve() {
                // Values that arrived meanwhile are due too.
                state.queue(id);
                continue;
            }
            let target = series.wanted();
            let Some(series) = state.series.get(id) else {
                continue;
            };
            let snapshot = self.snapshot(&state, series, target);
            jobs.push(FileJob::new(id, series, snapshot, target));
        }
        jobs
    }

    /// Writes a START for each file to the journal and waits for its sync.
    pub(crate) fn announce(&self, jobs: &mut [FileJob]) -> io::Result<()> {
        loop {
            let mut state = self.lock();
            state.prepare(&*self.clock)?;
            let (epoch, sequence) = (state.epochs.now(), state.journal.sequence());
            let now_ns = self.clock.mono_ns();
            for job in jobs.iter() {
                let upto = job.target;
                state.put(job.id, &Record::Start { id: job.id, upto }, now_ns);
            }
            let position = state.journal.commit()?;
            for job in jobs.iter_mut() {
                if job.started.is_none() {
                    job.started = Some(state.epochs.begin_write());
                }
                state.series.begin_write(job.id, sequence, epoch);
            }
            let given_up = state.journal.given_up;
            drop(state);
            self.sync_to(position)?;
            // Repeats if the journal file with the entries was given up meanwhile.
            if self.lock().journal.given_up == given_up {
                return Ok(());
            }
        }
    }

    /// Writes one file under its lock.
    fn write(&self, worker: &mut Worker, job: &mut FileJob) -> Result<FoundFile, FileError> {
        let Some(snapshot) = job.snapshot.take() else {
            return Err(FileError::NoSuchFile);
        };
        // The store may create a missing file that it made itself, or any if it creates files on request.
        let blank = snapshot.base.is_none();
        let may_make = match self.settings.files {
            Files::OnDemand => true,
            _ => blank && (job.file.must_redo() || job.file.left().is_none()),
        };
        let file = match open_locked(&*self.tree, &job.path, RecordLock::Exclusive) {
            Ok(file) => file.ok_or(FileError::Locked)?,
            Err(FileError::NoSuchFile) if may_make => return self.make(worker, job, snapshot),
            Err(error) => return Err(error),
        };
        let seen = identity(&file.metadata().map_err(FileError::Io)?);
        if may_make && seen.size_bytes == 0 {
            return self.make(worker, job, snapshot);
        }
        if job.file.left().is_none() {
            return match self.is_unfinished(job, &snapshot, &*file, &seen)? {
                true => self.make(worker, job, snapshot),
                false => Err(FileError::Rrd(
                    "there is a file that is not the store's".into(),
                )),
            };
        }
        let same = job.file.left() == Some(seen);
        if !(same || job.file.was_cut_short(&seen)) {
            return match blank && job.file.was_cut_off(&seen) {
                true => self.make(worker, job, snapshot),
                false => Ok(FoundFile::Theirs),
            };
        }
        // After a crash the time of the file may be older than its content.
        if (!same || job.file.is_unfinished()) && is_tuned(job, &snapshot, &*file, &seen)? {
            return Ok(FoundFile::Theirs);
        }
        if job.file.was_half_made() {
            drop(file);
            return self.make(worker, job, snapshot);
        }
        let base = self.base_of(&snapshot)?;
        let values = snapshot.texts();
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), base)?;
        if view.state.header.file_size_bytes() > seen.size_bytes {
            return match blank && job.file.must_redo() {
                true => {
                    drop(file);
                    self.put_whole(&mut view, job)
                        .map(|identity| written(worker, &view, identity, values))
                }
                false => Ok(FoundFile::Theirs),
            };
        }
        let kept = self.kept(job, &view, &*file, &seen);
        let from = job.file.from();
        worker.rows.write(&mut view, &*file, from, kept.as_ref())?;
        let after = identity(&file.metadata().map_err(FileError::Io)?);
        Ok(written(worker, &view, after, values))
    }

    /// Decides about a file where the store has left none. Returns true if it is the first file of its series, whose creation a
    /// crash interrupted, with the content of the series.
    fn is_unfinished(
        &self,
        job: &FileJob,
        snapshot: &Snapshot,
        file: &dyn DiskFile,
        seen: &Identity,
    ) -> Result<bool, FileError> {
        let header = read_header(file, seen.size_bytes, &mut Vec::new(), &job.path);
        let Some(header) = header.ok().filter(|_| job.file.is_unfinished()) else {
            return Ok(is_hollow(file, seen.size_bytes));
        };
        let stamp = header.last_up as f64 + header.last_up_usec as f64 / 1e6;
        let schema = snapshot.schema();
        let is_alike = schema.front == schema::front(&header) && stamp <= job.target;
        Ok(is_alike && snapshot.has_rows_of(file, &header)?)
    }

    /// The header of a file that is written again, if its rows are certainly its own: after a power cut they may be older ones.
    fn kept(
        &self,
        job: &FileJob,
        view: &View,
        file: &dyn DiskFile,
        seen: &Identity,
    ) -> Option<Header> {
        let now = self.clock.now();
        let booted_ns = now.real_ns.saturating_sub(now.boot_ns as i64);
        let left = job.file.left().filter(|left| left.mtime_ns > booted_ns);
        let left = left.filter(|_| job.file.must_redo())?;
        let header = read_header(
            file,
            left.size_bytes.min(seen.size_bytes),
            &mut Vec::new(),
            &job.path,
        );
        header
            .ok()
            .filter(|header| header.rra == view.state.header.rra)
    }

    /// Creates a file that is missing or incomplete.
    fn make(
        &self,
        worker: &mut Worker,
        job: &FileJob,
        snapshot: Snapshot,
    ) -> Result<FoundFile, FileError> {
        let values = snapshot.texts();
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), None)?;
        let identity = self.put_whole(&mut view, job)?;
        Ok(written(worker, &view, identity, values))
    }

    /// Puts a whole file in place and syncs it, with one exception: a file that CREATE made and no checkpoint has settled since,
    /// which the next start creates again, whatever a power cut left of it. A file that is created again after a crash is synced:
    /// a power cut may lose the END that names the new file, and a torn file would then look like another program's.
    fn put_whole(&self, view: &mut View, job: &FileJob) -> Result<Identity, FileError> {
        let safe = match job.file.is_create_unsynced() && !job.file.must_redo() {
            true => Safe::Unsynced,
            false => Safe::Synced,
        };
        let header = view.state.header.clone();
        let mut write = |out: &mut dyn Write| write_file(&header, view, out);
        let path = names::path(&job.path);
        let mut put = || {
            self.tree
                .put_pieces(path, &mut write, Existing::Replace, safe)
        };
        let mut stat = put();
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        if stat.as_ref().is_err_and(is_missing) {
            // The folder is missing: no file in it was requested before, or a power cut lost it.
            let folder = path.parent().unwrap_or(path);
            self.tree.make_folders(folder).map_err(FileError::Io)?;
            stat = put();
        }
        stat.map(|stat| identity(&stat)).map_err(FileError::Io)
    }

    /// Overwrites all of a file, after a START in the journal, since a crash may cut the write short.
    pub(crate) fn write_over(
        &self,
        id: Option<u32>,
        file: &dyn DiskFile,
        bytes: &[u8],
    ) -> Result<Metadata, FileError> {
        let mut jobs = Vec::new();
        if let Some(id) = id
            && let Some(series) = self.lock().series.get(id)
        {
            jobs.push(FileJob::new(id, series, None, series.file.upto()));
        }
        let announced = self.announce(&mut jobs).map_err(FileError::Journal);
        let written = announced.and_then(|()| {
            let written = file.write_at(bytes, 0).and_then(|()| file.sync_data());
            written
                .and_then(|()| file.metadata())
                .map_err(FileError::Io)
        });
        let mut state = self.lock();
        for job in &jobs {
            if let Some(epoch) = job.started {
                state.epochs.end_write(epoch);
            }
            if let Err(error) = &written {
                let _full = state.prepare(&*self.clock);
                not_done(&mut state, job, error, self.clock.mono_ns());
                let _the_next_start_looks_again = state.journal.commit();
            }
        }
        written
    }

    fn finish(&self, jobs: Vec<FileJob>, outcomes: &mut Vec<(u32, Option<FileError>)>) {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        // If the disk is full, the ENDs are missing, and a start after a crash writes the files again.
        let _full = state.prepare(&*self.clock);
        for mut job in jobs {
            let id = job.id;
            if let Some(epoch) = job.started {
                state.epochs.end_write(epoch);
            }
            if let Some(series) = state.series.get_mut(id) {
                series.file.release();
            }
            match job.outcome.take() {
                Some(Ok(written)) => {
                    self.done(&mut state, &job, written, now_ns);
                    outcomes.push((id, None));
                }
                Some(Err(error)) => {
                    not_done(&mut state, &job, &error, now_ns);
                    outcomes.push((id, Some(error)));
                }
                None => job.put_not_started(&mut state, now_ns),
            }
        }
        let _the_next_start_writes_them_again = state.journal.commit();
        self.changed.notify_all();
    }

    fn done(&self, state: &mut State, job: &FileJob, written: Written, now_ns: u64) {
        let due_ns = state.due_at(now_ns, &self.settings);
        let mut lines = Vec::new();
        let Some(series) = state.series.get_mut(job.id) else {
            return;
        };
        let chunk = series.chunk;
        let newly = written
            .values
            .iter()
            .filter_map(stamp_of)
            .filter(|stamp| *stamp > series.values.published)
            .count();
        if written.damaged > 0 {
            let (path, frames) = (DisplayName(&series.path), written.damaged);
            lines.push(format!(
                "{path} was written from blocks that are damaged in {frames} places: rows of it that the file did not have are unknown"
            ));
        }
        let before = series.values.pending.len();
        let mut refused = 0;
        if !written.refused.is_empty() {
            // Reports refused values once; those that are being saved are reported there.
            let bad: Vec<&[u8]> = written
                .refused
                .iter()
                .filter_map(|(at, _)| written.values.iter().nth(*at))
                .collect();
            series
                .values
                .pending
                .retain(&mut |_, text| !bad.contains(&text));
            refused = (before - series.values.pending.len()) as u64;
            let texts = written.refused.iter().rev().take(refused as usize).rev();
            lines.extend(
                texts.map(|(_, text)| {
                    format!("cannot keep a value: {}", DisplayName(text.as_bytes()))
                }),
            );
        }
        let after = series.values.pending.len();
        series.values.published_ns = now_ns;
        // The stamp in a file may be smaller than the value's by rounding.
        let upto = match written.refused.is_empty() {
            true => job.target.max(written.upto),
            false => written.upto,
        };
        series.values.published = series.values.published.max(upto);
        let gone_back = match refused {
            0 => None,
            _ => series.values.go_back(),
        };
        let id = job.id;
        let left = Left {
            identity: written.identity,
            live: written.live,
            upto,
        };
        state.series.finish_write(id, &left, due_ns);
        state.count(chunk, before, after);
        state.touch(id, now_ns);
        state.put_end(id, upto, written.identity, Some(written.live));
        if let Some(stamp) = gone_back {
            state.put(id, &Record::Newest { id, stamp }, now_ns);
        }
        state.stats.updates_written += u64::from(newly > 0);
        state.stats.data_sets_written += (newly as u64).saturating_sub(refused);
        state.stats.values_refused += refused;
        lines.into_iter().for_each(|line| state.notice(line));
    }
}

fn written(worker: &mut Worker, view: &View, identity: Identity, values: Texts) -> FoundFile {
    let header = &view.state.header;
    let upto = header.last_up as f64 + header.last_up_usec as f64 / 1e6;
    let stamps: Vec<Option<f64>> = values.iter().map(stamp_of).collect();
    let is_past = |at: usize| {
        stamps
            .get(at)
            .copied()
            .flatten()
            .is_some_and(|stamp| stamp <= upto)
    };
    let refused = worker.applier.refused.drain(..);
    // Old stamps are reported when they are saved, since here the value may be a duplicate.
    let refused = refused.filter(|(at, error)| error.kind != Kind::Past || !is_past(*at));
    FoundFile::Ours(Written {
        identity,
        live: Live::of(header, &view.state.seasons),
        damaged: view.damaged,
        upto,
        refused: refused.map(|(at, error)| (at, error.text)).collect(),
        values,
    })
}

/// Returns true if another program changed a file whose write a crash interrupted.
fn is_tuned(
    job: &FileJob,
    snapshot: &Snapshot,
    file: &dyn DiskFile,
    seen: &Identity,
) -> Result<bool, FileError> {
    // Files left by earlier builds have no checksums, and a torn header is written again.
    let header = read_header(file, seen.size_bytes, &mut Vec::new(), &job.path);
    let (Some(_), Ok(header)) = (job.file.live(), header) else {
        return Ok(false);
    };
    let seasons = seasons(file, &header)?;
    let theirs = schema::SeriesState { header, seasons };
    Ok(diff::look(snapshot.schema(), job.file.live(), &theirs, true) != diff::Difference::Same)
}

fn fail_all(jobs: &mut [FileJob], error: &io::Error) {
    for job in jobs.iter_mut() {
        let same = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        job.outcome = Some(Err(FileError::Journal(same)));
    }
}

/// Notes that a file was not written, or only in part.
pub(crate) fn not_done(state: &mut State, job: &FileJob, error: &FileError, now_ns: u64) {
    if matches!(error, FileError::Locked) {
        state.stats.locks_met += 1;
    }
    let gone = matches!(error, FileError::NoSuchFile);
    let Some(series) = state.series.get_mut(job.id) else {
        return;
    };
    if gone {
        series.file.miss(now_ns);
    }
    if matches!(error, FileError::Io(_) | FileError::Rrd(_)) {
        // A part of the file may be written.
        series.file.abort_write();
    } else if job.started.is_some() {
        job.put_not_started(state, now_ns);
    }
}

impl FileJob {
    pub(crate) fn new(
        id: u32,
        series: &Series,
        snapshot: Option<Snapshot>,
        target: f64,
    ) -> FileJob {
        FileJob {
            id,
            path: series.path.clone(),
            snapshot,
            target,
            file: series.file,
            started: None,
            outcome: None,
        }
    }

    /// Adds an entry that this write has not touched the file. An earlier
    /// write may have, so a file that had to be redone still does.
    fn put_not_started(&self, state: &mut State, now_ns: u64) {
        let id = self.id;
        if self.file.is_whole() {
            state.put(id, &Record::NotStarted { id }, now_ns);
        }
    }
}
