//! `kymo record`: the sampler's records go to the writer, which writes them to the disk and, on
//! request, passes them to a view.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_base::limits;
use kymo_kernel::sampler::PAUSELESS_SAMPLE_NS;
use kymo_recording::beat::Control;
use kymo_recording::folder::boot_folder;
use kymo_recording::queue::{Queue, Taken};
use kymo_recording::record;
use kymo_recording::writer::{Counters, Destination, Options, Writer};
use kymo_sys::clock::{Clock, RealClock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::machine::{self, Signals};
use kymo_sys::privilege;
use kymo_sys::sure_folder;
use kymo_sys::talk;

use crate::options::{RecordOptions, ViewOptions, size_words};
use crate::output::show;
use crate::process::notices::{Notices, put_line};
use crate::recorder::cost::{self, RunCost};
use crate::recorder::session::{self, MachineFacts, Session, Setup, spawn, wait_for_end};

/// Duration of a read after which the watchdog reports it.
const WATCHDOG_NS: u64 = 100_000_000;
/// Without pause between samples: time that the writer lets samples gather, to write them with one
/// call.
const GATHER: Duration = Duration::from_millis(5);
/// Without pause between samples: samples per write, so that syncs and seals come as often as in
/// time.
const GATHERED_SAMPLES: u64 = 60;

/// Runs the command; with `view`, also shows the records.
pub(crate) fn run(options: &RecordOptions, view: Option<&ViewOptions>) -> Result<ExitCode> {
    talk::never_wait();
    machine::forget_start();
    let signals = Signals::block();
    let mut setup = Setup::new(options, view)?;
    setup.schedule.announced = true;
    let activity = options.activity_fd.map(privilege::inherited).transpose();
    let activity = activity.context("cannot read the pipe of the keeper")?;
    setup.plan.activity = activity.map(Arc::new);
    if let Some(view) = view {
        super::live::check(
            &show::beside_recording(&setup.letters, view),
            view,
            super::live::plot_dir(options, view),
        )?;
    }
    confine(options)?;
    let start = Instant::now();
    let clock = Arc::new(RunClock::new(setup.schedule.interval.is_zero()));
    let writer = open_writer(options, &setup, clock.clone())?;
    let session = Session::start(&setup, writer.key_wanted())?;
    let tee = view.map(|_| Arc::new(Queue::default()));
    let drain = Drain {
        writer,
        queue: session.queue.clone(),
        control: session.control.clone(),
        tee: tee.clone(),
        tee_lost: false,
        interval: setup.schedule.interval,
        ack_fd: options.ack_fd,
        facts: setup.facts.clone(),
        recorded_facts: setup.context.text(),
        clock,
        cost: options.cost.then(RunCost::default),
        notices: Notices::default(),
        dropped: 0,
        dropping: false,
        loss_said: false,
        overflowed: 0,
        capability_named: false,
    };
    let writer = spawn("writer", move || drain.run())?;
    let (stop, flush) = (session.stopper(), session.flusher());
    let shown = match (view, tee) {
        (Some(view), Some(tee)) => {
            spawn("signals", move || wait_for_end(&signals, &stop, &flush))?;
            session::say_waiting(&setup, options.familiar.quiet);
            let letters = show::beside_recording(&setup.letters, view);
            let to = (super::live::plot_dir(options, view), None);
            let refresh = Box::new(|| None);
            let shown = super::live::show(&setup, (&letters, view), to, (tee, refresh), None);
            (session.stopper())();
            shown
        }
        _ => {
            wait_for_end(&signals, &stop, &flush);
            Ok(())
        }
    };
    let control = session.control.clone();
    session.join();
    let (counters, dropped, run) = writer
        .join()
        .map_err(|_| anyhow::anyhow!("cannot go on recording: the writer failed"))??;
    if let Some(run) = run {
        cost::print(&run, &control, &counters, dropped, start.elapsed())?;
    }
    shown.map(|()| ExitCode::SUCCESS)
}

#[cfg(not(feature = "serve"))]
fn confine(_: &RecordOptions) -> Result<()> {
    Ok(())
}

/// Gives up rights that a recorder of kymo serve does not need, while there is one thread.
#[cfg(feature = "serve")]
fn confine(options: &RecordOptions) -> Result<()> {
    if !options.confined {
        return Ok(());
    }
    // Now, because the sandbox forbids raising a limit.
    machine::raise_open_files();
    let own = privilege::State::of(std::process::id()).context("cannot read /proc/self/status")?;
    let calls = crate::process::sandbox::Process::Recorder.confine();
    let words = own.words();
    crate::process::notices::put_line(format_args!("recorder: {words}, {calls}"));
    Ok(())
}

fn open_writer(options: &RecordOptions, setup: &Setup, clock: Arc<RunClock>) -> Result<Writer> {
    let usage = anyhow::Error::msg;
    let dir = options
        .dir
        .clone()
        .context("cannot record: no folder is given; use -f DIR")?;
    let mut writing = Options {
        keep: options.keep_ns().map_err(usage)?.map(Duration::from_nanos),
        sync_interval: Duration::from_nanos(options.sync_ns().map_err(usage)?),
        ..Options::default()
    };
    let disk = Arc::new(RealDisk);
    writing.cap_bytes = match options.cap_bytes().map_err(usage)? {
        Some(bytes) => bytes,
        None => {
            let cap = DefaultCap::of(&dir);
            if let Some(words) = cap.words() {
                put_line(format_args!("recordings in {} take {words}", dir.display()));
            }
            cap.bytes
        }
    };
    let block_bytes = match options.seal_bytes().map_err(usage)? {
        Some(bytes) => bytes,
        None => block_bytes(writing.cap_bytes),
    };
    writing.seal_bytes = block_bytes;
    writing.tail_bytes = block_bytes;
    let place = Destination {
        host: setup.context.get("host").unwrap_or("localhost").to_string(),
        boot_id: setup
            .context
            .get("boot_id")
            .unwrap_or("00000000")
            .to_string(),
        context: setup.context.text(),
        dir,
    };
    let folder = boot_folder(&place.dir, &place.host, &place.boot_id);
    // Root would record to the target of another user's link.
    sure_folder::refuse_links(&folder)
        .with_context(|| format!("cannot record to {}", folder.display()))?;
    Ok(Writer::open(disk, clock, place, writing)?)
}

/// The cap of recordings without --cap.
pub(crate) struct DefaultCap {
    pub(crate) bytes: u64,
    file_system_bytes: Option<u64>,
}

impl DefaultCap {
    pub(crate) fn of(dir: &std::path::Path) -> DefaultCap {
        let existing = dir
            .ancestors()
            .find(|path| path.exists() && !path.as_os_str().is_empty());
        let size = existing
            .or(Some(".".as_ref()))
            .and_then(machine::file_system_bytes)
            // A file system without a size, such as /proc, accepts no files.
            .filter(|&bytes| bytes > 0);
        DefaultCap {
            bytes: size.map_or(CAP_MAX, cap_of),
            file_system_bytes: size,
        }
    }

    /// A message if the cap is more than a 20th of the file system.
    pub(crate) fn words(&self) -> Option<String> {
        let size = self
            .file_system_bytes
            .filter(|size| size / 20 < self.bytes)?;
        let hours = (self.bytes / HOUR_BYTES).max(1);
        Some(format!(
            "{} at most, some {hours} h of a small machine at a sample a second, for the file system has only {}; --cap says otherwise",
            size_words(self.bytes),
            size_words(size)
        ))
    }
}

const CAP_MAX: u64 = 1 << 30;
/// Largest cap that may exceed a 20th of its file system.
const CAP_OF_SMALL: u64 = 8 << 20;
const CAP_MIN: u64 = 1 << 20;
const BLOCK_MAX: u64 = 1 << 20;
const BLOCK_MIN: u64 = 128 << 10;
/// Bytes an hour of `kymo serve`: 106 kB in 150 s with 2 CPUs and 122 processes (2026-11-25).
const HOUR_BYTES: u64 = 5 << 19;

/// The cap for a file system: a 20th of it, 1 GiB at most. For a small file system an eighth,
/// within `CAP_OF_SMALL`.
fn cap_of(file_system_bytes: u64) -> u64 {
    let least = (file_system_bytes / 8).clamp(CAP_MIN, CAP_OF_SMALL);
    (file_system_bytes / 20).clamp(least, CAP_MAX)
}

/// Bytes of a block: eight blocks fit into the cap, so a small cap has smaller blocks.
fn block_bytes(cap_bytes: u64) -> u64 {
    (cap_bytes / 8).clamp(BLOCK_MIN, BLOCK_MAX) & !4095
}

/// The writer's clock. Without pause each sample counts as 10 s, so that syncs and seals by age
/// come as often as in a day of such samples.
struct RunClock {
    pauseless: bool,
    samples: AtomicU64,
}

impl RunClock {
    fn new(pauseless: bool) -> RunClock {
        RunClock {
            pauseless,
            samples: AtomicU64::new(0),
        }
    }

    fn sampled(&self, samples: u64) {
        self.samples.fetch_add(samples, Ordering::Relaxed);
    }
}

impl Clock for RunClock {
    fn now(&self) -> Stamp {
        let mut now = RealClock.now();
        if self.pauseless {
            now.mono_ns += self.samples.load(Ordering::Relaxed) * PAUSELESS_SAMPLE_NS;
        }
        now
    }
}

/// State of the writer's thread.
struct Drain {
    writer: Writer,
    queue: Arc<Queue>,
    control: Arc<Control>,
    tee: Option<Arc<Queue>>,
    /// True if the view has missed records, and waits for a key record.
    tee_lost: bool,
    interval: Duration,
    ack_fd: Option<i32>,
    facts: MachineFacts,
    /// Facts as they were recorded last.
    recorded_facts: String,
    clock: Arc<RunClock>,
    cost: Option<RunCost>,
    notices: Notices,
    /// Number of records that could not be written since the start.
    dropped: u64,
    dropping: bool,
    /// True if the current loss was reported.
    loss_said: bool,
    /// Number of samples that did not fit into the queue since the start.
    overflowed: u64,
    capability_named: bool,
}

/// Message about unreadable files. It blames the capability only if that is missing.
fn forbidden_line(forbidden: u64, processes: u64, may_trace: bool) -> String {
    let cause = match may_trace {
        true => "the kernel refuses it, although kymo has CAP_SYS_PTRACE",
        false => "kymo lacks CAP_SYS_PTRACE",
    };
    format!("kymo: cannot read proc/PID/io of {forbidden} of {processes} processes: {cause}")
}

impl Drain {
    /// Reports once that files are unreadable, and why.
    fn name_capability(&mut self) {
        let [processes, forbidden] =
            [&self.control.processes, &self.control.forbidden].map(|n| n.load(Ordering::Relaxed));
        if forbidden > 0 && !self.capability_named {
            self.capability_named = true;
            let own = privilege::State::of(std::process::id());
            let may_trace = own.is_some_and(|own| own.may_trace());
            talk::say(forbidden_line(forbidden, processes, may_trace));
        }
    }

    /// Writes records until the queue ends, then seals the rest.
    fn run(mut self) -> Result<(Counters, u64, Option<RunCost>)> {
        let mut batch = Vec::new();
        let mut pause = Duration::ZERO;
        let result = loop {
            match self.queue.take(&mut batch, pause) {
                Taken::Records => {
                    let done = match self.interval.is_zero() {
                        true => self.gathered(&mut batch),
                        false => self.records(&mut batch),
                    };
                    if let Err(error) = done {
                        break Err(error);
                    }
                }
                Taken::Nothing => self.watch(),
                Taken::Closed => break Ok(()),
            }
            pause = self.tick();
        };
        if result.is_err() {
            self.control.stop.store(true, Ordering::Relaxed);
        }
        if let Some(tee) = &self.tee {
            tee.close();
        }
        self.say_overflow();
        if self.dropping {
            talk::say(format_args!("kymo: cannot record {} records", self.dropped));
        }
        let dropped = self.overflowed;
        let counters = self.writer.close();
        machine::wake();
        result?;
        Ok((counters?, dropped, self.cost))
    }

    fn records(&mut self, batch: &mut [u8]) -> Result<()> {
        let appended = self.writer.append(batch)?;
        if let Some(fd) = self.ack_fd {
            acknowledge(fd, batch)?;
        }
        self.name_capability();
        self.notices.events(batch);
        if let Some(cost) = &mut self.cost {
            cost.add(batch);
        }
        self.show(batch);
        self.count_dropped(appended.dropped, appended.recorded);
        if self.control.devices_changed.swap(false, Ordering::Relaxed) {
            self.record_facts()?;
        }
        Ok(())
    }

    /// Records the machine's facts if they have changed.
    fn record_facts(&mut self) -> Result<()> {
        let facts = self.facts.gather().text();
        if facts == self.recorded_facts {
            return Ok(());
        }
        let appended = self.writer.set_context(&facts)?;
        if let Some(tee) = &self.tee {
            let mut record = Vec::new();
            record::push_context(&mut record, RealClock.now(), &facts);
            tee.push(&record);
        }
        if appended.dropped == 0 {
            self.recorded_facts = facts;
        }
        Ok(())
    }

    /// Passes records to the view. A view that is too slow gets no more until the next key record.
    fn show(&mut self, batch: &[u8]) {
        let Some(tee) = &self.tee else { return };
        let from = if self.tee_lost {
            first_key(batch)
        } else {
            Some(0)
        };
        let Some(from) = from else { return };
        self.tee_lost = !tee.push(&batch[from..]);
        if self.tee_lost {
            self.control.key_wanted.store(true, Ordering::Relaxed);
            self.notices
                .say("display too slow: some samples are recorded, but not shown");
        }
    }

    /// Counts dropped records. `tick` reports the cause of a loss, this its size when it is over.
    fn count_dropped(&mut self, dropped: u32, recorded: u32) {
        self.dropped += u64::from(dropped);
        if dropped > 0 {
            self.dropping = true;
        } else if recorded > 0 && self.dropping {
            self.dropping = false;
            self.loss_said = false;
            self.notices.say(&format!(
                "recording goes on; {} records were dropped",
                self.dropped
            ));
        }
    }

    /// Reports samples for which the disk was too slow, or that are larger than the queue can be.
    fn say_overflow(&mut self) {
        let overflowed = self.queue.counts().0;
        if overflowed > self.overflowed {
            self.overflowed = overflowed;
            self.notices.say(&format!(
                "cannot keep samples: more than {} MiB wait to be written; {overflowed} dropped so far",
                limits::QUEUE_MAX >> 20
            ));
        }
    }

    /// Writes samples that gathered without pause in portions, with time passing between them.
    fn gathered(&mut self, batch: &mut [u8]) -> Result<()> {
        let mut rest = batch;
        while !rest.is_empty() {
            let (length, samples) = portion(rest);
            let (now, later) = rest.split_at_mut(length);
            self.clock.sampled(samples);
            self.records(now)?;
            self.tick();
            rest = later;
        }
        std::thread::sleep(GATHER);
        Ok(())
    }

    /// Does the tasks that are due. Returns the time to wait for records: up to the next sample if
    /// a task is due about then, which saves a wakeup a second.
    fn tick(&mut self) -> Duration {
        self.say_overflow();
        let now = self.clock.now();
        if self.control.flush_wanted.swap(false, Ordering::Relaxed) {
            self.writer.sync_now(now);
        }
        let due = self.writer.tick(now);
        for notice in self.writer.take_notices() {
            // A loss is reported with its first cause; further notices are only causes.
            if self.dropping && !self.loss_said {
                self.loss_said = true;
                self.notices.say(&format!("{notice}; records are dropped"));
            } else {
                self.notices.say(&notice);
            }
        }
        let next_sample = self.interval + Duration::from_nanos(WATCHDOG_NS);
        let due = due.map(|at| Duration::from_nanos(at.saturating_sub(now.mono_ns)));
        match due {
            Some(due) if due + Duration::from_millis(200) < self.interval => {
                due + Duration::from_millis(1)
            }
            _ => next_sample,
        }
    }

    /// Without a sample in time: reports a read that hangs.
    fn watch(&mut self) {
        let since_ns = self.control.sampling_since_ns.load(Ordering::Relaxed);
        let running_ns = RealClock.mono_ns().saturating_sub(since_ns);
        if since_ns != 0 && running_ns > WATCHDOG_NS {
            self.notices.say(&format!(
                "a sample is still being read after {} ms",
                running_ns / 1_000_000
            ));
        }
    }
}

/// Begin of the first key record.
fn first_key(batch: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(raw) = record::peek(&batch[at..]) {
        if raw.head.key {
            return Some(at);
        }
        at = (at + raw.length).min(batch.len());
    }
    None
}

/// Length of the next records with at most `GATHERED_SAMPLES` samples, and the number of samples.
fn portion(batch: &[u8]) -> (usize, u64) {
    let (mut length, mut samples) = (0, 0);
    while let Some(raw) = record::peek(&batch[length..]) {
        length = (length + raw.length).min(batch.len());
        samples += u64::from(raw.head.record_type == record::RecordType::Sample);
        if samples == GATHERED_SAMPLES {
            break;
        }
    }
    (if length == 0 { batch.len() } else { length }, samples)
}

/// Writes a line for each recorded sample: its sequence number.
fn acknowledge(fd: i32, batch: &[u8]) -> Result<()> {
    let mut lines = String::new();
    let mut rest = batch;
    while let Some(raw) = record::peek(rest) {
        if raw.head.seq > 0 && raw.head.record_type == record::RecordType::Sample {
            lines.push_str(&format!("{}\n", raw.head.seq));
        }
        rest = &rest[raw.length.min(rest.len())..];
    }
    machine::write_fd(fd, lines.as_bytes())
        .with_context(|| format!("cannot write to file descriptor {fd}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_named_only_where_it_is_missing() {
        for (may_trace, cause) in [
            (
                true,
                "the kernel refuses it, although kymo has CAP_SYS_PTRACE",
            ),
            (false, "kymo lacks CAP_SYS_PTRACE"),
        ] {
            let line = forbidden_line(1, 109, may_trace);
            assert_eq!(
                line,
                format!("kymo: cannot read proc/PID/io of 1 of 109 processes: {cause}")
            );
        }
    }

    /// On file systems below 160 MB nothing was recorded, because 5 % of them were less than eight
    /// blocks.
    #[test]
    fn small_file_systems_have_small_rings() {
        for (size_mib, cap_kib, block_kib) in [
            (1 << 20, 1 << 20, 1024),
            (1000, 51_200, 1024),
            (160, 8192, 1024),
            (150, 8192, 1024),
            (64, 8192, 1024),
            (32, 4096, 512),
            (16, 2048, 256),
            (4, 1024, 128),
        ] {
            let cap = cap_of(size_mib << 20);
            assert_eq!(
                (cap >> 10, block_bytes(cap) >> 10),
                (cap_kib, block_kib),
                "{size_mib} MiB"
            );
        }
    }
}
