//! Values into .rrd files.
//!
//! A file is written only after the journal on the disk says so: with the header as it was before the first
//! write since a checkpoint (BEGIN), or that it is written again (START). A write that was cut short is then
//! done again from that header with the same values, and writes the same rows. What comes in between, a lock
//! of somebody else or a missing file, puts the values back in front of those that came meanwhile.

use crate::entry::{Begin, Entry, Identity};
use crate::error::FileError;
use crate::names;
use crate::rows::{Gathered, GatheredRows};
use crate::rrd_file::{identity, open_error, open_locked, read_header, rrd_error, seasons};
use crate::state::State;
use crate::store::Inner;
use crate::values::Values;
use kymo_base::name::DisplayName;
use kymo_rrd::update::{Now, Scratch, Update, update_all};
use kymo_rrd::{Header, UNKNOWN};
use kymo_sys::disk::{DiskFile, RecordLock};
use kymo_sys::tree::Access;
use std::io;
use std::sync::Arc;

/// Looks at a file that changes under our hands before it is left for later.
const TRIES: usize = 3;

/// Memory that is used for one file after the other.
#[derive(Default)]
pub(crate) struct Worker {
    raw: Vec<u8>,
    live: Vec<u8>,
    gathered: Gathered,
    scratch: Scratch,
    refused: Vec<(usize, kymo_rrd::Error)>,
}

/// One file to write.
struct Job {
    id: u32,
    unique: u64,
    path: Arc<[u8]>,
    values: Arc<Values>,
    /// The newest stamp among the values.
    last: f64,
    /// Stamp of what the file has, and how we left it.
    upto: f64,
    left: Option<Identity>,
    pending_since: u64,
    /// To be put into the journal; without it a START will do.
    begin: Option<Begin>,
    /// What the file must be for that to be true.
    expected: Option<Identity>,
    redo: Option<Box<Begin>>,
    /// Somebody else had a hand in it.
    edited: bool,
    /// The epoch in which the journal was told.
    started: Option<u32>,
    outcome: Option<Result<Written, FileError>>,
}

/// A write that was done.
struct Written {
    identity: Identity,
    /// The file's newest stamp.
    last_up: f64,
    refused: Vec<String>,
}

impl Inner {
    /// Writes these files, in the order given; the error of each. Files that somebody else writes are passed
    /// over, as are those with nothing to write.
    pub(crate) fn write_files(
        &self,
        worker: &mut Worker,
        ids: &[u32],
    ) -> Vec<(u32, Option<FileError>)> {
        let mut jobs = self.take_jobs(ids);
        for _ in 0..TRIES {
            if jobs.iter().all(|job| job.outcome.is_some()) {
                break;
            }
            match self.announce(worker, &mut jobs) {
                Ok(()) => {
                    let open = jobs.iter_mut().filter(|job| job.outcome.is_none());
                    open.for_each(|job| self.write(worker, job));
                }
                Err(error) => fail_all(&mut jobs, &error),
            }
        }
        self.finish(jobs)
    }

    fn take_jobs(&self, ids: &[u32]) -> Vec<Job> {
        let mut state = self.lock();
        let mut jobs = Vec::new();
        for &id in ids {
            let Some(file) = state.files.get_mut(id) else {
                continue;
            };
            file.queued = false;
            let nothing = file.values.is_empty() && file.redo.is_none();
            if nothing || file.suspended {
                continue;
            }
            if file.busy {
                // What came meanwhile is due, too.
                state.queue(id);
                continue;
            }
            file.busy = true;
            let values = Arc::new(std::mem::take(&mut file.values));
            file.taken = Some(values.clone());
            jobs.push(Job {
                id,
                unique: file.unique,
                path: file.path.clone(),
                values,
                last: file.last,
                upto: file.upto,
                left: file.identity,
                pending_since: file.pending_since,
                begin: file.redo.as_deref().cloned(),
                expected: file.identity,
                redo: file.redo.clone(),
                edited: false,
                started: None,
                outcome: None,
            });
        }
        jobs
    }

    /// Tells the journal what is about to be written, and waits until that is on the disk.
    fn announce(&self, worker: &mut Worker, jobs: &mut [Job]) -> io::Result<()> {
        loop {
            let mut state = self.lock();
            let mut unknown = Vec::new();
            for (at, job) in jobs.iter().enumerate() {
                if job.outcome.is_none() && job.needs_begin(&state) {
                    unknown.push(at);
                }
            }
            if unknown.is_empty() {
                let position = self.put_starts(&mut state, jobs)?;
                let given_up = state.journal.given_up;
                drop(state);
                self.sync_to(position)?;
                // A journal file that was given up meanwhile had it, and it was not repeated in the next.
                if self.lock().journal.given_up == given_up {
                    return Ok(());
                }
                continue;
            }
            drop(state);
            for at in unknown {
                if let Err(error) = self.look(worker, &mut jobs[at]) {
                    jobs[at].outcome = Some(Err(error));
                }
            }
        }
    }

    fn put_starts(&self, state: &mut State, jobs: &mut [Job]) -> io::Result<u64> {
        state.prepare(&*self.clock)?;
        let epoch = state.epoch;
        for job in jobs.iter().filter(|job| job.outcome.is_none()) {
            let (id, upto) = (job.id, job.last);
            match job.begin.clone() {
                Some(mut begin) => {
                    begin.upto = upto;
                    state.put(id, &Entry::Begin { id, begin });
                }
                None => state.put(id, &Entry::Start { id, upto }),
            }
        }
        let position = match state.journal.commit() {
            Ok(position) => position,
            Err(error) => {
                state.forget_introductions();
                return Err(error);
            }
        };
        for job in jobs.iter_mut().filter(|job| job.outcome.is_none()) {
            if job.started.is_none() {
                state.cycles[(epoch & 1) as usize] += 1;
                job.started = Some(epoch);
            }
            let Some(file) = state.files.get_mut(job.id) else {
                continue;
            };
            if job.begin.is_some() && file.unique == job.unique {
                let again = file.begun == epoch && !job.edited;
                let since = if again { file.taken_since } else { u64::MAX };
                file.taken_since = since.min(job.pending_since);
                file.begun = epoch;
            }
        }
        Ok(position)
    }

    /// Looks at the file as it is, for its BEGIN.
    fn look(&self, worker: &mut Worker, job: &mut Job) -> Result<(), FileError> {
        let path = names::path(&job.path);
        let file = self.tree.open(path, Access::Read).map_err(open_error)?;
        let seen = identity(&file.metadata().map_err(FileError::Io)?);
        let header = read_header(&*file, seen.size_bytes, &mut worker.raw, &job.path)?;
        let live = header.live_offset() as usize..header.size_bytes() as usize;
        job.begin = Some(Begin {
            fresh: job.edited || job.left != Some(seen),
            after: job.upto,
            upto: job.last,
            device: seen.device,
            inode: seen.inode,
            front: Vec::new(),
            live: worker.raw[live].to_vec(),
            cells: seasons(&*file, &header)?,
        });
        job.expected = Some(seen);
        Ok(())
    }

    /// Writes one file; no outcome: it is not the file that was announced.
    fn write(&self, worker: &mut Worker, job: &mut Job) {
        job.outcome = match self.write_locked(worker, job) {
            Ok(None) => {
                job.edited = true;
                job.begin = None;
                job.redo = None;
                None
            }
            Ok(Some(written)) => Some(Ok(written)),
            Err(error) => Some(Err(error)),
        };
    }

    fn write_locked(
        &self,
        worker: &mut Worker,
        job: &mut Job,
    ) -> Result<Option<Written>, FileError> {
        let file = open_locked(&*self.tree, &job.path, RecordLock::Exclusive)?;
        let file = file.ok_or(FileError::Locked)?;
        let seen = identity(&file.metadata().map_err(FileError::Io)?);
        worker.gathered.clear();
        let mut header = read_header(&*file, seen.size_bytes, &mut worker.raw, &job.path)?;
        match &job.redo {
            None if job.expected != Some(seen) => return Ok(None),
            None => {}
            Some(begin) => match go_back(worker, &header, begin, &seen) {
                Some(before) => header = before,
                None => return Ok(None),
            },
        }
        let live = header.live_offset() as usize..header.size_bytes() as usize;
        let cells = seasons(&*file, &header)?;
        if let Err(error) = self.apply(worker, &*file, &mut header, job) {
            // Something of it may be written: the next try goes back to where this one started.
            job.redo.get_or_insert_with(|| {
                Box::new(Begin {
                    fresh: false,
                    after: job.upto,
                    upto: job.last,
                    device: seen.device,
                    inode: seen.inode,
                    front: Vec::new(),
                    live: worker.raw[live].to_vec(),
                    cells,
                })
            });
            return Err(error);
        }
        let refused = worker.refused.drain(..);
        let refused = refused.map(|(_, error)| error.text).collect();
        Ok(Some(Written {
            identity: identity(&file.metadata().map_err(FileError::Io)?),
            last_up: header.last_up as f64 + header.last_up_usec as f64 / 1e6,
            refused,
        }))
    }

    /// The arithmetic, then the rows, then the header's changing part.
    fn apply(
        &self,
        worker: &mut Worker,
        file: &dyn DiskFile,
        header: &mut Header,
        job: &Job,
    ) -> Result<(), FileError> {
        let real_ns = self.clock.now().real_ns;
        let how = Update {
            file_name: &job.path,
            template: None,
            skip_past: true,
            now: Now {
                sec: real_ns.div_euclid(1_000_000_000),
                usec: real_ns.rem_euclid(1_000_000_000) / 1000,
            },
            at_time: &|_| Err("an at-style time has no stamp".to_string()),
        };
        let args: Vec<&[u8]> = job.values.iter().collect();
        let mut rows = GatheredRows {
            gathered: &mut worker.gathered,
            file,
            offset: header.size_bytes(),
            cells: header.cell_count(),
        };
        worker.refused.clear();
        let scratch = &mut worker.scratch;
        update_all(scratch, header, &mut rows, &how, &args, &mut worker.refused)
            .map_err(|error| rrd_error(&job.path, &error.text))?;
        let written = worker.gathered.flush(file, header.size_bytes());
        written.map_err(FileError::Io)?;
        worker.live.clear();
        header.encode_live(&mut worker.live);
        let written = file.write_at(&worker.live, header.live_offset());
        written.map_err(FileError::Io)
    }

    fn finish(&self, jobs: Vec<Job>) -> Vec<(u32, Option<FileError>)> {
        let now_ns = self.clock.mono_ns();
        let mut state = self.lock();
        // Without room the ENDs are missing: the files will be written once more after a crash.
        let _full = state.prepare(&*self.clock);
        let mut outcomes = Vec::with_capacity(jobs.len());
        for mut job in jobs {
            let id = job.id;
            if let Some(epoch) = job.started {
                state.cycles[(epoch & 1) as usize] -= 1;
            }
            let error = match job.outcome.take().unwrap_or(Err(FileError::Locked)) {
                Ok(written) => {
                    self.done(&mut state, &job, &written, now_ns);
                    None
                }
                Err(error) => {
                    put_back(&mut state, job, &error, now_ns);
                    Some(error)
                }
            };
            outcomes.push((id, error));
        }
        if state.journal.commit().is_err() {
            state.forget_introductions();
        }
        self.changed.notify_all();
        outcomes
    }

    fn done(&self, state: &mut State, job: &Job, written: &Written, now_ns: u64) {
        state.stats.updates_written += 1;
        state.stats.data_sets_written += (job.values.len() - written.refused.len()) as u64;
        state.stats.values_refused += written.refused.len() as u64;
        for refused in &written.refused {
            state.notice(format!(
                "cannot keep a value: {}",
                DisplayName(refused.as_bytes())
            ));
        }
        let flushed_ns = state.flushed_at(now_ns, self.settings.jitter);
        let (id, upto) = (job.id, job.last);
        let Some(file) = state.files.get_mut(id) else {
            return;
        };
        if file.unique != job.unique {
            return;
        }
        file.busy = false;
        file.taken = None;
        file.redo = None;
        file.gone_since = None;
        file.flushed_ns = flushed_ns;
        file.upto = upto;
        file.identity = Some(written.identity);
        if !written.refused.is_empty() && file.values.is_empty() && !file.forgotten {
            // A stamp from the far future that the file did not take must not refuse all that come.
            file.last = written.last_up;
        }
        let identity = written.identity;
        state.put(id, &Entry::End { id, upto, identity });
    }
}

impl Job {
    /// Whether the journal must be told how the file was, and that is not known yet.
    fn needs_begin(&self, state: &State) -> bool {
        let file = state.files.get(self.id);
        let begun =
            file.is_some_and(|file| file.unique == self.unique && file.begun == state.epoch);
        self.begin.is_none() && (self.edited || self.left.is_none() || !begun)
    }
}

/// The header as a BEGIN has it, if it is this file's; its seasons are gathered.
fn go_back(worker: &mut Worker, header: &Header, begin: &Begin, seen: &Identity) -> Option<Header> {
    let live = header.live_offset() as usize..header.size_bytes() as usize;
    let same = (begin.device, begin.inode) == (seen.device, seen.inode);
    if !same || live.len() != begin.live.len() {
        return None;
    }
    worker.raw[live].copy_from_slice(&begin.live);
    let before = Header::parse(&worker.raw).ok()?;
    let count = before.cell_count();
    if !begin.front.is_empty() {
        worker.gathered.write(0, &vec![UNKNOWN; count as usize]);
    }
    for cells in &begin.cells {
        let end = cells.first.checked_add(cells.bits.len() as u64);
        if end.is_none_or(|end| end > count) {
            return None;
        }
        let values: Vec<f64> = cells
            .bits
            .iter()
            .map(|&bits| f64::from_bits(bits))
            .collect();
        worker.gathered.write(cells.first, &values);
    }
    Some(before)
}

fn fail_all(jobs: &mut [Job], error: &io::Error) {
    for job in jobs.iter_mut().filter(|job| job.outcome.is_none()) {
        let same = match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        };
        job.outcome = Some(Err(FileError::Journal(same)));
    }
}

/// The file was not written: its values wait in front of those that came meanwhile.
fn put_back(state: &mut State, job: Job, error: &FileError, now_ns: u64) {
    let id = job.id;
    if matches!(error, FileError::Locked) {
        state.stats.locks_met += 1;
    }
    let gone = matches!(error, FileError::NoSuchFile);
    let Some(file) = state.files.get_mut(id) else {
        return;
    };
    if file.unique != job.unique {
        return;
    }
    file.busy = false;
    file.taken = None;
    if !file.forgotten {
        file.pending_since = job.pending_since;
        file.values.prepend(&job.values);
    }
    if gone && file.gone_since.is_none() {
        file.gone_since = Some(now_ns);
    }
    if matches!(error, FileError::Io(_)) {
        file.redo = job.redo;
    } else if job.started.is_some() {
        state.put(id, &Entry::NotStarted { id });
    }
}
