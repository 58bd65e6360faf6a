//! The values of the drum's rows: four kinds of series in equal parts (idle gauges, random walks with two decimals,
//! counters, noise with six decimals), stamped on the step or as collectd does: every series at its own moment
//! within the step, with some jitter.

use crate::daemon::files::{self, STEP};
use crate::world::Chance;
use std::io::Write;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stamps {
    /// Whole seconds, all series at once.
    Aligned,
    /// Six decimals; each series has its own offset, with jitter of up to [`JITTER_US`].
    Unaligned,
}

const JITTER_US: u64 = 400;

/// All series, each with a changing value.
pub(super) struct Crowd {
    chance: Chance,
    stamps: Stamps,
    series: Vec<Series>,
}

struct Series {
    name: Box<str>,
    offset_us: u64,
    /// Units, hundredths or millionths, depending on the kind.
    value: u64,
}

impl Crowd {
    pub(super) fn new(count: usize, stamps: Stamps) -> Crowd {
        let mut crowd = Crowd {
            chance: Chance::new(20_500),
            stamps,
            series: Vec::new(),
        };
        crowd.grow(count);
        crowd
    }

    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// Adds series until there are `count`.
    pub(super) fn grow(&mut self, count: usize) {
        for index in self.len()..count {
            let offset_us = self.chance.below(STEP * 1_000_000 - JITTER_US);
            let value = 10_000 + self.chance.below(100_000);
            self.series.push(Series {
                name: files::name(index).into(),
                offset_us,
                value,
            });
        }
    }

    /// `UPDATE` lines of the next value of some series, in the step that begins at `at` seconds.
    pub(super) fn lines(&mut self, some: Range<usize>, at: u64, into: &mut Vec<u8>) {
        for index in some {
            // Writing to memory cannot fail.
            let _ = write!(into, "UPDATE {} ", self.series[index].name);
            self.stamp(index, at, into);
            into.push(b':');
            self.value(index, into);
            into.push(b'\n');
        }
    }

    fn stamp(&mut self, index: usize, at: u64, into: &mut Vec<u8>) {
        let _ = match self.stamps {
            Stamps::Aligned => write!(into, "{at}"),
            Stamps::Unaligned => {
                let off = self.series[index].offset_us + self.chance.below(JITTER_US);
                let (seconds, micros) = (at + off / 1_000_000, off % 1_000_000);
                write!(into, "{seconds}.{micros:06}")
            }
        };
    }

    /// The next value of a series.
    pub(super) fn value(&mut self, index: usize, into: &mut Vec<u8>) {
        let (chance, value) = (&mut self.chance, &mut self.series[index].value);
        let _ = match index % 4 {
            0 => {
                *value += u64::from(chance.is(0.005));
                write!(into, "{value}")
            }
            1 => {
                *value = (*value + chance.below(41)).saturating_sub(20);
                write!(into, "{}.{:02}", *value / 100, *value % 100)
            }
            2 => {
                *value += chance.below(5_000);
                write!(into, "{value}")
            }
            _ => {
                *value = chance.below(100_000_000);
                write!(into, "{}.{:06}", *value / 1_000_000, *value % 1_000_000)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stamps: Stamps) -> String {
        let mut lines = Vec::new();
        Crowd::new(8, stamps).lines(0..8, files::BIRTH, &mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn kinds_are_printed_as_they_are_sent() {
        let text = text(Stamps::Aligned);
        let decimals = |line: &str| line.split_once('.').map_or(0, |parts| parts.1.len());
        let found: Vec<usize> = text
            .lines()
            .map(|line| decimals(line.split_once(&format!(" {}:", files::BIRTH)).unwrap().1))
            .collect();
        assert_eq!(found, [0, 2, 0, 6, 0, 2, 0, 6]);
        assert!(text.starts_with("UPDATE h000/f00.rrd 1700000000:"));
    }

    #[test]
    fn stamps_off_the_step_stay_within_it() {
        for line in text(Stamps::Unaligned).lines() {
            let stamp = line.split([' ', ':']).nth(2).unwrap();
            let (seconds, micros) = stamp.split_once('.').unwrap();
            let seconds: u64 = seconds.parse().unwrap();
            assert!((files::BIRTH..files::BIRTH + STEP).contains(&seconds));
            assert_eq!(micros.len(), 6);
        }
    }
}
