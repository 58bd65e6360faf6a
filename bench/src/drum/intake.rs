//! Intake of values, step after step of simulated time, as fast as the daemon can: contenders, forms of requests,
//! and the cost until the daemon has ended and all values are on its disk. The daemons run one after the other,
//! each on its own disk.

use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::cost::{Cost, Mark};
use crate::daemon::files::{self, BIRTH, STEP};
use crate::daemon::side::{Side, Who, present_with_before};
use crate::daemon::wire::Wire;
use crate::fault::{Fault, Result};
use crate::figures::{ratio, significant};
use crate::progress::Progress;
use crate::report::Outcome;
use std::ops::Range;

/// Lines of one BATCH.
const LINES: usize = 10_000;
/// Steps between two FLUSHALLs of stock's.
const VALUES_A_FLUSH: u64 = 30;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Batch,
    /// One request, one reply.
    Requests,
}

pub(super) struct Intake {
    pub form: Form,
    pub stamps: Stamps,
    pub files: usize,
    /// Steps for kymo; stock with FLUSHALL gets an eighth, at the same cost for each value.
    pub steps: u64,
}

/// A daemon and its settings.
struct Contender {
    name: &'static str,
    who: Who,
    options: &'static [&'static str],
    flush: bool,
}

const CONTENDERS: [Contender; 4] = [
    Contender {
        name: "stock",
        who: Who::Stock,
        options: &[],
        flush: true,
    },
    // The settings with which stock writes least: nothing for six hours, and all of it at its end.
    Contender {
        name: "tuned stock",
        who: Who::Stock,
        options: &["-w", "21600", "-z", "21600", "-f", "43200", "-F"],
        flush: false,
    },
    Contender {
        name: "kymo before",
        who: Who::Before,
        options: &[],
        flush: false,
    },
    Contender {
        name: "kymo",
        who: Who::Ours,
        options: &[],
        flush: false,
    },
];

/// A cost, and the number of values.
struct Taken {
    name: &'static str,
    who: Who,
    values: f64,
    steps: u64,
    cost: Cost,
}

impl Taken {
    fn micros(&self) -> f64 {
        self.cost.cpu_seconds * 1e6 / self.values
    }

    fn bytes(&self) -> f64 {
        self.cost.bytes / self.values
    }

    fn writes(&self) -> f64 {
        self.cost.writes * 1e3 / self.values
    }
}

/// Required figures of a row.
pub(super) struct Bars {
    /// Most bytes a value.
    pub bytes: f64,
    /// Desired bytes a value.
    pub aim: f64,
    /// True if CPU and writes are judged, too.
    pub of_all: bool,
}

/// Measures all contenders; the bars are for kymo.
pub(super) fn compare(bench: &Bench, intake: &Intake, bars: Bars) -> Result<Outcome> {
    let mut outcome = Outcome::new(vec![format!("{} files", intake.files)]);
    let here = present_with_before(bench);
    let mut all = Vec::new();
    for contender in CONTENDERS.iter().filter(|each| here.contains(&each.who)) {
        let taken = intake.by(bench, contender)?;
        outcome.figure(format!(
            "{}, {} steps: {} bytes, {} us a value, {} writes a 1,000",
            taken.name,
            taken.steps,
            significant(taken.bytes()),
            significant(taken.micros()),
            significant(taken.writes()),
        ));
        all.push(taken);
    }
    let Some(ours) = all.iter().find(|taken| taken.who == Who::Ours) else {
        return Ok(outcome);
    };
    for other in all.iter().filter(|taken| taken.who != Who::Ours) {
        outcome.figure(format!(
            "of {}: bytes {}, CPU {}, writes {}",
            other.name,
            ratio(ours.bytes(), other.bytes()),
            ratio(ours.micros(), other.micros()),
            ratio(ours.writes(), other.writes()),
        ));
    }
    outcome.check(Some(ours.bytes()), bars.bytes, bars.aim);
    let mut stocks = all.iter().filter(|taken| taken.who == Who::Stock);
    if let Some(stock) = stocks.next().filter(|_| bars.of_all) {
        outcome.check(Some(ours.micros() / stock.micros()), 0.25, 0.1);
        outcome.check(Some(ours.writes()), 0.5, 0.05);
    }
    for tuned in all.iter().filter(|taken| taken.who == Who::Stock).skip(1) {
        outcome.check(Some(ours.bytes() / tuned.bytes()), 0.5, 0.5);
    }
    Ok(outcome)
}

impl Intake {
    fn by(&self, bench: &Bench, contender: &Contender) -> Result<Taken> {
        let steps = match contender.flush {
            true => (self.steps / 8).next_multiple_of(VALUES_A_FLUSH),
            false => self.steps,
        };
        let values = steps * self.files as u64;
        let room_mb = files::mb(self.files) + files::journal_mb(values);
        let mut side = Side::with_room(bench, contender.who, room_mb)?;
        files::fill(&side.base(), self.files)?;
        side.start(bench, contender.options)?;
        let mark = Mark::now(&side)?;
        self.send(&side, contender, steps)?;
        let cost = mark.to_the_end(&mut side)?;
        if contender.who == Who::Stock {
            self.is_written(&side, BIRTH + STEP * steps)?;
        }
        Ok(Taken {
            name: contender.name,
            who: contender.who,
            values: values as f64,
            steps,
            cost,
        })
    }

    /// Checks that all of stock's values are in its files: otherwise its cost would be too low.
    fn is_written(&self, side: &Side, last: u64) -> Result<()> {
        for index in 0..self.files {
            let found = files::last_stamp(&side.base(), index)?;
            if found < last {
                let name = files::name(index);
                return Err(Fault::new(format!("{name} ends at {found}, not {last}")));
            }
        }
        Ok(())
    }

    fn send(&self, side: &Side, contender: &Contender, steps: u64) -> Result<()> {
        let mut crowd = Crowd::new(self.files, self.stamps);
        let mut wire = side.connect()?;
        let mut progress = Progress::of(format!("{}, steps", contender.name));
        for step in 1..=steps {
            let at = BIRTH + STEP * step;
            round(&mut wire, &mut crowd, 0..self.files, self.form, at)?;
            side.disk.sync()?;
            if contender.flush && step % VALUES_A_FLUSH == 0 {
                side.flush_all(step * self.files as u64)?;
            }
            progress.at(step, steps);
        }
        Ok(())
    }
}

/// Sends one value for each of some series.
pub(super) fn round(
    wire: &mut Wire,
    crowd: &mut Crowd,
    some: Range<usize>,
    form: Form,
    at: u64,
) -> Result<()> {
    let mut lines = Vec::new();
    let end = some.end;
    for from in some.step_by(LINES) {
        lines.clear();
        crowd.lines(from..end.min(from + LINES), at, &mut lines);
        match form {
            Form::Batch => wire.batch(&lines)?,
            Form::Requests => wire.one_by_one(&lines)?,
        }
    }
    Ok(())
}
