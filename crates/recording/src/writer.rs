//! The writer: appends whole records to one of two tails with one write a batch, syncs, seals
//! full tails into blocks, and keeps the ring within its size limit.
//!
//! A record counts as recorded when `append` returns: the kernel has its bytes, so kill -9 cannot
//! lose it. An error of the disk never stops the caller: whole records are dropped and counted,
//! earlier bytes stay as they are, and writing resumes at a key without the caller's help. The
//! writer has no thread of its own.
//!
//! This file has the public functions and the path of a record into a tail. The submodules are:
//! `slot`, one tail; `switch`, the change to the other tail; `seals`, syncing and sealing;
//! `recovery` of the tails that earlier recorders left; `trouble`, errors of the disk.

mod recovery;
mod seals;
mod slot;
mod switch;
mod trouble;

use crate::error::{Error, Result, Tried};
use crate::folder;
use crate::record::{self, RawHead, RecordType};
use crate::ring::Ring;
use crate::seal::Sealer;
use crate::tail;
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::{Disk, DiskFile, OpenMode};
use slot::{Slot, SlotState};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Number of blocks of the largest ordinary size that the size limit must allow.
const BLOCKS_MIN: u64 = 8;
/// Sequence numbers left unused after a newest block that is unreadable.
const SEQ_LEAP: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// Options of a writer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Size limit of all blocks and tails of the host, in bytes.
    pub cap_bytes: u64,
    /// Age of a block's last sample at which the block is removed even if there is space.
    pub keep: Option<Duration>,
    /// The longest time that a written record waits for its sync; with zero, `append` syncs.
    pub sync_interval: Duration,
    /// Size at which a tail is sealed, unless four times the last key record is more, in bytes.
    pub seal_bytes: u64,
    /// Age of a tail's first record at which the tail is sealed.
    pub seal_after: Duration,
    /// Initial size of a tail, in bytes.
    pub tail_bytes: u64,
    /// Compression level of zstd.
    pub level: i32,
    /// Pause before the next attempt after an error of the disk.
    pub retry_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cap_bytes: 1 << 30,
            keep: None,
            sync_interval: Duration::from_secs(5),
            seal_bytes: 1 << 20,
            seal_after: Duration::from_secs(900),
            tail_bytes: 1 << 20,
            level: 1,
            retry_after: Duration::from_secs(1),
        }
    }
}

/// Destination of a recording, and the facts stored with it.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The recording folder.
    pub dir: PathBuf,
    /// The host's name; characters unsuitable for a file name are replaced.
    pub host: String,
    /// The kernel's boot id, of which the first eight hex digits are used.
    pub boot_id: String,
    /// "key=value" lines that are stored at the head of each block and tail.
    pub context: String,
}

/// Counters of a writer since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Recorded records.
    pub records: u64,
    /// Writes of records.
    pub appends: u64,
    /// Bytes of written records.
    pub record_bytes: u64,
    /// All written bytes: records, tail headers, zeros, blocks.
    pub bytes_written: u64,
    /// Syncs of tails.
    pub syncs: u64,
    /// Tails sealed into blocks.
    pub seals: u64,
    /// Switches to the other tail.
    pub switches: u64,
    /// Times that a tail grew beyond its initial size.
    pub tail_growths: u64,
    /// Tails given up after an error and created again.
    pub tail_renewals: u64,
    /// Blocks removed for the size limit or for `keep`.
    pub unlinks: u64,
    /// Failed writes, syncs and seals.
    pub write_errors: u64,
    /// Records dropped because the write failed, or because they depend on a dropped record.
    pub dropped_records: u64,
    /// Damaged ranges found while sealing.
    pub damages: u64,
}

/// Result of appending a batch. In the batch, dropped records have the sequence number 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// The assigned sequence numbers, including those of dropped records.
    pub seqs: Range<u64>,
    /// Number of recorded records.
    pub recorded: u32,
    /// Number of dropped records.
    pub dropped: u32,
}

/// Writes one host's recording.
pub struct Writer {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: Options,
    dir: PathBuf,
    host: String,
    folder: PathBuf,
    context: String,
    opened: Stamp,
    _lock: Box<dyn DiskFile>,
    key_wanted: Arc<AtomicBool>,
    counters: Counters,
    notices: Vec<String>,
    events: Vec<String>,
    slots: [Slot; 2],
    current: Option<usize>,
    ring: Ring,
    sealer: Option<Sealer>,
    leftovers: Vec<PathBuf>,
    recovered: bool,
    need_key: bool,
    next_seq: u64,
    last_epoch: u64,
    last_key_bytes: u64,
    retry_ns: u64,
    retry_at_ns: u64,
}

impl Writer {
    /// Takes the lock and creates the folders; this is quick, so that the first sample need not
    /// wait. [`Writer::recover`] handles the files of earlier recorders.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        place: Destination,
        options: Options,
    ) -> Result<Self> {
        check_cap(&options)?;
        let host = folder::safe_host(&place.host);
        let folder = folder::boot_folder(&place.dir, &host, &place.boot_id);
        make_folder(&*disk, &place.dir, &folder)?;
        let lock = take_lock(&*disk, &place.dir.join(format!("{host}.lock")))?;
        let opened = clock.now();
        let slots = tail::NAMES.map(|name| Slot::new(&folder, name));
        Ok(Writer {
            disk,
            clock,
            options,
            dir: place.dir,
            host,
            folder,
            context: limited_context(&place.context),
            opened,
            _lock: lock,
            key_wanted: Arc::new(AtomicBool::new(true)),
            counters: Counters::default(),
            notices: Vec::new(),
            events: Vec::new(),
            slots,
            current: None,
            ring: Ring::default(),
            sealer: None,
            leftovers: Vec::new(),
            recovered: false,
            need_key: true,
            next_seq: 1,
            last_epoch: 0,
            last_key_bytes: 0,
            retry_ns: 0,
            retry_at_ns: 0,
        })
    }

    /// A flag that asks the sampler for a key as its next sample; the sampler clears it.
    pub fn key_wanted(&self) -> Arc<AtomicBool> {
        self.key_wanted.clone()
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns true if no tail has records that wait for a sync: each tail is synced when its own oldest record is due.
    pub fn is_synced(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.all(|slot| slot.unsynced_since_ns.is_none())
    }

    /// Removes and returns the messages for users since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// The folder of the current boot.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that the blocks, tails and the lock file occupy now.
    pub fn allocated_bytes(&self) -> u64 {
        let tails: u64 = self.slots.iter().map(|slot| slot.allocated_bytes).sum();
        let stat = |path: &PathBuf| self.disk.metadata(path).ok();
        let leftovers = self.leftovers.iter().filter_map(stat);
        let leftovers: u64 = leftovers.map(|stat| stat.allocated_bytes).sum();
        // The lock file occupies one page.
        PAGE + self.ring.bytes + tails + leftovers
    }

    /// Appends a batch of whole records and gives each its sequence number
    /// and checksum. Fails if the batch is malformed or recovery fails; an
    /// error of the disk shows up only as dropped records in the result.
    pub fn append(&mut self, batch: &mut [u8]) -> Result<Appended> {
        self.recover()?;
        check_batch(batch)?;
        let now = self.clock.now();
        let appended = self.append_records(batch, now);
        self.append_events(now);
        self.seal_waiting(now);
        if self.options.sync_interval.is_zero() {
            self.sync(now, 0);
        }
        self.want_key(now);
        Ok(appended)
    }

    /// Does the work that is due: syncing, requesting a key by age, retries after errors. Returns
    /// the monotonic time at which the next call is due.
    pub fn tick(&mut self, now: Stamp) -> Option<u64> {
        if let Err(error) = self.recover() {
            self.notice(&error);
            return Some(now.mono_ns + nanoseconds(self.options.retry_after));
        }
        self.seal_waiting(now);
        self.sync(now, nanoseconds(self.options.sync_interval));
        self.append_events(now);
        self.want_key(now);
        let retry = self.has_waiting().then_some(self.retry_at_ns);
        [self.sync_deadline(), self.age_deadline(), retry]
            .into_iter()
            .flatten()
            .filter(|at| *at > now.mono_ns)
            .min()
    }

    /// Syncs all recorded records now, whatever the sync interval.
    pub fn sync_now(&mut self, now: Stamp) {
        self.sync(now, 0);
    }

    /// Replaces the context: records it now and stores it at the head of later blocks.
    pub fn set_context(&mut self, lines: &str) -> Result<Appended> {
        let mut batch = Vec::new();
        record::push_context(&mut batch, self.clock.now(), &limited_context(lines));
        self.append(&mut batch)
    }

    /// Syncs, seals the tails and removes them. After an error
    /// a tail may stay, which the next recorder will seal.
    pub fn close(mut self) -> Result<Counters> {
        self.recover()?;
        let now = self.clock.now();
        self.sync(now, 0);
        if let Some(index) = self.current.take() {
            self.slots[index].state = SlotState::Unsealed;
        }
        let mut result = Ok(());
        for index in self.by_age() {
            let closed = self
                .seal_slot(index, now)
                .and_then(|()| self.slots[index].remove(&*self.disk));
            result = result.and(closed);
        }
        self.disk
            .sync_dir(&self.folder)
            .tried("sync", &self.folder)?;
        result.map(|()| self.counters)
    }

    // ---- appending

    fn append_records(&mut self, batch: &mut [u8], now: Stamp) -> Appended {
        let first_seq = self.next_seq;
        let mut appended = Appended::default();
        // `run` is the start of the records that are not
        // written yet, `at` the start of the current one.
        let (mut run, mut at) = (0, 0);
        while let Some(raw) = record::peek(&batch[at..]) {
            let seq = self.next_seq;
            self.next_seq = seq.saturating_add(1);
            if raw.head.key && self.seal_due((at - run) as u64, now.mono_ns) {
                self.flush(&mut batch[run..at], now, &mut appended);
                run = at;
                self.switch(now, seq);
            }
            if self.current.is_none() && now.mono_ns >= self.retry_at_ns {
                self.begin_tail(now, seq);
            }
            let end = at + raw.length;
            if self.takes(&raw, (end - run) as u64) {
                self.prepare(&mut batch[at..end], &raw, seq, now);
                appended.recorded += 1;
            } else {
                self.flush(&mut batch[run..at], now, &mut appended);
                run = end;
                self.drop_records(1, &mut appended);
            }
            at = end;
        }
        self.flush(&mut batch[run..at], now, &mut appended);
        self.counters.records += u64::from(appended.recorded);
        appended.seqs = first_seq..self.next_seq;
        appended
    }

    /// Returns true if the current tail has room for a record, growing the tail if needed;
    /// `run_bytes` is the length of the unwritten records including this one.
    fn takes(&mut self, raw: &RawHead, run_bytes: u64) -> bool {
        let Some(index) = self.current else {
            return false;
        };
        let depends = raw.head.record_type == RecordType::Sample && !raw.head.key;
        let end = self.slots[index].used + run_bytes;
        if depends && self.need_key || end > self.tail_bytes_max() {
            return false;
        }
        end <= self.slots[index].size || self.grow(index, end)
    }

    fn prepare(&mut self, bytes: &mut [u8], raw: &RawHead, seq: u64, now: Stamp) {
        let Some(slot) = self.current.map(|index| &mut self.slots[index]) else {
            return;
        };
        record::seal(bytes, slot.epoch(), seq);
        // The writer's clock, since stamps of a recorder without pause may run faster.
        slot.first_mono_ns.get_or_insert(now.mono_ns);
        if raw.head.key {
            self.need_key = false;
            self.last_key_bytes = bytes.len() as u64;
            self.key_wanted.store(false, Ordering::Relaxed);
        }
        if raw.head.record_type == RecordType::Context
            && let Ok(record) = record::parse(bytes, slot.epoch())
        {
            self.context = record.text().into_owned();
        }
    }

    /// Writes all records of a run with one write.
    fn flush(&mut self, run: &mut [u8], now: Stamp, appended: &mut Appended) {
        let Some(index) = self.current.filter(|_| !run.is_empty()) else {
            return;
        };
        match self.slots[index].write(run, now.mono_ns) {
            Ok(()) => {
                self.counters.appends += 1;
                self.counters.record_bytes += run.len() as u64;
                self.counters.bytes_written += run.len() as u64;
            }
            Err(cause) => self.give_up_run(index, run, cause, appended),
        }
    }
}

fn check_cap(options: &Options) -> Result<()> {
    let block_bytes = options.seal_bytes.max(options.tail_bytes);
    let least_bytes = BLOCKS_MIN * block_bytes;
    match options.cap_bytes < least_bytes {
        true => Err(Error::CapTooSmall {
            cap_bytes: options.cap_bytes,
            least_bytes,
        }),
        false => Ok(()),
    }
}

fn make_folder(disk: &dyn Disk, dir: &Path, folder: &Path) -> Result<()> {
    disk.create_dir_all(folder).tried("make", folder)?;
    disk.sync_dir(dir).tried("sync", dir)?;
    match dir.parent() {
        // The process may lack permission to open the
        // parent folder; its entry then stays unsynced.
        Some(above) if !above.as_os_str().is_empty() => match disk.sync_dir(above) {
            Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => Ok(()),
            synced => synced.tried("sync", above),
        },
        _ => Ok(()),
    }
}

fn take_lock(disk: &dyn Disk, path: &Path) -> Result<Box<dyn DiskFile>> {
    let lock = disk.open(path, OpenMode::Create).tried("open", path)?;
    if !lock.try_lock().tried("lock", path)? {
        let mut holder = [0; 20];
        let length = lock.read_at(&mut holder, 0).unwrap_or(0);
        let holder = String::from_utf8_lossy(&holder[..length]);
        return Err(Error::Locked {
            path: path.into(),
            holder: holder.trim().to_string(),
        });
    }
    // The process number is only for users, so a full disk must not prevent the start.
    let line = format!("{:<19}\n", std::process::id());
    let _only_for_people = lock.write_at(line.as_bytes(), 0);
    Ok(lock)
}

fn limited_context(lines: &str) -> String {
    let mut end = lines.len().min(tail::CONTEXT_MAX);
    while !lines.is_char_boundary(end) {
        end -= 1;
    }
    lines[..end].to_string()
}

fn check_batch(batch: &[u8]) -> Result<()> {
    let mut offset = 0;
    while offset < batch.len() {
        match record::whole_len(&batch[offset..]) {
            Some(length) => offset += length,
            None => return Err(Error::BadBatch { offset }),
        }
    }
    Ok(())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
