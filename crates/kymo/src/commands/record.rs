//! `kymo record`: the sampler's records go to the writer, which puts them on disk, and from
//! there, when asked for, to a view.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_base::limits;
use kymo_kernel::facts;
use kymo_kernel::sampler::PAUSELESS_SAMPLE_NS;
use kymo_recording::beat::Control;
use kymo_recording::queue::{Queue, Taken};
use kymo_recording::record;
use kymo_recording::writer::{Counters, Options, Place, Writer};
use kymo_sys::clock::{Clock, RealClock, Stamp};
use kymo_sys::disk::RealDisk;
use kymo_sys::kernel_file::Root;
use kymo_sys::machine::{self, Signals};
use kymo_sys::privilege;

use crate::cost::{self, RunCost};
use crate::notices::Notices;
use crate::options::{RecordOptions, ViewOptions};
use crate::session::{self, LETTERS, Session, Setup, spawn, wait_for_end};
use crate::show;

/// How long a read may run before the watchdog speaks up.
const WATCHDOG_NS: u64 = 100_000_000;
/// Without pause, the writer lets samples gather for so long, to write them with one call.
const GATHER: Duration = Duration::from_millis(5);
/// And writes so many at a time, so that syncs and seals come as often as by time.
const GATHERED_SAMPLES: u64 = 60;

/// Runs the command; with `view`, also shows what is recorded.
pub(crate) fn run(options: &RecordOptions, view: Option<&ViewOptions>) -> Result<ExitCode> {
    machine::forget_start();
    let signals = Signals::block();
    let mut setup = Setup::new(options, view)?;
    setup.schedule.announced = true;
    if let Some(fd) = options.activity_fd {
        let pipe = privilege::inherited(fd);
        let pipe = pipe.with_context(|| format!("cannot read file descriptor {fd}"))?;
        setup.plan.activity = Some(Arc::new(pipe));
    }
    if let Some(view) = view {
        super::live::check(
            &show::beside_recording(&setup.letters, view),
            view,
            super::live::plot_dir(options, view),
        )?;
    }
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
        root: setup.root.clone(),
        letters: setup.letters.clone(),
        facts: setup.context.text(),
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
            let shown = super::live::show(&setup, (&letters, view), to, tee, refresh);
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
    let end = writer
        .join()
        .map_err(|_| anyhow::anyhow!("cannot go on recording: the writer failed"))?;
    let (counters, dropped, run) = end?;
    if let Some(run) = run {
        cost::print(&run, &control, &counters, dropped, start.elapsed())?;
    }
    shown.map(|()| ExitCode::SUCCESS)
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
    if let Some(bytes) = options.seal_bytes().map_err(usage)? {
        writing.seal_bytes = bytes;
        writing.tail_bytes = bytes;
    }
    let disk = Arc::new(RealDisk);
    writing.cap_bytes = match options.cap_bytes().map_err(usage)? {
        Some(bytes) => bytes,
        None => default_cap(&dir),
    };
    let place = Place {
        host: setup.context.get("host").unwrap_or("localhost").to_string(),
        boot_id: setup
            .context
            .get("boot_id")
            .unwrap_or("00000000")
            .to_string(),
        context: setup.context.text(),
        dir,
    };
    Ok(Writer::open(disk, clock, place, writing)?)
}

/// 1 GiB, or 5 % of the file system if that is less.
pub(crate) fn default_cap(dir: &std::path::Path) -> u64 {
    let existing = dir
        .ancestors()
        .find(|path| path.exists() && !path.as_os_str().is_empty());
    let size = existing
        .or(Some(".".as_ref()))
        .and_then(machine::file_system_bytes);
    size.map_or(1 << 30, |bytes| (bytes / 20).min(1 << 30))
}

/// The writer's clock. Without pause between samples each counts as 10 s, so that syncs and
/// seals by age come as often as they would in a day of them.
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

/// The writer's thread.
struct Drain {
    writer: Writer,
    queue: Arc<Queue>,
    control: Arc<Control>,
    tee: Option<Arc<Queue>>,
    /// The view has missed records, and waits for a key.
    tee_lost: bool,
    interval: Duration,
    ack_fd: Option<i32>,
    root: Arc<Root>,
    letters: String,
    /// As they were recorded last.
    facts: String,
    clock: Arc<RunClock>,
    cost: Option<RunCost>,
    notices: Notices,
    /// Records that could not be written, since the start.
    dropped: u64,
    dropping: bool,
    /// The loss that goes on was announced.
    loss_said: bool,
    /// Samples that did not fit the queue, since the start.
    overflowed: u64,
    capability_named: bool,
}

impl Drain {
    /// Says once what cannot be read, and what it would take.
    fn name_capability(&mut self) {
        let [processes, forbidden] =
            [&self.control.processes, &self.control.forbidden].map(|n| n.load(Ordering::Relaxed));
        if forbidden > 0 && !self.capability_named {
            self.capability_named = true;
            eprintln!(
                "kymo: cannot read proc/PID/io of {forbidden} of {processes} processes: kymo lacks CAP_SYS_PTRACE"
            );
        }
    }

    /// Takes records until there are no more, then seals what is left.
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
            eprintln!("kymo: cannot record {} records", self.dropped);
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

    /// Records what the machine has now, where that is not what it had.
    fn record_facts(&mut self) -> Result<()> {
        let mut context = facts::gather(&self.root);
        context.set(LETTERS, &self.letters);
        let facts = context.text();
        if facts == self.facts {
            return Ok(());
        }
        let appended = self.writer.set_context(&facts)?;
        if let Some(tee) = &self.tee {
            let mut record = Vec::new();
            record::push_context(&mut record, RealClock.now(), &facts);
            tee.push(&record);
        }
        if appended.dropped == 0 {
            self.facts = facts;
        }
        Ok(())
    }

    /// Hands records on to the view. One that is too slow gets nothing until the next key.
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

    /// A loss is said with its cause, in `tick`; its size when it is over.
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

    /// Samples that the disk was too slow for, or that are larger than the queue can be.
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

    /// What gathered without pause goes to the writer in portions, time passing between them.
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

    /// Does what is due; how long to wait for records. Woken by the next sample when that
    /// comes about then anyway: one waking less a second.
    fn tick(&mut self) -> Duration {
        self.say_overflow();
        let now = self.clock.now();
        if self.control.flush_wanted.swap(false, Ordering::Relaxed) {
            self.writer.sync_now(now);
        }
        let due = self.writer.tick(now);
        for notice in self.writer.take_notices() {
            // Further causes of one loss are only causes.
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

    /// Nothing came in time: says so when a read hangs.
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

/// Where the first key record begins.
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

/// Length of the records up to so many samples, and how many samples those are.
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

/// One line for each recorded sample: its sequence number.
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
