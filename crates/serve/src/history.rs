//! This machine's history: the fields of the standard graphs go to the store, every ten seconds their means, and are kept there for
//! years, when the recording has long passed over them.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kymo_base::label_set::{Labels, is_set};
use kymo_base::labels::{self, Matcher};
use kymo_query::downsample::{Downsampler, Row};
use kymo_query::recorded::Recorded;
use kymo_query::series::Series;
use kymo_query::sheet::{Line, Of, Pick, id};
use kymo_query::stored::{Keeper, points, seconds_of};
use kymo_recording::reader::TimeRange;
use kymo_sys::clock::{Clock as _, RealClock};
use kymo_sys::machine;
use kymo_sys::talk;
use kymo_view::standard;
use kymo_wire::keeper::{LabelledSeries, LabelledValues, Range, SeriesInfo};

use crate::archive::Archive;
use crate::number::nanoseconds;
use crate::recording::own;
use crate::stored::Stored;

const SECOND_NS: i64 = 1_000_000_000;
/// Seconds of a mean.
const STEP_S: u32 = 10;
/// Seconds without one after which nothing is known.
const HEARTBEAT_S: u32 = 120;
/// What they are called.
const COLUMN: &[u8] = b"value";
/// The label that says whose they are.
const JOB: &[u8] = b"kymo";
/// Series of this machine at most: interfaces and disks may come and go without end.
const SERIES_MAX: usize = 2048;
/// Means that are given at once: 15 minutes.
const ROWS_MAX: usize = 90;
/// A clock that was ahead by more keeps all that follows from being taken.
const AHEAD_NS: i64 = 300 * SECOND_NS;
/// Rates need a past.
const BACK_NS: i64 = 30 * SECOND_NS;
/// Whoever was away for longer begins again.
const STALE: Duration = Duration::from_secs(150);
/// After a part of what is old the reader rests nine times as long as it took: a tenth of a CPU at most.
const REST: u32 = 9;
/// How far the longest archive reaches: two years.
const KEPT_S: i64 = 17_520 * 3600;
/// What began before this is in rows of an hour.
const LATELY_S: i64 = 2 * 3600;
/// How long it holds where that begins.
const BEGIN_FRESH: Duration = Duration::from_secs(600);
/// How long to wait for the next mean, or before the keeper is asked again.
const PAUSE: Duration = Duration::from_secs(10);

/// All fields that are kept.
fn picks() -> Vec<Pick> {
    let picks = standard::fields().into_iter().map(Pick::parse);
    picks.filter_map(Result::ok).collect()
}

/// The name of a field's series.
fn name(host: &str, field: &str, instance: Option<&str>) -> Option<Labels> {
    let labels = [
        ("field", field.as_bytes()),
        ("host", host.as_bytes()),
        ("instance", instance.unwrap_or_default().as_bytes()),
        ("job", JOB),
    ];
    Labels::new(labels).ok()
}

/// Who gives the recording's means to the keeper.
pub(crate) struct Feeder {
    keeper: Keeper,
    archive: Arc<Archive>,
    host: String,
}

impl Feeder {
    /// Through this socket.
    pub(crate) fn new(socket: &Path, archive: Arc<Archive>) -> Feeder {
        Feeder {
            keeper: Keeper::at(socket.into()),
            archive,
            host: machine::host(),
        }
    }

    /// For ever. What keeps it from that is reported once.
    pub(crate) fn run(&self) {
        let mut said = String::new();
        loop {
            if let Err(why) = self.follow()
                && why != said
            {
                talk::say(format_args!(
                    "kymo: cannot keep this machine's history: {why}; trying again"
                ));
                said = why;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// From the last mean that is stored on, or from where the recording begins.
    fn follow(&self) -> Result<(), String> {
        let ring = self.archive.what.ring().ok_or("nothing is recorded")?;
        let stored = self.keeper.select(&matchers(&self.host))?;
        let last = stored.iter().map(|info| info.last).fold(0.0, f64::max);
        let last_ns = nanoseconds(last);
        let extent = self.archive.extent()?;
        if last_ns > extent.thru_ns.saturating_add(AHEAD_NS) {
            return Err(
                "it has values of the future, as the clock was ahead; `kymo series rm job=kymo` begins it again".into(),
            );
        }
        let from_ns = extent.from_ns.max(last_ns);
        let picks = picks();
        let range = TimeRange {
            from_ns: from_ns.saturating_sub(BACK_NS),
            thru_ns: i64::MAX,
        };
        let mut source = Recorded::open(&own(ring), range, Pick::kinds(&picks))?;
        let step_ns = i64::from(STEP_S) * SECOND_NS;
        let mut means = Downsampler::new(&picks, step_ns, SERIES_MAX);
        let mut names = Names::new(&self.host, stored);
        loop {
            let begun_ns = RealClock.mono_ns();
            let took = || Duration::from_nanos(RealClock.mono_ns() - begun_ns);
            let mut rows = means.read(&mut source, ROWS_MAX)?;
            let is_behind = rows.len() == ROWS_MAX;
            rows.retain(|row| row.thru_ns > last_ns);
            self.give(&mut names, means.lines(), &rows)?;
            match is_behind {
                true => std::thread::sleep(took() * REST),
                false => std::thread::sleep(PAUSE),
            }
            if took() > STALE {
                return Ok(());
            }
        }
    }

    fn give(&self, names: &mut Names, lines: &[Line], rows: &[Row]) -> Result<(), String> {
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let begin = first.thru_ns / SECOND_NS - i64::from(STEP_S);
        let new = names.learn(lines, rows, begin);
        if !new.is_empty() {
            let defined = self.keeper.define(new)?;
            defined.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        let values = names.lines.iter().enumerate().filter_map(|(line, labels)| {
            let known = rows.iter().filter_map(|row| {
                let mean = row.means.get(line).filter(|mean| !mean.is_nan())?;
                Some((row.thru_ns / 1_000_000, *mean))
            });
            let (stamps_ms, cells): (Vec<i64>, Vec<f64>) = known.unzip();
            (!cells.is_empty()).then_some(LabelledValues {
                labels: labels.clone()?,
                stamps_ms,
                cells,
            })
        });
        let values: Vec<LabelledValues> = values.collect();
        // What a question may have in bytes is more than that.
        for part in values.chunks(512) {
            let taken = self.keeper.write(part.to_vec())?;
            taken.into_iter().collect::<Result<Vec<()>, _>>()?;
        }
        Ok(())
    }
}

/// What picks this machine's own series.
fn matchers(host: &str) -> Vec<Matcher> {
    let matcher = |label: &str, pattern: &[u8]| Matcher {
        label: label.into(),
        negated: false,
        pattern: pattern.to_vec(),
    };
    vec![matcher("job", JOB), matcher("host", host.as_bytes())]
}

/// Where what is stored of this machine begins.
#[derive(Default)]
pub(crate) struct Begin {
    /// With the monotonic nanoseconds when it was found.
    known: Mutex<Option<(u64, Option<i64>)>>,
}

impl Begin {
    /// In nanoseconds since 1970; `None`: nothing is stored, or the keeper cannot be asked.
    pub(crate) fn ns(&self, stored: &Stored, now_ns: i64) -> Option<i64> {
        let mono_ns = RealClock.mono_ns();
        let holds_ns = |begin: Option<i64>| begin.map_or(PAUSE, |_| BEGIN_FRESH).as_nanos();
        let known = *self.known.lock().ok()?;
        if let Some((at_ns, begin)) = known
            && u128::from(mono_ns.saturating_sub(at_ns)) < holds_ns(begin)
        {
            return begin;
        }
        let begin = begin_s(&stored.for_addition(), now_ns.div_euclid(SECOND_NS))
            .map(|begin| begin.saturating_mul(SECOND_NS));
        *self.known.lock().ok()? = Some((mono_ns, begin));
        begin
    }
}

/// First in rows of all that archives have, then in the first of them. What began lately is in none of their rows.
fn begin_s(stored: &Stored, now: i64) -> Option<i64> {
    let labels = name(&machine::host(), "cpu.total", None)?;
    let first = |(from, thru): (i64, i64)| {
        let range = Range {
            names: vec![labels.text().to_vec()],
            from,
            thru,
            rows_max: 1000,
        };
        let rows = stored.range(&range).ok()?.pop()?.ok()?;
        let known = rows.mean.iter().position(|mean| !mean.is_nan())?;
        let step = i64::from(rows.step);
        let begin = rows.start + step * i64::try_from(known).ok()?;
        Some((begin, begin + step))
    };
    let found = first((now - KEPT_S, now)).or_else(|| first((now - LATELY_S, now)))?;
    Some(first(found).unwrap_or(found).0)
}

/// The series of the lines of a sheet.
struct Names<'a> {
    host: &'a str,
    stored: Vec<SeriesInfo>,
    /// By the number of the line; `None`: it has none, or none yet.
    lines: Vec<Option<Labels>>,
    /// New ones that there is room for.
    room: usize,
}

impl Names<'_> {
    /// `stored`: those that are there, by name.
    fn new(host: &str, stored: Vec<SeriesInfo>) -> Names<'_> {
        Names {
            host,
            lines: Vec::new(),
            room: SERIES_MAX.saturating_sub(stored.len()),
            stored,
        }
    }

    /// Those that have to be defined. A device has series once it does something.
    fn learn(&mut self, lines: &[Line], rows: &[Row], begin: i64) -> Vec<LabelledSeries> {
        self.lines.resize(lines.len(), None);
        let mut new = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let (field, instance) = match line.id.split_once(':') {
                Some((field, instance)) => (field, Some(instance)),
                None => (&*line.id, None),
            };
            if self.lines[at].is_some() {
                continue;
            }
            let Some(labels) = name(self.host, field, instance) else {
                continue;
            };
            let by_name = |info: &SeriesInfo| (*info.name).cmp(labels.text());
            if self.stored.binary_search_by(by_name).is_err() {
                if self.room == 0 || instance.is_some() && is_quiet(rows, at) {
                    continue;
                }
                self.room -= 1;
                new.push(LabelledSeries {
                    labels: labels.clone(),
                    step: STEP_S,
                    heartbeat: HEARTBEAT_S,
                    start: begin,
                    columns: vec![(COLUMN.to_vec(), b"GAUGE".to_vec())],
                });
            }
            self.lines[at] = Some(labels);
        }
        new
    }
}

/// Whether a line is 0 wherever it is known.
fn is_quiet(rows: &[Row], line: usize) -> bool {
    let mut means = rows.iter().filter_map(|row| row.means.get(line));
    means.all(|mean| mean.is_nan() || *mean == 0.0)
}

/// Whether a series is of this machine's history.
pub(crate) fn is_own(name: &[u8], host: &str) -> bool {
    is_set(name)
        && *labels::value(name, "job") == *JOB
        && *labels::value(name, "host") == *host.as_bytes()
}

/// Adds to points of the recording, up to where that begins, what is stored of the same fields.
pub(crate) fn add(
    stored: &Stored,
    picks: &[Pick],
    begins_ns: i64,
    series: &mut Series,
) -> Result<(), String> {
    let grid = series.grid;
    let (from, _) = seconds_of(&grid);
    let thru = begins_ns.min(grid.thru_ns()).div_euclid(SECOND_NS);
    if from >= thru {
        return Ok(());
    }
    let host = machine::host();
    let wanted = wanted(stored, picks, &host)?;
    // As many rows as there are points before the recording.
    let rows = (thru - from)
        .saturating_mul(SECOND_NS)
        .div_euclid(grid.step_ns);
    for part in wanted.chunks(kymo_wire::keeper::NAMES_MAX) {
        let names = part.iter().map(|(labels, _)| labels.text().to_vec());
        let answers = stored.range(&Range {
            names: names.collect(),
            from,
            thru,
            rows_max: u32::try_from(rows + 1).unwrap_or(u32::MAX),
        })?;
        for ((_, line), rows) in part.iter().zip(answers) {
            // One that is not stored has none.
            let Ok(rows) = rows else { continue };
            let Some(place) = series.place(line) else {
                return Ok(());
            };
            for (known, old) in series.points[place].iter_mut().zip(points(&rows, 0, &grid)) {
                if known.seconds == 0.0 {
                    *known = old;
                }
            }
        }
    }
    Ok(())
}

/// The series of these fields, and their lines.
fn wanted(stored: &Stored, picks: &[Pick], host: &str) -> Result<Vec<(Labels, Line)>, String> {
    let line = |pick: &Pick, n: usize, instance: Option<&str>| Line {
        id: id(pick.subsystem, pick.column, instance),
        unit: pick.column.unit,
        help: pick.column.help,
        pick: n,
    };
    let field = |pick: &Pick| id(pick.subsystem, pick.column, None);
    let mut wanted = Vec::new();
    for (n, pick) in picks.iter().enumerate() {
        let instance = match &pick.of {
            Of::Machine => None,
            Of::One(instance) => Some(instance.as_str()),
            Of::Each => {
                let listed = stored.all()?;
                let field = field(pick);
                let mine = listed.iter().filter(|info| {
                    is_own(&info.name, host)
                        && *labels::value(&info.name, "field") == *field.as_bytes()
                });
                wanted.extend(mine.filter_map(|info| {
                    let instance = labels::value(&info.name, "instance").into_owned();
                    let instance = String::from_utf8(instance).ok()?;
                    let labels = Labels::parse(&info.name).ok()?;
                    (!instance.is_empty()).then(|| (labels, line(pick, n, Some(&instance))))
                }));
                continue;
            }
        };
        let labels = name(host, &field(pick), instance);
        wanted.extend(labels.map(|labels| (labels, line(pick, n, instance))));
    }
    Ok(wanted)
}
