//! From a log to an .rrd file of the same history, as MRTG converts it when `LogFormat: rrdtool` is new in a configuration.
//!
//! MRTG writes XML for `rrdtool restore`, so its numbers pass through texts of 15 digits; so do these.

use std::collections::VecDeque;

use kymo_base::printf::put_general;
use kymo_rrd::Rrd;
use kymo_rrd::restore::{RangeCheck, restore};

use super::perl::{Number, number_of, words};

/// Seconds of a row of each resolution, and the number of rows after which no more are collected.
const RESOLUTIONS: [(i64, usize); 4] = [(300, 600), (1800, 700), (7200, 775), (86_400, 797)];
/// Most rows of a resolution. More have only files with times that no rateup writes.
const ROWS_MAX: usize = 10_000;

/// Properties of the new file, from the configuration.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// `GAUGE`, `ABSOLUTE` or `COUNTER`.
    pub kind: &'static str,
    /// Seconds of `Interval` times two.
    pub heartbeat_s: u32,
    /// Largest rates as XML of rrdtool has them; `NaN`: none.
    pub max: [String; 2],
    /// Divisors of rates: 3600 for `perhour`, 60 for `perminute`.
    pub divisors: Vec<i64>,
}

/// One resolution while rows are collected.
struct Resolution {
    step: i64,
    rows_most: usize,
    /// End of the current row, `step` behind its begin.
    mark: i64,
    /// Seconds of the current row that are passed.
    elapsed: i64,
    /// Mean in and out, maximum in and out.
    rates: [Number; 4],
    /// Rows of the four, newest first.
    rows: [VecDeque<Number>; 4],
}

/// A row of the log.
#[derive(Clone, Copy)]
struct LogRow {
    time_s: i64,
    rates: [Number; 4],
}

impl Conversion {
    /// The file with the history of a log. `random` is the state of the generator that chooses the first row of each archive.
    pub fn convert(&self, text: &[u8], random: &mut u64) -> Result<Rrd, String> {
        let mut lines = text.split(|&byte| byte == b'\n');
        let first = words(lines.next().unwrap_or_default());
        let last_s = number_of(first.first()).whole();
        let counters = [1, 2].map(|at| first.get(at).copied().unwrap_or_default());
        let is_number = |text: &&[u8]| {
            let is_part = |byte: &u8| byte.is_ascii_digit() || b"-.".contains(byte);
            !text.is_empty() && text.len() <= 200 && text.iter().all(is_part)
        };
        if last_s <= 0 || !counters.iter().all(is_number) {
            return Err("its first line is no time and two values".into());
        }
        let mut row = LogRow::of(lines.next().unwrap_or_default());
        let mut resolutions =
            RESOLUTIONS.map(|(step, rows)| Resolution::new(step, rows, last_s, &row));
        for line in lines.filter(|line| !line.is_empty()) {
            let next = LogRow::of(line);
            for resolution in &mut resolutions {
                resolution.pass(&row, next.time_s, &self.divisors)?;
            }
            row = next;
        }
        let xml = self.xml(last_s, counters, &mut resolutions);
        restore(&xml, RangeCheck::Off, random).map_err(|error| error.text)
    }

    fn xml(&self, last_s: i64, counters: [&[u8]; 2], resolutions: &mut [Resolution; 4]) -> Vec<u8> {
        let mut xml = format!(
            "<rrd><version> 0003 </version><step> 300 </step><lastupdate> {last_s} </lastupdate>"
        )
        .into_bytes();
        let since_s = Number::Int((last_s % 300).into());
        for (column, counter) in counters.iter().enumerate() {
            let newest = resolutions[0].rows[column].pop_front();
            let sum = newest.unwrap_or_default().times(since_s);
            let (kind, heartbeat, max) = (self.kind, self.heartbeat_s, &self.max[column]);
            xml.extend_from_slice(
                format!(
                    "<ds><name> ds{column} </name><type> {kind} </type><minimal_heartbeat> {heartbeat} </minimal_heartbeat>\
                     <min> 0 </min><max> {max} </max><last_ds> "
                )
                .as_bytes(),
            );
            xml.extend_from_slice(counter);
            xml.extend_from_slice(b" </last_ds><value> ");
            put(&mut xml, sum);
            xml.extend_from_slice(b" </value><unknown_sec> 0 </unknown_sec></ds>");
        }
        for (function, columns) in [("AVERAGE", [0, 1]), ("MAX", [2, 3])] {
            for resolution in &mut *resolutions {
                put_archive(&mut xml, function, columns, resolution);
            }
        }
        xml.extend_from_slice(b"</rrd>");
        xml
    }
}

fn put_archive(xml: &mut Vec<u8>, function: &str, columns: [usize; 2], from: &mut Resolution) {
    let points = from.step / 300;
    xml.extend_from_slice(
        format!(
            "<rra><cf> {function} </cf><pdp_per_row> {points} </pdp_per_row><params> <xff> 0.5 </xff> </params><cdp_prep>"
        )
        .as_bytes(),
    );
    for column in columns {
        xml.extend_from_slice(
            b"<ds><primary_value> 0.0000000000e+00 </primary_value> <secondary_value> 0.0000000000e+00 </secondary_value> <value> ",
        );
        if let Some(unfinished) = from.rows[column].pop_front() {
            put(xml, unfinished);
        }
        xml.extend_from_slice(b" </value>  <unknown_datapoints> 0 </unknown_datapoints></ds>");
    }
    xml.extend_from_slice(b"</cdp_prep><database>");
    while !from.rows[columns[0]].is_empty() {
        xml.extend_from_slice(b"<row>");
        for column in columns {
            xml.extend_from_slice(b"<v> ");
            // MRTG takes 0 for unknown here, as its logs do not tell one from the other.
            match from.rows[column].pop_back() {
                Some(rate) if !rate.is_zero() => put(xml, rate),
                _ => xml.extend_from_slice(b"NaN"),
            }
            xml.extend_from_slice(b" </v>");
        }
        xml.extend_from_slice(b"</row>");
    }
    xml.extend_from_slice(b"</database></rra>");
}

fn put(xml: &mut Vec<u8>, number: Number) {
    match number {
        Number::Int(whole) => xml.extend_from_slice(whole.to_string().as_bytes()),
        Number::Real(real) => put_general(xml, real, 15),
    }
}

impl LogRow {
    fn of(line: &[u8]) -> LogRow {
        let words = words(line);
        LogRow {
            time_s: number_of(words.first()).whole(),
            rates: [1, 2, 3, 4].map(|at| number_of(words.get(at))),
        }
    }
}

impl Resolution {
    fn new(step: i64, rows_most: usize, last_s: i64, row: &LogRow) -> Resolution {
        let begun_s = last_s.rem_euclid(step);
        Resolution {
            step,
            rows_most,
            mark: last_s - begun_s + step,
            elapsed: step - begun_s,
            rates: row.rates,
            rows: Default::default(),
        }
    }

    /// Passes the time of a row, which begins at `begin_s`.
    fn pass(&mut self, row: &LogRow, begin_s: i64, divisors: &[i64]) -> Result<(), String> {
        if self.rows[0].len() > self.rows_most {
            return Ok(());
        }
        loop {
            let stop_s = match self.elapsed + row.time_s - begin_s > self.step {
                true => self.mark - self.step,
                false => begin_s,
            };
            let seconds = row.time_s - stop_s;
            let passed = Number::Int((self.elapsed + seconds).into());
            for at in 0..2 {
                let sum = self.rates[at].times(Number::Int(self.elapsed.into()));
                let sum = sum.plus(row.rates[at].times(Number::Int(seconds.into())));
                let mean = sum.by(passed).ok_or("its rows have no order in time")?;
                self.rates[at] = mean;
            }
            for at in 2..4 {
                if self.rates[at].real() < row.rates[at].real() {
                    self.rates[at] = row.rates[at];
                }
            }
            self.elapsed += seconds;
            if stop_s == self.mark - self.step {
                self.complete(divisors)?;
            }
            if stop_s <= begin_s {
                return Ok(());
            }
        }
    }

    /// Puts the current row to the others.
    fn complete(&mut self, divisors: &[i64]) -> Result<(), String> {
        for (rate, rows) in self.rates.iter_mut().zip(&mut self.rows) {
            for &divisor in divisors {
                let part = rate.by(Number::Int(divisor.into()));
                *rate = part.unwrap_or_default();
            }
            rows.push_back(*rate);
        }
        self.mark -= self.step;
        (self.rates[2], self.rates[3]) = (Number::default(), Number::default());
        self.elapsed = 0;
        match self.rows[0].len() > ROWS_MAX {
            true => Err("its rows reach too far back".into()),
            false => Ok(()),
        }
    }
}
