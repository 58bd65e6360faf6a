//! Updates an open, locked file. Its memory is reused from file to file.

use super::super::rates::{HOW, completed};
use super::super::series::COLUMNS;
use super::super::{Rate, Series};
use crate::mrtg_log::{Span, whole};
use kymo_rrd::fetch::{Fetched, fetch};
use kymo_rrd::tune::Tune;
use kymo_rrd::update::{Scratch, Written, update_with};
use kymo_rrd::{Error, Header, Rows};
use kymo_sys::disk::{DiskFile, NameKind};
use std::io;

/// Bytes of the first read: most headers fit.
const FIRST_READ: usize = 4096;
/// Longest header that is read, bytes: one of a thousand archives.
const HEADER_MAX: usize = 1 << 22;
/// Index of the maximum in `ds_def_t.par`.
const MAX: usize = 2;

/// Receiver of completed points.
pub(super) enum Watcher<'a> {
    None,
    /// Points of this target are appended to the vector.
    Of(u32, &'a mut Vec<Rate>),
}

/// The state of the current file, and buffers.
pub(super) struct Pen {
    header: Header,
    /// The encoded header as it was read.
    bytes: Vec<u8>,
    size_bytes: u64,
    /// Length of the last file's headers, the first guess for the next one.
    expected: usize,
    is_tuned: bool,
    scratch: Scratch,
    live: Vec<u8>,
    row: Vec<u8>,
    written: Vec<Written>,
}

impl Default for Pen {
    fn default() -> Pen {
        Pen {
            header: Header::empty(),
            bytes: Vec::new(),
            size_bytes: 0,
            expected: FIRST_READ,
            is_tuned: false,
            scratch: Scratch::default(),
            live: Vec::new(),
            row: Vec::new(),
            written: Vec::new(),
        }
    }
}

impl Pen {
    /// Reads the header of a file for a value of this second. An error if the file is older
    /// than `max_age_s`.
    pub(super) fn read(
        &mut self,
        file: &dyn DiskFile,
        max_age_s: Option<u64>,
        now_s: i64,
    ) -> Result<(), Error> {
        self.is_tuned = false;
        let stat = file.metadata().map_err(|error| failed(&error))?;
        if stat.kind != NameKind::File {
            return Err(Error::new("it is no file"));
        }
        let age_s = now_s.saturating_sub(stat.mtime_ns.div_euclid(1_000_000_000));
        if let Some(max) = max_age_s.filter(|&max| age_s > 0 && age_s.unsigned_abs() > max) {
            return Err(Error::new(format!("it is older than MaxAge ({max} s)")));
        }
        self.size_bytes = stat.size_bytes;
        let size = usize::try_from(stat.size_bytes).unwrap_or(usize::MAX);
        if self.parse(file, self.expected.min(size)).is_err() {
            self.parse(file, size.min(HEADER_MAX))?;
        }
        let needed = self.header.file_size_bytes();
        if self.size_bytes < needed {
            return Err(Error::new(format!(
                "it is too small (should be {needed} bytes)"
            )));
        }
        self.expected = usize::try_from(self.header.size_bytes()).unwrap_or(FIRST_READ);
        self.bytes.truncate(self.expected);
        Ok(())
    }

    fn parse(&mut self, file: &dyn DiskFile, bytes: usize) -> Result<(), Error> {
        self.bytes.resize(bytes, 0);
        let read = file.read_at(&mut self.bytes, 0);
        let read = read.map_err(|error| failed(&error))?;
        self.bytes.truncate(read);
        self.header.parse_over(&self.bytes)
    }

    /// Gives the data sources the kind and maxima of the series; true if they had others.
    pub(super) fn tune(&mut self, series: &Series) -> Result<bool, Error> {
        let kind = series.kind.word();
        let is_right = |(name, max): (&&str, &Option<u64>)| {
            let ds = self.header.ds.iter();
            let mut ds = ds.filter(|ds| ds.name() == name.as_bytes());
            ds.next().is_some_and(|ds| {
                let now = f64::from_bits(ds.par[MAX]);
                let max = max.map_or(f64::NAN, |max| max as f64);
                ds.dst() == kind.as_bytes() && (now == max || now.is_nan() && max.is_nan())
            })
        };
        if COLUMNS.iter().zip(&series.max).all(is_right) {
            return Ok(false);
        }
        let of = |what: &[String; 2], letter| what.clone().map(|word| (letter, word.into_bytes()));
        let maxima = [0, 1].map(|i| format!("{}:{}", COLUMNS[i], series.max_word(i)));
        let kinds = COLUMNS.map(|name| format!("{name}:{kind}"));
        let options = [of(&maxima, b'a'), of(&kinds, b'd')].concat();
        let tune = Tune {
            file_name: b"",
            daemon: None,
            options: options.iter().map(|(l, word)| (*l, &word[..])).collect(),
            bad: None,
            operations: Vec::new(),
        };
        self.is_tuned = true;
        // Options for kind and maximum do not touch rows.
        tune.apply(&mut self.header, &mut Vec::new())?;
        Ok(true)
    }

    /// Writes the changes of [`Pen::tune`] if there is no value to write.
    pub(super) fn write_tuned(&mut self, file: &dyn DiskFile) -> Result<(), Error> {
        match self.is_tuned {
            true => self.write(file).map_err(|error| failed(&error)),
            false => Ok(()),
        }
    }

    /// Updates the file with all arguments and returns the first error. A refused value
    /// does not affect the others.
    pub(super) fn update(
        &mut self,
        file: &dyn DiskFile,
        arguments: &[&[u8]],
        mut seen: Watcher,
    ) -> Result<(), Error> {
        let mut done = Ok(());
        for argument in arguments {
            let mut rows = FileRows {
                file,
                begin: self.header.size_bytes(),
                end: self.size_bytes,
                bytes: &mut self.row,
                is_broken: false,
            };
            self.written.clear();
            let written = match seen {
                Watcher::None => None,
                Watcher::Of(..) => Some(&mut self.written),
            };
            let one = update_with(
                &mut self.scratch,
                &mut self.header,
                &mut rows,
                &HOW,
                &[argument],
                written,
            );
            if rows.is_broken {
                // Without the header its new rows do not count, so the file stays as it
                // was.
                return one;
            }
            if let Watcher::Of(target, rates) = &mut seen {
                rates.extend(completed(*target, &self.header, &self.written));
            }
            done = done.and(one);
        }
        // As in rrdtool, even a refused value may change the header.
        self.write(file).map_err(|error| failed(&error))?;
        done
    }

    /// Steps of a graph until this time, newest first and full by the clock: means and largest means of the file's rows. An
    /// unknown rate is 0, as in a log. A file without MAX has means in its place.
    pub(super) fn steps(
        &mut self,
        file: &dyn DiskFile,
        now_s: i64,
        step_s: i64,
        count: usize,
    ) -> Result<Vec<Span>, Error> {
        let mut rows = FileRows {
            file,
            begin: self.header.size_bytes(),
            end: self.size_bytes,
            bytes: &mut self.row,
            is_broken: false,
        };
        let end_s = now_s.div_euclid(step_s) * step_s;
        let length_s = i64::try_from(count).unwrap_or(0).saturating_mul(step_s);
        let header = &self.header;
        let mut fetched = |cf: &[u8], from_s: i64, step_s: i64| {
            let step = u64::try_from(step_s).unwrap_or(1);
            fetch(header, &mut rows, cf, from_s, end_s, step)
        };
        let mut read = |cf: &[u8]| -> Result<[Fetched; 2], Error> {
            let all = fetched(cf, end_s - length_s, step_s)?;
            let row_s = i64::try_from(all.step).unwrap_or(1);
            let behind_s = header.last_up - header.last_up.rem_euclid(row_s);
            // Rows that are longer than a step lack its newest ones, which shorter rows have.
            let newest = fetched(cf, behind_s.min(end_s), 1)?;
            Ok([all, newest])
        };
        let means = read(b"AVERAGE")?;
        let maxima = read(b"MAX").ok();
        let ends = (0..count).map(|at| end_s - i64::try_from(at).unwrap_or(0) * step_s);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let largest = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
        Ok(ends
            .map(|end_s| {
                let time = (end_s - step_s, end_s);
                let rates = [0, 1].map(|at| {
                    let rate = known(&means, at, time, &mean);
                    rate.or_else(|| unfinished(header, at, time.0))
                });
                let maxima = [0, 1].map(|at| {
                    let max = maxima.as_ref();
                    let max = max.and_then(|maxima| known(maxima, at, time, &largest));
                    max.or(rates[at]).unwrap_or(0.0)
                });
                let rates = rates.map(|rate| rate.unwrap_or(0.0));
                Span {
                    rates,
                    maxima: maxima.map(|max| whole(max.round())),
                    row_s: end_s,
                }
            })
            .collect())
    }

    /// Writes the header, after the rows that it makes valid.
    fn write(&mut self, file: &dyn DiskFile) -> io::Result<()> {
        self.live.clear();
        let offset = match self.is_tuned {
            true => {
                self.header.encode(&mut self.live);
                0
            }
            false => {
                self.header.encode_live(&mut self.live);
                self.header.live_offset()
            }
        };
        let from = self.bytes.len().saturating_sub(self.live.len());
        let before = &self.bytes[from..];
        if before == self.live {
            return Ok(());
        }
        file.write_at(&self.live, offset).inspect_err(|_| {
            // A part of the header may be written; restore it. The first error counts,
            // whatever comes of this.
            let _ = file.write_at(before, offset);
        })
    }
}

/// Rate of the point in progress, in which a time from `from_s` on lies. A file's step is longer than a graph's where `Interval` is.
fn unfinished(header: &Header, column: usize, from_s: i64) -> Option<f64> {
    let begun_s = header.last_up
        - header
            .last_up
            .rem_euclid(i64::try_from(header.pdp_step).ok()?);
    let [unknown_s, sum, ..] = header.pdp_prep.get(column)?.scratch;
    let known_s = header.last_up - begun_s - i64::try_from(unknown_s).ok()?;
    let known_s = f64::from(i32::try_from(known_s).ok()?)
        + f64::from(i32::try_from(header.last_up_usec).ok()?) / 1e6;
    let rate = f64::from_bits(sum) / known_s;
    (from_s >= begun_s && rate.is_finite()).then_some(rate)
}

/// A value of the known rows of a column that reach into a time, of the first rows that have any; `None` if none have.
fn known(
    fetched: &[Fetched; 2],
    column: usize,
    time: (i64, i64),
    value: &dyn Fn(&[f64]) -> f64,
) -> Option<f64> {
    fetched
        .iter()
        .find_map(|rows| of_rows(rows, column, time, value))
}

fn of_rows(
    fetched: &Fetched,
    column: usize,
    (from_s, thru_s): (i64, i64),
    value: &dyn Fn(&[f64]) -> f64,
) -> Option<f64> {
    let (step, width) = (
        i64::try_from(fetched.step).unwrap_or(1),
        fetched.names.len(),
    );
    // A row ends at `start + step * (its number + 1)`; one that is longer than the time has it within.
    let first = (from_s - fetched.start).div_euclid(step).max(0);
    let behind = (thru_s - fetched.start + step - 1)
        .div_euclid(step)
        .max(first);
    let cells = (first..behind).filter_map(|row| {
        let at = usize::try_from(row)
            .ok()?
            .checked_mul(width)?
            .checked_add(column)?;
        fetched
            .rows
            .get(at)
            .copied()
            .filter(|cell| cell.is_finite())
    });
    let cells: Vec<f64> = cells.collect();
    (!cells.is_empty() && column < width).then(|| value(&cells))
}

fn failed(error: &io::Error) -> Error {
    Error::new(kymo_base::errno::strerror(error))
}

/// The rows of an open file.
struct FileRows<'a> {
    file: &'a dyn DiskFile,
    /// Offset of the first row, and end of the file.
    begin: u64,
    end: u64,
    bytes: &'a mut Vec<u8>,
    /// True after an error of a read or write.
    is_broken: bool,
}

impl FileRows<'_> {
    fn broken(&mut self, error: &io::Error) -> Error {
        self.is_broken = true;
        failed(error)
    }

    fn offset(&self, first: u64, cells: usize) -> Result<u64, Error> {
        let offset = first
            .checked_mul(8)
            .and_then(|at| at.checked_add(self.begin));
        offset
            .filter(|&at| {
                at.checked_add(8 * cells as u64)
                    .is_some_and(|end| end <= self.end)
            })
            .ok_or_else(|| Error::new("a row lies outside the file"))
    }
}

impl Rows for FileRows<'_> {
    fn read(&mut self, first: u64, cells: &mut [f64]) -> Result<(), Error> {
        let offset = self.offset(first, cells.len())?;
        self.bytes.resize(8 * cells.len(), 0);
        let read = self.file.read_at(self.bytes, offset);
        let read = read.map_err(|error| self.broken(&error))?;
        if read < self.bytes.len() {
            return Err(Error::new("a row lies outside the file"));
        }
        for (cell, bytes) in cells.iter_mut().zip(self.bytes.as_chunks().0) {
            *cell = f64::from_le_bytes(*bytes);
        }
        Ok(())
    }

    fn write(&mut self, first: u64, cells: &[f64]) -> Result<(), Error> {
        let offset = self.offset(first, cells.len())?;
        self.bytes.clear();
        let bytes = cells.iter().flat_map(|cell| cell.to_le_bytes());
        self.bytes.extend(bytes);
        let written = self.file.write_at(self.bytes, offset);
        written.map_err(|error| self.broken(&error))
    }
}
