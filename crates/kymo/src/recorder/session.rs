//! A running sampler: its thread, that of the slow lane, and the handle that stops them. The caller
//! uses the records: for a writer, a view, a count.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kymo_base::context::Context;
use kymo_base::limits;
use kymo_kernel::choice::{Candidate, Choice, PROCESS_FILTER, PROCESSES_LEFT_OUT, Wants};
use kymo_kernel::identity::Lane;
use kymo_kernel::sampler::{Plan, Sampler};
use kymo_kernel::tasks::{StatusPolicy, TaskPlan};
use kymo_kernel::{facts, subsystem};
use kymo_recording::beat::{self, Control, Schedule};
use kymo_recording::queue::Queue;
use kymo_sys::clock::{Behind, Clock as _, RealClock};
use kymo_sys::kernel_file::Root;
use kymo_sys::machine::{self, Signal, Signals};
use kymo_sys::talk;
use kymo_sys::ticker::Ticker;
use kymo_view::processes::Filter;
use kymo_view::time::Zone;

use crate::options::adjusted;
use crate::options::intervals::Scans;
use crate::options::own_intervals::OWN_INTERVALS;
use crate::options::{ChosenProcesses, RecordOptions, ViewOptions};
use crate::process::daemon;
use crate::times;

/// Longest wait for the sampler's end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Name of the fact with the requested letters.
pub(crate) const LETTERS: &str = "letters";
/// Small stacks, because only touched pages use memory and the threads call little.
const STACK_BYTES: usize = 256 << 10;

/// Settings of a run, complete before the first sample.
pub(crate) struct Setup {
    /// Root folder of the kernel's files.
    pub root: Arc<Root>,
    /// The requested letters.
    pub letters: String,
    /// Plan of reading.
    pub plan: Plan,
    /// Schedule of samples.
    pub schedule: Schedule,
    /// Time from a beat to its sample, in nanoseconds.
    pub phase_ns: u64,
    /// Facts of the machine.
    pub context: Context,
    /// Gathers the facts again.
    pub facts: MachineFacts,
}

/// Facts of the machine, and facts that the command line adds.
#[derive(Clone)]
pub(crate) struct MachineFacts {
    root: Arc<Root>,
    added: Vec<(String, String)>,
}

impl MachineFacts {
    fn new(
        root: Arc<Root>,
        options: &RecordOptions,
        view: Option<&ViewOptions>,
    ) -> Result<MachineFacts> {
        let mut added = match view {
            Some(view) => adjusted::facts(&view.shape)?,
            None => Vec::new(),
        };
        if let Some(comment) = &options.familiar.comment {
            added.push(("comment".to_string(), comment.clone()));
        }
        Ok(MachineFacts { root, added })
    }

    fn add(&mut self, name: &str, value: &str) {
        self.added.push((name.to_string(), value.to_string()));
    }

    /// Gathers the facts again: devices come and go.
    pub(crate) fn gather(&self) -> Context {
        let mut context = facts::gather(&self.root);
        for (name, value) in &self.added {
            context.set(name, value);
        }
        context
    }
}

impl Setup {
    /// Makes the settings from the switches, and opens the root.
    pub(crate) fn new(options: &RecordOptions, view: Option<&ViewOptions>) -> Result<Setup> {
        let usage = anyhow::Error::msg;
        let default = view.and_then(ViewOptions::ranked).unwrap_or("cdn");
        let mut letters = options.letters(default).map_err(usage)?;
        if let Some(view) = view {
            letters = crate::output::show::letters(letters, view);
        }
        let scans = match view.is_some_and(|view| view.top.is_some()) {
            true => Scans::EachSample,
            false => Scans::AtTheirOwn,
        };
        let intervals = options.intervals(&letters, scans).map_err(usage)?;
        let root = open_root(&options.root)?;
        let tasks = subsystem::asks_for_processes(&letters).then(|| task_plan(options, view));
        let mut facts = MachineFacts::new(root.clone(), options, view)?;
        facts.add(LETTERS, &letters);
        facts.add("interval", &intervals.text());
        if let Some(fact) = options.own_intervals.fact() {
            facts.add(OWN_INTERVALS, &fact);
        }
        if tasks.is_some() {
            add_left_out(&mut facts, &options.chosen);
        }
        let context = facts.gather();
        let choice = choice(options, &context).map_err(usage)?;
        let plan = Plan {
            kinds: machine_kinds(&letters),
            choice: choice.filter(|_| tasks.is_some()),
            tasks,
            slow_ns: options.slow_ns().map_err(usage)?,
            interval_ns: intervals.first_ns,
            scan_interval_ns: intervals.first_ns * u64::from(intervals.second),
            group_interval_ns: options.own_intervals.group_ns().map_err(usage)?,
            groups_max: options.own_intervals.groups.unwrap_or(0),
            space_interval_ns: options.own_intervals.space_ns().map_err(usage)?,
            backoff: !options.no_backoff && intervals.first_ns > 0,
            activity: None,
            groups_rest: Arc::default(),
        };
        let schedule = Schedule {
            interval: Duration::from_nanos(intervals.first_ns),
            scan_each: intervals.second,
            count: options.count().map_err(usage)?,
            runtime: options
                .runtime_ns()
                .map_err(usage)?
                .map(Duration::from_nanos),
            scans_aligned: options.align && subsystem::asks_for_processes(&letters),
            announced: false,
        };
        if view.is_none() {
            times::zone_of(&context);
        }
        Ok(Setup {
            root,
            letters,
            plan,
            schedule,
            phase_ns: options.phase_ns(intervals.first_ns).map_err(usage)?,
            context,
            facts,
        })
    }
}

/// Opens the root folder of the kernel's files.
pub(crate) fn open_root(path: &Path) -> Result<Arc<Root>> {
    let root = Root::open(path).with_context(|| format!("cannot open root {}", path.display()))?;
    Ok(Arc::new(root))
}

/// Most files that the sampler may keep open.
pub(crate) fn files_to_keep() -> u64 {
    machine::raise_open_files()
        .saturating_sub(limits::KEPT_FILES_RESERVE)
        .min(limits::KEPT_FILES_MAX)
}

/// Kinds of source that the letters need, without those of processes.
pub(crate) fn machine_kinds(letters: &str) -> Vec<u8> {
    let mut kinds = Vec::new();
    for subsystem in subsystem::ALL
        .iter()
        .filter(|subsystem| !subsystem.is_of_processes())
    {
        let is_recorded = subsystem::is_asked(subsystem, letters);
        kinds.extend(subsystem.sources.iter().filter(|_| is_recorded));
    }
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Choice of the processes to record; `None`: all.
fn choice(options: &RecordOptions, context: &Context) -> Result<Option<Choice>, String> {
    let filter = options.chosen.filter()?;
    let fixed = options.chosen.has('p');
    if filter.is_none() && !fixed {
        return Ok(None);
    }
    let facts = filter.as_ref().map(Filter::facts).unwrap_or_default();
    let wants = filter.map(|filter| {
        let context = context.clone();
        Arc::new(move |candidate: &Candidate| filter.chooses(candidate, &context)) as Wants
    });
    Ok(Some(Choice {
        wants,
        facts,
        fixed,
    }))
}

/// Notes the parts of processes that are not recorded, so that playback does not take them for zero.
fn add_left_out(facts: &mut MachineFacts, chosen: &ChosenProcesses) {
    if let Some(filter) = &chosen.procfilt {
        facts.add(PROCESS_FILTER, filter);
    }
    let letters: String = ['p', 'I']
        .into_iter()
        .filter(|&letter| chosen.has(letter))
        .collect();
    if !letters.is_empty() {
        facts.add(PROCESSES_LEFT_OUT, &letters);
    }
}

fn task_plan(options: &RecordOptions, view: Option<&ViewOptions>) -> TaskPlan {
    let has = |letter| {
        let shown = view.and_then(|view| view.procopts.as_deref());
        options.chosen.has(letter) || shown.is_some_and(|opts| opts.contains(letter))
    };
    let filter = view.and_then(|view| view.procfilt.as_deref());
    let filters_threads = filter
        .or(options.chosen.procfilt.as_deref())
        .and_then(|filter| Filter::parse(filter).ok())
        .is_some_and(|filter| filter.wants_threads());
    let status = match options.status.as_str() {
        "always" => StatusPolicy::Always,
        "never" => StatusPolicy::Never,
        // Only status has context switches.
        _ if has('x') => StatusPolicy::Always,
        _ => StatusPolicy::Changed,
    };
    TaskPlan {
        threads: has('t') || options.threads || filters_threads,
        io: !has('I'),
        status,
        redact: options.redact.is_some(),
    }
}

/// Prints on a terminal when the first line will come: within twice the interval.
pub(crate) fn say_waiting(setup: &Setup, quiet: bool) {
    let interval_ns = setup.schedule.interval.as_nanos() as i64;
    if quiet || interval_ns < 1_000_000_000 || !machine::stderr_is_terminal() {
        return;
    }
    let align_ns = match setup.schedule.scans_aligned {
        true => setup.plan.scan_interval_ns as i64,
        false => interval_ns,
    };
    let start_ns = (RealClock.now().real_ns.div_euclid(align_ns) + 1) * align_ns;
    let mut zone = Zone::of(&setup.context);
    let [start, end] = [start_ns, start_ns + interval_ns].map(|real_ns| {
        let mut text = Vec::new();
        zone.local(real_ns).put_time(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    talk::say(format_args!(
        "kymo: waiting for the first interval, {start} to {end}"
    ));
}

/// The sampling threads.
pub(crate) struct Session {
    /// Control and counts of the sampler.
    pub control: Arc<Control>,
    /// Queue of the sampler's records.
    pub queue: Arc<Queue>,
    ticker: Option<Arc<Ticker>>,
    lane: Option<Arc<Lane>>,
    sampler: JoinHandle<()>,
}

impl Session {
    /// Starts sampling: a baseline at its beat, then samples by the schedule. `key_wanted` belongs to
    /// the writer.
    pub(crate) fn start(setup: &Setup, key_wanted: Arc<AtomicBool>) -> Result<Session> {
        talk::never_wait();
        let schedule = setup.schedule;
        let sampler = Sampler::new(setup.root.clone(), setup.plan.clone(), files_to_keep());
        let lane = sampler.lane();
        let ticker = match schedule.interval.is_zero() {
            true => None,
            false => Some(Arc::new(
                Ticker::behind(schedule.interval, Duration::from_nanos(setup.phase_ns))
                    .context("cannot set a timer")?,
            )),
        };
        let (control, queue) = (Arc::new(Control::default()), Arc::new(Queue::default()));
        let clock = Behind {
            phase_ns: i64::try_from(setup.phase_ns).unwrap_or(0),
        };
        let run = {
            let (ticker, control, queue, lane) =
                (ticker.clone(), control.clone(), queue.clone(), lane.clone());
            move || {
                machine::forget_start();
                machine::lock_memory();
                machine::ask_short_slices();
                beat::run(
                    sampler,
                    schedule,
                    ticker.as_deref(),
                    &clock,
                    &control,
                    (&queue, &key_wanted),
                );
                if let Some(lane) = lane {
                    lane.close();
                }
            }
        };
        let sampler = spawn("sampler", run)?;
        if let Some(lane) = lane.clone() {
            let root = setup.root.clone();
            spawn("slow lane", move || lane.serve(&root))?;
        }
        daemon::began();
        Ok(Session {
            control,
            queue,
            ticker,
            lane,
            sampler,
        })
    }

    /// A function that ends sampling, from any thread, and wakes a sleeping sampler.
    pub(crate) fn stopper(&self) -> impl Fn() + Send + Sync + 'static {
        let (control, ticker, queue) = (
            self.control.clone(),
            self.ticker.clone(),
            self.queue.clone(),
        );
        move || {
            control.stop.store(true, Ordering::Relaxed);
            let rung = ticker.as_ref().map(|ticker| ticker.ring());
            if let Some(Err(_)) = rung {
                // The sampler may sleep on, but no thread waits for it.
                queue.close();
            }
        }
    }

    /// A function that flushes all records to the disk, from any thread.
    pub(crate) fn flusher(&self) -> impl Fn() + Send + Sync + 'static {
        let (control, queue) = (self.control.clone(), self.queue.clone());
        move || {
            control.flush_wanted.store(true, Ordering::Relaxed);
            queue.wake();
        }
    }

    /// Waits for the sampler's end, but not for a read that hangs: records in the queue are kept. The
    /// slow lane is not waited for, because its reads may hang.
    pub(crate) fn join(self) {
        if let Some(lane) = &self.lane {
            lane.close();
        }
        let start = Instant::now();
        while !self.sampler.is_finished() && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(1));
        }
        self.queue.close();
    }
}

/// Starts a named thread with a small stack.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let builder = thread::Builder::new()
        .name(name.to_string())
        .stack_size(STACK_BYTES);
    builder
        .spawn(run)
        .with_context(|| format!("cannot start the {name} thread"))
}

/// Sleeps until a signal asks to stop or the recording ends by itself; flushes when a signal asks for
/// that.
pub(crate) fn wait_for_end(signals: &Signals, stop: &impl Fn(), flush: &impl Fn()) {
    loop {
        match signals.wait_and_name(Duration::from_secs(1 << 30)) {
            Some((Signal::Stop, sent)) => {
                daemon::log_end(&sent);
                return stop();
            }
            // The recording ended by itself, or because the writer failed.
            Some((Signal::Wake, _)) => return stop(),
            Some((Signal::Flush | Signal::HangUp, _)) => flush(),
            Some((Signal::Child, _)) | None => {}
        }
    }
}
