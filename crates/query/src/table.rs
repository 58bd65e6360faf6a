//! The instances of a subsystem at a moment, processes or control groups: the reading that covers it, a scan, with rates over
//! the interval that ends there.

use kymo_base::column::Cells;
use kymo_base::context::Context;
use kymo_base::reading::{Reading, Row};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::Subsystem;
use kymo_recording::reader::{Kinds, TimeRange};

use crate::delta::{Delta, Rates};
use crate::marks::Marker;
use crate::open::Recordings;
use crate::source::{Moment, Source, Step};

const SECOND_NS: i64 = 1_000_000_000;

/// How far to look for scans: as far as the usual interval, then further.
const REACHES_NS: [i64; 4] = [
    12 * SECOND_NS,
    90 * SECOND_NS,
    900 * SECOND_NS,
    7200 * SECOND_NS,
];

/// The instances of one scan.
pub struct Table {
    /// When the scan was.
    pub at: Moment,
    /// Where the rates begin; `None`: they have no past.
    pub from: Option<Moment>,
    /// The scan before, and the one after.
    pub previous_ns: Option<i64>,
    /// `None`: there is no later scan.
    pub next_ns: Option<i64>,
    /// Facts of the machine.
    pub context: Context,
    reading: Reading,
    delta: Delta,
}

impl Table {
    /// Reads the table of the first scan at or after `at_ns`, else of the last one there is; rates are over
    /// `over_ns`, or since the scan before. `None`: there is no scan anywhere near.
    pub fn read(
        recordings: &Recordings,
        subsystem: &'static Subsystem,
        at_ns: i64,
        over_ns: Option<i64>,
    ) -> Result<Option<Table>, String> {
        for reach_ns in REACHES_NS {
            let range = TimeRange {
                from_ns: at_ns
                    .saturating_sub(reach_ns)
                    .saturating_sub(over_ns.unwrap_or(0)),
                thru_ns: at_ns.saturating_add(reach_ns),
            };
            let is_last = reach_ns == REACHES_NS[REACHES_NS.len() - 1];
            let scans = match over_ns {
                // The first scan there is has none before it.
                Some(over_ns) => scans_over(recordings, subsystem, range, (at_ns, over_ns))?,
                None => None,
            };
            let table = Search::new(subsystem, at_ns, scans).run(recordings, range)?;
            if let Some(table) = table.filter(|table| is_last || table.previous_ns.is_some()) {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// The instances: their numbers as columns want them.
    pub fn rows(&self) -> impl Iterator<Item = (Cells<'_>, &Row)> {
        let rates: &Rates = self.delta.rates();
        rates.rows().iter().map(|out| {
            let row = &self.reading.rows[out.row];
            let cells = rates.cells(&out.numbers, Some(row), &self.context, rates.elapsed);
            (cells, row)
        })
    }

    /// Seconds that the rates are over; 0 when there are none.
    pub fn elapsed(&self) -> f64 {
        self.from.map_or(0.0, |_| self.delta.rates().elapsed)
    }

    /// When a process was started, in nanoseconds since 1970, by its start in clock ticks since boot.
    pub fn started_ns(&self, start_ticks: u64) -> i64 {
        let since_boot_ns = (start_ticks as f64 * 1e9 / self.context.hz()) as i64;
        self.at.real_ns - self.at.boot_ns as i64 + since_boot_ns
    }
}

/// Sequence numbers of the scans where the rates begin and end.
type Bounds = (u64, u64);

/// The scan that covers `at_ns`, and the one `over_ns` before it.
fn scans_over(
    recordings: &Recordings,
    subsystem: &Subsystem,
    range: TimeRange,
    (at_ns, over_ns): (i64, i64),
) -> Result<Option<Bounds>, String> {
    let leading: Kinds = subsystem.sources[..1].iter().copied().collect();
    let mut source = recordings.open(range, leading)?;
    let mut scans: Vec<Moment> = Vec::new();
    while let Some(step) = source.next()? {
        let Step::Sample(moment) = step else { continue };
        if source.tracks().get(subsystem.sources[0]).sampled {
            scans.push(moment);
            if moment.real_ns >= at_ns {
                break;
            }
        }
    }
    let Some(end) = scans.pop() else {
        return Ok(None);
    };
    // Scans come a little late or early: half a second is no matter.
    let from_ns = end.real_ns - over_ns + SECOND_NS / 2;
    let begin = scans
        .iter()
        .rev()
        .find(|scan| scan.real_ns <= from_ns)
        .or(scans.first());
    Ok(begin.map(|begin| (begin.seq, end.seq)))
}

/// On the way to a scan.
struct Search {
    subsystem: &'static Subsystem,
    at_ns: i64,
    bounds: Option<Bounds>,
    interpreter: Interpreter,
    delta: Delta,
    reading: Reading,
    /// The scan the rates begin at, the last one seen, and the one before that.
    from: Option<Moment>,
    last: Option<Moment>,
    previous: Option<Moment>,
    found: bool,
}

impl Search {
    fn new(subsystem: &'static Subsystem, at_ns: i64, bounds: Option<Bounds>) -> Search {
        Search {
            subsystem,
            at_ns,
            bounds,
            interpreter: Interpreter::new(subsystem),
            delta: Delta::new(subsystem),
            reading: Reading::default(),
            from: None,
            last: None,
            previous: None,
            found: false,
        }
    }

    fn run(mut self, recordings: &Recordings, range: TimeRange) -> Result<Option<Table>, String> {
        let kinds: Kinds = self.subsystem.sources.iter().copied().collect();
        let mut source = recordings.open(range, kinds)?;
        let mut marker = Marker::default();
        let mut context = Context::default();
        let mut next_ns = None;
        while let Some(step) = source.next()? {
            let restart = marker.step(&step, source.context(), &mut |_| {});
            if restart && !self.found {
                self.delta.restart();
                self.from = None;
            }
            let Step::Sample(moment) = step else { continue };
            if self.found {
                if source.tracks().get(self.subsystem.sources[0]).sampled {
                    next_ns = Some(moment.real_ns);
                    break;
                }
                continue;
            }
            if self.take(&*source, &moment) {
                context = source.context().clone();
            }
        }
        Ok(self.last.map(|at| Table {
            at,
            from: self.from,
            previous_ns: self.previous.map(|scan| scan.real_ns),
            next_ns,
            context,
            reading: self.reading,
            delta: self.delta,
        }))
    }

    /// Takes in a sample; `true` if it is a scan.
    fn take(&mut self, source: &dyn Source, moment: &Moment) -> bool {
        let (tracks, context) = (source.tracks(), source.context());
        if !self.interpreter.read(tracks, context, &mut self.reading) {
            return false;
        }
        self.previous = self.last.replace(*moment);
        self.found = match self.bounds {
            None => moment.real_ns >= self.at_ns,
            Some((_, end)) => moment.seq >= end,
        };
        let wanted = match self.bounds {
            None => true,
            Some((begin, end)) => moment.seq == begin || moment.seq == end,
        };
        if wanted {
            let rates = self.delta.advance(&self.reading, moment, context);
            self.from = match (self.bounds, rates.baseline) {
                (None, true) => None,
                (None, false) => self.previous,
                (Some((_, end)), true) => (moment.seq < end).then_some(*moment),
                (Some(_), false) => self.from,
            };
        }
        true
    }
}
