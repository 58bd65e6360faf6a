//! The thread that gives this machine's history to the keeper.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kymo_base::labels::{self, Matcher};
use kymo_keeper_client::Keeper;
use kymo_recording::reader::{Kinds, TimeRange};
use kymo_series::names;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_sys::talk;
use kymo_wire::keeper::{LabelledSeries, LabelledValues, SeriesInfo};

use super::fields::KeptFields;
use super::metrics::{MetricTap, Metrics};
use super::{SECOND_NS, STEP_NS, STEP_S};
use crate::archive::{Archive, own};
use crate::downsample::{Downsampler, Row};
use crate::recorded::Recorded;
use crate::series::nanoseconds;
use crate::sheet::{Line, Pick};

/// Lines of fields that are followed at most.
const LINES_MAX: usize = 2048;
/// Means that are given at once: 15 minutes.
const ROWS_MAX: usize = 90;
/// A clock that was ahead by more keeps all that follows from being taken.
const AHEAD_NS: i64 = 300 * SECOND_NS;
/// Rates need a past.
const BACK_NS: i64 = 30 * SECOND_NS;
/// A feeder that was away for longer begins again.
const STALE: Duration = Duration::from_secs(150);
/// After a part of a long backlog the reader rests nine times as long as it took: a tenth of a CPU at most.
const REST: u32 = 9;
/// Time between two looks, and before the keeper is asked again. Until then the recording has the values.
const PAUSE: Duration = Duration::from_secs(30);
/// Seconds that a recorder may take for its first sample.
const TRIES: usize = 60;
/// Series whose values one question holds: their labels and 15 minutes of values take less than its limit.
const SERIES_AT_ONCE: usize = 512;

/// Gives the recording's means and metrics to the keeper.
pub struct Feeder {
    keeper: Keeper,
    archive: Arc<Archive>,
    host: String,
    /// Fields whose means are kept.
    picks: Vec<Pick>,
}

/// Newest stored samples, nanoseconds since 1970; 0: there are none.
#[derive(Clone, Copy)]
struct Last {
    means_ns: i64,
    metrics_ns: i64,
}

impl Feeder {
    /// A feeder that asks the keeper through this socket.
    pub fn new(socket: &Path, archive: Arc<Archive>, picks: Vec<Pick>) -> Feeder {
        Feeder {
            keeper: Keeper::at(socket.into()),
            archive,
            host: machine::host(),
            picks,
        }
    }

    /// Never ends. What keeps it from its work is reported once.
    pub fn run(&self) {
        self.wait_for_recording();
        let mut logged = String::new();
        loop {
            if let Err(why) = self.follow()
                && why != logged
            {
                talk::say(format_args!(
                    "kymo: cannot keep this machine's history: {why}; trying again"
                ));
                logged = why;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits for the recorder, which starts beside this.
    fn wait_for_recording(&self) {
        for _ in 0..TRIES {
            if self.archive.extent().is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    /// Follows the recording from the last stored samples on, or from where the recording begins.
    fn follow(&self) -> Result<(), String> {
        let ring = self.archive.what.ring().ok_or("nothing is recorded")?;
        let means = self
            .keeper
            .select(&matchers(names::JOB_KYMO, "host", &self.host))?;
        let metrics = self
            .keeper
            .select(&matchers(names::JOB_NODE, "instance", &self.host))?;
        let last = Last {
            means_ns: newest_ns(&means),
            metrics_ns: newest_ns(&metrics),
        };
        let extent = self.archive.extent()?;
        if last.means_ns.max(last.metrics_ns) > extent.thru_ns.saturating_add(AHEAD_NS) {
            return Err(
                "it has values of the future, as the clock was ahead; `kymo series rm job=kymo` and \
                 `kymo series rm job=node` begin it again".into(),
            );
        }
        let from_ns = extent.from_ns.max(last.means_ns.min(last.metrics_ns));
        let range = TimeRange {
            from_ns: from_ns.saturating_sub(BACK_NS),
            thru_ns: i64::MAX,
        };
        let mut metrics = Metrics::new(&self.host, last.metrics_ns);
        let kinds = union(Pick::kinds(&self.picks), metrics.kinds());
        let mut source = Recorded::open(&own(ring), range, kinds)?;
        let mut rows = Downsampler::new(&self.picks, STEP_NS, LINES_MAX);
        let mut fields = KeptFields::new(&self.host, means);
        loop {
            let begun_ns = RealClock.mono_ns();
            let took = || Duration::from_nanos(RealClock.mono_ns() - begun_ns);
            let mut new = rows.read(&mut MetricTap::new(&mut source, &mut metrics), ROWS_MAX)?;
            let is_behind = new.len() == ROWS_MAX;
            new.retain(|row| row.thru_ns > last.means_ns);
            self.give_means(&mut fields, rows.lines(), &new)?;
            self.give(metrics.undefined(), metrics.values())?;
            match is_behind {
                true => std::thread::sleep(took() * REST),
                false => std::thread::sleep(PAUSE),
            }
            if took() > STALE {
                return Ok(());
            }
        }
    }

    fn give_means(
        &self,
        fields: &mut KeptFields,
        lines: &[Line],
        rows: &[Row],
    ) -> Result<(), String> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let begin = first.thru_ns / SECOND_NS - i64::from(STEP_S);
        let new = fields.learn(lines, rows, begin);
        self.give(new, fields.values(rows))
    }

    fn give(&self, new: Vec<LabelledSeries>, values: Vec<LabelledValues>) -> Result<(), String> {
        for part in new.chunks(SERIES_AT_ONCE) {
            let defined = self.keeper.define(part.to_vec())?;
            defined.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        for part in values.chunks(SERIES_AT_ONCE) {
            let taken = self.keeper.write(part.to_vec())?;
            taken.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        Ok(())
    }
}

fn union(kinds: Kinds, more: Kinds) -> Kinds {
    let all = (0..=u8::MAX).filter(|&kind| kinds.contains(kind) || more.contains(kind));
    all.collect()
}

fn newest_ns(stored: &[SeriesInfo]) -> i64 {
    nanoseconds(stored.iter().map(|info| info.last).fold(0.0, f64::max))
}

/// Matchers of the series of a job of this machine.
fn matchers(job: &[u8], host_label: &str, host: &str) -> Vec<labels::Matcher> {
    let matcher = |label: &str, pattern: &[u8]| Matcher {
        label: label.into(),
        negated: false,
        pattern: pattern.to_vec(),
    };
    vec![matcher("job", job), matcher(host_label, host.as_bytes())]
}
