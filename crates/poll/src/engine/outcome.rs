//! From readings to targets: a target's value is made when the last of its readings is there, and goes into the batch.

use std::io::Write as _;

use kymo_wire::mrtg_cfg::{Config, Direction, LogFormat, Rounding, SourceKind};

use super::decimal::Decimal;
use super::empty::{Blame, Blames};
use crate::batch::Batch;

/// How stamps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// With microseconds.
    Exact,
    /// Whole seconds, as MRTG has them.
    Whole,
}

/// What a reading has given in this cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// In and out.
    pub values: [Decimal; 2],
    /// When, nanoseconds since 1970; 0: never.
    pub real_ns: i64,
    /// A counter is less than before, and the device's uptime says why.
    pub was_reset: bool,
    /// Why a number is unknown.
    pub blame: Option<Blame>,
    /// In and out of the cycle before.
    before: [Decimal; 2],
}

/// Which targets wait for which readings.
pub(crate) struct Outcomes {
    /// By reading: where its targets begin in `targets`; one more at the end.
    begins: Vec<usize>,
    targets: Vec<usize>,
    /// By target: readings it needs, and those that are missing in this cycle.
    needed: Vec<usize>,
    missing: Vec<usize>,
    given: Vec<Given>,
    /// By reading: some target takes it for a counter.
    counts: Vec<bool>,
    pub blames: Blames,
    stamps: Stamps,
    /// Below this interval there is no room for a second stamp.
    has_room: bool,
    /// Targets that were polled, and those of them that lack one of their two numbers.
    pub done: usize,
    /// See [`Outcomes::done`].
    pub unknown: usize,
    /// For one direction's text.
    text: Vec<u8>,
}

impl Outcomes {
    /// Of a configuration.
    pub(crate) fn new(config: &Config, stamps: Stamps) -> Outcomes {
        let readings = config.readings().len();
        let mut pairs = Vec::new();
        let mut needed = Vec::new();
        let mut counts = vec![false; readings];
        for (target, of) in config.targets().enumerate() {
            let own = config.readings_of(of.expression());
            needed.push(own.len());
            for &reading in own.iter() {
                counts[index(reading)] |= counts_up(of.source_kind());
            }
            pairs.extend(own.iter().map(|&reading| (index(reading), target)));
        }
        pairs.sort_unstable();
        let mut begins = Vec::with_capacity(readings + 1);
        for reading in 0..=readings {
            begins.push(pairs.partition_point(|pair| pair.0 < reading));
        }
        Outcomes {
            begins,
            targets: pairs.into_iter().map(|pair| pair.1).collect(),
            missing: needed.clone(),
            needed,
            given: vec![Given::default(); readings],
            counts,
            blames: Blames::new(config.targets().len()),
            stamps,
            has_room: config.globals().interval_s >= 10,
            done: 0,
            unknown: 0,
            text: Vec::new(),
        }
    }

    /// What a reading has given so far.
    pub(crate) fn given(&mut self, reading: usize) -> &mut Given {
        &mut self.given[reading]
    }

    /// A reading begins again.
    pub(crate) fn begin(&mut self, reading: usize) {
        let given = self.given(reading);
        *given = Given {
            before: std::mem::take(&mut given.values),
            ..Given::default()
        };
    }

    /// A device's uptime began again: says whether a number of this reading, which some target counts with, did so, too.
    pub(crate) fn note_restart(&mut self, reading: usize) -> bool {
        let given = &mut self.given[reading];
        let mut pairs = given.values.iter().zip(&given.before);
        given.was_reset = self.counts[reading] && pairs.any(|(new, old)| new.is_less(old));
        given.was_reset
    }

    /// A reading is complete, as far as it will be: targets that waited for it alone go into the batch.
    pub(crate) fn complete(
        &mut self,
        reading: usize,
        now_ns: i64,
        config: &Config,
        batch: &mut Batch,
    ) {
        let at = reading;
        for place in self.begins[at]..self.begins[at + 1] {
            let target = self.targets[place];
            let missing = &mut self.missing[target];
            *missing = missing.saturating_sub(1);
            if *missing == 0 {
                *missing = self.needed[target];
                self.put(target, now_ns, config, batch);
            }
        }
    }

    /// The value of a target that needs no reading.
    pub(crate) fn put_constants(&mut self, now_ns: i64, config: &Config, batch: &mut Batch) {
        for target in 0..self.needed.len() {
            if self.needed[target] == 0 {
                self.put(target, now_ns, config, batch);
            }
        }
    }

    fn put(&mut self, number: usize, now_ns: i64, config: &Config, batch: &mut Batch) {
        let target = config.target(number);
        let expression = target.expression();
        let readings = config.readings_of(expression);
        let given = || readings.iter().map(|&reading| &self.given[index(reading)]);
        let (mut sum, mut count, mut was_reset) = (0i128, 0, false);
        for given in given().filter(|given| given.real_ns != 0) {
            sum += i128::from(given.real_ns);
            count += 1;
            was_reset |= given.was_reset;
        }
        // Of several readings, the mean of their moments.
        let real_ns = match count {
            0 => now_ns,
            _ => i64::try_from(sum / count).unwrap_or(now_ns),
        };
        let counts_up = counts_up(target.source_kind());
        if was_reset && counts_up && self.has_room {
            let before_ns = real_ns.saturating_sub(1_000_000_000);
            batch.push(number, |out| {
                put_stamp(out, before_ns, self.stamps);
                out.extend_from_slice(b":U:U");
            });
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        put_stamp(&mut text, real_ns, self.stamps);
        let is_kept = config.globals().log_format == LogFormat::Rrdtool
            && target.source_kind() == SourceKind::Gauge;
        let rounding = match is_kept {
            true => Rounding::Keep,
            false => Rounding::Round,
        };
        let mut unknown = 0;
        for direction in [Direction::In, Direction::Out] {
            text.push(b':');
            let value_of = |reading: u32, direction| {
                self.given[index(reading)].values[direction as usize].text()
            };
            let is_hidden = was_reset && counts_up && !self.has_room;
            if is_hidden || !config.evaluate(expression, direction, rounding, &value_of, &mut text)
            {
                text.push(b'U');
                unknown += 1;
            }
        }
        batch.push(number, |out| out.extend_from_slice(&text));
        self.text = text;
        let blame = given().find_map(|given| given.blame.as_ref());
        self.blames
            .note(number, blame.filter(|_| unknown > 0).cloned());
        self.done += 1;
        self.unknown += usize::from(unknown > 0);
    }
}

/// Whether a number less than the one before would be a rate that never was.
fn counts_up(kind: SourceKind) -> bool {
    matches!(kind, SourceKind::Counter | SourceKind::Derive)
}

/// A number of the configuration as a place.
fn index(number: u32) -> usize {
    number as usize
}

fn put_stamp(out: &mut Vec<u8>, real_ns: i64, stamps: Stamps) {
    let seconds = real_ns.div_euclid(1_000_000_000);
    let micros = real_ns.rem_euclid(1_000_000_000) / 1000;
    // Writing to memory does not fail.
    let _ = match stamps {
        Stamps::Whole => write!(out, "{seconds}"),
        Stamps::Exact => write!(out, "{seconds}.{micros:06}"),
    };
}
