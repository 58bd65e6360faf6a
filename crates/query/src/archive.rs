//! The recording as it is asked: how far it reaches, and fields over a range.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kymo_base::context::Context;
use kymo_kernel::interpret::is_read;
use kymo_kernel::source::kind;
use kymo_recording::reader::{Kinds, Listed, TimeRange};
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_wire::activity::Recorded;

use crate::activity;
use crate::marks::Mark;
use crate::rollup;
use crate::series::{Grid, Series};
use crate::sheet::Pick;
use crate::source::Step;

mod blocks;
mod kept;
mod rollups;
mod what;

use blocks::{Blocks, Run, wall_ns};

pub use kept::Kept;
pub use rollups::{ROLLUPS_FOLDER, Rollups};
pub use what::{RecordingSource, own};

/// Most lines that are followed and rolled up: all that a large machine has.
pub const RECORDED_MAX: usize = 1 << 16;
/// Most lines in one answer.
pub const LINES_MAX: usize = 4096;
/// Most points of all its lines together.
pub const POINTS_MAX: usize = 2_000_000;

const SECOND_NS: i64 = 1_000_000_000;
/// A tail is sealed sooner.
const TAIL_NS: i64 = 1200 * SECOND_NS;
/// Longer ranges are answered in whole minutes.
const LONG_NS: i64 = 3 * 3600 * SECOND_NS;
/// How long the known extent is used before it is read again.
const FRESH: Duration = Duration::from_secs(5);
/// How far before its expected end the end of a ring is read.
const LOOK_BACK_NS: i64 = 60 * SECOND_NS;

/// How far a recording reaches, and in what steps.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// The first and the last moment, in nanoseconds since 1970.
    pub from_ns: i64,
    /// The last sample.
    pub thru_ns: i64,
    /// Nanoseconds from sample to sample, and from scan to scan of the processes; 0: not known.
    pub interval_ns: i64,
    /// Nanoseconds from scan to scan of the processes; 0: not known.
    pub scan_interval_ns: i64,
    /// Facts of the machine.
    pub context: Context,
}

/// The recording.
pub struct Archive {
    /// Recording that the archive shows.
    pub what: RecordingSource,
    rollups: Option<Rollups>,
    extent: Mutex<Option<(Instant, Arc<Extent>)>>,
}

impl Archive {
    /// An archive of recordings, which need not exist yet.
    pub fn new(what: RecordingSource, rollups: Option<Rollups>) -> Archive {
        Archive {
            what,
            rollups,
            extent: Mutex::new(None),
        }
    }

    /// How far it reaches.
    pub fn extent(&self) -> Result<Arc<Extent>, String> {
        let mut known = self
            .extent
            .lock()
            .map_err(|_| "cannot go on: a query failed")?;
        if let Some((at, extent)) = &*known
            && (at.elapsed() < FRESH || self.what.ring().is_none())
        {
            return Ok(extent.clone());
        }
        let extent = Arc::new(self.look()?);
        *known = Some((Instant::now(), extent.clone()));
        Ok(extent)
    }

    /// Takes files for finished no longer: a recorder may be writing them.
    pub fn forget_extent(&self) {
        if self.what.ring().is_none()
            && let Ok(mut known) = self.extent.lock()
        {
            *known = None;
        }
    }

    fn look(&self) -> Result<Extent, String> {
        let mut extent = Extent::default();
        let recordings = self.what.recordings()?;
        let from = |from_ns| TimeRange {
            from_ns,
            thru_ns: i64::MAX,
        };
        match recordings.only_recording() {
            // Only its ends need to be looked at.
            Some(path) => {
                let blocks = Blocks::list(path)?.blocks;
                let first = blocks.iter().map(|block| block.name.wall_min_s).min();
                extent.from_ns = first.map_or(0, wall_ns);
                // Usually it goes on; else its end is behind its last block.
                self.look_at_end(&mut extent, from(RealClock.now().real_ns - LOOK_BACK_NS))?;
                if extent.thru_ns == 0 {
                    let last = blocks
                        .last()
                        .map_or(0, |block| wall_ns(block.name.wall_max_s));
                    self.look_at_end(&mut extent, from(last - LOOK_BACK_NS))?;
                }
            }
            None => self.look_at_end(&mut extent, TimeRange::ALL)?,
        }
        if extent.from_ns == 0 {
            extent.from_ns = self.first_ns()?.unwrap_or(extent.thru_ns);
        }
        Ok(extent)
    }

    /// The first moment of recordings without blocks, whose names would give it.
    fn first_ns(&self) -> Result<Option<i64>, String> {
        let mut source = self.what.open(TimeRange::ALL, Kinds::NONE)?;
        while let Some(step) = source.next()? {
            if let Step::Sample(moment) = step {
                return Ok(Some(moment.real_ns));
            }
        }
        Ok(None)
    }

    fn look_at_end(&self, extent: &mut Extent, range: TimeRange) -> Result<(), String> {
        self.look_at(extent, range, Kinds::from_iter([kind::PID_STAT]))
    }

    fn look_at(&self, extent: &mut Extent, range: TimeRange, kinds: Kinds) -> Result<(), String> {
        let mut source = self.what.open(range, kinds)?;
        let (mut sample, mut scan) = (Distance::default(), Distance::default());
        while let Some(step) = source.next()? {
            let Step::Sample(moment) = step else { continue };
            sample.pass(moment.real_ns);
            if is_read(source.tracks().get(kind::PID_STAT)) {
                scan.pass(moment.real_ns);
            }
        }
        extent.thru_ns = sample.last_ns.unwrap_or(0);
        extent.interval_ns = sample.usual_ns();
        extent.scan_interval_ns = scan.usual_ns();
        extent.context = source.context().clone();
        Ok(())
    }
}

/// The usual distance between moments: the median, to a tenth of a second, since they come a little early
/// or late. The first is left out: a recorder begins at any moment, and goes on at whole seconds.
#[derive(Default)]
struct Distance {
    last_ns: Option<i64>,
    passed: u32,
    distances: Vec<i64>,
}

impl Distance {
    fn pass(&mut self, now_ns: i64) {
        const MOST: usize = 1000;
        const TENTH_NS: i64 = 100_000_000;
        self.passed += 1;
        let last_ns = self.last_ns.replace(now_ns);
        if let Some(last_ns) = last_ns.filter(|_| self.passed > 2)
            && self.distances.len() < MOST
        {
            self.distances.push(
                now_ns
                    .saturating_sub(last_ns)
                    .saturating_add(TENTH_NS / 2)
                    .div_euclid(TENTH_NS)
                    * TENTH_NS,
            );
        }
    }

    /// 0: not known.
    fn usual_ns(&mut self) -> i64 {
        self.distances.sort_unstable();
        let median = self.distances.get(self.distances.len() / 2);
        median.copied().unwrap_or(0).max(0)
    }
}

impl Archive {
    /// Fields over a range, with the resolution in nanoseconds: of long ranges whole minutes, from
    /// roll-ups where there are any.
    pub fn series(
        &self,
        picks: &[Pick],
        from_ns: i64,
        thru_ns: i64,
        points: usize,
    ) -> Result<(Series, i64), String> {
        let long = thru_ns.saturating_sub(from_ns) > LONG_NS;
        let interval_ns = self.interval_ns(from_ns, long)?;
        let least_ns = match long {
            true => interval_ns.max(rollup::STEP_NS),
            false => interval_ns,
        };
        let grid = Grid::new(from_ns, thru_ns, points, least_ns);
        let mut series = Series::new(grid, LINES_MAX.min(POINTS_MAX / grid.count));
        match self.what.ring() {
            Some(ring) if long && picks.iter().all(Pick::is_rolled_up) => {
                self.add_long(ring, picks, &mut series)?
            }
            _ => {
                let mut source = self.what.open(series.grid.range(), Pick::kinds(picks))?;
                series.take_in(&mut source, picks)?;
            }
        }
        Ok((series, least_ns))
    }

    /// The interval of the samples of a range: it may have been another one then than it is now.
    fn interval_ns(&self, from_ns: i64, long: bool) -> Result<i64, String> {
        let now_ns = self.extent()?.interval_ns;
        let mut then = Extent::default();
        if !long {
            let range = TimeRange {
                from_ns,
                thru_ns: from_ns.saturating_add(LOOK_BACK_NS),
            };
            self.look_at(&mut then, range, Kinds::NONE)?;
        }
        let known = [now_ns, then.interval_ns].into_iter().filter(|&ns| ns > 0);
        Ok(known.min().unwrap_or(SECOND_NS))
    }

    /// Adds block by block: the block's roll-up, or, together with its neighbours that have none, the
    /// block itself; then the samples that are in no block yet.
    fn add_long(&self, ring: &Path, picks: &[Pick], series: &mut Series) -> Result<(), String> {
        let all = Blocks::list(&own(ring))?;
        let range = series.grid.range();
        let is_in = |block: &Listed| {
            wall_ns(block.name.wall_max_s).saturating_add(SECOND_NS) >= range.from_ns
                && wall_ns(block.name.wall_min_s) <= range.thru_ns
        };
        let kinds = Pick::kinds(picks);
        let mut raw: Vec<Listed> = Vec::new();
        for block in &all.blocks {
            let rolled = is_in(block)
                && self
                    .rollups
                    .as_ref()
                    .and_then(|rollups| rollups.read(&all, block))
                    .is_some_and(|bytes| rollup::merge(&bytes, picks, series));
            if is_in(block) && !rolled {
                raw.push(*block);
                continue;
            }
            self.add_run(&mut raw, block.name.first_seq, kinds, picks, series)?;
        }
        // The newest blocks and what follows them are one run, up to the present.
        let first_seq = match (raw.first(), all.blocks.last()) {
            (Some(first), _) => first.name.first_seq,
            (None, Some(last)) => all.last_seq(last)? + 1,
            (None, None) => 0,
        };
        let from_ns = match (raw.first(), all.blocks.last()) {
            (Some(first), _) => wall_ns(first.name.wall_min_s),
            (None, Some(last)) => {
                // Where the clock was set back, what follows the last block is before its end.
                let (end_ns, now_ns) = (wall_ns(last.name.wall_max_s), RealClock.now().real_ns);
                match now_ns < end_ns {
                    true => now_ns.saturating_sub(TAIL_NS),
                    false => end_ns,
                }
            }
            (None, None) => range.from_ns,
        };
        if from_ns > range.thru_ns {
            return Ok(());
        }
        let run = Run::from(
            first_seq,
            TimeRange {
                from_ns: from_ns.max(range.from_ns),
                ..range
            },
        );
        series.take_in(&mut run.open(&self.what, kinds)?, picks)
    }

    /// Adds blocks that have no roll-up.
    fn add_run(
        &self,
        raw: &mut Vec<Listed>,
        end_seq: u64,
        kinds: Kinds,
        picks: &[Pick],
        series: &mut Series,
    ) -> Result<(), String> {
        if !raw.is_empty() {
            let run = Run::of(raw, end_seq);
            raw.clear();
            series.take_in(&mut run.open(&self.what, kinds)?, picks)?;
        }
        Ok(())
    }

    /// Makes roll-ups, for ever, if there is a place for them.
    pub fn keep_rollups(&self) {
        if let Some(rollups) = &self.rollups {
            rollups.keep_up(&self.what);
        }
    }

    /// The state of programs at a moment.
    pub fn programs(&self, at_ns: i64) -> Result<Option<Recorded>, String> {
        match &self.what {
            RecordingSource::Kept(_) => Ok(None),
            RecordingSource::Ring(_) | RecordingSource::Files(_) => {
                activity::at(&self.what.recordings()?, at_ns)
            }
        }
    }

    /// Marks of the events in a range.
    pub fn marks(&self, from_ns: i64, thru_ns: i64) -> Result<Vec<Mark>, String> {
        let (mut series, _) = self.series(&[], from_ns, thru_ns, 600)?;
        series.sort();
        Ok(series.marks)
    }
}
