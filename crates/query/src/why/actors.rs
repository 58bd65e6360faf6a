//! Processes in a span and before it: what each took, which came and went, and which wait without an end.

use std::collections::{HashMap, HashSet};

use kymo_base::column::{Cells, Column};
use kymo_base::context::Context;
use kymo_base::reading::{MISSING, Reading, Row};
use kymo_kernel::interpret::Interpreter;
use kymo_kernel::subsystem::process::{BYTES_OF_IO, PPID, PROCESS, STARTTIME, pid_of};
use kymo_recording::reader::{Kinds, TimeRange};

use super::finding::{Actor, Share};
use crate::delta::{Delta, Rates};
use crate::marks::Marker;
use crate::movers::{is_thread, number, text};
use crate::open::Recordings;
use crate::source::{Moment, Source, Step};

const SECOND_NS: i64 = 1_000_000_000;
/// How long before a span processes are looked at, at least.
const BEFORE_NS: i64 = 300 * SECOND_NS;
/// How long at most: more would cost more than it tells.
const BEFORE_MAX_NS: i64 = 1_500 * SECOND_NS;
/// Scans of a long span that are looked at.
const SCANS: i64 = 60;
/// Steps from a process to those above it.
const ANCESTORS_MAX: usize = 16;
/// Most processes that are followed.
const FOLLOWED_MAX: usize = 1 << 18;
/// The shares that are summed over the scans, and those that are looked at in a scan.
const SUMMED: [Share; 5] = [
    Share::Cpu,
    Share::Read,
    Share::Written,
    Share::Calls,
    Share::Children,
];

/// The shares of which the kernel gives those of a child to its parent when the child ends, as places in [`SUMMED`].
const BYTE_SHARES: [usize; 3] = [1, 2, 3];

/// One process.
#[derive(Clone, Debug, Default)]
pub(super) struct One {
    pub pid: u32,
    pub ppid: u32,
    pub comm: String,
    pub command: String,
    pub group: String,
    /// In the order of [`SUMMED`]: amounts in the span, by seconds.
    sums: [f64; SUMMED.len()],
    /// Rates before the span, in the same order; `None`: not known.
    before: Option<[f64; SUMMED.len()]>,
    /// KB since birth, with those of children that ended, at the last scan: read, written, by system calls.
    bytes_kb: [f64; BYTE_SHARES.len()],
    /// CPU since birth, with that of children that ended, at the last scan, and when the span began.
    family_s: f64,
    family_before_s: f64,
    /// Memory before the span, at the last scan, and most in the span, KiB.
    rss_before: f64,
    rss: f64,
    rss_most: f64,
    /// Seconds since its birth at the last scan.
    pub age_s: f64,
    /// True: it was there when the span began.
    pub was_there: bool,
    /// True: it was there when the span began, or is born in it.
    is_in_span: bool,
    /// Number of the last scan it was in.
    last_scan: usize,
    /// Since when it has waited in state D without a move, and the longest such time in seconds.
    waits_since_ns: Option<i64>,
    pub waited_s: f64,
}

/// All processes.
#[derive(Default)]
pub(super) struct Cast {
    all: HashMap<(u32, u64), One>,
    /// Scans within the span.
    scans: usize,
    /// Seconds from the first to the last of them.
    seconds: f64,
    /// Most memory at once of processes of a name.
    rss_most: HashMap<String, f64>,
}

/// Columns that are read.
struct Wanted {
    columns: [Option<&'static Column>; 7],
    comm: Option<&'static Column>,
    command: Option<&'static Column>,
    cgroup: Option<&'static Column>,
    state: Option<&'static Column>,
}

const NUMBERS: [&str; 7] = ["pct", "rkb", "wkb", "rkbc", "wkbc", "accum_children", "rss"];

impl Wanted {
    fn new() -> Wanted {
        let column = |name: &str| PROCESS.detail.iter().find(|column| column.name == name);
        Wanted {
            columns: NUMBERS.map(column),
            comm: column("comm"),
            command: column("command"),
            cgroup: column("cgroup"),
            state: column("state"),
        }
    }

    fn numbers(&self, cells: &Cells) -> [f64; 7] {
        self.columns.map(|column| number(column, cells))
    }
}

/// Place of a scan: before the span, where it begins, or in it. `true`: the rates that end there are the usual ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Begin(bool),
    Within,
}

impl Cast {
    /// Reads the processes of a span, and how they were up to `usual_ns`, where something began.
    pub(super) fn read(
        recordings: &Recordings,
        (from_ns, thru_ns): (i64, i64),
        usual_ns: i64,
    ) -> Result<Cast, String> {
        let usual_ns = usual_ns
            .min(from_ns)
            .max(from_ns - BEFORE_MAX_NS + BEFORE_NS);
        let range = TimeRange {
            from_ns: usual_ns - BEFORE_NS,
            thru_ns: thru_ns.saturating_add(SECOND_NS),
        };
        let kinds: Kinds = PROCESS.understood().collect();
        let mut source = recordings.open(range, kinds)?;
        let mut marker = Marker::default();
        let mut reader = ScanReader::new();
        let mut cast = Cast::default();
        let step_ns = (thru_ns - from_ns) / SCANS - SECOND_NS / 2;
        let mut last_ns: Option<i64> = None;
        while let Some(step) = source.next()? {
            if marker.step(&step, source.context(), &mut |_| {}) {
                reader.delta.restart();
            }
            let Step::Sample(moment) = step else { continue };
            let at_ns = moment.real_ns;
            if at_ns > range.thru_ns {
                break;
            }
            if at_ns < range.from_ns - BEFORE_MAX_NS || !reader.is_scan(&*source) {
                continue;
            }
            let is_first_after = |ns: i64| at_ns >= ns && last_ns.is_none_or(|last| last < ns);
            let place = match last_ns {
                _ if is_first_after(from_ns) => Place::Begin(usual_ns == from_ns),
                None => Place::Before,
                _ if is_first_after(usual_ns) => Place::Before,
                Some(last) if at_ns > from_ns && at_ns - last >= step_ns => Place::Within,
                Some(_) => continue,
            };
            if reader.read(&*source, &moment) {
                cast.take(&reader, &moment, source.context(), place);
                last_ns = Some(at_ns);
            }
        }
        cast.forget_former_lives();
        Ok(cast)
    }
}

/// Scans as readings and rates.
struct ScanReader {
    interpreter: Interpreter,
    delta: Delta,
    reading: Reading,
    wanted: Wanted,
}

impl ScanReader {
    fn new() -> ScanReader {
        ScanReader {
            interpreter: Interpreter::new(&PROCESS),
            delta: Delta::new(&PROCESS),
            reading: Reading::default(),
            wanted: Wanted::new(),
        }
    }

    fn is_scan(&self, source: &dyn Source) -> bool {
        source.tracks().get(PROCESS.sources[0]).sampled
    }

    fn read(&mut self, source: &dyn Source, moment: &Moment) -> bool {
        let context = source.context();
        let is_read = self
            .interpreter
            .read(source.tracks(), context, &mut self.reading);
        if is_read {
            self.delta.advance(&self.reading, moment, context);
        }
        is_read
    }
}

impl Cast {
    fn take(&mut self, scan: &ScanReader, moment: &Moment, context: &Context, place: Place) {
        let rates: &Rates = scan.delta.rates();
        let is_within = place == Place::Within;
        self.scans += usize::from(is_within);
        if is_within {
            self.seconds += rates.elapsed;
        }
        let now_s = moment.boot_ns as f64 / 1e9;
        for out in rates.rows() {
            let row = &scan.reading.rows[out.row];
            if is_thread(&row.name) {
                continue;
            }
            let cells = rates.cells(&out.numbers, Some(row), context, rates.elapsed);
            let pid = u32::try_from(pid_of(&row.name)).unwrap_or(0);
            if self.all.len() >= FOLLOWED_MAX && !self.all.contains_key(&(pid, row.key)) {
                continue;
            }
            let one = self
                .all
                .entry((pid, row.key))
                .or_insert_with(|| One::new(pid, row));
            if is_within || one.comm.is_empty() {
                one.name(&cells, &scan.wanted);
            }
            one.last_scan = self.scans;
            one.bytes_kb = bytes_kb(row);
            one.is_in_span |= place != Place::Before;
            let numbers = scan.wanted.numbers(&cells);
            let has_past = !rates.baseline && !out.baseline;
            one.take(numbers, has_past.then_some(rates.elapsed), place);
            one.wait(
                text(scan.wanted.state, &cells) == "D",
                &numbers,
                moment.real_ns,
            );
            one.age_s = age_s(row, now_s, context.hz());
        }
        if is_within {
            self.add_up_memory();
        }
    }

    /// Takes from parents the CPU that ended children had before the span, and all of their bytes: the kernel adds both when a child
    /// ends, and what the child did in the span is its own.
    fn forget_former_lives(&mut self) {
        let mut former: HashMap<u32, (f64, [f64; BYTE_SHARES.len()])> = HashMap::new();
        for one in self.all.values() {
            if one.last_scan < self.scans {
                let (cpu, bytes) = former.entry(one.ppid).or_default();
                *cpu += one.family_before_s * 100.0;
                if one.is_in_span {
                    let all = bytes.iter_mut().zip(one.bytes_kb);
                    all.for_each(|(sum, kb)| *sum += kb);
                }
            }
        }
        for one in self.all.values_mut() {
            let Some((cpu, bytes)) = former.get(&one.pid) else {
                continue;
            };
            let [.., children] = &mut one.sums;
            *children = (*children - cpu).max(0.0);
            for (share, kb) in BYTE_SHARES.into_iter().zip(bytes) {
                one.sums[share] = (one.sums[share] - kb).max(0.0);
            }
        }
    }

    /// Adds up the memory of processes of one name in the last scan: those of a compiler live one after the other.
    fn add_up_memory(&mut self) {
        let mut sums: HashMap<&str, f64> = HashMap::new();
        for one in self.all.values().filter(|one| one.last_scan == self.scans) {
            *sums.entry(&one.comm).or_default() += one.rss;
        }
        for (comm, sum) in sums {
            match self.rss_most.get_mut(comm) {
                Some(most) => *most = most.max(sum),
                None => {
                    self.rss_most.insert(comm.to_string(), sum);
                }
            }
        }
    }
}

/// KB that a process has read, written, and moved by system calls since its birth.
fn bytes_kb(row: &Row) -> [f64; BYTE_SHARES.len()] {
    let value = |at: usize| match row.values.get(at) {
        Some(&bytes) if bytes != MISSING => bytes as f64 / 1024.0,
        _ => 0.0,
    };
    let [read_calls, written_calls, read, written, _] = BYTES_OF_IO;
    [
        value(read),
        value(written),
        value(read_calls) + value(written_calls),
    ]
}

/// Seconds since a process was born; NaN: not known.
fn age_s(row: &Row, now_s: f64, hz: f64) -> f64 {
    let ticks = row.values.get(STARTTIME).filter(|ticks| **ticks != MISSING);
    ticks.map_or(f64::NAN, |ticks| now_s - *ticks as f64 / hz)
}

/// A number that counts as nothing when it is not known.
fn known(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

impl One {
    fn new(pid: u32, row: &Row) -> One {
        let ppid = row.values.get(PPID);
        One {
            pid,
            ppid: ppid.map_or(0, |ppid| u32::try_from(*ppid).unwrap_or(0)),
            rss_before: f64::NAN,
            ..One::default()
        }
    }

    /// Learns the present names: a process has those of its parent until it runs a program of its own, and can change its group.
    fn name(&mut self, cells: &Cells, wanted: &Wanted) {
        self.comm = text(wanted.comm, cells);
        self.command = text(wanted.command, cells);
        self.group = text(wanted.cgroup, cells);
    }

    /// Takes in a scan; `elapsed`: seconds that its rates are of.
    fn take(&mut self, numbers: [f64; 7], elapsed: Option<f64>, place: Place) {
        let [cpu, read, written, read_calls, written_calls, family_s, rss] = numbers;
        let own_s = elapsed.map_or(0.0, |elapsed| known(cpu) * elapsed / 100.0);
        let children_s = known(family_s - self.family_s - own_s).max(0.0);
        let is_first = std::mem::replace(&mut self.family_s, known(family_s)) == 0.0;
        let children = match elapsed {
            Some(elapsed) if elapsed > 0.0 && !is_first => children_s * 100.0 / elapsed,
            _ => 0.0,
        };
        self.rss = known(rss);
        let rates = [cpu, read, written, read_calls + written_calls, children].map(known);
        if let Place::Begin(_) = place {
            self.family_before_s = self.family_s;
        }
        match place {
            Place::Before | Place::Begin(true) => {
                self.rss_before = self.rss;
                self.before = elapsed.map(|_| rates).or(self.before);
            }
            Place::Begin(false) => {}
            Place::Within => {
                self.rss_most = self.rss_most.max(self.rss);
                for (sum, rate) in self.sums.iter_mut().zip(rates) {
                    *sum += rate * elapsed.unwrap_or(0.0);
                }
            }
        }
        self.was_there |= place != Place::Within;
    }

    /// Follows how long it waits in state D: neither CPU nor I/O moves.
    fn wait(&mut self, is_waiting: bool, numbers: &[f64; 7], at_ns: i64) {
        let [cpu, rates @ ..] = numbers;
        let moves = known(*cpu) > 0.1 || rates[..4].iter().any(|rate| known(*rate) > 0.0);
        let is_of_kernel = self.ppid == 2 || self.pid == 2;
        if !is_waiting || is_of_kernel {
            self.waits_since_ns = None;
        } else if moves || self.waits_since_ns.is_none() {
            self.waits_since_ns = Some(at_ns);
        }
        let since_ns = self.waits_since_ns.unwrap_or(at_ns);
        self.waited_s = self.waited_s.max((at_ns - since_ns) as f64 / 1e9);
    }
}

/// Processes of one name together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ranked {
    /// The process, or the one with the most of several.
    pub actor: Actor,
    /// Value in the span.
    pub value: f64,
    /// Value before it.
    pub usual: f64,
}

impl Cast {
    /// Processes by how much more than usual they took of a share that is summed, or of memory.
    pub(super) fn most(&self, share: Share) -> Vec<Ranked> {
        let at = SUMMED.iter().position(|summed| *summed == share);
        let seconds = self.seconds.max(0.001);
        let value = |one: &One| match at {
            Some(at) => one.sums[at] / seconds,
            None => one.rss_most,
        };
        // The kernel adds what a child took to its parent when it ends, but its CPU and memory.
        let is_passed_on = !matches!(share, Share::Cpu | Share::Memory);
        let heirs = match is_passed_on {
            true => self.heirs(&value),
            false => HashSet::new(),
        };
        let mut ranked = self.ranked(&|one| !heirs.contains(&one.pid), &value, &|one| match at {
            Some(at) => one.before.map_or(0.0, |before| before[at]),
            None => known(one.rss_before),
        });
        if share == Share::Memory {
            for ranked in &mut ranked {
                let most = self.rss_most.get(&ranked.actor.comm);
                ranked.value = most.copied().unwrap_or(ranked.value);
            }
            sort(&mut ranked);
        }
        ranked
    }

    /// Processes of whose share a process below them has at least half.
    fn heirs(&self, value: &dyn Fn(&One) -> f64) -> HashSet<u32> {
        let mut by_pid: HashMap<u32, (u32, f64)> = HashMap::new();
        for one in self.all.values() {
            by_pid.insert(one.pid, (one.ppid, value(one)));
        }
        let mut heirs = HashSet::from([1]);
        for one in self.all.values().filter(|one| value(one) > 0.0) {
            let mut above = one.ppid;
            for _ in 0..ANCESTORS_MAX {
                let Some(&(next, theirs)) = by_pid.get(&above) else {
                    break;
                };
                if theirs > 0.0 && value(one) >= 0.5 * theirs {
                    heirs.insert(above);
                }
                above = next;
            }
        }
        heirs
    }

    /// Names of which the most processes were born in the span.
    pub(super) fn born(&self) -> Vec<Ranked> {
        self.ranked(&|one| !one.was_there, &|_| 1.0, &|_| 0.0)
    }

    /// Single processes that are gone, those with the most memory first: the kernel kills one, never all of a name.
    pub(super) fn gone(&self) -> Vec<Ranked> {
        let gone = self.all.values().filter(|one| one.last_scan < self.scans);
        let ranked = gone.map(|one| Ranked {
            actor: one.actor(1, !one.was_there),
            value: one.rss_most,
            usual: 0.0,
        });
        let mut ranked: Vec<Ranked> = ranked.filter(|ranked| ranked.value > 0.0).collect();
        sort(&mut ranked);
        ranked
    }

    /// Processes of at least this age that ended in the span.
    pub(super) fn ended(&self, age_s: f64) -> Vec<Ranked> {
        let is_ended = |one: &One| {
            one.was_there && one.last_scan < self.scans && one.age_s >= age_s && one.ppid != 2
        };
        self.ranked(&is_ended, &|one| one.age_s, &|_| 0.0)
    }

    /// Processes that waited for at least this time.
    pub(super) fn stuck(&self, least_s: f64) -> Vec<Ranked> {
        let waited = |one: &One| one.waited_s;
        self.ranked(&|one| waited(one) >= least_s, &waited, &|_| 0.0)
    }

    /// The name of a process, and its pid.
    pub(super) fn parent_of_most(&self, comm: &str) -> Option<Ranked> {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let new = self
            .all
            .values()
            .filter(|one| !one.was_there && one.comm == comm);
        for one in new {
            *counts.entry(one.ppid).or_default() += 1;
        }
        let (pid, count) = counts
            .into_iter()
            .max_by_key(|&(pid, count)| (count, pid))?;
        let parent = self.all.values().find(|one| one.pid == pid)?;
        (count > 2 && pid > 2).then(|| Ranked {
            actor: parent.actor(1, !parent.was_there),
            value: count as f64,
            usual: f64::NAN,
        })
    }

    fn ranked(
        &self,
        is_one: &dyn Fn(&One) -> bool,
        value: &dyn Fn(&One) -> f64,
        usual: &dyn Fn(&One) -> f64,
    ) -> Vec<Ranked> {
        let mut by_name: HashMap<&str, (Ranked, f64)> = HashMap::new();
        for one in self.all.values().filter(|one| is_one(one)) {
            let (value, usual) = (value(one), usual(one));
            let (ranked, most) = by_name.entry(&one.comm).or_insert_with(|| {
                let nothing = Ranked {
                    actor: one.actor(0, true),
                    value: 0.0,
                    usual: 0.0,
                };
                (nothing, f64::NEG_INFINITY)
            });
            let takes_part = value > 0.0;
            if value > *most {
                *most = value;
                ranked.actor = Actor {
                    count: ranked.actor.count,
                    is_new: ranked.actor.is_new,
                    ..one.actor(0, true)
                };
            }
            ranked.actor.count += usize::from(takes_part);
            ranked.actor.is_new &= !one.was_there;
            ranked.value += value;
            ranked.usual += usual;
        }
        let ranked = by_name
            .into_values()
            .map(|(ranked, most)| match most >= 0.8 * ranked.value {
                // One of them is nearly all of it.
                true => Ranked {
                    actor: Actor {
                        count: 1,
                        ..ranked.actor
                    },
                    ..ranked
                },
                false => ranked,
            });
        let mut ranked: Vec<Ranked> = ranked.filter(|ranked| ranked.value > 0.0).collect();
        sort(&mut ranked);
        ranked
    }
}

/// Sorts by how much more than usual it is.
fn sort(ranked: &mut [Ranked]) {
    let more = |ranked: &Ranked| ranked.value - ranked.usual;
    ranked.sort_by(|a, b| {
        let by_name = || a.actor.comm.cmp(&b.actor.comm);
        more(b).total_cmp(&more(a)).then_with(by_name)
    });
}

impl One {
    fn actor(&self, count: usize, is_new: bool) -> Actor {
        Actor {
            pid: self.pid,
            comm: self.comm.clone(),
            command: self.command.clone(),
            group: self.group.clone(),
            count,
            is_new,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(pid: u32, ppid: u32, comm: &str, kb: [f64; 2], last_scan: usize) -> One {
        let [in_span, ever] = kb;
        One {
            pid,
            ppid,
            comm: comm.into(),
            sums: [0.0, 0.0, in_span, in_span, 0.0],
            bytes_kb: [0.0, ever, ever],
            was_there: true,
            is_in_span: true,
            last_scan,
            ..One::default()
        }
    }

    /// A script writes for five minutes by programs that end within seconds, and ends early in the span. Then the kernel adds all
    /// that it wrote to the shell that has started it.
    #[test]
    fn what_a_child_wrote_before_the_span_is_not_its_parents() {
        let all = [
            one(2, 1, "bash", [300_500.0, 300_600.0], 10),
            one(3, 2, "script", [40_000.0, 300_000.0], 4),
            one(4, 3, "dd", [2_000.0, 2_000.0], 2),
            one(5, 1, "log", [1_000.0, 9_000.0], 10),
        ];
        let mut cast = Cast {
            all: all.into_iter().map(|one| ((one.pid, 0), one)).collect(),
            scans: 10,
            seconds: 60.0,
            ..Cast::default()
        };
        cast.forget_former_lives();
        for share in [Share::Written, Share::Calls] {
            let most = cast.most(share);
            let names = most.iter().map(|ranked| ranked.actor.comm.as_str());
            let names: Vec<&str> = names.collect();
            assert_eq!(names, ["script", "dd", "log"], "{most:?}");
            let kb = most.iter().map(|ranked| (ranked.value * 60.0).round());
            let kb: Vec<f64> = kb.collect();
            assert_eq!(kb, [38_000.0, 2_000.0, 1_000.0]);
        }
    }
}
