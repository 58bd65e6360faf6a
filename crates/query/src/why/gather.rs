//! One pass over the samples before and in a span: values of all signals, seldom enough to be quick, and marks.

use kymo_base::context::Context;
use kymo_base::field::Unit;
use kymo_kernel::subsystem::Subsystem;
use kymo_recording::reader::{Kinds, TimeRange};

use super::signals::{SIGNALS, Signal};
use crate::marks::{Mark, Marker};
use crate::open::Recordings;
use crate::series::nanoseconds;
use crate::sheet::{Cell, Pick, Sheet};
use crate::source::{Moment, Source, Step};

const SECOND_NS: i64 = 1_000_000_000;
/// Length of a value, unless the span is short or long: shorter spikes are one value's part.
const STEP_NS: i64 = 10 * SECOND_NS;
/// Values that a short span is cut into, and a long one.
const PIECES: (i64, i64) = (6, 24);
/// Most lines of one subsystem.
const LINES_MAX: usize = 4096;
/// Fields that others are compared with.
const BASES: [&str; 2] = ["memory.total", "cpu.cpus"];

/// A value and the time it is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    /// Begin, in nanoseconds since 1970.
    pub from_ns: i64,
    /// End.
    pub thru_ns: i64,
    /// The value.
    pub value: f64,
}

/// A field of the machine or of an instance, and its values in the order of time.
pub(super) struct Track {
    /// Which of the signals it belongs to.
    pub signal: &'static Signal,
    /// Id of the field.
    pub id: String,
    /// Meaning of the field.
    pub help: &'static str,
    /// Unit of the values.
    pub unit: Unit,
    /// True: its instances tell of people.
    pub private: bool,
    /// The values.
    pub values: Vec<Value>,
}

/// Result of a pass.
#[derive(Default)]
pub(super) struct Gathered {
    /// The fields.
    pub tracks: Vec<Track>,
    /// Marks of the pass.
    pub marks: Vec<Mark>,
    /// When the samples were, in nanoseconds since 1970.
    pub moments: Vec<i64>,
    /// Facts of the machine.
    pub context: Context,
    /// Memory of the machine, KiB, and CPUs online; 0: not known.
    pub bases: [f64; 2],
}

impl Gathered {
    /// The usual distance of samples, in nanoseconds; 0: not known.
    pub(super) fn interval_ns(&self) -> i64 {
        let pairs = self.moments.windows(2);
        let mut distances: Vec<i64> = pairs.map(|pair| pair[1] - pair[0]).collect();
        distances.sort_unstable();
        let median = distances.get(distances.len() / 2).copied();
        median.unwrap_or(0).max(0)
    }
}

/// One subsystem on its way.
struct Gatherer {
    subsystem: &'static Subsystem,
    picks: Vec<Pick>,
    /// For each pick its signal, or the place of a base.
    of: Vec<Result<&'static Signal, usize>>,
    sheet: Sheet,
    step_ns: i64,
    last_ns: Option<i64>,
    /// For each line of the sheet its track.
    places: Vec<Option<usize>>,
}

/// Reads the signals that `wanted` chooses from `begin_ns` to `thru_ns`; a value ends at `from_ns`, so that none is of both
/// sides of it.
pub(super) fn gather(
    recordings: &Recordings,
    times: (i64, i64, i64),
    wanted: &dyn Fn(&Signal) -> bool,
) -> Result<Gathered, String> {
    let (_, from_ns, _) = times;
    gather_between(recordings, times, &|ns| i64::from(ns >= from_ns), wanted)
}

/// Does what [`gather`] does for each span as long as that one before it, too.
pub(super) fn gather_each(
    recordings: &Recordings,
    times: (i64, i64, i64),
    wanted: &dyn Fn(&Signal) -> bool,
) -> Result<Gathered, String> {
    let (_, from_ns, thru_ns) = times;
    let number = |ns: i64| ns.saturating_sub(from_ns).div_euclid(thru_ns - from_ns);
    gather_between(recordings, times, &number, wanted)
}

/// `number`: the number of the part that a moment is in; a value ends where the next part begins.
fn gather_between(
    recordings: &Recordings,
    (begin_ns, from_ns, thru_ns): (i64, i64, i64),
    number: &dyn Fn(i64) -> i64,
    wanted: &dyn Fn(&Signal) -> bool,
) -> Result<Gathered, String> {
    let length_ns = thru_ns - from_ns;
    let step_ns = STEP_NS.min(length_ns / PIECES.0).max(length_ns / PIECES.1);
    let mut parts = parts(wanted, step_ns);
    let kinds: Kinds = parts
        .iter()
        .flat_map(|part| part.subsystem.understood())
        .collect();
    let range = TimeRange {
        from_ns: begin_ns,
        thru_ns: thru_ns.saturating_add(2 * SECOND_NS),
    };
    let mut source = recordings.open(range, kinds)?;
    let (mut gathered, mut marker) = (Gathered::default(), Marker::default());
    let (mut last_ns, mut last) = (i64::MIN, None);
    while let Some(step) = source.next()? {
        let marks = &mut gathered.marks;
        if marker.step(&step, source.context(), &mut |mark| marks.push(mark)) {
            for part in &mut parts {
                part.sheet.restart();
                part.last_ns = None;
            }
        }
        let Step::Sample(moment) = step else { continue };
        if moment.real_ns > range.thru_ns {
            last = None;
            break;
        }
        last = Some(moment);
        let is_edge = number(last_ns) < number(moment.real_ns);
        last_ns = moment.real_ns;
        // Files of collectl give everything, whatever the range is.
        if moment.real_ns < begin_ns - step_ns {
            continue;
        }
        gathered.moments.push(moment.real_ns);
        for part in &mut parts {
            part.advance(&*source, &moment, is_edge, &mut gathered);
        }
    }
    // The time since the last value gives a shorter one.
    if let Some(moment) = last {
        for part in &mut parts {
            part.advance(&*source, &moment, true, &mut gathered);
        }
    }
    gathered.context = source.context().clone();
    Ok(gathered)
}

fn parts(wanted: &dyn Fn(&Signal) -> bool, step_ns: i64) -> Vec<Gatherer> {
    let mut picks: Vec<(Pick, Result<&'static Signal, usize>)> = Vec::new();
    let signals = SIGNALS.iter().filter(|signal| wanted(signal));
    picks.extend(signals.filter_map(|signal| Some((signal.pick()?, Ok(signal)))));
    let bases = BASES.iter().enumerate();
    picks.extend(bases.filter_map(|(n, id)| Some((Pick::parse(id).ok()?, Err(n)))));
    let mut parts: Vec<Gatherer> = Vec::new();
    for (pick, of) in picks {
        let at = parts
            .iter()
            .position(|part| part.subsystem.name == pick.subsystem.name);
        let part = match at {
            Some(at) => &mut parts[at],
            None => {
                parts.push(Gatherer::of(pick.subsystem, step_ns));
                let last = parts.len() - 1;
                &mut parts[last]
            }
        };
        part.picks.push(pick);
        part.of.push(of);
    }
    for part in &mut parts {
        part.sheet = Sheet::new(&part.picks, LINES_MAX);
    }
    parts
}

impl Gatherer {
    fn of(subsystem: &'static Subsystem, step_ns: i64) -> Gatherer {
        Gatherer {
            subsystem,
            picks: Vec::new(),
            of: Vec::new(),
            sheet: Sheet::new(&[], 0),
            // Control groups may be many.
            step_ns: match subsystem.is_scanned() {
                true => 2 * step_ns,
                false => step_ns,
            },
            last_ns: None,
            places: Vec::new(),
        }
    }

    fn advance(&mut self, source: &dyn Source, moment: &Moment, is_edge: bool, out: &mut Gathered) {
        let is_due =
            |last_ns: i64| (moment.real_ns - last_ns).abs() + SECOND_NS / 2 >= self.step_ns;
        let is_known = self.last_ns == Some(moment.real_ns);
        if is_known || !is_edge && !self.last_ns.is_none_or(is_due) {
            return;
        }
        let mut cells: Vec<Cell> = Vec::new();
        self.sheet
            .advance(source, moment, &mut |cell| cells.push(cell));
        if cells.is_empty() && self.last_ns.is_some() {
            return;
        }
        self.last_ns = Some(moment.real_ns);
        while let Some(line) = self.sheet.lines().get(self.places.len()) {
            let place = self.of[line.pick].ok().map(|signal| {
                out.tracks.push(Track {
                    signal,
                    id: line.id.clone(),
                    help: line.help,
                    unit: line.unit,
                    private: self.subsystem.is_private(),
                    values: Vec::new(),
                });
                out.tracks.len() - 1
            });
            self.places.push(place);
        }
        for cell in cells.iter().filter(|cell| !cell.value.is_nan()) {
            match self.places[cell.line] {
                Some(place) => out.tracks[place].values.push(Value {
                    from_ns: moment.real_ns - nanoseconds(cell.elapsed),
                    thru_ns: moment.real_ns,
                    value: cell.value,
                }),
                None => {
                    if let Err(base) = self.of[self.sheet.lines()[cell.line].pick] {
                        out.bases[base] = cell.value;
                    }
                }
            }
        }
    }
}
