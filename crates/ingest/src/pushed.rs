//! Requests that senders push over HTTP, which the hub hands over: Prometheus' remote write, and OTLP; and samples of
//! targets that `kymo scrape` asks. They become series of points under the names that they have; a request is answered when its samples are in the journal.
//!
//! `remote_write` and `otlp` read requests, `intake` finds or begins series and writes, `round` counts the samples of one
//! request, `budgets` limits new series, `accounts` has the counts of senders, `families` keeps descriptions of metrics,
//! `kinds` says which kind of series a type of metric is.

mod accounts;
mod budgets;
pub(crate) mod families;
mod intake;
mod kinds;
mod otlp;
mod remote_write;
mod round;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kymo_base::name::DisplayName;
use kymo_store::{PointsKind, Store};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::disk::Disk;
use kymo_sys::machine;
use kymo_wire::keeper::{
    Answer, MetricFamily, Push, PushAccount, PushFormat, PushResult, ScrapedTarget,
};
use kymo_wire::remote_write::WriteVersion;

use crate::log::{Log, Severity};
use accounts::PushAccounts;
use families::Families;
use intake::PushIntake;
use round::PushRound;

/// Least time between two lines of the log about refused samples.
const REPORT_EVERY_NS: u64 = 60_000_000_000;
/// A buffer for unpacked requests that is larger is given back.
const BUFFER_KEPT: usize = 1 << 20;

/// Intake of pushed requests. Clones share it: requests are taken one after the other.
#[derive(Clone)]
pub struct Pushes {
    state: Arc<Mutex<PushState>>,
    accounts: Arc<Mutex<PushAccounts>>,
    /// Targets that are scraped, as the process that scrapes them said last.
    scraped: Arc<Mutex<Vec<ScrapedTarget>>>,
}

struct PushState {
    intake: PushIntake,
    /// Buffer for unpacked requests.
    unpacked: Vec<u8>,
    reported_ns: Option<u64>,
}

impl Default for Pushes {
    /// An intake that keeps descriptions of metrics in memory alone.
    fn default() -> Pushes {
        Pushes::new(Families::default())
    }
}

impl Pushes {
    /// An intake with the descriptions of metrics in the store's folder, and a message about their file, if there is
    /// one.
    pub fn open(disk: Arc<dyn Disk>, folder: &Path) -> (Pushes, Option<String>) {
        let (families, notice) = Families::open(disk, folder);
        (Pushes::new(families), notice)
    }

    fn new(families: Families) -> Pushes {
        Pushes {
            state: Arc::new(Mutex::new(PushState {
                intake: PushIntake::new(families, machine::host().into_bytes()),
                unpacked: Vec::new(),
                reported_ns: None,
            })),
            accounts: Arc::default(),
            scraped: Arc::default(),
        }
    }

    fn scraped(&self) -> MutexGuard<'_, Vec<ScrapedTarget>> {
        self.scraped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the targets that are scraped.
    pub(crate) fn note_targets(&self, targets: &[ScrapedTarget]) {
        *self.scraped() = targets.to_vec();
    }

    /// The answer to TARGETS.
    pub(crate) fn answer_targets(&self) -> Answer {
        Answer::Targets(self.scraped().clone())
    }

    fn state(&self) -> MutexGuard<'_, PushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accounts(&self) -> MutexGuard<'_, PushAccounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request: its samples are in the journal when this returns.
    pub(crate) fn take(&self, store: &Store, push: &Push, log: &Log) -> PushResult {
        let mut state = self.state();
        let state = &mut *state;
        let mut round = PushRound::begin(store, &push.sender, RealClock.now());
        let PushState {
            intake, unpacked, ..
        } = state;
        intake.begin(&mut round);
        let pushed = match push.format {
            PushFormat::RemoteWriteV1 | PushFormat::Scrape => {
                remote_write::take(intake, &mut round, unpacked, WriteVersion::V1, &push.body)
            }
            PushFormat::RemoteWriteV2 => {
                remote_write::take(intake, &mut round, unpacked, WriteVersion::V2, &push.body)
            }
            PushFormat::Otlp => otlp::take(intake, &mut round, &push.body),
        };
        intake.families.save(log);
        unpacked.clear();
        unpacked.shrink_to(BUFFER_KEPT);
        state.report(push, &pushed, round.now.mono_ns, log);
        self.accounts().note(push.format.protocol(), &round);
        pushed
    }

    /// The answer to PUSHERS.
    pub(crate) fn answer_pushers(&self) -> Answer {
        Answer::Pushers(self.pushers())
    }

    /// The answer to FAMILIES.
    pub(crate) fn answer_families(&self, metric: &str) -> Answer {
        Answer::Families(self.families(metric))
    }

    /// Kind of a series of this metric, by its description or its name.
    pub(crate) fn kind_of(&self, metric: &str) -> PointsKind {
        let metric_type = self.state().intake.families.type_of(metric);
        kinds::points_kind(metric_type, metric)
    }

    /// Counts of all senders.
    fn pushers(&self) -> Vec<PushAccount> {
        self.accounts().all(RealClock.mono_ns())
    }

    /// Descriptions of one metric, or of all.
    fn families(&self, metric: &str) -> Vec<MetricFamily> {
        self.state().intake.families.list(metric)
    }
}

impl PushState {
    /// Logs a request that was refused in part or as a whole, once a minute at most.
    fn report(&mut self, push: &Push, pushed: &PushResult, now_ns: u64, log: &Log) {
        let is_due = self
            .reported_ns
            .is_none_or(|at| now_ns.saturating_sub(at) >= REPORT_EVERY_NS);
        if pushed.why.is_empty() || !is_due {
            return;
        }
        self.reported_ns = Some(now_ns);
        let sender = DisplayName(push.sender.as_bytes());
        let protocol = push.format.protocol();
        let text = format!("{protocol} of {sender}: not taken: {}", pushed.why);
        log(Severity::Warning, &text);
    }
}

#[cfg(test)]
mod tests;
