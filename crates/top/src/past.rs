//! Recorded samples, gone through in any direction: the readings that cover a moment, and the samples beside it.
//!
//! As everywhere in kymo, a moment is covered by the first sample at or after it, since a rate is of the interval that ends at its
//! sample. Processes are read less often: theirs is the first scan at or after the moment.

use std::sync::Arc;

use kymo_kernel::subsystem::Subsystem;
use kymo_query::archive::Extent;
use kymo_query::marks::Marker;
use kymo_query::source::Step;
use kymo_recording::reader::{Kinds, TimeRange};

use crate::meters::SUBSYSTEMS;
use crate::readings::{Readings, Route};
use crate::retrieve::Retrieve;

const SECOND_NS: i64 = 1_000_000_000;
/// Used where a recording is too short to know its interval.
const USUAL_SCAN_NS: i64 = 60 * SECOND_NS;
/// How far to look for a second reading of rare sources, as a multiple of the usual distance.
const REACHES: [i64; 3] = [1, 4, 60];
/// How far to look for a sample beyond a gap: a minute, an hour, a day, everything.
const GAPS_NS: [i64; 4] = [
    60 * SECOND_NS,
    3600 * SECOND_NS,
    86_400 * SECOND_NS,
    i64::MAX,
];

/// A place in a recording.
pub struct Past {
    archive: Arc<dyn Retrieve>,
    extent: Arc<Extent>,
    table: &'static Subsystem,
    readings: Readings,
    at_ns: i64,
    previous_ns: Option<i64>,
    next_ns: Option<i64>,
}

impl Past {
    /// Opens a recording at its end; `table` is the subsystem whose instances are wanted.
    pub fn open(archive: Arc<dyn Retrieve>, table: &'static Subsystem) -> Result<Past, String> {
        let extent = archive.extent()?;
        Ok(Past {
            readings: Readings::new(&[]),
            at_ns: extent.thru_ns,
            archive,
            extent,
            table,
            previous_ns: None,
            next_ns: None,
        })
    }

    /// The recording.
    pub fn archive(&self) -> &Arc<dyn Retrieve> {
        &self.archive
    }

    /// How far the recording reached when it was looked at last.
    pub fn extent(&self) -> &Extent {
        &self.extent
    }

    /// Looks again how far the recording reaches.
    pub fn look_again(&mut self) -> Result<(), String> {
        if let Some(again) = self.archive.again()? {
            self.archive = again;
        }
        self.extent = self.archive.extent()?;
        Ok(())
    }

    /// The readings at the moment.
    pub fn readings(&self) -> &Readings {
        &self.readings
    }

    /// The moment, in nanoseconds since 1970.
    pub fn at_ns(&self) -> i64 {
        self.at_ns
    }

    /// Usual distance between samples.
    pub fn interval_ns(&self) -> i64 {
        match self.extent.interval_ns {
            0 => SECOND_NS,
            known => known,
        }
    }

    /// Shows another table from the next step on.
    pub fn show(&mut self, table: &'static Subsystem) {
        self.table = table;
    }

    /// Goes to the first sample at or after a moment, else to the last one. `watched`: the process whose raw texts are wanted.
    pub fn go(&mut self, at_ns: i64, watched: Option<&[u8]>) -> Result<(), String> {
        let scan_ns = match self.extent.scan_interval_ns {
            0 => USUAL_SCAN_NS.min(self.interval_ns().saturating_mul(6)),
            known => known,
        };
        let usual_ns = scan_ns.max(self.interval_ns());
        for reach in REACHES {
            let reach_ns = usual_ns
                .saturating_mul(reach)
                .saturating_add(usual_ns / 2 + SECOND_NS / 2);
            let found = self.search(at_ns, reach_ns, watched)?;
            let part = self.readings.part(self.table);
            let is_whole = part.is_some_and(|part| part.from.is_some());
            let is_first = found.is_some_and(|at_ns| at_ns <= self.extent.from_ns);
            if found.is_some() && (is_whole || is_first) || reach == REACHES[REACHES.len() - 1] {
                break;
            }
        }
        Ok(())
    }

    /// The sample before the present one; `None`: this is the first one.
    pub fn previous(&self) -> Result<Option<i64>, String> {
        match self.previous_ns {
            None => self.last_before(self.at_ns),
            known => Ok(known),
        }
    }

    /// Goes one sample back; stays at the first one.
    pub fn back(&mut self, watched: Option<&[u8]>) -> Result<(), String> {
        let previous_ns = self.previous()?;
        previous_ns.map_or(Ok(()), |at_ns| self.go(at_ns, watched))
    }

    /// Goes one sample forward; `false`: there is none yet.
    pub fn forward(&mut self, watched: Option<&[u8]>) -> Result<bool, String> {
        let next_ns = match self.next_ns {
            None => self.first_after(self.at_ns)?,
            known => known,
        };
        match next_ns {
            Some(at_ns) => self.go(at_ns, watched).map(|()| true),
            None => Ok(false),
        }
    }

    /// Goes to the sample that covers a moment, else across the gap around it to the next or the last one.
    pub fn jump(&mut self, at_ns: i64, watched: Option<&[u8]>) -> Result<(), String> {
        let at_ns = at_ns.clamp(
            self.extent.from_ns,
            self.extent.thru_ns.max(self.extent.from_ns),
        );
        let next_ns = self.first_after(at_ns.saturating_sub(1))?;
        let found_ns = match next_ns {
            None => self.last_before(at_ns)?,
            known => known,
        };
        self.go(found_ns.unwrap_or(at_ns), watched)
    }

    fn first_after(&self, at_ns: i64) -> Result<Option<i64>, String> {
        for gap_ns in GAPS_NS {
            let range = TimeRange {
                from_ns: at_ns.saturating_add(1),
                thru_ns: at_ns.saturating_add(gap_ns),
            };
            let mut source = self.archive.open(range, Kinds::NONE)?;
            while let Some(step) = source.next()? {
                match step {
                    Step::Sample(moment) if moment.real_ns > at_ns => {
                        return Ok(Some(moment.real_ns));
                    }
                    Step::Sample(_) | Step::Event(..) | Step::Gap(_) | Step::Damage(_) => {}
                }
            }
        }
        Ok(None)
    }

    fn last_before(&self, at_ns: i64) -> Result<Option<i64>, String> {
        for gap_ns in GAPS_NS {
            let range = TimeRange {
                from_ns: at_ns.saturating_sub(gap_ns).max(0),
                thru_ns: at_ns.saturating_sub(1),
            };
            let mut source = self.archive.open(range, Kinds::NONE)?;
            let mut last_ns = None;
            while let Some(step) = source.next()? {
                match step {
                    Step::Sample(moment) if moment.real_ns >= at_ns => break,
                    Step::Sample(moment) => last_ns = Some(moment.real_ns),
                    Step::Event(..) | Step::Gap(_) | Step::Damage(_) => {}
                }
            }
            if last_ns.is_some() {
                return Ok(last_ns);
            }
        }
        Ok(None)
    }

    /// Reads on to the sample that covers a moment; its time, if there is one within reach.
    fn search(
        &mut self,
        at_ns: i64,
        reach_ns: i64,
        watched: Option<&[u8]>,
    ) -> Result<Option<i64>, String> {
        let mut subsystems = SUBSYSTEMS.to_vec();
        if subsystems.iter().all(|one| one.name != self.table.name) {
            subsystems.push(self.table);
        }
        let mut readings = Readings::new(&subsystems);
        readings.watch(watched);
        let range = TimeRange {
            from_ns: at_ns.saturating_sub(reach_ns),
            thru_ns: at_ns.saturating_add(reach_ns),
        };
        let mut source = self.archive.open(range, readings.kinds())?;
        let mut marker = Marker::default();
        let (mut previous_ns, mut found_ns, mut next_ns) = (None, None, None);
        let route = Route {
            from_ns: range.from_ns,
            to_ns: at_ns,
        };
        while let Some(step) = source.next()? {
            if marker.step(&step, source.context(), &mut |_| {}) {
                if found_ns.is_some() {
                    break;
                }
                readings.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let real_ns = moment.real_ns;
            match found_ns {
                None if real_ns >= at_ns => found_ns = Some(real_ns),
                None => previous_ns = Some(real_ns),
                Some(_) => next_ns = next_ns.or(Some(real_ns)),
            }
            readings.advance(&source, &moment, route);
            if next_ns.is_some() && readings.are_from(at_ns, self.table) {
                break;
            }
        }
        self.readings = readings;
        self.at_ns = found_ns.or(previous_ns).unwrap_or(at_ns);
        if found_ns.is_none() {
            // At the last sample: the one before it is not known.
            previous_ns = None;
        }
        (self.previous_ns, self.next_ns) = (previous_ns, next_ns);
        Ok(found_ns)
    }
}
