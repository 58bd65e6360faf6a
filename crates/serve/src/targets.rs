//! The poller's targets in the hub: lists from its files, which are read again after changes, and the state of each target
//! and device, from one question to the keeper for all of them. A list is answered with the known numbers, and an update
//! starts for the next time, because an answer about 30,000 targets needs seconds.

mod devices;
mod listed;
mod reasons;

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kymo_keeper_client::Keeper;
use kymo_query::marks::Mark;
use kymo_query::stored;
use kymo_query::targets::Recent;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::RealDisk;
use kymo_wire::keeper::{NAMES_MAX, Range, Rows};
use kymo_wire::targets::{DescribedTarget, FOLDER};

pub(crate) use devices::{Device, DeviceState, Health, Rates};
pub(crate) use listed::{Listed, ListedTarget};
pub(crate) use reasons::Reasons;

/// Time for which files are not looked at again.
const LOOK: Duration = Duration::from_secs(5);
/// Least time for which numbers are not asked for again.
const FRESH: Duration = Duration::from_secs(15);
/// Numbers are also kept for this many times the duration of their question: a twentieth of a CPU at most.
const REST: u32 = 20;
/// Longest wait of a list for numbers.
const PATIENCE: Duration = Duration::from_millis(1500);

/// The targets, and their state.
pub(crate) struct Targets {
    folder: PathBuf,
    /// For questions about all targets, which may wait for longer than others.
    all: Keeper,
    /// For questions about one target.
    keeper: Keeper,
    state: Mutex<State>,
    numbered: Condvar,
}

#[derive(Default)]
struct State {
    listed: Arc<Listed>,
    reasons: Arc<Reasons>,
    looked_ns: Option<u64>,
    numbers: Arc<Numbers>,
    read_ns: Option<u64>,
    took: Duration,
    is_asking: bool,
}

/// State of the targets, for the list with the same number.
#[derive(Default)]
pub(crate) struct Numbers {
    /// Number of the list.
    list: u64,
    /// Time of the question, in seconds since 1970; 0: never.
    pub(crate) at: i64,
    /// State of each target.
    pub(crate) targets: Vec<Recent>,
    /// State of each device.
    pub(crate) devices: Vec<DeviceState>,
}

/// State of all targets at a moment.
pub(crate) struct Known {
    pub(crate) listed: Arc<Listed>,
    pub(crate) reasons: Arc<Reasons>,
    pub(crate) numbers: Arc<Numbers>,
    /// True while newer numbers are on their way.
    pub(crate) is_asking: bool,
}

impl Known {
    /// State of a target.
    pub(crate) fn recent(&self, target: usize) -> Recent {
        let known = self.numbers.targets.get(target).copied();
        known.filter(|_| self.fits()).unwrap_or(Recent::NONE)
    }

    /// State of a device.
    pub(crate) fn device(&self, device: usize) -> DeviceState {
        let known = self.numbers.devices.get(device).copied();
        known.filter(|_| self.fits()).unwrap_or_default()
    }

    fn fits(&self) -> bool {
        self.numbers.list == self.listed.number
    }
}

impl Targets {
    /// Targets of the poller's files in this folder of `kymo serve`; the keeper has their values.
    pub(crate) fn new(data: &std::path::Path, keeper: &Keeper) -> Targets {
        Targets {
            folder: data.join(FOLDER),
            all: keeper.apart(1),
            keeper: keeper.clone(),
            state: Mutex::default(),
            numbered: Condvar::new(),
        }
    }

    /// All targets with their numbers. If these are old, asks for new ones and waits a while for them.
    pub(crate) fn known(self: &Arc<Targets>) -> Known {
        let mut state = self.looked();
        let fits = state.numbers.list == state.listed.number;
        let age = state.read_ns.map(since);
        let old = FRESH.max(state.took * REST);
        if !state.is_asking && (!fits || age.is_none_or(|age| age > old)) {
            state.is_asking = true;
            let targets = self.clone();
            // If no thread can start, the old numbers stay.
            let asking = std::thread::Builder::new()
                .name("targets".into())
                .spawn(move || targets.ask());
            state.is_asking = asking.is_ok();
        }
        if state.is_asking {
            let waits = |state: &mut State| state.is_asking;
            let waited = self.numbered.wait_timeout_while(state, PATIENCE, waits);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Known {
            listed: state.listed.clone(),
            reasons: state.reasons.clone(),
            numbers: state.numbers.clone(),
            is_asking: state.is_asking,
        }
    }

    /// The current list.
    pub(crate) fn listed(&self) -> Arc<Listed> {
        self.looked().listed.clone()
    }

    /// Reasons why targets have no value now.
    pub(crate) fn reasons(&self) -> Arc<Reasons> {
        self.looked().reasons.clone()
    }

    /// Description of a target; `None`: there is no such target.
    pub(crate) fn described(&self, id: &str) -> Option<(Arc<Listed>, usize, DescribedTarget)> {
        let listed = self.listed();
        let at = listed.find(id)?;
        let target = listed.read(&RealDisk, &self.folder, at)?;
        Some((listed, at, target))
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, after reading changed files.
    fn looked(&self) -> MutexGuard<'_, State> {
        let mut state = self.locked();
        if state.looked_ns.is_none_or(|at_ns| since(at_ns) >= LOOK) {
            if let Some(listed) = state.listed.again(&RealDisk, &self.folder) {
                state.listed = Arc::new(listed);
            }
            if let Some(reasons) = state.reasons.again(&RealDisk, &self.folder) {
                state.reasons = Arc::new(reasons);
            }
            state.looked_ns = Some(RealClock.mono_ns());
        }
        state
    }

    /// Asks for all numbers.
    fn ask(&self) {
        let _asking = Asking(self);
        let begin_ns = RealClock.mono_ns();
        let listed = self.locked().listed.clone();
        let now_ns = RealClock.now().real_ns;
        let at = now_ns.div_euclid(1_000_000_000);
        let numbers = Numbers {
            list: listed.number,
            at,
            targets: self.recent(&listed, at),
            devices: self.devices(&listed, at),
        };
        let mut state = self.locked();
        state.numbers = Arc::new(numbers);
        state.read_ns = Some(RealClock.mono_ns());
        state.took = since(begin_ns);
    }

    /// State of each target.
    fn recent(&self, listed: &Listed, now: i64) -> Vec<Recent> {
        let (from, thru, rows_max) = Recent::question(now);
        let mut found = Vec::with_capacity(listed.targets.len());
        for part in listed.targets.chunks(NAMES_MAX) {
            let names = part.iter().map(|target| target.series.as_bytes().to_vec());
            let range = Range {
                names: names.collect(),
                from,
                thru,
                rows_max,
            };
            // If the keeper does not answer, the state is unknown.
            let answers = self.all.range(&range).unwrap_or_default();
            let mut answers = answers.into_iter();
            found.extend(part.iter().map(|target| match answers.next() {
                Some(Ok(rows)) => Recent::new(&rows, listed.interval_s(target), now),
                _ => Recent::NONE,
            }));
        }
        found
    }

    /// State of each device.
    fn devices(&self, listed: &Listed, now: i64) -> Vec<DeviceState> {
        let mut found = Vec::with_capacity(listed.devices.len());
        for part in listed.devices.chunks(NAMES_MAX) {
            let names = part.iter().map(|device| device.series());
            let question = DeviceState::question(names.collect(), now);
            let answers = self.all.range(&question).unwrap_or_default();
            let mut answers = answers.into_iter();
            found.extend(part.iter().map(|_| match answers.next() {
                Some(Ok(rows)) => DeviceState::of(&rows),
                _ => DeviceState::default(),
            }));
        }
        found
    }

    /// Events of a device in this range of seconds.
    pub(crate) fn marks(&self, device: &str, range: (i64, i64)) -> Result<Vec<Mark>, String> {
        stored::device_marks(&self.keeper, device, range)
    }

    /// Rows of one series, or why there are none.
    pub(crate) fn rows(&self, range: &Range) -> Result<Rows, String> {
        let answer = self.keeper.range(range)?.pop();
        answer.unwrap_or_else(|| Err("cannot read a target: the keeper says nothing".into()))
    }
}

/// Marks that numbers are asked for; dropping it lets others ask, with or without an error.
struct Asking<'a>(&'a Targets);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.locked().is_asking = false;
        self.0.numbered.notify_all();
    }
}

/// Time since this moment.
fn since(mono_ns: u64) -> Duration {
    Duration::from_nanos(RealClock.mono_ns().saturating_sub(mono_ns))
}
