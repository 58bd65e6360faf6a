//! Processes that changed most within a minute, those that were born and those that ended: "what changed here".

use std::collections::HashMap;

use kymo_base::column::{Cells, Column, Value};
use kymo_base::name::DisplayName;
use kymo_base::reading::{MISSING, Row};
use kymo_kernel::subsystem::process::{PROCESS, STARTTIME, pid_of};

use crate::open::Recordings;
use crate::table::Table;

/// Span of the comparison.
const MINUTE_NS: i64 = 60_000_000_000;
/// Most processes of a list.
const LISTED_MAX: usize = 5;
/// Most processes that are named as born, or as ended.
const NAMED_MAX: usize = 20;

/// A number of processes by which they are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// CPU, percent of one.
    Cpu,
    /// Bytes read from disks and written to them, KiB a second.
    Io,
    /// Resident memory, KiB.
    Memory,
}

impl Measure {
    /// All measures, in the order of the page.
    pub const ALL: [Measure; 3] = [Measure::Cpu, Measure::Io, Measure::Memory];

    /// The columns of the process table whose sum is compared.
    pub fn columns(self) -> &'static str {
        match self {
            Measure::Cpu => "pct",
            Measure::Io => "rkb+wkb",
            Measure::Memory => "rss",
        }
    }

    /// The title for people.
    pub fn title(self) -> &'static str {
        match self {
            Measure::Cpu => "CPU",
            Measure::Io => "Disk I/O",
            Measure::Memory => "Memory",
        }
    }

    /// The unit of the values.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Cpu => "%",
            Measure::Io => "KiB/s",
            Measure::Memory => "KiB",
        }
    }

    /// Smallest change that is worth a line.
    fn least(self) -> f64 {
        match self {
            Measure::Cpu => 1.0,
            Measure::Io => 20.0,
            Measure::Memory => 1024.0,
        }
    }

    fn of(self, process: &Process) -> f64 {
        match self {
            Measure::Cpu => process.pct,
            Measure::Io => process.io,
            Measure::Memory => process.rss,
        }
    }
}

/// A process of one scan. NaN: not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// The pid.
    pub pid: u32,
    /// Tells two processes of one pid apart.
    pub key: u64,
    /// Name of the program.
    pub comm: String,
    /// Command line, for those who may see it.
    pub command: String,
    /// Start, nanoseconds since 1970; `None`: not known.
    pub started_ns: Option<i64>,
    /// CPU, percent of one.
    pub pct: f64,
    /// Bytes read and written, KiB a second.
    pub io: f64,
    /// Resident memory, KiB.
    pub rss: f64,
}

/// Presence of a process at the two ends of the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Present all the time.
    Stayed,
    /// Born within the minute.
    Born,
    /// Ended within the minute.
    Ended,
}

/// A process whose number changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mover {
    /// The process as it was seen last.
    pub process: Process,
    /// Presence at the two ends of the minute.
    pub fate: Fate,
    /// The number before; 0 if there was no such process.
    pub was: f64,
    /// The number now; 0 if there is no such process.
    pub is: f64,
}

/// The changes of a minute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Movers {
    /// End of the minute: moment of the scan, nanoseconds since 1970.
    pub at_ns: i64,
    /// Moment of the scan at its beginning.
    pub before_ns: i64,
    /// The largest changes of each measure, in the order of [`Measure::ALL`].
    pub lists: [Vec<Mover>; 3],
    /// New processes, the busiest first, and how many there are.
    pub born: (Vec<Process>, usize),
    /// Processes that ended, the busiest first, and how many there are.
    pub ended: (Vec<Process>, usize),
}

impl Movers {
    /// The changes of the minute that ends with the scan at or after a moment. `None`: there is no scan, or none a minute before.
    pub fn read(recordings: &Recordings, at_ns: i64) -> Result<Option<Movers>, String> {
        let table = |at_ns, over_ns| Table::read(recordings, &PROCESS, at_ns, over_ns);
        let Some(now) = table(at_ns, None)? else {
            return Ok(None);
        };
        let Some(from) = now.from else {
            return Ok(None);
        };
        let old = table(now.at.real_ns - MINUTE_NS, None)?;
        let Some(old) = old.filter(|old| old.at.real_ns < now.at.real_ns) else {
            return Ok(None);
        };
        let minute = table(from.real_ns, Some(MINUTE_NS))?;
        let minute = minute.map(|minute| processes(&minute)).unwrap_or_default();
        let mut movers = Movers::between(&with_rates(processes(&old), &minute), &processes(&now));
        (movers.at_ns, movers.before_ns) = (now.at.real_ns, old.at.real_ns);
        Ok(Some(movers))
    }

    /// The changes from one list of processes to another.
    fn between(before: &[Process], after: &[Process]) -> Movers {
        let was: HashMap<_, &Process> = before.iter().map(|old| (id(old), old)).collect();
        let is: HashMap<_, &Process> = after.iter().map(|new| (id(new), new)).collect();
        let pairs = after
            .iter()
            .map(|new| (was.get(&id(new)).copied(), Some(new)));
        let ended = before.iter().filter(|old| !is.contains_key(&id(old)));
        let pairs: Vec<_> = pairs
            .chain(ended.clone().map(|old| (Some(old), None)))
            .collect();
        let born = after.iter().filter(|new| !was.contains_key(&id(new)));
        Movers {
            lists: Measure::ALL.map(|measure| largest(&pairs, measure)),
            born: busiest(born),
            ended: busiest(ended),
            ..Movers::default()
        }
    }
}

fn id(process: &Process) -> (u32, u64) {
    (process.pid, process.key)
}

/// Processes as they were a minute ago, with their rates over the minute: a moment's rate says little.
fn with_rates(mut old: Vec<Process>, minute: &[Process]) -> Vec<Process> {
    let rates: HashMap<_, &Process> = minute
        .iter()
        .map(|process| (id(process), process))
        .collect();
    for process in &mut old {
        if let Some(over) = rates.get(&id(process)) {
            (process.pct, process.io) = (over.pct, over.io);
        }
    }
    old
}

/// A process before and after.
type Pair<'a> = (Option<&'a Process>, Option<&'a Process>);

fn largest(pairs: &[Pair], measure: Measure) -> Vec<Mover> {
    let number = |process: Option<&Process>| process.map_or(0.0, |process| measure.of(process));
    let mover = |(before, after): &Pair| {
        let (was, is) = (number(*before), number(*after));
        // NaN is no change.
        let is_moved = (is - was).abs() >= measure.least();
        let process = after.or(*before).filter(|_| is_moved)?.clone();
        let fate = match (before, after) {
            (None, _) => Fate::Born,
            (_, None) => Fate::Ended,
            _ => Fate::Stayed,
        };
        Some(Mover {
            process,
            fate,
            was,
            is,
        })
    };
    let mut movers: Vec<Mover> = pairs.iter().filter_map(mover).collect();
    movers.sort_by(|a, b| (b.is - b.was).abs().total_cmp(&(a.is - a.was).abs()));
    movers.truncate(LISTED_MAX);
    movers
}

/// The processes with most CPU, then memory; and how many there are.
fn busiest<'a>(processes: impl Iterator<Item = &'a Process>) -> (Vec<Process>, usize) {
    let mut found: Vec<&Process> = processes.collect();
    let known = |number: f64| if number.is_nan() { 0.0 } else { number };
    found.sort_by(|a, b| {
        let by_cpu = known(b.pct).total_cmp(&known(a.pct));
        by_cpu.then(known(b.rss).total_cmp(&known(a.rss)))
    });
    let count = found.len();
    (found.into_iter().take(NAMED_MAX).cloned().collect(), count)
}

fn processes(table: &Table) -> Vec<Process> {
    let column = |name: &str| PROCESS.detail.iter().find(|column| column.name == name);
    let [comm, command, pct, rss] = ["comm", "command", "pct", "rss"].map(column);
    let [read, written] = ["rkb", "wkb"].map(column);
    let process = |(cells, row): (Cells<'_>, &Row)| {
        let started = row.values.get(STARTTIME).filter(|ticks| **ticks != MISSING);
        Process {
            pid: u32::try_from(pid_of(&row.name)).unwrap_or(0),
            key: row.key,
            comm: text(comm, &cells),
            command: text(command, &cells),
            started_ns: started.map(|ticks| table.started_ns(*ticks)),
            pct: number(pct, &cells),
            io: sum(number(read, &cells), number(written, &cells)),
            rss: number(rss, &cells),
        }
    };
    let rows = table.rows();
    let rows = rows.filter(|(_, row)| !is_thread(&row.name));
    rows.map(process).collect()
}

/// True for a thread, whose process has a row of its own.
pub(crate) fn is_thread(name: &[u8]) -> bool {
    name.contains(&b'/')
}

/// The sum of two numbers. One that is not known counts as nothing beside one that is.
fn sum(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, true) => f64::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) => a + b,
    }
}

/// A cell's number; NaN: not known.
pub(crate) fn number(column: Option<&Column>, cells: &Cells) -> f64 {
    match column.map(|column| column.value) {
        Some(Value::Number(value)) => value(cells),
        Some(Value::Text(_)) | None => f64::NAN,
    }
}

/// A cell's text, safe to show.
pub(crate) fn text(column: Option<&Column>, cells: &Cells) -> String {
    let mut text = Vec::new();
    if let Some(Value::Text(value)) = column.map(|column| column.value) {
        value(cells, &mut text);
    }
    DisplayName(&text).text().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, comm: &str, [pct, io, rss]: [f64; 3]) -> Process {
        Process {
            pid,
            key: 1,
            comm: comm.into(),
            pct,
            io,
            rss,
            ..Process::default()
        }
    }

    fn names(movers: &[Mover]) -> Vec<(&str, Fate, f64)> {
        let name = |mover: &Mover| mover.is - mover.was;
        movers
            .iter()
            .map(|mover| (&*mover.process.comm, mover.fate, name(mover)))
            .collect()
    }

    #[test]
    fn largest_changes_come_first_whichever_way_they_go() {
        let before = [
            process(1, "init", [0.0, 0.0, 100.0]),
            process(9, "bash", [2.0, 7.0, 300.0]),
        ];
        let after = [
            process(1, "init", [0.5, f64::NAN, 5000.0]),
            process(20, "cc1", [97.0, 25.0, 900.0]),
        ];
        let movers = Movers::between(&before, &after);
        let [cpu, io, memory] = &movers.lists;
        assert_eq!(
            names(cpu),
            [("cc1", Fate::Born, 97.0), ("bash", Fate::Ended, -2.0)]
        );
        assert_eq!(names(io), [("cc1", Fate::Born, 25.0)]);
        assert_eq!(names(memory), [("init", Fate::Stayed, 4900.0)]);
        let one = |(list, count): &(Vec<Process>, usize)| (list[0].comm.clone(), *count);
        assert_eq!(one(&movers.born), ("cc1".into(), 1));
        assert_eq!(one(&movers.ended), ("bash".into(), 1));
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let old = process(20, "cc1", [97.0, 0.0, 900.0]);
        let new = Process {
            key: 2,
            ..old.clone()
        };
        let movers = Movers::between(&[old], &[new]);
        assert_eq!((movers.born.1, movers.ended.1), (1, 1));
    }

    #[test]
    fn rates_before_are_those_of_the_minute_and_memory_is_of_its_begin() {
        let old = vec![
            process(9, "bash", [0.0, 0.0, 300.0]),
            process(1, "init", [1.0, 2.0, 3.0]),
        ];
        let minute = [process(9, "bash", [33.0, 7.0, 9999.0])];
        let found = with_rates(old, &minute);
        assert_eq!(
            (found[0].pct, found[0].io, found[0].rss),
            (33.0, 7.0, 300.0)
        );
        assert_eq!((found[1].pct, found[1].rss), (1.0, 3.0));
    }

    #[test]
    fn unknown_numbers_count_beside_known_ones_as_nothing() {
        assert_eq!(
            (sum(1.0, f64::NAN), sum(f64::NAN, 2.0), sum(1.0, 2.0)),
            (1.0, 2.0, 3.0)
        );
        assert!(sum(f64::NAN, f64::NAN).is_nan());
        assert!(is_thread(b"7/task/9") && !is_thread(b"7"));
    }

    #[test]
    fn lists_are_short_and_counts_are_whole() {
        let many: Vec<Process> = (0..100)
            .map(|pid| process(pid, "x", [f64::from(pid), 0.0, 0.0]))
            .collect();
        let movers = Movers::between(&[], &many);
        assert_eq!(movers.lists[0].len(), LISTED_MAX);
        assert_eq!((movers.born.0.len(), movers.born.1), (NAMED_MAX, 100));
        assert_eq!(movers.born.0[0].pid, 99);
    }
}
