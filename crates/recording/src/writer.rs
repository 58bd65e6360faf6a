//! The writer: takes whole records, appends them to one of two tails with one write, syncs,
//! seals full tails into blocks, and keeps the ring within its cap.
//!
//! A record is recorded when `append` returned: the kernel has it, and kill -9 cannot lose it.
//! Trouble with the disk never stops the caller: records are dropped whole and counted, old bytes
//! stay as they are, and writing resumes by itself at a key. The writer has no thread of its own.

use crate::block;
use crate::error::{Error, Result, Tried};
use crate::folder;
use crate::record::{self, RecordType};
use crate::ring::{self, Placed, Ring};
use crate::seal::{self, Sealer};
use crate::tail::{self, TailHeader};
use kymo_sys::clock::{Clock, Stamp};
use kymo_sys::disk::{Disk, DiskFile, OpenMode, is_full};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many blocks of the largest ordinary size a cap must have room for.
const BLOCKS_MIN: u64 = 8;
/// Blocks that `keep` may remove after one seal: a clock that jumped must not empty the ring.
const KEEP_REMOVALS_MAX: usize = 4;
/// Sequence numbers left free behind a newest block that cannot be read.
const SEQ_LEAP: u64 = 1 << 20;
/// A tail never holds more than a reader decodes of one block.
const TAIL_BYTES_MAX: u64 = block::DECODED_MAX - (8 << 20);
const SEAL_BYTES_MAX: u64 = 32 << 20;
/// Failures in a row make the wait longer, up to this many times `retry_after`.
const RETRY_FACTOR_MAX: u64 = 16;
const PAGE: u64 = 4096;
const NOTICES_MAX: usize = 64;

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
    /// Tails given up after an error and made anew.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    Active,
    Unsealed,
}

/// One of the two tails.
struct Slot {
    path: PathBuf,
    file: Option<Box<dyn DiskFile>>,
    state: SlotState,
    /// The file failed a write or a sync: it is never written again.
    distrusted: bool,
    header: Option<TailHeader>,
    used: u64,
    size: u64,
    first_mono_ns: Option<u64>,
}

impl Slot {
    fn new(folder: &Path, name: &str) -> Self {
        Slot {
            path: folder.join(name),
            file: None,
            state: SlotState::Free,
            distrusted: false,
            header: None,
            used: 0,
            size: 0,
            first_mono_ns: None,
        }
    }

    fn epoch(&self) -> u64 {
        self.header.as_ref().map_or(0, |header| header.epoch)
    }

    fn records_offset(&self) -> u64 {
        self.header
            .as_ref()
            .map_or(0, |header| header.records_offset)
    }
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
    unsynced_since_ns: Option<u64>,
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
            unsynced_since_ns: None,
            retry_ns: 0,
            retry_at_ns: 0,
        })
    }

    /// While it is set, every sample should be a key. Only the writer sets and clears it.
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
        let stat = |path: &Path| {
            self.disk
                .metadata(path)
                .map_or(0, |stat| stat.allocated_bytes)
        };
        let tails: u64 = self.slots.iter().map(|slot| stat(&slot.path)).sum();
        let leftovers: u64 = self.leftovers.iter().map(|path| stat(path)).sum();
        // The lock file takes a page.
        PAGE + self.ring.bytes + tails + leftovers
    }

    /// Seals what earlier recorders left, of dead boots too, and finds the next sequence number.
    /// The first `append` or `tick` does it if nobody did.
    pub fn recover(&mut self) -> Result<()> {
        if self.recovered {
            return Ok(());
        }
        let folders = folder::boot_folders_of(&*self.disk, &self.dir, &self.host)?;
        for folder in &folders {
            ring::remove_unfinished(&*self.disk, folder)?;
        }
        self.ring = Ring::load(&*self.disk, &self.dir, &self.host)?;
        if let Some(newest) = self.ring.newest.clone() {
            self.next_seq = block::last_seq(&*self.disk, &newest.path())
                .map_or(newest.name.first_seq.saturating_add(SEQ_LEAP), |last| {
                    last.saturating_add(1)
                });
        }
        self.adopt_tails(&folders)?;
        self.recovered = true;
        let now = self.clock.now();
        self.hold_cap(0).unwrap_or_else(|error| self.notice(&error));
        self.seal_waiting(now);
        Ok(())
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
        if self.options.sync_interval.is_zero() {
            self.sync(now);
        }
        self.seal_waiting(now);
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
        if self.sync_deadline().is_some_and(|at| at <= now.mono_ns) {
            self.sync(now);
        }
        self.seal_waiting(now);
        self.append_events(now);
        self.want_key(now);
        let retry = self.has_waiting().then_some(self.retry_at_ns);
        [self.sync_deadline(), self.age_deadline(), retry]
            .into_iter()
            .flatten()
            .filter(|at| *at > now.mono_ns)
            .min()
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
        self.sync(now);
        if let Some(index) = self.current.take() {
            self.slots[index].state = SlotState::Unsealed;
        }
        let mut result = Ok(());
        for index in self.by_age() {
            let closed = self
                .seal_slot(index, now)
                .and_then(|()| self.remove_tail(index));
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
        let (mut run_start, mut at) = (0, 0);
        while let Some(raw) = record::peek(&batch[at..]) {
            let seq = self.next_seq;
            self.next_seq = seq.saturating_add(1);
            if raw.head.key && self.seal_due((at - run_start) as u64, now.mono_ns) {
                self.flush(&mut batch[run_start..at], now, &mut appended);
                run_start = at;
                self.switch(now, seq);
            }
            if self.current.is_none() && now.mono_ns >= self.retry_at_ns {
                self.begin_tail(now, seq);
            }
            let end = at + raw.length;
            if self.takes(&raw, (end - run_start) as u64) {
                self.prepare(&mut batch[at..end], &raw, seq);
            } else {
                self.flush(&mut batch[run_start..at], now, &mut appended);
                run_start = end;
                self.drop_record(&mut appended);
            }
            at = end;
        }
        self.flush(&mut batch[run_start..at], now, &mut appended);
        appended.seqs = first_seq..self.next_seq;
        appended
    }

    /// Whether a record can go into the current tail, whose bytes not yet written, this record
    /// among them, are `run_bytes`.
    fn takes(&mut self, raw: &record::RawHead, run_bytes: u64) -> bool {
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

    /// Room in the cap for a tail that outgrows its file; the bytes are set aside when written.
    fn grow(&mut self, index: usize, end: u64) -> bool {
        let held = self.disk.metadata(&self.slots[index].path);
        let held = held.map_or(0, |stat| stat.size_bytes);
        let more = end.next_multiple_of(PAGE).saturating_sub(held);
        match self.hold_cap(more) {
            Ok(()) => {
                self.slots[index].size = end.next_multiple_of(PAGE);
                self.counters.tail_growths += 1;
                true
            }
            Err(error) => {
                self.notice(&error);
                false
            }
        }
    }

    fn prepare(&mut self, bytes: &mut [u8], raw: &record::RawHead, seq: u64) {
        // The clock's time, not the record's: without pause the clock runs faster.
        let now_ns = self.clock.now().mono_ns;
        let Some(slot) = self.current.map(|index| &mut self.slots[index]) else {
            return;
        };
        record::seal(bytes, slot.epoch(), seq);
        slot.first_mono_ns.get_or_insert(now_ns);
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

    fn drop_record(&mut self, appended: &mut Appended) {
        appended.dropped += 1;
        self.counters.dropped_records += 1;
        self.need_key = true;
    }

    /// One write for all records of a run.
    fn flush(&mut self, run: &mut [u8], now: Stamp, appended: &mut Appended) {
        let Some(index) = self.current.filter(|_| !run.is_empty()) else {
            return;
        };
        let slot = &mut self.slots[index];
        let written = match &slot.file {
            Some(file) => file.write_at(run, slot.used),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match written {
            Ok(()) => {
                slot.used += run.len() as u64;
                let count = count_records(run);
                appended.recorded += count;
                self.counters.appends += 1;
                self.counters.records += u64::from(count);
                self.counters.record_bytes += run.len() as u64;
                self.counters.bytes_written += run.len() as u64;
                self.unsynced_since_ns.get_or_insert(now.mono_ns);
            }
            Err(cause) => self.give_up_run(index, run, cause, appended),
        }
    }

    fn give_up_run(&mut self, index: usize, run: &mut [u8], cause: io::Error, sum: &mut Appended) {
        for _ in 0..count_records(run) {
            self.drop_record(sum);
        }
        forget_seqs(run);
        self.counters.write_errors += 1;
        let full = is_full(&cause);
        self.notice(&Error::io("write", &self.slots[index].path, cause));
        if !full {
            self.distrust(index);
        }
    }

    /// After a failed write or sync nobody knows what the disk has: what can still be read is
    /// sealed into a block, and the file is made anew before it is used again.
    fn distrust(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.distrusted = true;
        if slot.state == SlotState::Active {
            slot.state = SlotState::Unsealed;
        }
        if self.current == Some(index) {
            self.current = None;
            self.need_key = true;
            self.unsynced_since_ns = None;
        }
        self.counters.tail_renewals += 1;
    }

    /// Puts what went wrong into the recording itself.
    fn append_events(&mut self, now: Stamp) {
        // While a key is missing the disk may still be full: an event would only be one more loss.
        if self.events.is_empty() || self.current.is_none() || self.need_key {
            return;
        }
        let mut batch = Vec::new();
        for line in std::mem::take(&mut self.events) {
            record::push_event(&mut batch, now, &line);
        }
        self.append_records(&mut batch, now);
    }

    fn notice(&mut self, error: &Error) {
        let line = error.to_string();
        if self.notices.len() < NOTICES_MAX && self.notices.last() != Some(&line) {
            self.notices.push(line.clone());
        }
        if self.events.len() < NOTICES_MAX && !self.events.contains(&line) {
            self.events.push(line);
        }
    }

    // ---- tails

    fn seal_threshold(&self) -> u64 {
        let wanted = self.options.seal_bytes.max(4 * self.last_key_bytes);
        let wanted = wanted.min(SEAL_BYTES_MAX);
        wanted.min(self.options.cap_bytes / BLOCKS_MIN)
    }

    /// Two tails of this size and the block being made of one fit into the cap.
    fn tail_bytes_max(&self) -> u64 {
        (self.options.cap_bytes / 4).min(TAIL_BYTES_MAX)
    }

    fn seal_due(&self, run_bytes: u64, now_mono_ns: u64) -> bool {
        let Some(slot) = self.current.map(|index| &self.slots[index]) else {
            return false;
        };
        let held = slot.used - slot.records_offset() + run_bytes;
        let age_ns = slot
            .first_mono_ns
            .map_or(0, |first| now_mono_ns.saturating_sub(first));
        held > self.seal_threshold() || age_ns >= nanoseconds(self.options.seal_after)
    }

    fn want_key(&mut self, now: Stamp) {
        if self.need_key || self.seal_due(0, now.mono_ns) && self.can_switch(now) {
            self.key_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Keys are large: none is asked for while there is nowhere to go with it.
    fn can_switch(&self, now: Stamp) -> bool {
        let unsealed = |slot: &Slot| slot.state == SlotState::Unsealed;
        now.mono_ns >= self.retry_at_ns && !self.slots.iter().any(unsealed)
    }

    fn age_deadline(&self) -> Option<u64> {
        let slot = &self.slots[self.current?];
        Some(slot.first_mono_ns? + nanoseconds(self.options.seal_after))
    }

    /// Goes over to the other tail if that is possible; else the current one grows.
    fn switch(&mut self, now: Stamp, first_seq: u64) {
        let Some(old) = self.current else {
            return;
        };
        let other = 1 - old;
        if self.slots[other].state == SlotState::Unsealed && !self.try_seal(other, now) {
            return;
        }
        // The old tail must be as safe as the sync interval promises if sealing it fails.
        self.sync(now);
        if now.mono_ns >= self.retry_at_ns && self.try_begin(other, now, first_seq) {
            if self.slots[old].state == SlotState::Active {
                self.slots[old].state = SlotState::Unsealed;
            }
            self.counters.switches += 1;
        }
    }

    /// Takes a tail when there is none in use.
    fn begin_tail(&mut self, now: Stamp, first_seq: u64) {
        for index in 0..self.slots.len() {
            let free = self.slots[index].state == SlotState::Free;
            if free && self.try_begin(index, now, first_seq) {
                return;
            }
        }
        for index in self.by_age() {
            let sealed =
                self.slots[index].state == SlotState::Unsealed && self.try_seal(index, now);
            if sealed && self.try_begin(index, now, first_seq) {
                return;
            }
        }
    }

    fn try_begin(&mut self, index: usize, now: Stamp, first_seq: u64) -> bool {
        match self.begin(index, now, first_seq) {
            Ok(()) => true,
            Err(error) => {
                if !error.is_full() {
                    self.slots[index].distrusted = true;
                    let _tried_again_at_next_use = self.remove_tail(index);
                }
                self.failed(&error, now);
                false
            }
        }
    }

    fn failed(&mut self, error: &Error, now: Stamp) {
        self.counters.write_errors += 1;
        let least_ns = nanoseconds(self.options.retry_after);
        self.retry_ns = (2 * self.retry_ns).clamp(least_ns, RETRY_FACTOR_MAX * least_ns);
        self.retry_at_ns = now.mono_ns + self.retry_ns;
        self.notice(error);
    }

    /// The header is on the disk before any record is written: an epoch is never used twice.
    fn begin(&mut self, index: usize, now: Stamp, first_seq: u64) -> Result<()> {
        let start = tail::records_offset(self.context.len());
        self.provide_file(index, self.options.tail_bytes.max(start + PAGE))?;
        let epoch = self
            .last_epoch
            .saturating_add(1)
            .max(now.real_ns.max(0) as u64);
        self.last_epoch = epoch;
        let header = TailHeader::new(epoch, first_seq, now, &self.context);
        let bytes = header.encode();
        let slot = &mut self.slots[index];
        if let Some(file) = &slot.file {
            file.write_at(&bytes, 0).tried("write", &slot.path)?;
            file.sync_data().tried("sync", &slot.path)?;
        }
        self.counters.bytes_written += bytes.len() as u64;
        slot.header = Some(header);
        slot.used = start;
        slot.first_mono_ns = None;
        slot.state = SlotState::Active;
        self.retry_ns = 0;
        self.current = Some(index);
        Ok(())
    }

    fn provide_file(&mut self, index: usize, size: u64) -> Result<()> {
        if self.slots[index].distrusted {
            self.remove_tail(index)?;
        }
        let held = self.disk.metadata(&self.slots[index].path).ok();
        let missing = size.saturating_sub(held.map_or(0, |stat| stat.size_bytes));
        if missing > 0 {
            self.hold_cap(missing.next_multiple_of(PAGE))?;
        }
        let slot = &mut self.slots[index];
        if slot.file.is_none() {
            let file = self.disk.open(&slot.path, OpenMode::Create);
            slot.file = Some(file.tried("open", &slot.path)?);
            self.disk
                .sync_dir(&self.folder)
                .tried("sync", &self.folder)?;
        }
        let Some(file) = &slot.file else {
            return Ok(());
        };
        let from = file.metadata().tried("stat", &slot.path)?.size_bytes;
        fill_with_zeros(&**file, from, size).tried("fill", &slot.path)?;
        self.counters.bytes_written += size.saturating_sub(from);
        slot.size = size.max(from);
        Ok(())
    }

    fn remove_tail(&mut self, index: usize) -> Result<()> {
        let slot = &mut self.slots[index];
        slot.file = None;
        match self.disk.unlink(&slot.path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &slot.path, cause))
            }
            _ => {
                slot.distrusted = false;
                Ok(())
            }
        }
    }

    // ---- syncing

    fn sync_deadline(&self) -> Option<u64> {
        Some(self.unsynced_since_ns? + nanoseconds(self.options.sync_interval))
    }

    fn sync(&mut self, now: Stamp) {
        let Some(index) = self.current.filter(|_| self.unsynced_since_ns.is_some()) else {
            return;
        };
        self.counters.syncs += 1;
        let slot = &self.slots[index];
        let synced = match &slot.file {
            Some(file) => file.sync_data().tried("sync", &slot.path),
            None => Ok(()),
        };
        match synced {
            Ok(()) => self.unsynced_since_ns = None,
            Err(error) => {
                self.failed(&error, now);
                self.distrust(index);
                // A fresh file may work at once: what is asked for is a key, not patience.
                self.retry_at_ns = now.mono_ns;
            }
        }
    }

    // ---- sealing

    fn has_waiting(&self) -> bool {
        let unsealed = |slot: &Slot| slot.state == SlotState::Unsealed;
        !self.leftovers.is_empty() || self.slots.iter().any(unsealed) || self.current.is_none()
    }

    /// Seals every tail that is full, and those of dead boots.
    fn seal_waiting(&mut self, now: Stamp) {
        if now.mono_ns < self.retry_at_ns {
            return;
        }
        if let Err(error) = self.seal_leftovers() {
            return self.failed(&error, now);
        }
        for index in self.by_age() {
            if self.slots[index].state == SlotState::Unsealed && !self.try_seal(index, now) {
                return;
            }
        }
    }

    /// The slots, the one with the older records first: blocks are made in the order of sequence
    /// numbers, which is what readers tell a sealed tail by.
    fn by_age(&self) -> [usize; 2] {
        let first = |index: usize| {
            self.slots[index]
                .header
                .as_ref()
                .map(|header| header.first_seq)
        };
        if first(1) < first(0) { [1, 0] } else { [0, 1] }
    }

    fn seal_leftovers(&mut self) -> Result<()> {
        while let Some(path) = self.leftovers.first().cloned() {
            self.seal_leftover(&path)?;
            self.leftovers.remove(0);
        }
        Ok(())
    }

    fn try_seal(&mut self, index: usize, now: Stamp) -> bool {
        let sealed = self.seal_leftovers();
        match sealed.and_then(|()| self.seal_slot(index, now)) {
            Ok(()) => true,
            Err(error) => {
                self.failed(&error, now);
                false
            }
        }
    }

    fn seal_slot(&mut self, index: usize, now: Stamp) -> Result<()> {
        let slot = &mut self.slots[index];
        if slot.state != SlotState::Unsealed {
            return Ok(());
        }
        if let (Some(file), Some(header)) = (slot.file.take(), slot.header.take()) {
            let used = slot.used;
            let folder = self.folder.clone();
            let sealed = self.seal_file(&*file, &header, used, &folder);
            let slot = &mut self.slots[index];
            slot.file = Some(file);
            slot.header = Some(header);
            sealed?;
        }
        self.slots[index].state = SlotState::Free;
        self.retry_ns = 0;
        self.shrink(index);
        self.apply_keep(now);
        Ok(())
    }

    /// A tail that grew gives the bytes back; one that is not trusted goes altogether.
    fn shrink(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.distrusted {
            let _tried_again_at_next_use = self.remove_tail(index);
        } else if slot.size > self.options.tail_bytes
            && let Some(file) = &slot.file
            && file.set_len(self.options.tail_bytes).is_ok()
        {
            slot.size = self.options.tail_bytes;
        }
    }

    fn seal_file(
        &mut self,
        file: &dyn DiskFile,
        header: &TailHeader,
        end: u64,
        folder: &Path,
    ) -> Result<()> {
        let scan = seal::scan(file, header, end);
        self.counters.damages += scan.damages;
        if scan.records == 0 {
            return Ok(());
        }
        self.hold_cap(scan.block_bytes_max().next_multiple_of(PAGE))?;
        let sealer = match &mut self.sealer {
            Some(sealer) => sealer,
            none => {
                let made = Sealer::new(self.options.level);
                none.insert(made.map_err(|cause| Error::damaged(folder, cause))?)
            }
        };
        let sealed = sealer.seal(
            &*self.disk,
            folder,
            &seal::Tail {
                file,
                header,
                scan: &scan,
            },
        )?;
        self.counters.seals += 1;
        self.counters.bytes_written += sealed.bytes;
        let placed = Placed {
            folder: folder.into(),
            name: sealed.name,
        };
        self.ring.add(placed, sealed.allocated_bytes);
        Ok(())
    }

    // ---- what earlier recorders left

    fn adopt_tails(&mut self, folders: &[PathBuf]) -> Result<()> {
        let mut found = Vec::new();
        for folder in folders {
            for name in tail::NAMES {
                let path = folder.join(name);
                if let Some(header) = self.look_at_tail(&path)? {
                    found.push((header, path));
                } else if *folder != self.folder {
                    self.remove_leftover(&path)?;
                }
            }
        }
        found.sort_by_key(|(header, _)| header.first_seq);
        for (header, path) in found {
            match self.slots.iter().position(|slot| slot.path == path) {
                Some(index) => self.adopt_slot(index, header)?,
                None => self.leftovers.push(path),
            }
        }
        Ok(())
    }

    /// A tail of this boot, left by a recorder that was killed.
    fn adopt_slot(&mut self, index: usize, header: TailHeader) -> Result<()> {
        let slot = &mut self.slots[index];
        let file = self.disk.open(&slot.path, OpenMode::Write);
        let file = file.tried("open", &slot.path)?;
        slot.size = file.metadata().tried("stat", &slot.path)?.size_bytes;
        slot.used = slot.size;
        slot.file = Some(file);
        slot.header = Some(header);
        slot.state = SlotState::Unsealed;
        Ok(())
    }

    /// The header of a tail with records that are in no block yet; sequence numbers and epochs go
    /// on behind it.
    fn look_at_tail(&mut self, path: &Path) -> Result<Option<TailHeader>> {
        let file = match self.disk.open(path, OpenMode::Read) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.tried("open", path)?,
        };
        let Ok(header) = TailHeader::read(&*file).tried("read", path)? else {
            return Ok(None);
        };
        self.last_epoch = self.last_epoch.max(header.epoch);
        let size = file.metadata().tried("stat", path)?.size_bytes;
        let scan = seal::scan(&*file, &header, size);
        if scan.records == 0 {
            return Ok(None);
        }
        self.next_seq = self.next_seq.max(scan.last_seq.saturating_add(1));
        let folder = path.parent().unwrap_or(&self.folder);
        let sealed = is_sealed(&*self.disk, folder, scan.first_seq, scan.last_seq)?;
        Ok((!sealed).then_some(header))
    }

    fn seal_leftover(&mut self, path: &Path) -> Result<()> {
        let file = self.disk.open(path, OpenMode::Write).tried("open", path)?;
        let folder = path.parent().unwrap_or(&self.folder).to_path_buf();
        if let Ok(header) = TailHeader::read(&*file).tried("read", path)? {
            let size = file.metadata().tried("stat", path)?.size_bytes;
            self.seal_file(&*file, &header, size, &folder)?;
        }
        match folder == self.folder {
            true => Ok(()),
            false => self.remove_leftover(path),
        }
    }

    fn remove_leftover(&mut self, path: &Path) -> Result<()> {
        match self.disk.unlink(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", path, cause));
            }
            _ => {}
        }
        if let Some(folder) = path.parent() {
            let _not_empty = self.disk.rmdir(folder);
        }
        Ok(())
    }

    // ---- the ring's limits

    /// Removes the oldest blocks until `more` bytes fit into the cap.
    fn hold_cap(&mut self, more: u64) -> Result<()> {
        while self.allocated_bytes() + more > self.options.cap_bytes {
            if !self.ring.remove_oldest(&*self.disk, &self.folder)? {
                return Err(Error::CapUsedUp {
                    bytes: more,
                    cap_bytes: self.options.cap_bytes,
                });
            }
            self.counters.unlinks += 1;
        }
        Ok(())
    }

    /// Removes blocks that are older than `keep`. Now is the wall time at `open` and what passed
    /// since, so that a step of the clock removes nothing.
    fn apply_keep(&mut self, now: Stamp) {
        let Some(keep) = self.options.keep else {
            return;
        };
        let passed_ns = now.boot_ns.saturating_sub(self.opened.boot_ns);
        let now_s = self.opened.real_ns.saturating_add_unsigned(passed_ns) / 1_000_000_000;
        let limit_s = (now_s.max(0) as u64).saturating_sub(keep.as_secs());
        for _ in 0..KEEP_REMOVALS_MAX {
            match self.ring.oldest(&*self.disk) {
                Ok(Some(oldest)) if oldest.name.wall_max_s < limit_s => {}
                _ => return,
            }
            match self.ring.remove_oldest(&*self.disk, &self.folder) {
                Ok(_) => self.counters.unlinks += 1,
                Err(error) => return self.notice(&error),
            }
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

fn count_records(run: &[u8]) -> u32 {
    let (mut count, mut at) = (0, 0);
    while let Some(raw) = record::peek(&run[at..]) {
        count += 1;
        at += raw.length;
    }
    count
}

fn forget_seqs(run: &mut [u8]) {
    let mut at = 0;
    while let Some(raw) = record::peek(&run[at..]) {
        run[at + 8..at + 16].fill(0);
        at += raw.length;
    }
}

fn fill_with_zeros(file: &dyn DiskFile, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; tail::PIECE];
    let mut at = from;
    while at < to {
        let piece = zeros.len().min((to - at) as usize);
        file.write_at(&zeros[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

/// Whether a block of `folder` holds the records from `first_seq` to `last_seq`.
fn is_sealed(disk: &dyn Disk, folder: &Path, first_seq: u64, last_seq: u64) -> Result<bool> {
    let mut same = None;
    folder::blocks(disk, folder, &mut |name| {
        if name.first_seq == first_seq {
            same = Some(name);
        }
    })?;
    let last = same.and_then(|name| block::last_seq(disk, &folder.join(name.format())));
    Ok(last.is_some_and(|last| last >= last_seq))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
