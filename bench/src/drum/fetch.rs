//! FETCH with a pending value: each request comes right after one new value for its series, and its answer has that
//! value. First, values and requests of all series are sent together, so that the daemon's work takes the time, and no
//! side waits for the other; then each request alone, timed without its value, beside a PING. Both are measured with the
//! kernel's placement of client and daemon, and on one CPU, where no CPU has to be woken.

use super::intake::{Form, round};
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::files::{self, BIRTH, STEP};
use crate::daemon::side::{Side, Who, in_turns, of, on_one_cpu, present};
use crate::daemon::{describe, wire::Wire};
use crate::fault::{Fault, Result};
use crate::figures::{median, ratio};
use crate::report::Outcome;
use crate::row::Row;
use std::time::Instant;

pub(super) const ROW: Row = Row {
    name: "drum-fetch",
    work: "FETCH of 1,200 rows, of 60, FETCHBIN of 1,200, each after one new value, in a row; and one at a time, told beside a PING; 200 series, 2,000 questions",
    bar: "in a row ≤ 1/3, 1/4, 1/8 of stock's time",
    aim: "the same",
    run,
};

/// More than the rows of the finest archive.
const STEPS_BEFORE: u64 = 1_260;

struct Question {
    name: &'static str,
    verb: &'static str,
    rows: u64,
    /// Required speed, as a multiple of stock's.
    bar: f64,
}

const QUESTIONS: [Question; 3] = [
    Question {
        name: "FETCH 1,200",
        verb: "FETCH",
        rows: 1_200,
        bar: 3.0,
    },
    Question {
        name: "FETCH 60",
        verb: "FETCH",
        rows: 60,
        bar: 4.0,
    },
    Question {
        name: "FETCHBIN 1,200",
        verb: "FETCHBIN",
        rows: 1_200,
        bar: 8.0,
    },
];

/// Microseconds of each request, by question.
#[derive(Clone, Default)]
struct Times {
    /// Mean of the requests that were sent together.
    in_a_row: [Vec<f64>; QUESTIONS.len()],
    alone: [Vec<f64>; QUESTIONS.len()],
    pings: Vec<f64>,
}

fn run(bench: &Bench) -> Result<Outcome> {
    let mut outcome = judge(&times(bench)?);
    let alone = judge(&on_one_cpu(|| times(bench))?);
    let alone = alone
        .figures
        .iter()
        .map(|figure| format!("on one CPU {figure}"));
    outcome.figures.extend(alone);
    Ok(outcome)
}

fn times(bench: &Bench) -> Result<Vec<(Who, Vec<Times>)>> {
    let count = bench.series(200, 20);
    let rounds = bench.pick(2_000, 100_usize).div_ceil(count);
    let mut sides = Vec::new();
    let mut crowd = Crowd::new(count, Stamps::Aligned);
    for who in present(bench) {
        let mut side = Side::prepare(bench, who, count)?;
        side.start(bench, &[])?;
        let mut wire = side.connect()?;
        for step in 1..=STEPS_BEFORE {
            let at = BIRTH + STEP * step;
            round(&mut wire, &mut crowd, 0..count, Form::Batch, at)?;
        }
        sides.push(side);
    }
    // In the first round stock writes earlier values, so that round is left out.
    let mut found = in_turns(rounds + 1, &mut sides, |side, turn| {
        ask_all(side, &mut crowd, turn as u64)
    })?;
    for (_, rounds) in &mut found {
        rounds.remove(0);
    }
    Ok(found)
}

fn judge(found: &[(Who, Vec<Times>)]) -> Outcome {
    let mut outcome = Outcome::default();
    for (index, question) in QUESTIONS.iter().enumerate() {
        let name = format!("{} in a row", question.name);
        let share = compare(&mut outcome, found, &name, |times| &times.in_a_row[index]);
        outcome.check(share, 1.0 / question.bar, 1.0 / question.bar);
        compare(&mut outcome, found, question.name, |times| {
            &times.alone[index]
        });
    }
    compare(&mut outcome, found, "PING", |times| &times.pings);
    outcome
}

/// Adds the times of both sides to the outcome; returns kymo's as a share of stock's.
fn compare(
    outcome: &mut Outcome,
    found: &[(Who, Vec<Times>)],
    name: &str,
    which: impl Fn(&Times) -> &Vec<f64>,
) -> Option<f64> {
    let times = |who| -> Option<Vec<f64>> {
        let rounds = of(found, who)?.iter();
        Some(rounds.flat_map(|times| which(times).clone()).collect())
    };
    for who in [Who::Stock, Who::Ours] {
        if let Some(times) = times(who) {
            let name = format!("{name}: {}", who.name());
            outcome.figure(describe(&name, "us", &times));
        }
    }
    let (stock, ours) = (times(Who::Stock)?, times(Who::Ours)?);
    let (stock, ours) = (median(&stock), median(&ours));
    outcome.figure(format!("{} of stock", ratio(ours, stock)));
    Some(ours / stock)
}

/// Sends every request for every series, each after a value.
fn ask_all(side: &mut Side, crowd: &mut Crowd, turn: u64) -> Result<Times> {
    let mut wire = side.connect()?;
    let mut times = Times::default();
    for (index, question) in (0..).zip(&QUESTIONS) {
        let step = STEPS_BEFORE + 1 + 2 * (turn * QUESTIONS.len() as u64 + index);
        let at = BIRTH + STEP * step;
        let in_a_row = ask_in_a_row(&mut wire, question, crowd, at)?;
        times.in_a_row[index as usize].push(in_a_row);
        for series in 0..crowd.len() {
            let mut line = Vec::new();
            crowd.lines(series..series + 1, at + STEP, &mut line);
            wire.one_by_one(&line)?;
            let line = question.line(series, at + STEP);
            times.alone[index as usize].push(timed(|| {
                wire.send(line.as_bytes())?;
                question.is_answered(&mut wire, &line)
            })?);
        }
    }
    for _ in 0..crowd.len() {
        times.pings.push(timed(|| wire.ask("PING"))?);
    }
    Ok(times)
}

/// Sends values and requests of all series together; returns microseconds for a pair.
fn ask_in_a_row(wire: &mut Wire, question: &Question, crowd: &mut Crowd, at: u64) -> Result<f64> {
    let (mut lines, mut questions) = (Vec::new(), Vec::new());
    for series in 0..crowd.len() {
        crowd.lines(series..series + 1, at, &mut lines);
        questions.push(question.line(series, at));
        lines.extend_from_slice(questions[series].as_bytes());
    }
    let all = timed(|| {
        wire.send(&lines)?;
        for line in &questions {
            wire.reply()?;
            question.is_answered(wire, line)?;
        }
        Ok(())
    })?;
    Ok(all / questions.len() as f64)
}

/// Duration of `work` in microseconds.
fn timed(mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64() * 1e6)
}

impl Question {
    fn line(&self, series: usize, last: u64) -> String {
        let (name, verb) = (files::name(series), self.verb);
        // The answer has one row after the requested end.
        let (start, end) = (last - self.rows * STEP, last - STEP);
        format!("{verb} {name} AVERAGE {start} {end}\n")
    }

    fn is_answered(&self, wire: &mut Wire, line: &str) -> Result<()> {
        let rows = match self.verb {
            "FETCHBIN" => wire.binary_rows()?,
            _ => wire.text_rows()?,
        };
        match rows == self.rows {
            true => Ok(()),
            false => Err(Fault::new(format!("{line} is answered by {rows} rows"))),
        }
    }
}
