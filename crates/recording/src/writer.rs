//! The writer: takes whole records, appends them to one of two tails with one write, syncs,
//! seals full tails into blocks, and keeps the ring within its cap.
//!
//! A record is recorded when `append` returned: the kernel has it, and kill -9 cannot lose it.
//! Trouble with the disk never stops the caller: records are dropped whole and counted, old bytes
//! stay as they are, and writing resumes by itself at a key. The writer has no thread of its own.
//!
//! Here is its face and the way of a record into a tail; below it, a file each: a tail's `slot`,
//! when to `switch`, how tails become `seals`, the `recovery` of what others left, and `trouble`.

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

/// How many blocks of the largest ordinary size a cap must have room for.
const BLOCKS_MIN: u64 = 8;
/// Sequence numbers left free behind a newest block that cannot be read.
const SEQ_LEAP: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// What may be set.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that blocks and tails of the host may take together.
    pub cap_bytes: u64,
    /// Blocks whose last sample is older than this go, even if there is room.
    pub keep: Option<Duration>,
    /// The longest time that a written record waits for its sync; zero: `append` syncs.
    pub sync_interval: Duration,
    /// A tail is sealed when it holds this much, or four times the last key record.
    pub seal_bytes: u64,
    /// A tail is sealed when its first record is this old.
    pub seal_after: Duration,
    /// What a tail takes when it is made.
    pub tail_bytes: u64,
    /// zstd's compression level.
    pub level: i32,
    /// How long to wait after the disk refused something.
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

/// Where to record and what the recording says of itself.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder given by the user.
    pub dir: PathBuf,
    /// The host's name; made safe for a file name.
    pub host: String,
    /// The kernel's boot id; its first eight hex digits count.
    pub boot_id: String,
    /// "key=value" lines for the head of each block and tail.
    pub context: String,
}

/// What the writer did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records recorded.
    pub records: u64,
    /// Writes of records.
    pub appends: u64,
    /// Bytes of records written.
    pub record_bytes: u64,
    /// All bytes written: records, tail headers, zeros, blocks.
    pub bytes_written: u64,
    /// Syncs of tails.
    pub syncs: u64,
    /// Tails sealed into blocks.
    pub seals: u64,
    /// Times that the other tail was taken.
    pub switches: u64,
    /// Tails that grew beyond what they took at first.
    pub tail_growths: u64,
    /// Tails given up after an error and made again.
    pub tail_renewals: u64,
    /// Blocks removed for the cap or for `keep`.
    pub unlinks: u64,
    /// Writes, syncs and seals that failed.
    pub write_errors: u64,
    /// Records dropped because they could not be written, or depend on one that could not.
    pub dropped_records: u64,
    /// Damaged ranges found while sealing.
    pub damages: u64,
}

/// What became of a batch. A dropped record's sequence number in the batch is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// The sequence numbers given out, dropped records' too.
    pub seqs: Range<u64>,
    /// Records that are recorded.
    pub recorded: u32,
    /// Records that are not.
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
    /// Takes the lock and makes the folders: quick, so that the first sample need not wait.
    /// Leftovers of earlier recorders are seen to by [`Writer::recover`].
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        place: Place,
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

    /// Set when the next sample should be a key; whoever makes one takes it back.
    pub fn key_wanted(&self) -> Arc<AtomicBool> {
        self.key_wanted.clone()
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes the messages for people since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// The folder of this boot.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that blocks and tails take now.
    pub fn allocated_bytes(&self) -> u64 {
        let tails: u64 = self.slots.iter().map(|slot| slot.allocated_bytes).sum();
        let stat = |path: &PathBuf| self.disk.metadata(path).ok();
        let leftovers = self.leftovers.iter().filter_map(stat);
        let leftovers: u64 = leftovers.map(|stat| stat.allocated_bytes).sum();
        // The lock file takes a page.
        PAGE + self.ring.bytes + tails + leftovers
    }

    /// Appends a batch of whole records, giving each its sequence number and checksum.
    /// An error means that the batch makes no sense or that recovery failed; trouble with the
    /// disk is counted in the answer instead.
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

    /// Does what is due: syncing, asking for a key by age, trying again after errors.
    /// Returns the monotonic time at which it wants to be called next.
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

    /// Syncs all that was recorded so far, whatever the sync interval.
    pub fn sync_now(&mut self, now: Stamp) {
        self.sync(now, 0);
    }

    /// Replaces the context: recorded now, and put at the head of the blocks to come.
    pub fn set_context(&mut self, lines: &str) -> Result<Appended> {
        let mut batch = Vec::new();
        record::push_context(&mut batch, self.clock.now(), &limited_context(lines));
        self.append(&mut batch)
    }

    /// Syncs, seals what is in the tails and removes them. An error means that a tail stays and
    /// the next recorder will seal it.
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
        // Where the records begin that are not written yet, and where this one does.
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

    /// Whether a record can go into the current tail, whose bytes not yet written, this record
    /// among them, are `run_bytes`.
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
        // The clock's time, not the record's: without pause the clock runs faster.
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

    /// One write for all records of a run.
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
        // The folder above may not be ours to open; then the entry is as safe as it can be.
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
    // Who holds it is said for people; a full disk must not keep the recorder from starting.
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
