//! Random cases: a log in some state, and updates of it.

use super::Files;
use kymo_poll::mrtg_log::{LogRule, RateKind, Unknown};
use std::fmt::Write as _;

/// A target, its files, and what happens to them.
pub(super) struct Case {
    pub rule: LogRule,
    pub files: Files,
    pub steps: Vec<Step>,
}

/// An update.
pub(super) struct Step {
    pub now_s: i64,
    /// Decimal numbers, or `U`.
    pub values: [String; 2],
}

/// SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(crate) fn signed(&mut self, n: i64) -> i64 {
        self.below(n as u64) as i64
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number of any size.
    pub(crate) fn number(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }
}

const START_S: i64 = 1_700_000_000;

impl Case {
    pub(super) fn new(seed: u64) -> Case {
        let random = &mut Random(seed);
        let rule = LogRule {
            kind: random.pick(&[
                RateKind::Counter,
                RateKind::Counter,
                RateKind::Counter,
                RateKind::Gauge,
                RateKind::Absolute,
                RateKind::PerHour,
                RateKind::PerMinute,
            ]),
            bound: random.pick(&[12_500, 1_250_000, 125_000_000, 1 << 40, i64::MAX]),
            unknown: random.pick(&[Unknown::Repeat, Unknown::Repeat, Unknown::Zero]),
        };
        let mut now_s = START_S + random.signed(100_000_000);
        let log = (!random.one_in(6)).then(|| log(random, now_s));
        let old = random.one_in(2).then(|| {
            let before_s = now_s - random.signed(4000);
            log_or_damage(random, before_s)
        });
        let log = log.map(|log| match random.one_in(4) {
            true => damaged(random, log),
            false => log,
        });
        let mut counters = [0, 1].map(|_| u128::from(random.number()));
        let steps = (0..1 + random.below(9)).map(|_| {
            now_s += time(random);
            let values = [0, 1].map(|at| value(random, rule.kind, &mut counters[at]));
            Step { now_s, values }
        });
        let steps = steps.collect();
        let files = [log, old].map(|text| text.map(String::into_bytes));
        Case { rule, files, steps }
    }
}

fn time(random: &mut Random) -> i64 {
    match random.below(20) {
        0 => 0,
        1 => -random.signed(1000),
        2 => random.pick(&[3599, 3600, 3601, 7200]),
        3 => random.signed(100_000),
        4 => random.signed(40_000_000),
        5 => 1 + random.signed(299),
        6..=8 => 299 + random.signed(3),
        9..=10 => 290 + random.signed(20),
        _ => 300,
    }
}

fn value(random: &mut Random, kind: RateKind, counter: &mut u128) -> String {
    if random.one_in(12) {
        return "U".into();
    }
    match kind {
        RateKind::Gauge | RateKind::Absolute => *counter = random.number().into(),
        RateKind::Counter | RateKind::PerHour | RateKind::PerMinute => {
            let growth = random.number() >> random.pick(&[0, 20, 34, 44]);
            *counter += u128::from(growth);
            match random.below(12) {
                0 => *counter %= 1 << 32,
                1 => *counter %= 1 << 64,
                2 => *counter /= 1000,
                3 => *counter = *counter % 10_u128.pow(20) * 1_000_000_007,
                _ => {}
            }
            *counter %= 10_u128.pow(30);
        }
    }
    counter.to_string()
}

fn log_or_damage(random: &mut Random, now_s: i64) -> String {
    let log = log(random, now_s);
    match random.one_in(4) {
        true => damaged(random, log),
        false => log,
    }
}

/// A log whose last update was some time before: of years, or of few rows.
pub(crate) fn log(random: &mut Random, now_s: i64) -> String {
    let mut time_s = now_s - random.pick(&[0, 300, 300, 301, 450, 4000, 90_000]);
    let rate_bits = random.pick(&[8, 20, 33, 40, 44]);
    let rate = |random: &mut Random| (random.number() >> (64 - rate_bits)) as i64;
    let mut text = format!("{time_s} {} {}\n", random.number(), random.number());
    if random.one_in(10) {
        text = format!("{time_s} -1 {}\n", random.number());
    }
    let mut row = |time_s: i64, random: &mut Random| {
        let (one, two) = (rate(random), rate(random));
        let more = [0, 1].map(|_| match random.one_in(3) {
            true => rate(random),
            false => 0,
        });
        let _ = writeln!(
            text,
            "{time_s} {one} {two} {} {}",
            one + more[0],
            two + more[1]
        );
    };
    row(time_s, random);
    if time_s % 300 != 0 {
        row(time_s - random.signed(time_s % 300 + 1), random);
    }
    let is_short = random.one_in(5);
    for (step, rows) in [(300, 600), (1800, 600), (7200, 600), (86_400, 732)] {
        time_s = time_s / step * step;
        let rows = match is_short {
            true => random.below(10),
            false => rows,
        };
        for _ in 0..rows {
            row(time_s, random);
            time_s -= step;
        }
    }
    text
}

/// The text with something wrong in it.
fn damaged(random: &mut Random, mut text: String) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let count = lines.len() as u64;
    // A damaged first line makes rateup read bytes that it never set. So this line stays.
    let at = 1 + random.below(count.max(2) - 1) as usize;
    let at = at.min(lines.len() - 1);
    match random.below(9) {
        0 => {
            let cut = lines[0].len() + 1 + random.below(text.len() as u64) as usize;
            text.truncate(cut.min(text.len()));
            return text;
        }
        1 => return String::new(),
        2 => lines[at] = String::new(),
        3 => lines[at] = lines[at].split(' ').take(3).collect::<Vec<_>>().join(" "),
        4 => lines[at] += random.pick(&[" 7 8", "   ", "x", "\t9"]),
        5 => {
            lines[at] = random
                .pick(&["garbage", "12 x 3", "99999999999 1 2 3 4", "+5 -6 -7 8 9"])
                .into()
        }
        6 => lines[at] = format!("{:>300}", lines[at]),
        7 => drop(lines.remove(at)),
        _ => lines.swap(1.min(at), at),
    }
    lines.join("\n") + "\n"
}
