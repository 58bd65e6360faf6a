//! This machine, sampled each second for the screen alone: nothing is recorded.

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

/// A sampler and the readings of its last sample.
pub(super) struct Live {
    readings: SharedReadings,
    paused: Arc<AtomicBool>,
    groups_rest: Arc<AtomicBool>,
    listener: Arc<Mutex<Option<Sender<Happening>>>>,
    session: Session,
}

impl Live {
    /// Samples from now on.
    pub(super) fn start(threads: bool) -> Result<Live> {
        Live::into(Arc::new(Mutex::new(App::readings())), threads)
    }

    /// Samples into readings that there are.
    fn into(readings: SharedReadings, threads: bool) -> Result<Live> {
        let mut words = vec!["kymo", "-s", LETTERS, "-i", "1:1"];
        words.extend(threads.then_some("--threads"));
        let switches = Switches::try_parse_from(words)?;
        let mut setup = Setup::new(&switches.options, None)?;
        setup.plan.kinds.retain(|kind| !UNSHOWN.contains(kind));
        let session = Session::start(&setup, Arc::default())?;
        let (control, facts) = (session.control.clone(), setup.facts.clone());
        let refresh = move || {
            let changed = control.devices_changed.swap(false, Ordering::Relaxed);
            changed.then(|| facts.gather())
        };
        let (queue, context) = (session.queue.clone(), setup.context.clone());
        let live = Live {
            readings,
            paused: Arc::default(),
            groups_rest: setup.plan.groups_rest.clone(),
            listener: Arc::default(),
            session,
        };
        let (readings, paused) = (live.readings.clone(), live.paused.clone());
        let listener = live.listener.clone();
        spawn("readings", move || {
            let source = kymo_query::live::Live::new(queue, context, Box::new(refresh));
            follow(source, &readings, &paused, &listener);
        })?;
        Ok(live)
    }

    /// The readings.
    pub(super) fn readings(&self) -> SharedReadings {
        self.readings.clone()
    }

    /// Reports each sample from now on.
    pub(super) fn report_to(&self, listener: Sender<Happening>) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    /// Stands still, or goes on.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Reads control groups from now on only if they are shown.
    pub(super) fn show(&self, table: &Table) {
        let is_shown = table.subsystem.name == CGROUPS.name;
        self.groups_rest.store(!is_shown, Ordering::Relaxed);
    }

    /// Waits until the processes have rates.
    pub(super) fn wait_for_rates(&self, until: Instant) {
        let has_rates = || {
            let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
            readings
                .part(&PROCESS)
                .is_some_and(|part| part.from.is_some())
        };
        while !has_rates() && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }

    /// Samples threads too, or not any more, by a sampler in place of this one.
    pub(super) fn with_threads(self, threads: bool) -> Result<Live> {
        let (readings, listener) = (self.readings.clone(), self.listener.clone());
        self.end();
        let live = Live::into(readings, threads)?;
        let listener = listener
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(listener) = listener {
            live.report_to(listener);
        }
        Ok(live)
    }

    /// Ends sampling.
    pub(super) fn end(self) {
        (self.session.stopper())();
        self.session.join();
    }
}

/// Takes in each sample until sampling ends.
fn follow(
    mut source: kymo_query::live::Live,
    readings: &SharedReadings,
    paused: &AtomicBool,
    listener: &Mutex<Option<Sender<Happening>>>,
) {
    loop {
        match source.next() {
            Ok(Some(Step::Sample(moment))) if !paused.load(Ordering::Relaxed) => {
                App::advance(readings, &source, &moment);
                let listener = listener.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(listener) = &*listener {
                    // There is no listener any more where the screen has ended.
                    let _ = listener.send(Happening::Sample);
                }
            }
            Ok(Some(Step::Gap(_) | Step::Damage(_))) => {
                readings
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .restart();
            }
            Ok(Some(Step::Sample(_) | Step::Event(..))) => {}
            Ok(None) => return,
            Err(error) => return talk::say(format_args!("kymo: {error}")),
        }
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
