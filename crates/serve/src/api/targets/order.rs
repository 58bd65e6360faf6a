//! Order of targets and devices in lists, and sums of a device's targets.

use std::cmp::Ordering;

use kymo_query::targets::percent;

use crate::targets::{Health, Known, Rates};

/// Key of the order: largest numbers first, texts alphabetically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sort {
    by: By,
    turned: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum By {
    Name,
    Title,
    Traffic,
    Used,
    Missing,
}

impl Sort {
    /// Reads `traffic`, or `-traffic` for the reverse order.
    pub(super) fn parse(text: &str) -> Option<Sort> {
        let (turned, word) = match text.strip_prefix('-') {
            Some(word) => (true, word),
            None => (false, text),
        };
        let by = match word {
            "name" => By::Name,
            "title" => By::Title,
            "traffic" => By::Traffic,
            "used" => By::Used,
            "missing" => By::Missing,
            _ => return None,
        };
        Some(Sort { by, turned })
    }

    /// Sorts indexes of targets.
    pub(super) fn targets(self, known: &Known, mut numbers: Vec<usize>) -> Vec<usize> {
        let targets = &known.listed.targets;
        let value = |at: usize| match self.by {
            By::Name | By::Title => f64::NAN,
            By::Traffic => sum(known.recent(at).rates),
            By::Used => used(known, at),
            By::Missing => known.recent(at).missing.into(),
        };
        let mut keyed: Vec<(f64, usize)> = numbers.drain(..).map(|at| (value(at), at)).collect();
        keyed.sort_by(|&(a, at), &(b, other)| {
            let (one, other) = (&targets[at], &targets[other]);
            let by_title = match self.by {
                By::Title => one.title.cmp(&other.title),
                _ => Ordering::Equal,
            };
            let by_name = || natural(&one.name, &other.name);
            self.numbers(a, b)
                .then_with(|| self.texts(by_title.then_with(by_name)))
        });
        numbers.extend(keyed.into_iter().map(|(_, at)| at));
        numbers
    }

    /// Sorts devices: dead ones come first, then slow ones.
    pub(super) fn devices(self, known: &Known, lines: &mut [DeviceLine]) {
        let devices = &known.listed.devices;
        let value = |line: &DeviceLine| match self.by {
            By::Name | By::Title => f64::NAN,
            By::Traffic => sum(line.rates),
            By::Used => line.used,
            By::Missing => line.missing.into(),
        };
        let rank = |line: &DeviceLine| line.health(known).min(Health::Good);
        lines.sort_by(|one, other| {
            let by_name = || natural(&devices[one.device].name, &devices[other.device].name);
            rank(one)
                .cmp(&rank(other))
                .then_with(|| self.numbers(value(one), value(other)))
                .then_with(|| self.texts(by_name()))
        });
    }

    /// Order of two numbers; unknown ones come last.
    fn numbers(self, a: f64, b: f64) -> Ordering {
        let order = match self.turned {
            true => a.total_cmp(&b),
            false => b.total_cmp(&a),
        };
        a.is_nan().cmp(&b.is_nan()).then(match a.is_nan() {
            true => Ordering::Equal,
            false => order,
        })
    }

    /// Order of two texts. It is reversed only if the key is a text.
    fn texts(self, order: Ordering) -> Ordering {
        match self.turned && matches!(self.by, By::Name | By::Title) {
            true => order.reverse(),
            false => order,
        }
    }
}

/// `port9` before `port10`.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one.as_bytes(), other.as_bytes());
    while let (Some(&first), Some(&second)) = (a.first(), b.first()) {
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (left, right) = (digits(&mut a), digits(&mut b));
            let order = left.len().cmp(&right.len()).then(left.cmp(right));
            if order != Ordering::Equal {
                return order;
            }
            continue;
        }
        if first != second {
            return first.cmp(&second);
        }
        (a, b) = (&a[1..], &b[1..]);
    }
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

/// Removes the digits of a number; returns them without leading zeros.
fn digits<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    *text = rest;
    let zeros = digits.iter().position(|&digit| digit != b'0');
    &digits[zeros.unwrap_or(digits.len())..]
}

/// Sum of the known rates.
fn sum(rates: [f64; 2]) -> f64 {
    let known = rates.into_iter().filter(|rate| !rate.is_nan());
    known.reduce(|a, b| a + b).unwrap_or(f64::NAN)
}

/// The larger part of MaxBytes that a target uses, in percent.
fn used(known: &Known, at: usize) -> f64 {
    let (target, recent) = (&known.listed.targets[at], known.recent(at));
    let parts = [0, 1].map(|n| percent(recent.rates[n], target.max_bytes[n]));
    parts.into_iter().fold(f64::NAN, f64::max)
}

/// A device, and the sums of its targets.
pub(super) struct DeviceLine {
    /// Index of the device.
    pub(super) device: usize,
    pub(super) targets: usize,
    /// Rates in and out of the targets that can be added up.
    pub(super) rates: [f64; 2],
    /// Largest part of MaxBytes that a target uses, in percent.
    pub(super) used: f64,
    pub(super) missing: u32,
    pub(super) rows: u32,
    counts: Rates,
    interval_s: u32,
}

impl DeviceLine {
    /// A device without targets.
    pub(super) fn new(device: usize) -> DeviceLine {
        DeviceLine {
            device,
            targets: 0,
            rates: [f64::NAN; 2],
            used: f64::NAN,
            missing: 0,
            rows: 0,
            counts: Rates::default(),
            interval_s: 0,
        }
    }

    /// Adds a target.
    pub(super) fn add(&mut self, known: &Known, at: usize) {
        let (target, recent) = (&known.listed.targets[at], known.recent(at));
        self.targets += 1;
        self.missing += recent.missing;
        self.rows += recent.rows;
        self.used = self.used.max(used(known, at));
        self.interval_s = self.interval_s.max(known.listed.interval_s(target));
        match recent.rates.iter().any(|rate| !rate.is_nan()) {
            true => self.counts.known += 1,
            false => self.counts.missing += u32::from(recent.rows > 0),
        }
        if !target.is_gauge {
            for (all, rate) in self.rates.iter_mut().zip(recent.rates) {
                *all = sum([*all, rate]);
            }
        }
    }

    /// Health of the device.
    pub(super) fn health(&self, known: &Known) -> Health {
        let state = known.device(self.device);
        state.health(known.numbers.at, self.interval_s, self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = [
            "port10", "port9", "Port1", "port", "port09a", "a2b10", "a2b9", "a10",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "Port1", "a2b9", "a2b10", "a10", "port", "port9", "port09a", "port10"
            ]
        );
    }

    #[test]
    fn what_is_not_known_comes_last() {
        let nan = f64::NAN;
        for (text, expect) in [("traffic", [3.0, 1.0, nan]), ("-traffic", [1.0, 3.0, nan])] {
            let sort = Sort::parse(text).expect("a column");
            let mut values = [nan, 1.0, 3.0];
            values.sort_by(|&a, &b| sort.numbers(a, b));
            assert_eq!(values.map(f64::to_bits), expect.map(f64::to_bits), "{text}");
        }
        assert_eq!(Sort::parse("colour"), None);
    }
}
