//! Samples that come: of this machine, read each second for the screen alone without a recording, or of another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use kymo_kernel::source::kind;
use kymo_kernel::subsystem::cgroups::CGROUPS;
use kymo_kernel::subsystem::process::PROCESS;
use kymo_query::source::{Source, Step};
use kymo_recording::reader::Kinds;
use kymo_sys::talk;
use kymo_top::app::{App, SharedReadings};
use kymo_top::tables::Table;

use super::happening::Happening;
use crate::options::RecordOptions;
use crate::recorder::session::{Session, Setup, spawn};

/// Subsystems of all tables.
const LETTERS: &str = "cmdnpGZ";
/// Sources of these that no table shows.
const UNSHOWN: [u8; 4] = [
    kind::INTERFACES,
    kind::NEIGHBOURS,
    kind::SOFTNET,
    kind::ARRAYS,
];
/// Pause between two looks for rates.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest name of a kernel's function that is shown.
const FUNCTION_MAX: usize = 20;

/// Switches of the sampler.
#[derive(Parser)]
struct Switches {
    #[command(flatten)]
    options: RecordOptions,
}

/// A giver of samples.
pub(super) trait Sampled: Send {
    /// Gives those of threads too, or not any more.
    fn with_threads(
        self: Box<Self>,
        shared: &SharedLive,
        threads: bool,
    ) -> Result<Box<dyn Sampled>>;
    /// Ends.
    fn end(self: Box<Self>);
}

/// The readings of the last sample, as threads share them.
#[derive(Clone)]
pub(super) struct SharedLive {
    readings: SharedReadings,
    paused: Arc<AtomicBool>,
    groups_rest: Arc<AtomicBool>,
    listener: Arc<Mutex<Option<Sender<Happening>>>>,
}

/// Samples that come, and the readings of the last one.
pub(super) struct Live {
    shared: SharedLive,
    sampled: Box<dyn Sampled>,
}

/// A sampler of this machine.
struct OwnSamples(Session);

impl OwnSamples {
    fn start(shared: &SharedLive, threads: bool) -> Result<OwnSamples> {
        let mut words = vec!["kymo", "-s", LETTERS, "-i", "1:1"];
        words.extend(threads.then_some("--threads"));
        let switches = Switches::try_parse_from(words)?;
        let mut setup = Setup::new(&switches.options, None)?;
        setup.plan.kinds.retain(|kind| !UNSHOWN.contains(kind));
        setup.plan.groups_rest = shared.groups_rest.clone();
        let session = Session::start(&setup, Arc::default())?;
        let (control, facts) = (session.control.clone(), setup.facts.clone());
        let refresh = move || {
            let changed = control.devices_changed.swap(false, Ordering::Relaxed);
            changed.then(|| facts.gather())
        };
        let (queue, context) = (session.queue.clone(), setup.context.clone());
        let shared = shared.clone();
        spawn("readings", move || {
            let mut source = kymo_query::live::Live::new(queue, context, Box::new(refresh));
            if let Err(error) = shared.follow(&mut source) {
                talk::say(format_args!("kymo: {error}"));
            }
        })?;
        Ok(OwnSamples(session))
    }
}

impl Sampled for OwnSamples {
    fn with_threads(
        self: Box<Self>,
        shared: &SharedLive,
        threads: bool,
    ) -> Result<Box<dyn Sampled>> {
        self.end();
        Ok(Box::new(OwnSamples::start(shared, threads)?))
    }

    fn end(self: Box<Self>) {
        (self.0.stopper())();
        self.0.join();
    }
}

impl SharedLive {
    pub(super) fn new() -> SharedLive {
        SharedLive {
            readings: Arc::new(Mutex::new(App::readings())),
            paused: Arc::default(),
            groups_rest: Arc::default(),
            listener: Arc::default(),
        }
    }

    /// Kinds of source of all tables.
    pub(super) fn kinds(&self) -> Kinds {
        let readings = self.readings.lock();
        readings.unwrap_or_else(PoisonError::into_inner).kinds()
    }

    /// Takes in each sample until sampling ends.
    pub(super) fn follow(&self, source: &mut dyn Source) -> Result<(), String> {
        while let Some(step) = source.next()? {
            match step {
                Step::Sample(moment) if !self.paused.load(Ordering::Relaxed) => {
                    App::advance(&self.readings, source, &moment);
                    let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
                    if let (Some(listener), false) = (&*listener, moment.warmup) {
                        // There is no listener any more where the screen has ended.
                        let _ = listener.send(Happening::Sample);
                    }
                }
                Step::Gap(_) | Step::Damage(_) => {
                    let readings = self.readings.lock();
                    readings.unwrap_or_else(PoisonError::into_inner).restart();
                }
                Step::Sample(_) | Step::Event(..) => {}
            }
        }
        Ok(())
    }
}

impl Live {
    /// Samples this machine from now on.
    pub(super) fn start(threads: bool) -> Result<Live> {
        let shared = SharedLive::new();
        let sampled = Box::new(OwnSamples::start(&shared, threads)?);
        Ok(Live::of(shared, sampled))
    }

    /// Samples of a giver.
    pub(super) fn of(shared: SharedLive, sampled: Box<dyn Sampled>) -> Live {
        Live { shared, sampled }
    }

    /// The readings of the last sample.
    pub(super) fn readings(&self) -> SharedReadings {
        self.shared.readings.clone()
    }

    /// Reports each sample from now on.
    pub(super) fn report_to(&self, listener: Sender<Happening>) {
        let known = self.shared.listener.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Stands still, or goes on.
    pub(super) fn pause(&self, paused: bool) {
        self.shared.paused.store(paused, Ordering::Relaxed);
    }

    /// Reads control groups from now on only if they are shown.
    pub(super) fn show(&self, table: &Table) {
        let is_shown = table.subsystem.name == CGROUPS.name;
        self.shared.groups_rest.store(!is_shown, Ordering::Relaxed);
    }

    /// Waits until the processes have rates.
    pub(super) fn wait_for_rates(&self, until: Instant) {
        let has_rates = || {
            let readings = self.shared.readings.lock();
            let readings = readings.unwrap_or_else(PoisonError::into_inner);
            readings
                .part(&PROCESS)
                .is_some_and(|part| part.from.is_some())
        };
        while !has_rates() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }

    /// Samples threads too, or not any more.
    pub(super) fn with_threads(self, threads: bool) -> Result<Live> {
        let sampled = self.sampled.with_threads(&self.shared, threads)?;
        Ok(Live::of(self.shared, sampled))
    }

    /// Ends sampling.
    pub(super) fn end(self) {
        self.sampled.end();
    }
}

/// Name of the kernel's function that a process of this machine waits in now; `-` where the kernel does not say.
pub(super) fn waits_for(pid: u64) -> String {
    let text = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let is_of_name = |letter: &char| letter.is_ascii_alphanumeric() || "_.".contains(*letter);
    let name: String = text.chars().filter(is_of_name).take(FUNCTION_MAX).collect();
    match name.as_str() {
        "" | "0" => "-".into(),
        _ => name,
    }
}
