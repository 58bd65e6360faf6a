//! Computes the values of targets from readings: a target's value goes into the batch when its last reading is complete.

use std::io::Write as _;

use kymo_wire::mrtg_cfg::{Config, Direction, LogFormat, Magic, Rounding, Source, SourceKind};
use kymo_wire::snmp::ObjectValue;

use super::decimal::Decimal;
use super::empty::{Blame, Blames};
use crate::batch::{About, Batch, Uptime};

/// Longest text about a device, bytes.
pub(super) const ABOUT_BYTES: usize = 255;

/// Format of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// With microseconds.
    Exact,
    /// Whole seconds, as in MRTG.
    Whole,
}

/// Result of a reading in the current cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Values in and out.
    pub values: [Decimal; 2],
    /// Time of the values, nanoseconds since 1970; 0: there are none.
    pub real_ns: i64,
    /// True if a counter began again because the device was started.
    pub was_reset: bool,
    /// Reason why a value is unknown.
    pub blame: Option<Blame>,
    /// The words of its device about itself, if pages show them.
    pub about: Option<About>,
    /// Values of the last cycle.
    before: [Decimal; 2],
}

impl Given {
    /// Takes a text about a device: how long it has been up (0), or its name (1).
    pub(crate) fn tell(&mut self, side: u8, value: Option<ObjectValue<'_>>) {
        let mut text = Vec::new();
        let is_told = value.is_some_and(|value| value.put_text(&mut text));
        text.truncate(ABOUT_BYTES);
        let about = self.about.get_or_insert_with(About::nothing);
        match side {
            _ if !is_told => {}
            0 => about.uptime = Uptime::Words(text.into()),
            _ => about.name = Some(text.into()),
        }
    }
}

/// Results of readings, and the targets that depend on them.
pub(crate) struct Outcomes {
    /// By reading: start of its targets in `targets`, with one more entry at the end.
    begins: Vec<usize>,
    targets: Vec<usize>,
    /// By target: number of readings it needs, and of those still missing in this cycle.
    needed: Vec<usize>,
    missing: Vec<usize>,
    given: Vec<Given>,
    /// By reading: true if some target uses it as a counter.
    counts: Vec<bool>,
    pub blames: Blames,
    stamps: Stamps,
    /// False if the interval is too short for a second stamp, which a gap needs.
    has_room: bool,
    /// Number of targets polled since the start.
    pub done: usize,
    /// Number of those targets that lacked a value.
    pub unknown: usize,
    /// Buffer for the text of one direction.
    text: Vec<u8>,
}

impl Outcomes {
    /// The outcomes of a configuration.
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
        for &(target, reading) in config.abouts() {
            needed[index(target)] += 1;
            pairs.push((index(reading), index(target)));
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

    /// Result of a reading so far.
    pub(crate) fn given(&mut self, reading: usize) -> &mut Given {
        &mut self.given[reading]
    }

    /// Targets that use a reading.
    pub(crate) fn targets_of(&self, reading: usize) -> &[usize] {
        &self.targets[self.begins[reading]..self.begins[reading + 1]]
    }

    /// Begins a reading in a new cycle.
    pub(crate) fn begin(&mut self, reading: usize) {
        let given = self.given(reading);
        *given = Given {
            before: std::mem::take(&mut given.values),
            ..Given::default()
        };
    }

    /// Checks a reading after the device's uptime began again: true if one of its counters began again, too.
    pub(crate) fn note_restart(&mut self, reading: usize) -> bool {
        let given = &mut self.given[reading];
        let mut pairs = given.values.iter().zip(&given.before);
        given.was_reset = self.counts[reading] && pairs.any(|(new, old)| new.is_less(old));
        given.was_reset
    }

    /// Completes a reading. Targets for which it was the last one go into the batch.
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

    /// Adds the values of targets that need no reading.
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
        // The stamp is the mean of the readings' times.
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
        if let Some(about) = self.about(number, &readings, config) {
            batch.set_about(about);
        }
        let blame = given().find_map(|given| given.blame.as_ref());
        self.blames
            .note(number, blame.filter(|_| unknown > 0).cloned());
        self.done += 1;
        self.unknown += usize::from(unknown > 0);
    }

    /// The device of a target for its page: that of its only reading, unless `RouterUptime` and `RouterName` name others.
    fn about(&self, number: usize, readings: &[u32], config: &Config) -> Option<About> {
        let mut about = match readings {
            &[reading] => self.given[index(reading)].about.clone(),
            _ => None,
        };
        let all = config.abouts();
        let own = &all[all.partition_point(|(target, _)| index(*target) < number)..];
        for &(_, reading) in own.iter().take_while(|of| index(of.0) == number) {
            let Source::Snmp(source) = config.readings()[index(reading)].source else {
                continue;
            };
            let named = self.given[index(reading)].about.clone();
            let named = named.unwrap_or_else(About::nothing);
            let about = about.get_or_insert_with(About::nothing);
            let [is_uptime, is_name] = source.objects.map(|of| of.magic == Magic::Get);
            if is_uptime {
                about.uptime = named.uptime;
            }
            if is_name {
                about.name = named.name;
            }
        }
        about
    }
}

/// True if a falling value would become a rate that never was.
fn counts_up(kind: SourceKind) -> bool {
    matches!(kind, SourceKind::Counter | SourceKind::Derive)
}

/// Converts a number of the configuration to an index.
pub(super) fn index(number: u32) -> usize {
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
