//! FETCH with a value pending: each question comes right after one new value for its series, and is answered from what
//! was just taken in. Only the question is timed; as the kernel places client and daemon, and on one CPU, where nobody
//! has to wake another up.

use super::intake::{Form, round};
use super::series::{Crowd, Stamps};
use crate::bench::Bench;
use crate::daemon::files::{self, BIRTH, STEP};
use crate::daemon::side::{Side, Who, in_turns, of, on_one_cpu, present};
use crate::daemon::{tell, wire::Wire};
use crate::fault::{Fault, Result};
use crate::figures::{median, ratio, significant};
use crate::report::Outcome;
use crate::row::Row;
use std::time::Instant;

pub const ROW: Row = Row {
    name: "drum-fetch",
    work: "FETCH of 1,200 rows, of 60, FETCHBIN of 1,200, each after one new value; 200 series, 2,000 questions",
    bar: "≤ 1/3, 1/4, 1/8 of stock's time",
    aim: "the same",
    run,
};

/// More than the finest archive has.
const STEPS_BEFORE: u64 = 1_260;

struct Question {
    name: &'static str,
    verb: &'static str,
    rows: u64,
    /// So many times as fast as stock.
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

/// Microseconds of each asking, question by question.
type Times = [Vec<f64>; QUESTIONS.len()];

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
    // In the first round stock writes what it was sent until then.
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
        let times = |who| -> Option<Vec<f64>> {
            let rounds = of(found, who)?.iter();
            Some(rounds.flat_map(|times| times[index].clone()).collect())
        };
        for who in [Who::Stock, Who::Ours] {
            if let Some(times) = times(who) {
                let rate = times.len() as f64 * 1e6 / times.iter().sum::<f64>();
                let name = format!("{}: {}", question.name, who.name());
                let (told, rate) = (tell(&name, "us", &times), significant(rate));
                outcome.figure(format!("{told}, {rate} a second"));
            }
        }
        if let (Some(stock), Some(ours)) = (times(Who::Stock), times(Who::Ours)) {
            let (stock, ours) = (median(&stock), median(&ours));
            outcome.figure(format!("{} of stock", ratio(ours, stock)));
            outcome.check(Some(ours / stock), 1.0 / question.bar, 1.0 / question.bar);
        }
    }
    outcome
}

/// Every question of every series, each after a value.
fn ask_all(side: &mut Side, crowd: &mut Crowd, turn: u64) -> Result<Times> {
    let mut wire = side.connect()?;
    let mut times = Times::default();
    for (index, question) in (0..).zip(&QUESTIONS) {
        let step = STEPS_BEFORE + 1 + turn * QUESTIONS.len() as u64 + index;
        let at = BIRTH + STEP * step;
        for series in 0..crowd.len() {
            let mut line = Vec::new();
            crowd.lines(series..series + 1, at, &mut line);
            wire.one_by_one(&line)?;
            times[index as usize].push(ask(&mut wire, question, series, at)?);
        }
    }
    Ok(times)
}

fn ask(wire: &mut Wire, question: &Question, series: usize, last: u64) -> Result<f64> {
    let (name, verb) = (files::name(series), question.verb);
    // A row more than the end says is answered.
    let (start, end) = (last - question.rows * STEP, last - STEP);
    let line = format!("{verb} {name} AVERAGE {start} {end}");
    let begun = Instant::now();
    let rows = match verb {
        "FETCHBIN" => wire.binary_rows(&line)?,
        _ => wire.text_rows(&line)?,
    };
    let micros = begun.elapsed().as_secs_f64() * 1e6;
    match rows == question.rows {
        true => Ok(micros),
        false => Err(Fault::new(format!("{line} is answered by {rows} rows"))),
    }
}
