//! Collects what programs publish, docs/formats/shm.md: counters become series, current activity is for answers, and totals
//! outlive the programs. The collector checks all it reads from their files, so a publisher can harm only its own numbers.

mod answer;
mod answer_bytes;
mod budgets;
mod collection;
mod folder;
mod labels;
mod publisher;
mod quantile;
mod quota;
mod recording;
pub(crate) mod retired;
mod series;
mod servers;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_store::Store;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::Disk;
use kymo_sys::machine;
use kymo_wire::keeper::{self, ServerActivity};

use crate::listener::{Listener, StopSignal};
use crate::log::{Log, Severity};
use collection::Collection;
use folder::Folder;
use publisher::Moment;
use recording::Recording;

/// How often counters are read and written, and slots sampled.
const READ_EVERY: Duration = Duration::from_secs(10);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// How often while somebody asks what programs do.
const READ_WATCHED: Duration = Duration::from_secs(1);
const SAMPLE_WATCHED: Duration = Duration::from_millis(100);
/// Time after a request for which the collector reads more often.
const LOOKS_FOR: Duration = Duration::from_secs(5);
/// Longest time between two looks at the folder.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Looks at the folder use at most this share of the time: one in ...
const LOOK_SHARE: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Largest age of the values in an answer.
const FRESH: Duration = Duration::from_millis(500);

/// Settings of the collector.
pub struct CollectorSettings {
    /// The folder in which programs publish.
    pub folder: PathBuf,
    /// The folder for totals of ended programs.
    pub kept: PathBuf,
    /// Id of this boot, as text.
    pub boot: String,
    /// Names of users; a user without an entry is named by number.
    pub users: HashMap<u32, String>,
    /// The pipe to the recorder, [`kymo_base::activity`]; `None`: activity is not recorded.
    pub recorder: Option<OwnedFd>,
}

/// The collector's state, for requests; empty if nothing is collected.
#[derive(Clone, Default)]
pub struct Programs(Option<Arc<Known>>);

struct Known {
    collection: Mutex<Collection>,
    /// Time of the last request.
    requested_ns: AtomicU64,
}

impl Known {
    fn lock(&self) -> MutexGuard<'_, Collection> {
        let locked = self.collection.lock();
        locked.unwrap_or_else(PoisonError::into_inner)
    }

    fn is_watched(&self, now_ns: u64) -> bool {
        let requested_ns = self.requested_ns.load(Ordering::Relaxed);
        requested_ns > 0 && now_ns.saturating_sub(requested_ns) < ns(LOOKS_FOR)
    }
}

impl Programs {
    /// Publishers and their activity, with texts of commands only if `texts`.
    pub fn answer(&self, texts: bool) -> keeper::Programs {
        let Some(shared) = &self.0 else {
            return keeper::Programs::default();
        };
        let now = moment();
        shared
            .requested_ns
            .store(now.mono_ns.max(1), Ordering::Relaxed);
        let mut collection = shared.lock();
        collection.refresh(now, ns(FRESH));
        collection.answer(texts, now)
    }
}

impl Programs {
    /// Takes the sessions of a database server. Returns true if somebody asks what programs do.
    pub fn take_activity(&self, activity: ServerActivity) -> bool {
        let now = moment();
        if let Some(shared) = &self.0 {
            shared.lock().servers.take(activity, now);
        }
        self.is_watched()
    }

    /// True if somebody asks what programs do.
    pub fn is_watched(&self) -> bool {
        let now_ns = RealClock.mono_ns();
        self.0
            .as_ref()
            .is_some_and(|shared| shared.is_watched(now_ns))
    }
}

/// The thread that collects.
pub struct Collector {
    shared: Arc<Known>,
    log: Log,
}

impl Collector {
    /// Opens the folder and the kept totals. Also returns the state for requests.
    pub fn open(
        settings: CollectorSettings,
        disk: Arc<dyn Disk>,
        log: Log,
    ) -> Result<(Collector, Programs), String> {
        let path = settings.folder.display().to_string();
        let folder = Folder::open(&settings.folder);
        let folder = folder.map_err(|error| format!("cannot open {path}: {error}"))?;
        let opened = retired::Retired::open(disk, &settings.kept, boot_id(&settings.boot));
        let (retired, notice) = opened
            .map_err(|error| format!("cannot read totals of programs that have ended: {error}"))?;
        if let Some(notice) = notice {
            log(Severity::Notice, &notice);
        }
        let shared = Arc::new(Known {
            collection: Mutex::new(Collection::new(
                folder,
                retired,
                settings.users,
                settings.recorder.map(Recording::new),
            )),
            requested_ns: AtomicU64::new(0),
        });
        let programs = Programs(Some(shared.clone()));
        Ok((Collector { shared, log }, programs))
    }
}

/// Times of the next tasks.
struct Due {
    look_ns: u64,
    read_ns: u64,
    sample_ns: u64,
}

impl Listener for Collector {
    fn name(&self) -> &'static str {
        "programs"
    }

    fn run(self: Box<Self>, store: &Store, stop: &StopSignal) -> io::Result<()> {
        let watch = self.shared.lock().watch()?;
        let mut due = Due {
            look_ns: 0,
            read_ns: 0,
            sample_ns: 0,
        };
        let mut failed = String::new();
        self.shared.lock().learn(store);
        loop {
            self.step(store, &mut due, &mut failed);
            let now_ns = RealClock.mono_ns();
            let next_ns = due.look_ns.min(due.read_ns).min(due.sample_ns);
            let nap = Duration::from_nanos(next_ns.saturating_sub(now_ns));
            let files = [Some(stop.as_fd()), watch.as_ref().map(AsFd::as_fd)];
            let files: Vec<_> = files.into_iter().flatten().collect();
            let ready = machine::wait_readable(&files, nap);
            if ready.first() == Some(&true) {
                return Ok(());
            }
            if ready.get(1) == Some(&true) {
                // Others may appear meanwhile; the pause also limits the share of time that looks need.
                let pause = Duration::from_nanos(self.shared.lock().look_ns()) * LOOK_SHARE;
                let pause = pause.max(LOOK_PAUSE);
                if machine::wait_readable(&files[..1], pause).first() == Some(&true) {
                    return Ok(());
                }
                due.look_ns = 0;
            }
        }
    }
}

impl Collector {
    /// Runs the tasks that are due.
    fn step(&self, store: &Store, due: &mut Due, failed: &mut String) {
        let now = moment();
        let is_watched = self.shared.is_watched(now.mono_ns);
        let mut collection = self.shared.lock();
        if due.look_ns <= now.mono_ns {
            collection.look(now);
            due.look_ns = now.mono_ns + ns(LOOK_EVERY);
            if !collection.is_empty() {
                // Without publishers there was no sampling before.
                due.sample_ns = due.sample_ns.min(now.mono_ns + ns(SAMPLE_EVERY));
            }
        }
        let pause = if is_watched { READ_WATCHED } else { READ_EVERY };
        due.read_ns = due.read_ns.min(now.mono_ns + ns(pause));
        if due.read_ns <= now.mono_ns {
            collection.read(now);
            let written = collection.write(store, now);
            due.read_ns = now.mono_ns + ns(pause);
            match written {
                Ok(()) => failed.clear(),
                Err(why) if why == *failed => {}
                Err(why) => {
                    (self.log)(Severity::Error, &why);
                    *failed = why;
                }
            }
        }
        let pause = if is_watched {
            SAMPLE_WATCHED
        } else {
            SAMPLE_EVERY
        };
        if due.sample_ns <= now.mono_ns {
            collection.sample(now);
            collection.record(now);
            due.sample_ns = match collection.is_empty() {
                true => now.mono_ns + ns(LOOK_EVERY),
                false => now.mono_ns + ns(pause),
            };
        }
        let news = collection.news();
        drop(collection);
        for line in news {
            (self.log)(Severity::Notice, &line);
        }
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn moment() -> Moment {
    Moment {
        mono_ns: RealClock.mono_ns(),
        real_ns: RealClock.now().real_ns,
    }
}

/// Id of a boot as bytes.
fn boot_id(text: &str) -> [u8; 16] {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut boot = [0; 16];
    for (byte, pair) in boot.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    boot
}
