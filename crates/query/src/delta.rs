//! The rate rule of this machine: the input is raw readings, the output their differences. The only place where two
//! readings of one kernel are subtracted.
//!
//! Two rows are the same row if name and key are the same; a new row is a baseline, and so is every row after a gap. A
//! number that was not read in between is spread over the time since its last reading. A row that is missing in one
//! reading was neither removed nor reset, and a doubled row counts once: texts that need several reads are not atomic.
//!
//! A counter that is smaller than before was reset, or it has wrapped at 2^32, as those of 32-bit kernels and of some
//! drivers do. A wrap is believed where it is the smaller change and no other counter of the row shows a reset. A reset
//! sets back all counters of a row, also those that have grown past their old value since: none of them is known. A sum
//! that lacks such a row is not known either. Counters that may step back by themselves do so by a little; a greater
//! fall is a reset of this counter alone. A rate that no link can have is not believed, and the reading reports it once.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use kymo_base::column::Cells;
use kymo_base::context::Context;
use kymo_base::field::Rule;
use kymo_base::reading::{MISSING, Reading, Row};
use kymo_kernel::subsystem::{Ceiling, Most, Subsystem, Sum};

use crate::source::Moment;

use self::past::Past;

mod past;

/// Readings that a row may be missing in before it is forgotten.
const ABSENCE_MAX: u32 = 2;
/// Clocks of births and of samples may be this far apart.
const BIRTH_SLACK_NS: u64 = 1_000_000_000;

/// Rows that a remark is made of.
const REMARKS_MAX: usize = 64;

/// Counters of 32 bits go round at this.
const ROUND: u64 = 1 << 32;

/// A counter that may step back by itself does so by this much at the most: ticks, milliseconds (a guess).
const STEP_BACK_MAX: u64 = 10;

/// Difference between two values, by their rule; `None`: it cannot be known. `is_reset`: a counter of the row was reset.
pub fn added(rule: Rule, last: u64, now: u64, is_reset: bool) -> Option<f64> {
    match rule {
        Rule::Gauge => Some(now as i64 as f64 - last as i64 as f64),
        _ if is_reset => None,
        _ if now >= last => Some((now - last) as f64),
        Rule::CounterMayStepBack => (last - now <= STEP_BACK_MAX).then_some(0.0),
        Rule::Counter64 | Rule::Counter32 => round(last, now).map(|added| added as f64),
    }
}

/// Growth of a counter that has gone round, where that is the shorter way.
fn round(last: u64, now: u64) -> Option<u64> {
    let added = ROUND.checked_sub(last)? + now;
    (added < ROUND / 2).then_some(added)
}

/// True if two values of a counter tell of a reset.
fn tells_reset(rule: Rule, last: u64, now: u64) -> bool {
    let steady = matches!(rule, Rule::Counter64 | Rule::Counter32);
    steady && last != MISSING && now < last && round(last, now).is_none()
}

/// The differences of one subsystem, interval after interval.
pub struct Delta {
    subsystem: &'static Subsystem,
    globals: Past,
    rows: Vec<Past>,
    by_name: HashMap<Vec<u8>, usize>,
    last: Option<Moment>,
    boot: Boot,
    turn: u64,
    rates: Rates,
    remarks: Remarks,
}

/// Subjects of remarks that were made: each is made once.
#[derive(Default)]
struct Remarks(HashSet<Vec<u8>>);

impl Remarks {
    fn take(&mut self, name: &[u8], remark: String, out: &mut Vec<String>) {
        if self.0.len() < REMARKS_MAX && self.0.insert(name.to_vec()) {
            out.push(remark);
        }
    }
}

/// The boot that the past is of.
#[derive(Default)]
struct Boot {
    context_stamp: u64,
    id: String,
}

impl Boot {
    /// True: the facts are of another boot than the last ones.
    fn changes(&mut self, context: &Context) -> bool {
        if self.context_stamp == context.stamp() {
            return false;
        }
        self.context_stamp = context.stamp();
        let id = context.get("boot_id").unwrap_or_default();
        let changed = self.id != id;
        self.id = id.to_string();
        changed
    }
}

/// Numbers of one interval.
#[derive(Default, Debug)]
pub struct Rates {
    /// Seconds since the reading before; 0 at a baseline.
    pub elapsed: f64,
    /// True: there was no reading before, so nothing can be shown.
    pub baseline: bool,
    /// The whole machine.
    pub globals: Numbers,
    /// The sum over the rows that count.
    pub sum: Numbers,
    /// The rows, in the reading's order.
    pub rows: Vec<RateRow>,
    /// The row, in the reading, of the greatest of all peaks of `Subsystem::sum`.
    pub peak: Option<usize>,
    /// Remarks on this interval, each once.
    pub remarks: Vec<String>,
    len: usize,
}

/// Values and their differences, by field.
#[derive(Default, Debug, Clone)]
pub struct Numbers {
    /// At the end of the interval; NaN: missing.
    pub now: Vec<f64>,
    /// Added in it; NaN: not known.
    pub delta: Vec<f64>,
}

/// One instance over one interval.
#[derive(Default, Debug, Clone)]
pub struct RateRow {
    /// Index of the row in the reading.
    pub row: usize,
    /// True: the row has no past.
    pub baseline: bool,
    /// True: the row's differences are unknown, because a counter was reset or counted more than the ceiling.
    pub is_unknown: bool,
    /// Numbers of the row.
    pub numbers: Numbers,
}

impl Rates {
    /// The instances of this interval.
    pub fn rows(&self) -> &[RateRow] {
        &self.rows[..self.len]
    }

    /// Numbers as columns want them.
    pub fn cells<'a>(
        &self,
        numbers: &'a Numbers,
        row: Option<&'a Row>,
        context: &'a Context,
        secs: f64,
    ) -> Cells<'a> {
        Cells {
            now: &numbers.now,
            delta: &numbers.delta,
            secs,
            elapsed: self.elapsed,
            name: row.map_or(&[], |row| &row.name),
            labels: row.map_or(&[], |row| &row.labels),
            context,
        }
    }

    fn next_row(&mut self) -> &mut RateRow {
        if self.len == self.rows.len() {
            self.rows.push(RateRow::default());
        }
        self.len += 1;
        &mut self.rows[self.len - 1]
    }
}

impl Delta {
    /// The differences of one subsystem.
    pub fn new(subsystem: &'static Subsystem) -> Delta {
        Delta {
            subsystem,
            globals: Past::default(),
            rows: Vec::new(),
            by_name: HashMap::new(),
            last: None,
            boot: Boot::default(),
            turn: 0,
            rates: Rates::default(),
            remarks: Remarks::default(),
        }
    }

    /// Forgets the past, as at a gap or another boot: the next reading is a baseline.
    pub fn restart(&mut self) {
        self.last = None;
        self.globals = Past::default();
        self.rows.clear();
    }

    /// Adds the next reading and computes its differences from the one before.
    pub fn advance(&mut self, reading: &Reading, moment: &Moment, context: &Context) -> &Rates {
        if self.boot.changes(context) {
            self.restart();
        }
        match self.last.map(|last| last.mono_ns.cmp(&moment.mono_ns)) {
            // Another boot.
            Some(Ordering::Greater) => self.restart(),
            // No time has passed by a coarse clock: the next interval has what this one would.
            Some(Ordering::Equal) => {
                self.rates.baseline = true;
                return &self.rates;
            }
            _ => {}
        }
        self.turn += 1;
        let last = self.last.replace(*moment);
        let span = Span {
            now_ns: moment.mono_ns,
            last_ns: last.map_or(moment.mono_ns, |last| last.mono_ns),
        };
        self.rates.baseline = last.is_none();
        self.rates.elapsed = span.secs();
        self.globals.name.clear();
        self.globals.advance(
            &reading.globals,
            self.subsystem.globals,
            span,
            &mut self.rates.globals,
        );
        let births = last.map(|last| Births {
            after_ns: last.boot_ns.saturating_sub(BIRTH_SLACK_NS),
            hz: context.hz(),
        });
        self.advance_rows(&reading.rows, span, births, context);
        self.sum(&reading.rows);
        &self.rates
    }

    /// Differences of the last reading.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    fn advance_rows(
        &mut self,
        rows: &[Row],
        span: Span,
        births: Option<Births>,
        context: &Context,
    ) {
        self.rates.len = 0;
        self.rates.remarks.clear();
        self.arrange(rows);
        let fields = self.subsystem.fields;
        for (at, row) in rows.iter().enumerate() {
            let past = &mut self.rows[at];
            if past.turn == self.turn && past.name == DOUBLE {
                continue;
            }
            let known = past.turn != 0 && past.key == row.key;
            if !known {
                past.forget(row);
                let born = self.subsystem.born.zip(births);
                if born.is_some_and(|(field, births)| births.include(row.values[field])) {
                    past.begin_at_zero(fields, span.last_ns);
                }
            }
            past.turn = self.turn;
            let out = self.rates.next_row();
            out.row = at;
            out.baseline = past.values.is_empty();
            past.advance(&row.values, fields, span, &mut out.numbers);
            out.is_unknown = past.is_reset;
            if let Some(ceiling) = &self.subsystem.ceiling {
                let secs = span.secs();
                if let Some(remark) = beyond(ceiling, past, out, secs, context) {
                    self.remarks
                        .take(&row.name, remark, &mut self.rates.remarks);
                }
            }
        }
        let (turn, len) = (self.turn, rows.len());
        let mut at = 0;
        self.rows.retain(|past| {
            at += 1;
            at <= len || past.turn + u64::from(ABSENCE_MAX) > turn
        });
    }

    /// Puts the pasts into the order of `rows`, new ones where there is none; those of absent rows
    /// come behind.
    fn arrange(&mut self, rows: &[Row]) {
        let in_order = rows.len() <= self.rows.len()
            && rows
                .iter()
                .zip(&self.rows)
                .all(|(row, past)| row.name == past.name);
        // Pasts have each name once, so rows in their order do too.
        if in_order {
            return;
        }
        let mut old: HashMap<Vec<u8>, Past> = std::mem::take(&mut self.rows)
            .into_iter()
            .filter(|past| past.name != DOUBLE)
            .map(|past| (past.name.clone(), past))
            .collect();
        self.by_name.clear();
        for (at, row) in rows.iter().enumerate() {
            let past = if self.by_name.insert(row.name.clone(), at).is_some() {
                let mut double = Past::of(DOUBLE);
                double.turn = self.turn;
                double
            } else {
                old.remove(&row.name).unwrap_or_else(|| Past::of(&row.name))
            };
            self.rows.push(past);
        }
        self.rows.extend(old.into_values());
    }

    /// Adds up the rows that count. A baseline or an unknown number of one is left out; where no row knows
    /// a number, neither does the sum.
    fn sum(&mut self, rows: &[Row]) {
        let widths = rows.iter().map(|row| row.values.len());
        let width = widths.max().unwrap_or(0).max(self.subsystem.fields.len());
        let Rates {
            sum,
            rows: out,
            peak: greatest,
            len,
            ..
        } = &mut self.rates;
        for numbers in [&mut sum.now, &mut sum.delta] {
            numbers.clear();
            numbers.resize(width, f64::NAN);
        }
        for row in out[..*len].iter().filter(|out| rows[out.row].counted) {
            add(&mut sum.now, &row.numbers.now);
            add(&mut sum.delta, &row.numbers.delta);
        }
        let counted = out[..*len].iter().filter(|out| rows[out.row].counted);
        for row in counted.filter(|row| row.is_unknown) {
            forget_unknown(&mut sum.delta, &row.numbers);
        }
        if let Some(rule) = &self.subsystem.sum {
            let rows_out = &out[..*len];
            *greatest = peak(rule, rows_out, &mut sum.delta);
            let stands_in = |out: &&RateRow| rows[out.row].name == rule.otherwise;
            if let Some(other) = rows_out.iter().find(stands_in) {
                stand_in(&mut sum.now, &other.numbers.now);
                stand_in(&mut sum.delta, &other.numbers.delta);
            }
        }
    }
}

/// Puts the greatest number of any row into the sum; the row, in the reading, that has the greatest of all.
fn peak(rule: &Sum, rows: &[RateRow], sum: &mut [f64]) -> Option<usize> {
    let mut greatest: Option<(f64, usize)> = None;
    for &field in rule.peaks {
        sum[field] = f64::NAN;
        for row in rows.iter().filter(|row| (rule.among)(&row.numbers.now)) {
            let delta = row.numbers.delta[field];
            // A number that is not known is greater than none.
            if delta.is_nan() || sum[field] >= delta {
                continue;
            }
            sum[field] = delta;
            if delta > greatest.map_or(0.0, |(most, _)| most) {
                greatest = Some((delta, row.row));
            }
        }
    }
    greatest.map(|(_, row)| row)
}

/// Puts numbers in place of those that are not known.
fn stand_in(sum: &mut [f64], values: &[f64]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        if sum.is_nan() {
            *sum = value;
        }
    }
}

/// Stands for the name of a row's second appearance in one reading; no kernel name holds a newline.
const DOUBLE: &[u8] = b"\n";

fn add(sum: &mut [f64], values: &[f64]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        if !value.is_nan() {
            *sum = if sum.is_nan() { value } else { *sum + value };
        }
    }
}

/// A sum of which a part is there and is not known is not known.
fn forget_unknown(sum: &mut [f64], part: &Numbers) {
    let parts = part.now.iter().zip(&part.delta);
    for (sum, (now, delta)) in sum.iter_mut().zip(parts) {
        if delta.is_nan() && !now.is_nan() {
            *sum = f64::NAN;
        }
    }
}

/// Marks a row as unknown if one of its rates is above its ceiling, and gives the remark about it. Where the ceiling is
/// a guess, a rate that stays above it is believed.
fn beyond(
    ceiling: &Ceiling,
    past: &mut Past,
    row: &mut RateRow,
    secs: f64,
    context: &Context,
) -> Option<String> {
    let fields = ceiling.fields.iter().copied();
    let rate = fields.map(|field| row.numbers.delta[field] / secs);
    let rate = rate.fold(f64::NAN, f64::max);
    let was_beyond = std::mem::take(&mut past.is_beyond);
    if rate.is_nan() || rate < ceiling.least {
        return None;
    }
    let most = (ceiling.most)(&past.name, context);
    let (Most::Known(least) | Most::Guessed(least)) = most;
    past.is_beyond = rate > least;
    if !past.is_beyond || was_beyond && matches!(most, Most::Guessed(_)) {
        return None;
    }
    row.is_unknown = true;
    row.numbers.delta.fill(f64::NAN);
    Some((ceiling.remark)(&past.name, rate, context))
}

/// An interval on the monotonic clock.
#[derive(Clone, Copy)]
struct Span {
    now_ns: u64,
    last_ns: u64,
}

impl Span {
    fn secs(self) -> f64 {
        (self.now_ns - self.last_ns) as f64 / 1e9
    }
}

/// Which instances were born in the interval.
#[derive(Clone, Copy)]
struct Births {
    after_ns: u64,
    hz: f64,
}

impl Births {
    fn include(self, start_ticks: u64) -> bool {
        start_ticks != MISSING && start_ticks as f64 * 1e9 / self.hz >= self.after_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_kernel::subsystem::{
        disk::DISK,
        process::{PROCESS, STARTTIME},
    };
    use proptest::prelude::*;

    fn at(secs: f64) -> Moment {
        let ns = (secs * 1e9) as u64;
        Moment {
            mono_ns: ns,
            boot_ns: ns,
            ..Moment::default()
        }
    }

    fn row(name: &str, key: u64, reads: u64) -> Row {
        let mut values = vec![MISSING; DISK.fields.len()];
        values[0] = reads;
        Row {
            key,
            name: name.into(),
            counted: true,
            values,
            labels: Vec::new(),
        }
    }

    fn rows(rows: &[(&str, u64, u64)]) -> Reading {
        Reading {
            globals: Vec::new(),
            rows: rows.iter().map(|&(n, k, r)| row(n, k, r)).collect(),
        }
    }

    #[test]
    fn the_rules() {
        use Rule::*;
        for (rule, last, now, expect, after_reset) in [
            (Counter64, 5, 8, Some(3.0), None),
            (Counter64, 8, 5, None, None),
            (Counter64, u64::MAX - 1, 1, None, None),
            (Counter64, (1 << 32) - 2, 3, Some(5.0), None),
            (Counter32, 5, 8, Some(3.0), None),
            (Counter32, (1 << 32) - 2, 3, Some(5.0), None),
            (Counter32, 1 << 30, 3, None, None),
            (Counter32, 1 << 40, 3, None, None),
            (CounterMayStepBack, 8, 5, Some(0.0), None),
            (CounterMayStepBack, 18, 8, Some(0.0), None),
            (CounterMayStepBack, 19, 8, None, None),
            (CounterMayStepBack, 5, 8, Some(3.0), None),
            (Gauge, 8, 5, Some(-3.0), Some(-3.0)),
            (Gauge, -2i64 as u64, 20, Some(22.0), Some(22.0)),
        ] {
            let got = [false, true].map(|is_reset| added(rule, last, now, is_reset));
            assert_eq!(got, [expect, after_reset], "{rule:?} {last} -> {now}");
        }
    }

    /// Reads, time of reads, and requests times their time, at 0 and 1 s; a step back of one counter alone is
    /// of that one, a reset is of all.
    #[test]
    fn what_goes_round_and_what_is_reset() {
        const NAN: f64 = f64::NAN;
        const ALMOST: u64 = (1 << 32) - 10;
        for (before, after, expect) in [
            ([ALMOST, 100, 7], [5, 120, 9], [15.0, 20.0, 2.0]),
            ([100, ALMOST, 9], [130, 5, 7], [30.0, 15.0, 0.0]),
            ([100, ALMOST, 9], [3, 5, 7], [NAN, NAN, NAN]),
            ([100, ALMOST, 9], [3, 5, 12], [NAN, NAN, NAN]),
            ([100, 5, 9], [130, 4, 10], [NAN, NAN, NAN]),
            // Far, but by itself.
            ([100, 5, 99], [130, 6, 10], [30.0, 1.0, NAN]),
        ] {
            let reading = |[reads, read_ms, weighted_ms]: [u64; 3]| {
                let mut row = row("a", 1, reads);
                (row.values[3], row.values[10]) = (read_ms, weighted_ms);
                Reading {
                    globals: Vec::new(),
                    rows: vec![row],
                }
            };
            let mut delta = Delta::new(&DISK);
            delta.advance(&reading(before), &at(0.0), &Context::default());
            let rates = delta.advance(&reading(after), &at(1.0), &Context::default());
            let got = [0, 3, 10].map(|field| rates.rows()[0].numbers.delta[field]);
            assert_eq!(
                format!("{got:?}"),
                format!("{expect:?}"),
                "{before:?} {after:?}"
            );
        }
    }

    /// One line a case: readings at 0, 1, 2 ... s, and the reads a second of each row at the last.
    #[test]
    fn rows_come_and_go() {
        type Rows<'a> = &'a [(&'a str, u64, u64)];
        const NAN: f64 = f64::NAN;
        let cases: [(&[Rows], &[f64], f64); 11] = [
            (&[&[("a", 1, 10)]], &[NAN], NAN),
            (&[&[("a", 1, 10)], &[("a", 1, 15)]], &[5.0], 5.0),
            // Another device of that name.
            (&[&[("a", 1, 10)], &[("a", 2, 15)]], &[NAN], NAN),
            // A reset.
            (&[&[("a", 1, 10)], &[("a", 1, 5)]], &[NAN], NAN),
            (
                &[&[("a", 1, 10)], &[("a", 1, 15), ("b", 1, 100)]],
                &[5.0, NAN],
                5.0,
            ),
            (
                &[
                    &[("a", 1, 10), ("b", 1, 100)],
                    &[("b", 1, 101), ("a", 1, 15)],
                ],
                &[1.0, 5.0],
                6.0,
            ),
            // Missing once: spread over the time.
            (
                &[
                    &[("a", 1, 10), ("b", 1, 100)],
                    &[("a", 1, 15)],
                    &[("a", 1, 16), ("b", 1, 120)],
                ],
                &[1.0, 10.0],
                11.0,
            ),
            // Missing for long: a baseline.
            (
                &[&[("b", 1, 100)], &[], &[], &[], &[("b", 1, 120)]],
                &[NAN],
                NAN,
            ),
            // Doubled: counts once.
            (
                &[&[("a", 1, 10)], &[("a", 1, 15), ("a", 1, 15)]],
                &[5.0],
                5.0,
            ),
            (
                &[
                    &[("a", 1, 10)],
                    &[("a", 1, 15), ("a", 1, 15)],
                    &[("a", 1, 16)],
                ],
                &[1.0],
                1.0,
            ),
            (
                &[&[("a", 1, 10)], &[("a", 1, MISSING)], &[("a", 1, 30)]],
                &[10.0],
                10.0,
            ),
        ];
        for (readings, expect, sum) in cases {
            let mut delta = Delta::new(&DISK);
            for (n, reading) in readings.iter().enumerate() {
                delta.advance(&rows(reading), &at(n as f64), &Context::default());
            }
            let rates = &delta.rates;
            let got: Vec<f64> = rates
                .rows()
                .iter()
                .map(|row| row.numbers.delta[0])
                .collect();
            assert_eq!(format!("{got:?}"), format!("{expect:?}"), "{readings:?}");
            assert_eq!(
                format!("{:?}", rates.sum.delta[0]),
                format!("{sum:?}"),
                "{readings:?}"
            );
        }
    }

    /// Control groups: memory is counted below the root, CPU at the root alone, pressure in all groups.
    #[test]
    fn a_sum_has_peaks_and_what_stands_in() {
        use kymo_kernel::subsystem::cgroups::CGROUPS;
        let field = |name: &str| CGROUPS.fields.iter().position(|field| field.name == name);
        let field = |name: &str| field(name).expect(name);
        let row = |name: &str, counted, values: &[(&str, u64)]| {
            let mut row = Row {
                name: name.into(),
                counted,
                values: vec![MISSING; CGROUPS.fields.len()],
                ..Row::default()
            };
            for (name, value) in values {
                row.values[field(name)] = *value;
            }
            row
        };
        let reading = |n: u64| Reading {
            globals: Vec::new(),
            rows: vec![
                row(
                    "/",
                    false,
                    &[
                        ("groups", 5),
                        ("usage_usec", 7 * n),
                        ("memory", 99),
                        ("cpu_some", 9 * n),
                    ],
                ),
                row(
                    "/a",
                    true,
                    &[("groups", 3), ("memory", 10), ("cpu_some", 8 * n)],
                ),
                row(
                    "/a/b",
                    false,
                    &[("groups", 1), ("memory", 5), ("cpu_some", 4 * n)],
                ),
                row(
                    "/a/c",
                    false,
                    &[("groups", 1), ("memory", 4), ("cpu_some", 6 * n)],
                ),
                row("/d", true, &[("groups", 1), ("memory", 1), ("cpu_some", n)]),
            ],
        };
        let mut delta = Delta::new(&CGROUPS);
        for n in 0..2 {
            delta.advance(&reading(n), &at(n as f64), &Context::default());
        }
        let sum = &delta.rates.sum;
        assert_eq!(
            (sum.now[field("groups")], sum.now[field("memory")]),
            (4.0, 11.0)
        );
        assert_eq!(sum.delta[field("usage_usec")], 7.0);
        assert_eq!(
            (sum.delta[field("cpu_some")], delta.rates.peak),
            (6.0, Some(3))
        );
        assert!(sum.delta[field("io_some")].is_nan());
    }

    /// Reads and writes at 0, 1, 2 ... s, and the expected rate of each reading behind the first: a driver gives zeros
    /// and then goes on as before; or a device was reset, and counts from zero.
    #[test]
    fn a_value_that_returns_was_never_reset() {
        const NAN: f64 = f64::NAN;
        type Readings<'a> = &'a [[u64; 2]];
        let cases: [(Readings, &[f64]); 9] = [
            (
                &[[1000, 500], [0, 0], [1020, 510], [1030, 515]],
                &[NAN, 10.0, 10.0],
            ),
            (
                &[[1000, 500], [0, 0], [0, 0], [0, 0], [1040, 520]],
                &[NAN, NAN, NAN, 10.0],
            ),
            (&[[1000, 500], [0, 0], [30, 5], [45, 9]], &[NAN, 30.0, 15.0]),
            // With one counter alone the row could have returned.
            (&[[1000, 2], [0, 0], [30, 3], [45, 9]], &[NAN, 30.0, 15.0]),
            (&[[1000, 500], [3, 0], [9000, 5]], &[NAN, 8997.0]),
            // Nearly where it was: no rate.
            (
                &[[1000, 500], [0, 0], [990, 510], [995, 515]],
                &[NAN, NAN, 5.0],
            ),
            // At rest for so long that it is believed.
            (
                &[
                    [9, 9],
                    [1, 1],
                    [1, 1],
                    [1, 1],
                    [1, 1],
                    [1, 1],
                    [1, 1],
                    [1, 1],
                ],
                &[NAN, NAN, NAN, NAN, NAN, NAN, 0.0],
            ),
            // Twice.
            (
                &[[1000, 500], [0, 0], [1020, 510], [0, 0], [1040, 520]],
                &[NAN, 10.0, NAN, 10.0],
            ),
            // The difference of the other counter in the reset's interval is unknown as well.
            (&[[1000, 500], [1010, 0], [1020, 3]], &[NAN, 10.0]),
        ];
        for (readings, expect) in cases {
            let mut delta = Delta::new(&DISK);
            let mut got = Vec::new();
            for (n, [reads, writes]) in readings.iter().enumerate() {
                let mut row = row("a", 1, *reads);
                row.values[4] = *writes;
                let reading = Reading {
                    globals: Vec::new(),
                    rows: vec![row, self::row("other", 1, 7 * n as u64)],
                };
                let rates = delta.advance(&reading, &at(n as f64), &Context::default());
                let own = rates.rows()[0].numbers.delta[0];
                got.push(own);
                // The other row does not pass for the sum.
                let sum = if n == 0 { own } else { own + 7.0 };
                let summed = rates.sum.delta[0];
                assert!(
                    own.is_nan() || summed == sum,
                    "{readings:?}: {summed} for {sum}"
                );
            }
            assert_eq!(
                format!("{:?}", &got[1..]),
                format!("{expect:?}"),
                "{readings:?}"
            );
        }
    }

    /// An idle time that fell far and then does not move: nothing was added, which is known.
    #[test]
    fn a_counter_that_fell_by_itself_rests_at_zero() {
        let steps = |field: &kymo_base::field::Field| field.rule == Rule::CounterMayStepBack;
        let at_field = DISK.fields.iter().position(steps).expect("such a field");
        let mut delta = Delta::new(&DISK);
        let mut got = Vec::new();
        for (n, value) in [50, 30, 30, 31].into_iter().enumerate() {
            let mut row = row("a", 1, 7);
            row.values[at_field] = value;
            let reading = Reading {
                globals: Vec::new(),
                rows: vec![row],
            };
            let rates = delta.advance(&reading, &at(n as f64), &Context::default());
            got.push(rates.rows()[0].numbers.delta[at_field]);
        }
        assert_eq!(format!("{:?}", &got[1..]), "[NaN, 0.0, 1.0]");
    }

    /// KB/s of a link of 1,000 Mbit/s, of one whose speed is not known, and of a bridge that states 10 Mbit/s.
    #[test]
    fn no_link_carries_more_than_twice_its_speed() {
        use kymo_kernel::subsystem::net::{NET, USUAL_SPEED_FACT};
        let mut context = Context::default();
        for (name, value) in [
            ("net.eth0", "physical"),
            ("speed.eth0", "1000"),
            ("net.eth1", "physical"),
            ("net.tap0", "virtual"),
            ("speed.tap0", "10"),
        ] {
            context.set(name, value);
        }
        for (usual, name, rates, expect, said) in [
            ("", "eth0", [200_000, 200_000], [200_000.0; 2], 0),
            ("", "eth0", [300_000, 300_000], [f64::NAN; 2], 1),
            ("", "eth1", [2_000_000, 9], [2_000_000.0, 9.0], 0),
            (
                "",
                "eth1",
                [9_000_000, 9_000_000],
                [f64::NAN, 9_000_000.0],
                1,
            ),
            ("", "tap0", [9_000_000, 9_000_000], [9_000_000.0; 2], 0),
            ("", "tap0", [900_000_000, 5], [f64::NAN, 5.0], 1),
            // As collectl.conf has it.
            ("1000", "eth0", [300_000, 300_000], [f64::NAN; 2], 1),
            ("1000", "eth1", [200_000, 200_000], [200_000.0; 2], 0),
            ("1000", "eth1", [2_000_000, 9], [f64::NAN, 9.0], 1),
            ("0", "eth1", [9_000_000, 9], [9_000_000.0, 9.0], 0),
            ("0", "eth0", [300_000, 300_000], [f64::NAN; 2], 1),
        ] {
            context.set(USUAL_SPEED_FACT, usual);
            let mut delta = Delta::new(&NET);
            let (mut bytes, mut got, mut remarks) = (77, Vec::new(), 0);
            for (n, kb) in [0].into_iter().chain(rates).enumerate() {
                bytes += kb * 1024;
                let mut row = row(name, 0, bytes);
                row.values = vec![bytes; NET.fields.len()];
                let reading = Reading {
                    globals: Vec::new(),
                    rows: vec![row],
                };
                let rates = delta.advance(&reading, &at(n as f64), &context);
                got.push(rates.sum.delta[0] / 1024.0);
                remarks += rates.remarks.len();
            }
            assert_eq!(
                (format!("{:?}", &got[1..]), remarks),
                (format!("{expect:?}"), said),
                "{name} {rates:?} {usual:?}"
            );
        }
    }

    #[test]
    fn newborns_count_from_zero() {
        let task = |start: u64, utime: u64| {
            let mut values = vec![MISSING; PROCESS.fields.len()];
            (values[STARTTIME], values[3]) = (start, utime);
            let row = Row {
                key: start,
                name: "7".into(),
                counted: true,
                values,
                labels: vec![Vec::new(); 3],
            };
            Reading {
                globals: Vec::new(),
                rows: vec![row],
            }
        };
        for (start, expect) in [(1050, 30.0), (500, f64::NAN)] {
            let mut delta = Delta::new(&PROCESS);
            delta.advance(&Reading::default(), &at(10.0), &Context::default());
            let rates = delta.advance(&task(start, 30), &at(11.0), &Context::default());
            assert_eq!(
                format!("{:?}", rates.rows()[0].numbers.delta[3]),
                format!("{expect:?}")
            );
        }
    }

    #[test]
    fn a_coarse_clock_loses_nothing() {
        let mut delta = Delta::new(&DISK);
        let mut take = |reads, secs| {
            let rates = delta.advance(&rows(&[("a", 1, reads)]), &at(secs), &Context::default());
            (!rates.baseline).then(|| rates.sum.delta[0])
        };
        let taken = [take(10, 1.0), take(12, 1.0), take(15, 2.0)];
        assert_eq!(taken, [None, None, Some(5.0)]);
    }

    #[test]
    fn a_gap_is_a_baseline() {
        let mut delta = Delta::new(&DISK);
        delta.advance(&rows(&[("a", 1, 10)]), &at(1.0), &Context::default());
        delta.restart();
        let rates = delta.advance(&rows(&[("a", 1, 20)]), &at(2.0), &Context::default());
        assert!(rates.baseline && rates.rows()[0].baseline);
        // Another boot, by its clock and by its name.
        let rates = delta.advance(&rows(&[("a", 1, 30)]), &at(0.5), &Context::default());
        assert!(rates.baseline);
        let mut context = Context::default();
        context.set("boot_id", "another");
        let rates = delta.advance(&rows(&[("a", 1, 40)]), &at(0.6), &context);
        assert!(rates.baseline);
        context.set("uid.0", "root");
        let rates = delta.advance(&rows(&[("a", 1, 41)]), &at(0.7), &context);
        assert!(!rates.baseline);
    }

    proptest! {
        /// With any steps and missed readings, the differences add up to the growth of the counter.
        #[test]
        fn nothing_is_lost(steps in proptest::collection::vec((1u64..5_000, 0u64..1_000_000, any::<bool>()), 2..40)) {
            let mut delta = Delta::new(&DISK);
            let (mut ms, mut value, mut total, mut pending) = (0, 0, 0.0, 0.0);
            let mut first = None;
            for (pause, step, read) in steps {
                ms += pause;
                value += step;
                let shown = if read || first.is_none() { value } else { MISSING };
                first.get_or_insert(value);
                let rates = delta.advance(&rows(&[("a", 1, shown)]), &at(ms as f64 / 1e3), &Context::default());
                pending += rates.elapsed;
                let d = rates.rows()[0].numbers.delta[0];
                if !d.is_nan() && rates.elapsed > 0.0 {
                    total += d / rates.elapsed * pending;
                }
                if shown != MISSING { pending = 0.0; }
            }
            let last = delta.rows[0].values[0];
            prop_assert!((total - (last - first.unwrap_or(0)) as f64).abs() < 1e-3 * (total + 1.0));
        }

        #[test]
        fn never_negative_and_never_more_than_the_counter(last: u64, now: u64, is_reset: bool) {
            for rule in [Rule::Counter64, Rule::Counter32, Rule::CounterMayStepBack] {
                if let Some(added) = added(rule, last, now, is_reset) {
                    prop_assert!(added >= 0.0);
                    prop_assert!(added <= now as f64 + 4294967296.0);
                }
            }
        }
    }
}
