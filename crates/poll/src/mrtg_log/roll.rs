//! An update of a log: a new row, and all others computed from those before, each resolution from the finer one.

use super::{Log, LogUpdate, Row, SPANS, whole};
use std::io::Write as _;

/// The log has an update that is newer than this one. It stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWarp {
    /// Time of the log's last update, seconds since 1970.
    pub last_s: i64,
}

/// Rows of an update that stay in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// The first ones, for [`Log::newest_rates`].
    #[default]
    Newest,
    /// All, for [`Log::spans`].
    All,
}

/// A step of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Mean rates.
    pub rates: [f64; 2],
    /// Largest rates.
    pub maxima: [i64; 2],
    /// Time of the row that the step begins with, seconds since 1970. Graphs have the mark of this time.
    pub row_s: i64,
}

impl Log {
    /// Appends the text of the next state to `out`. The state in memory stays the one before.
    pub fn update(&mut self, update: &LogUpdate, out: &mut Vec<u8>) -> Result<(), TimeWarp> {
        if update.now_s < self.last_s {
            return Err(TimeWarp {
                last_s: self.last_s,
            });
        }
        let rates = self.rates(update);
        let rates = rates.map(|rate| rate as f64);
        let mut newest = std::mem::take(&mut self.newest);
        newest.clear();
        let kept = match update.kept {
            Kept::Newest => 8,
            Kept::All => usize::MAX,
        };
        put_first(update, out);
        let mut put = |time_s: i64, mean: &Mean| {
            match mean.line {
                (0, 0) => put_row(time_s, mean, out),
                (begin, end) => out.extend_from_slice(&self.text[begin..end]),
            }
            if newest.len() < kept {
                newest.push(Row {
                    time_s,
                    rates: mean.rates,
                    maxima: mean.maxima.map(|max| max as f64),
                    line: (0, 0),
                });
            }
        };
        let row = Mean {
            rates,
            maxima: rates.map(whole),
            line: (0, 0),
        };
        put(update.now_s, &row);
        let mut rows = Rows::new([&[], &self.rows], self.valid);
        let mut now_s = rows.row(0).time_s;
        for (place, (step, count)) in SPANS.into_iter().enumerate() {
            let whole_s = now_s / step * step;
            if whole_s < now_s {
                put(now_s, &rows.mean(now_s, now_s - whole_s));
                now_s = whole_s;
            }
            // The newest row counts as one of the first resolution.
            for _ in usize::from(place == 0)..count {
                put(now_s, &rows.mean(now_s, step));
                now_s -= step;
            }
        }
        self.newest = newest;
        Ok(())
    }

    /// The rates that MRTG compares with thresholds after an update at this time: those of the last five minutes of the clock.
    pub fn newest_rates(&self, now_s: i64) -> [f64; 2] {
        let newest = self.spans(now_s, SPANS[0].0).next();
        let rates = newest.map_or([0.0; 2], |span| span.rates);
        rates.map(|rate| (rate + 0.5).trunc())
    }

    /// Steps of a graph after an update at this time, newest first and without an end. They are as long as `step_s`, and full by the
    /// clock. The update must have kept the rows that they reach.
    pub fn spans(&self, now_s: i64, step_s: i64) -> impl Iterator<Item = Span> {
        let mut rows = Rows::new([&self.newest, &self.rows], self.valid);
        let mut end_s = now_s / step_s * step_s;
        std::iter::repeat_with(move || {
            let row_s = rows.row(rows.at).time_s;
            let mean = rows.mean(end_s, step_s);
            end_s -= step_s;
            Span {
                rates: mean.rates,
                maxima: mean.maxima,
                row_s,
            }
        })
    }
}

fn put_first(update: &LogUpdate, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, "{} ", update.now_s);
    out.extend_from_slice(update.values[0]);
    out.push(b' ');
    out.extend_from_slice(update.values[1]);
    out.push(b'\n');
}

fn put_row(time_s: i64, mean: &Mean, out: &mut Vec<u8>) {
    let [one, two] = mean.rates.map(whole);
    let [max_one, max_two] = mean.maxima;
    let _ = writeln!(out, "{time_s} {one} {two} {max_one} {max_two}");
}

/// Rates of a time.
struct Mean {
    rates: [f64; 2],
    maxima: [i64; 2],
    /// Line of the only row in this time, if it is written like that.
    line: (usize, usize),
}

/// Rows that are passed from the newest to the oldest. As in rateup, those of an update take the first places of the ones before.
struct Rows<'a> {
    newest: &'a [Row],
    rows: &'a [Row],
    valid: usize,
    at: usize,
}

impl Rows<'_> {
    fn new<'a>([newest, rows]: [&'a [Row]; 2], valid: usize) -> Rows<'a> {
        Rows {
            newest,
            rows,
            valid,
            at: 0,
        }
    }

    fn row(&self, at: usize) -> Row {
        let row = self.newest.get(at).or_else(|| self.rows.get(at));
        row.copied().unwrap_or_default()
    }

    /// Mean rates and largest rates in the `step` seconds before `now_s`; 0 where no row reaches.
    fn mean(&mut self, now_s: i64, step: i64) -> Mean {
        let before_s = now_s - step;
        let (row, next) = (self.row(self.at), self.row(self.at + 1));
        let mut mean = Mean {
            rates: [0.0; 2],
            maxima: [0; 2],
            line: (0, 0),
        };
        if now_s == row.time_s && self.at < self.valid && before_s == next.time_s {
            self.at += 1;
            mean.rates = row.rates;
            mean.maxima = row.maxima.map(whole);
            mean.line = row.line;
            return mean;
        }
        if now_s > row.time_s {
            return mean;
        }
        while now_s <= self.row(self.at + 1).time_s && self.at < self.valid {
            self.at += 1;
        }
        let mut seconds = 0;
        loop {
            let (row, next) = (self.row(self.at), self.row(self.at + 1));
            let part = match (now_s >= row.time_s, before_s <= next.time_s) {
                (true, true) => row.time_s - next.time_s,
                (true, false) => row.time_s - before_s,
                (false, false) => step,
                (false, true) => now_s - next.time_s,
            };
            for (sum, rate) in mean.rates.iter_mut().zip(row.rates) {
                *sum += rate * part as f64;
            }
            seconds += part;
            for (max, of_row) in mean.maxima.iter_mut().zip(row.maxima) {
                *max = whole((*max as f64).max(of_row));
            }
            if before_s > next.time_s {
                break;
            }
            self.at += 1;
            if self.at >= self.valid || before_s >= self.row(self.at).time_s {
                break;
            }
        }
        mean.rates = mean.rates.map(|sum| sum / seconds as f64);
        mean
    }
}
