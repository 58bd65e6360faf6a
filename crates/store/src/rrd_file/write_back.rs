//! .rrd files as views: brought up to date from the segments, in place, and looked at again when others had a hand in them.
//!
//! The journal on the disk says that a file is about to be written (START) before it is, and how it was left (END). A
//! file that was cut short is written again from the last stamp that it has on the disk for certain.

use crate::consolidation::apply::Applier;
use crate::consolidation::schema;
use crate::engine::Inner;
use crate::error::FileError;
use crate::memtable::buffer::Texts;
use crate::memtable::series::Series;
use crate::memtable::state::State;
use crate::names;
use crate::read::rows::FileRows;
use crate::read::rows::read_cells;
use crate::read::snapshot::Snapshot;
use crate::read::view::{Base, View, row_of};
use crate::rrd_file::diff;
use crate::rrd_file::header::{identity, open_error, open_locked, read_header, seasons};
use crate::rrd_file::pieces::write_file;
use crate::wal::live::Live;
use crate::wal::record::{Identity, Record};
use crate::wal::value::stamp_of;
use kymo_base::name::DisplayName;
use kymo_rrd::{Header, Kind, Rows, Rrd};
use kymo_sys::disk::{DiskFile, Metadata, RecordLock};
use kymo_sys::tree::{Access, Existing, Safe};
use std::io::{self, Write};
use std::sync::Arc;

/// Looks at a file that changes under our hands before it is left for later.
const TRIES: usize = 3;

/// Memory that is used for one file after the other.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) applier: Applier,
    cells: Vec<f64>,
    out: Vec<u8>,
}

/// One file to write.
pub(crate) struct FileJob {
    pub(crate) id: u32,
    pub(crate) path: Arc<[u8]>,
    pub(crate) snapshot: Option<Snapshot>,
    /// The newest value that is to be in it.
    pub(crate) target: f64,
    /// The stamp of what it has.
    pub(crate) from: f64,
    pub(crate) left: Option<Identity>,
    live: Option<Live>,
    redo: bool,
    writing: bool,
    create_unsynced: bool,
    pub(crate) started: Option<u32>,
    outcome: Option<Result<Written, FileError>>,
}

/// A write that was done.
struct Written {
    identity: Identity,
    live: Live,
    /// The file's newest stamp.
    upto: f64,
    /// Frames of blocks that could not be read.
    damaged: u64,
    /// Which of the series' values were refused, by stamp and text.
    refused: Vec<(usize, String)>,
    values: Texts,
}

/// What was found instead of the file that was expected.
enum FoundFile {
    Ours(Written),
    /// Others changed it.
    Theirs,
}

impl Inner {
    /// Brings files up to date, in the order given; the error of each. Those that are, or that somebody else writes, are
    /// passed over.
    pub(crate) fn write_files(
        &self,
        worker: &mut Worker,
        ids: &[u32],
    ) -> Vec<(u32, Option<FileError>)> {
        let mut outcomes = Vec::new();
        let mut ids = match self.settings.files {
            Some(_) => ids.to_vec(),
            None => Vec::new(),
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
        // Those that change again and again.
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
            series.queued = false;
            if series.is_current() || series.suspended {
                continue;
            }
            if series.busy {
                // What came meanwhile is due, too.
                state.queue(id);
                continue;
            }
            series.busy = true;
            let target = series.wanted();
            let Some(series) = state.series.get(id) else {
                continue;
            };
            let snapshot = self.snapshot(&state, series, target);
            jobs.push(FileJob::new(id, series, snapshot, target));
        }
        jobs
    }

    /// Tells the journal what is about to be written, and waits until that is on the disk.
    pub(crate) fn announce(&self, jobs: &mut [FileJob]) -> io::Result<()> {
        loop {
            let mut state = self.lock();
            state.prepare(&*self.clock)?;
            let (epoch, sequence) = (state.epoch, state.journal.sequence());
            let now_ns = self.clock.mono_ns();
            for job in jobs.iter() {
                let upto = job.target;
                state.put(job.id, &Record::Start { id: job.id, upto }, now_ns);
            }
            let position = state.journal.commit()?;
            for job in jobs.iter_mut() {
                if job.started.is_none() {
                    state.cycles[(epoch & 1) as usize] += 1;
                    job.started = Some(epoch);
                }
                if let Some(series) = state.series.get_mut(job.id) {
                    series.begun = epoch;
                }
                state.series.start(job.id, sequence);
            }
            let given_up = state.journal.given_up;
            drop(state);
            self.sync_to(position)?;
            // A journal file that was given up meanwhile had it.
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
        // What we made ourselves can be made again.
        let blank = snapshot.base.is_none();
        let file = match open_locked(&*self.tree, &job.path, RecordLock::Exclusive) {
            Ok(file) => file.ok_or(FileError::Locked)?,
            Err(FileError::NoSuchFile) if blank && (job.redo || job.left.is_none()) => {
                return self.make(worker, job, snapshot);
            }
            Err(error) => return Err(error),
        };
        if job.left.is_none() {
            let text = "there is a file that is not the store's";
            return Err(FileError::Rrd(text.into()));
        }
        let seen = identity(&file.metadata().map_err(FileError::Io)?);
        let same = job.left == Some(seen);
        if !(same || job.redo && is_ours(job.left, job.writing, &seen)) {
            return match job.redo && blank && is_torn(job, &seen) {
                true => self.make(worker, job, snapshot),
                false => Ok(FoundFile::Theirs),
            };
        }
        // What a crash left may have an older time than it should.
        if (!same || job.writing) && is_tuned(job, &snapshot, &*file, &seen)? {
            return Ok(FoundFile::Theirs);
        }
        if job.redo && job.create_unsynced {
            drop(file);
            return self.make(worker, job, snapshot);
        }
        let base = base_of(&snapshot, &job.path, self)?;
        let values = snapshot.texts();
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), base)?;
        if view.state.header.file_size_bytes() > seen.size_bytes {
            return match blank && job.redo {
                true => {
                    drop(file);
                    self.put_whole(&mut view, &job.path)
                        .map(|identity| written(worker, &view, identity, values))
                }
                false => Ok(FoundFile::Theirs),
            };
        }
        let kept = self.kept(job, &view, &*file, &seen);
        write_rows(worker, &mut view, &*file, job.from, kept.as_ref())?;
        let after = identity(&file.metadata().map_err(FileError::Io)?);
        Ok(written(worker, &view, after, values))
    }

    /// The header of a file that is written again, if its rows are those that it had: after a power cut older ones
    /// may lie there.
    fn kept(
        &self,
        job: &FileJob,
        view: &View,
        file: &dyn DiskFile,
        seen: &Identity,
    ) -> Option<Header> {
        let now = self.clock.now();
        let booted_ns = now.real_ns.saturating_sub(now.boot_ns as i64);
        let left = job
            .left
            .filter(|left| job.redo && left.mtime_ns > booted_ns)?;
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

    /// A file that is not there, or not all of it.
    fn make(
        &self,
        worker: &mut Worker,
        job: &FileJob,
        snapshot: Snapshot,
    ) -> Result<FoundFile, FileError> {
        let values = snapshot.texts();
        let mut view = snapshot.view(&mut worker.applier, self.rrd_now(), None)?;
        let identity = self.put_whole(&mut view, &job.path)?;
        Ok(written(worker, &view, identity, values))
    }

    /// Puts a whole file in place.
    pub(crate) fn put_whole(&self, view: &mut View, path: &[u8]) -> Result<Identity, FileError> {
        let header = view.state.header.clone();
        let mut write = |out: &mut dyn Write| write_file(&header, view, out);
        let put = self.tree.put_pieces(
            names::path(path),
            &mut write,
            Existing::Replace,
            Safe::Unsynced,
        );
        put.map(|stat| identity(&stat)).map_err(FileError::Io)
    }

    /// Writes over all of a file, which a crash may cut short: the journal knows before.
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
            jobs.push(FileJob::new(id, series, None, series.upto));
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
                state.cycles[(epoch & 1) as usize] -= 1;
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
        // Without room the ENDs are missing: the files will be written again after a crash.
        let _full = state.prepare(&*self.clock);
        for mut job in jobs {
            let id = job.id;
            if let Some(epoch) = job.started {
                state.cycles[(epoch & 1) as usize] -= 1;
            }
            if let Some(series) = state.series.get_mut(id) {
                series.busy = false;
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
            .filter(|stamp| *stamp > series.published)
            .count();
        if written.damaged > 0 {
            let (path, frames) = (DisplayName(&series.path), written.damaged);
            lines.push(format!(
                "{path} was written from blocks that are damaged in {frames} places: rows of it that the file did not have are unknown"
            ));
        }
        let before = series.pending.len();
        let mut refused = 0;
        if !written.refused.is_empty() {
            // They are told of once: those on their way into a block are told of there.
            let bad: Vec<&[u8]> = written
                .refused
                .iter()
                .filter_map(|(at, _)| written.values.iter().nth(*at))
                .collect();
            series.pending.retain(&mut |_, text| !bad.contains(&text));
            refused = (before - series.pending.len()) as u64;
            let texts = written.refused.iter().rev().take(refused as usize).rev();
            lines.extend(
                texts.map(|(_, text)| {
                    format!("cannot keep a value: {}", DisplayName(text.as_bytes()))
                }),
            );
        }
        let after = series.pending.len();
        series.redo = false;
        series.writing = false;
        series.gone_since = None;
        series.due_ns = due_ns;
        series.published_ns = now_ns;
        // A file's stamp may be a rounding less than the value's.
        let upto = match written.refused.is_empty() {
            true => job.target.max(written.upto),
            false => written.upto,
        };
        series.upto = upto;
        series.live = Some(written.live);
        series.published = series.published.max(upto);
        let gone_back = match refused {
            0 => None,
            _ => series.go_back(),
        };
        let id = job.id;
        state.series.leave(id, written.identity);
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

/// The rows since `from`, the seasons, and the header's changing part.
///
/// Rows that are damaged in the segments stay what `kept`, the header of the file so far, says they are.
pub(crate) fn write_rows(
    worker: &mut Worker,
    view: &mut View,
    file: &dyn DiskFile,
    from: f64,
    kept: Option<&Header>,
) -> Result<(), FileError> {
    let header = view.state.header.clone();
    let schema = view.schema.clone();
    let offset = header.size_bytes();
    let mut season = 0;
    for (archive, about) in schema.archives.iter().enumerate() {
        if about.seasonal {
            put_cells(
                worker,
                &view.state.seasons[season],
                file,
                offset + 8 * about.base,
            )?;
            season += 1;
            continue;
        }
        let newest = schema.newest(archive, header.last_up);
        let first = match from.is_finite() {
            true => schema.newest(archive, from as i64) + 1,
            false => 0,
        };
        let mut at = first.max((newest + 1).saturating_sub(about.row_cnt));
        while at <= newest {
            let row = row_of(at, newest, header.cur_row[archive], about.row_cnt);
            let run = (newest + 1 - at).min(about.row_cnt - row);
            let mut cells = std::mem::take(&mut worker.cells);
            cells.resize(run as usize * schema.width, 0.0);
            let damaged = view.damaged;
            let mut read = view.numbered(archive, at, &mut cells);
            if let Some(kept) = kept.filter(|_| read.is_ok() && view.damaged > damaged) {
                view.damaged = damaged;
                read = read_kept(&schema, (archive, at), kept, file, &mut cells)
                    .and_then(|()| view.overlay(archive, at, &mut cells));
            }
            let done = read
                .map_err(|error| FileError::Rrd(error.text))
                .and_then(|()| {
                    put_cells(
                        worker,
                        &cells,
                        file,
                        offset + 8 * (about.base + row * schema.width as u64),
                    )
                });
            worker.cells = cells;
            done?;
            at += run;
        }
    }
    worker.out.clear();
    header.encode_live(&mut worker.out);
    file.write_at(&worker.out, header.live_offset())
        .map_err(FileError::Io)
}

/// What a file has of the rows `number..` of an archive; the others stay.
fn read_kept(
    schema: &schema::Schema,
    (archive, number): (usize, u64),
    kept: &Header,
    file: &dyn DiskFile,
    cells: &mut [f64],
) -> Result<(), kymo_rrd::Error> {
    let (about, newest) = (
        &schema.archives[archive],
        schema.newest(archive, kept.last_up),
    );
    let oldest = (newest + 1).saturating_sub(about.row_cnt);
    for (at, cells) in (number..).zip(cells.chunks_mut(schema.width.max(1))) {
        if (oldest..=newest).contains(&at) {
            let row = row_of(at, newest, kept.cur_row[archive], about.row_cnt);
            let first = about.base + row * schema.width as u64;
            read_cells(file, kept.size_bytes(), first, cells)?;
        }
    }
    Ok(())
}

fn put_cells(
    worker: &mut Worker,
    cells: &[f64],
    file: &dyn DiskFile,
    offset: u64,
) -> Result<(), FileError> {
    worker.out.clear();
    worker
        .out
        .extend(cells.iter().flat_map(|cell| cell.to_le_bytes()));
    file.write_at(&worker.out, offset).map_err(FileError::Io)
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
    // A stamp that is not newer is told of when it is saved: here it may be one of two.
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

/// All of a view.
pub(crate) fn whole(view: &mut View) -> Result<Rrd, FileError> {
    let header = view.state.header.clone();
    let mut cells = vec![0.0; header.cell_count() as usize];
    view.read(0, &mut cells)
        .map_err(|error| FileError::Rrd(error.text))?;
    Ok(Rrd { header, cells })
}

/// The file that has a series' older rows.
pub(crate) fn base_of(
    snapshot: &Snapshot,
    path: &[u8],
    inner: &Inner,
) -> Result<Option<Base>, FileError> {
    let Some(last_up) = snapshot.base else {
        return Ok(None);
    };
    let file = inner
        .tree
        .open(names::path(path), Access::Read)
        .map_err(open_error)?;
    let offset = snapshot.header_bytes();
    Ok(Some(Base {
        rows: Box::new(FileRows { file, offset }),
        last_up,
    }))
}

/// A file that we were writing when it all stopped, or that has not got all of what we wrote.
pub(crate) fn is_ours(left: Option<Identity>, writing: bool, seen: &Identity) -> bool {
    left.is_some_and(|left| {
        let same = (left.device, left.inode, left.size_bytes)
            == (seen.device, seen.inode, seen.size_bytes);
        same && (writing || seen.mtime_ns <= left.mtime_ns)
    })
}

/// Whether others had a hand in a file that we were writing when it all stopped.
fn is_tuned(
    job: &FileJob,
    snapshot: &Snapshot,
    file: &dyn DiskFile,
    seen: &Identity,
) -> Result<bool, FileError> {
    // What an earlier build left is not known, and a header that is torn is written again.
    let header = read_header(file, seen.size_bytes, &mut Vec::new(), &job.path);
    let (Some(_), Ok(header)) = (job.live, header) else {
        return Ok(false);
    };
    let seasons = seasons(file, &header)?;
    let theirs = schema::SeriesState { header, seasons };
    Ok(diff::look(snapshot.schema(), job.live, &theirs, true) != diff::Difference::Same)
}

/// A file that we made, of which the power left less than all.
fn is_torn(job: &FileJob, seen: &Identity) -> bool {
    job.left.is_some_and(|left| {
        let same = (left.device, left.inode) == (seen.device, seen.inode);
        same && seen.size_bytes < left.size_bytes
    })
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

/// The file was not written, or not all of it.
pub(crate) fn not_done(state: &mut State, job: &FileJob, error: &FileError, now_ns: u64) {
    if matches!(error, FileError::Locked) {
        state.stats.locks_met += 1;
    }
    let gone = matches!(error, FileError::NoSuchFile);
    let Some(series) = state.series.get_mut(job.id) else {
        return;
    };
    if gone && series.gone_since.is_none() {
        series.gone_since = Some(now_ns);
    }
    if matches!(error, FileError::Io(_) | FileError::Rrd(_)) {
        // Some of it may be written: the next try begins where this one did.
        series.redo = true;
        series.writing = true;
        series.safe = job.from;
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
            from: if series.redo {
                series.safe
            } else {
                series.upto
            },
            left: series.left,
            live: series.live,
            redo: series.redo,
            writing: series.writing,
            create_unsynced: series.create_unsynced,
            started: None,
            outcome: None,
        }
    }

    /// Gathers that this write has not touched the file; one before may have, and what was to be redone is still.
    fn put_not_started(&self, state: &mut State, now_ns: u64) {
        let id = self.id;
        if !self.writing && !self.redo {
            state.put(id, &Record::NotStarted { id }, now_ns);
        }
    }
}

impl Series {
    /// Whether there is nothing that a look at its file could wait for.
    pub(crate) fn is_current(&self) -> bool {
        self.left.is_some() && self.wanted() <= self.upto && !self.redo
    }

    /// The newest stamp that its file is to have; a forgotten one gets what counted as written.
    fn wanted(&self) -> f64 {
        match self.forgotten {
            true => self.published,
            false => self.last,
        }
    }
}
