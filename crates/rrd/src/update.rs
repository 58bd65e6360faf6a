//! `rrdtool update`: makes primary data points of readings, and rows of these points.
//!
//! [`argument`] parses an argument; [`pdp`] converts its readings to rates and closes points; [`cdp`] consolidates
//! points ([`crate::aberrant`] for the Holt-Winters family); [`write`] writes rows.

mod argument;
mod cdp;
mod hole;
mod pdp;
#[cfg(test)]
mod tests;
mod write;

use self::argument::Field;
use self::cdp::Due;
pub(crate) use self::cdp::put_point;
pub use self::hole::{begin_hole, in_hole, lose_between};
use self::pdp::Span;
use crate::UNKNOWN;
use crate::aberrant::{self, Seasons};
use crate::cf::Cf;
use crate::error::{Error, Kind};
use crate::header::Header;
use crate::kind::{Dst, cf_of};
use crate::rows::Rows;
use crate::rpn::Calculator;

/// Longest error text, bytes.
const ERROR_BYTES_MAX: usize = 4095;

/// The current time, for `N` and negative stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Seconds since the epoch.
    pub sec: i64,
    /// Microseconds.
    pub usec: i64,
}

/// The stamp of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Seconds since the epoch.
    pub sec: i64,
    /// Microseconds; 0 in files before version 3.
    pub usec: i64,
}

/// Parses the text before an `@`: seconds since the epoch; `None` if it is relative to "start" or "end", which update
/// refuses; or rrd_parsetime's error.
pub type AtTime<'a> = &'a dyn Fn(&[u8]) -> Result<Option<i64>, String>;

/// Options of an update.
#[derive(Clone, Copy)]
pub struct Update<'a> {
    /// Prefix `name: ` of errors, which is untrusted text; empty: no prefix.
    pub file_name: &'a [u8],
    /// `--template`: data sources in the order of the readings.
    pub template: Option<&'a [u8]>,
    /// `--skip-past-updates`: stamps that are not newer are skipped without an error.
    pub skip_past: bool,
    /// The current time.
    pub now: Now,
    /// The parser of at-style times.
    pub at_time: AtTime<'a>,
}

/// A written cell, as updatev prints it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// The row's stamp as updatev shows it, seconds since the epoch.
    pub time: i64,
    /// Index of the archive.
    pub archive: usize,
    /// Index of the data source.
    pub source: usize,
    /// The value of the cell.
    pub value: f64,
}

/// Buffers of updates; reuse them to save allocations.
#[derive(Default)]
pub struct Scratch {
    kinds: Vec<Dst>,
    cfs: Vec<Cf>,
    /// Data source of each reading in an argument.
    order: Vec<usize>,
    fields: Vec<Field>,
    /// Amounts that the readings add: rate × seconds.
    fresh: Vec<f64>,
    /// Shares of the readings that belong to the open point.
    open: Vec<f64>,
    /// Closed points, as rates.
    points: Vec<f64>,
    /// Rows that a pass completes.
    due: Vec<Due>,
    seasons: Seasons,
    /// True if an archive belongs to Holt-Winters.
    has_aberrant: bool,
    calculator: Calculator,
    /// Rows to be written.
    cells: Vec<f64>,
}

/// Applies the arguments one by one, up to the first error. As in rrdtool, the arguments before it stay applied: write
/// header and rows in either case. [`update_all`] goes on after errors. `seen` gets each written cell.
pub fn update(
    header: &mut Header,
    rows: &mut impl Rows,
    how: &Update<'_>,
    args: &[&[u8]],
    seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    update_with(&mut Scratch::default(), header, rows, how, args, seen)
}

/// [`update`] with reused memory.
pub fn update_with(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
    how: &Update<'_>,
    args: &[&[u8]],
    mut seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    if args.is_empty() {
        return Err(Error::new("Not enough arguments"));
    }
    scratch.begin(header, how)?;
    for arg in args {
        let done = apply(scratch, header, rows, how, arg, seen.as_deref_mut());
        match done {
            Err(error) if how.skip_past && error.kind == Kind::Past => {}
            _ => done.map_err(|error| in_file(how, error))?,
        }
    }
    end(scratch, header, rows)
}

/// Calls [`update`] for each argument, for callers that must not lose good arguments. A refused argument changes
/// nothing and goes to `refused` with its index; those after it are applied. The result does not depend on the
/// distribution of arguments over calls. An error concerns the file, not an argument.
pub fn update_all(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
    how: &Update<'_>,
    args: &[&[u8]],
    refused: &mut Vec<(usize, Error)>,
) -> Result<(), Error> {
    scratch.begin(header, how)?;
    for (i, arg) in args.iter().enumerate() {
        match read(scratch, header, how, arg) {
            Err(error) => refused.push((i, in_file(how, error))),
            Ok(stamp) => {
                pdp::keep_texts(&mut header.pdp_prep, arg, &scratch.fields);
                advance(scratch, header, rows, stamp, None).map_err(|error| in_file(how, error))?;
                if scratch.has_aberrant {
                    end_of_one(scratch, header, rows)?;
                }
            }
        }
    }
    Ok(())
}

/// Checks if an argument would be accepted next, and changes nothing. Returns its stamp, or the error of [`update`]. A
/// COMPUTE that always fails is not detected.
pub fn check(header: &Header, how: &Update<'_>, arg: &[u8]) -> Result<Stamp, Error> {
    let scratch = &mut Scratch::default();
    scratch.begin(header, how)?;
    read(scratch, header, how, arg).map_err(|error| in_file(how, error))
}

impl Scratch {
    /// Prepares the state that all arguments of this header share.
    fn begin(&mut self, header: &Header, how: &Update<'_>) -> Result<(), Error> {
        self.kinds.clear();
        for ds in &header.ds {
            let kind = Dst::of(&ds.dst).ok_or_else(|| unknown("data acquisition", ds.dst()));
            self.kinds.push(kind.map_err(|error| in_file(how, error))?);
        }
        self.cfs.clear();
        for rra in &header.rra {
            let cf = cf_of(&rra.cf_nam).ok_or_else(|| unknown("consolidation", rra.cf()));
            self.cfs.push(cf.map_err(|error| in_file(how, error))?);
        }
        self.has_aberrant = self.cfs.iter().any(|cf| !cf.is_plain());
        self.points.clear();
        self.seasons.clear();
        self.calculator.now_sec = how.now.sec;
        argument::order(header, &self.kinds, how.template, &mut self.order)
    }
}

fn unknown(what: &str, name: &[u8]) -> Error {
    let name = String::from_utf8_lossy(name);
    Error::new(format!("unknown {what} function '{name}'"))
}

/// Adds the file's name to errors of arguments; errors of templates have none.
fn in_file(how: &Update<'_>, error: Error) -> Error {
    if how.file_name.is_empty() {
        return error;
    }
    let name = String::from_utf8_lossy(how.file_name);
    let mut text = format!("{name}: {error}");
    text.truncate(text.floor_char_boundary(ERROR_BYTES_MAX));
    Error {
        kind: error.kind,
        text,
    }
}

/// Parses an argument; its readings go to `scratch.fresh`.
fn read(
    scratch: &mut Scratch,
    header: &Header,
    how: &Update<'_>,
    arg: &[u8],
) -> Result<Stamp, Error> {
    let Scratch { order, fields, .. } = scratch;
    let stamp = argument::read(header, how, order, arg, fields)?;
    let interval = pdp::interval(header, stamp);
    let read = (arg, &scratch.fields[..]);
    pdp::prepare(header, &scratch.kinds, read, interval, &mut scratch.fresh)?;
    Ok(stamp)
}

fn apply(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
    how: &Update<'_>,
    arg: &[u8],
    seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    scratch.fresh.clear();
    let stamp = read(scratch, header, how, arg);
    // As in rrdtool, data sources before a bad one keep their new text, though the argument is refused.
    let count = scratch.fresh.len();
    pdp::keep_texts(&mut header.pdp_prep[..count], arg, &scratch.fields);
    advance(scratch, header, rows, stamp?, seen)
}

/// Advances the file from the last update to this stamp.
fn advance(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
    stamp: Stamp,
    mut seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    let mut span = Span::new(header, stamp);
    let hole = hole::in_hole(header);
    if hole {
        scratch.fresh.fill(UNKNOWN);
    }
    if span.elapsed == 0 {
        pdp::gather(&mut header.pdp_prep, &scratch.fresh, span.interval);
    } else {
        let interval = span.interval;
        if let Some(open) = span.cut_open(header) {
            pdp::split(
                &mut scratch.fresh,
                &mut scratch.open,
                open.interval,
                interval,
            );
            std::mem::swap(&mut scratch.fresh, &mut scratch.open);
            close(scratch, header, rows, (&open, hole), seen.as_deref_mut())?;
            std::mem::swap(&mut scratch.fresh, &mut scratch.open);
        }
        close(scratch, header, rows, (&span, hole), seen)?;
    }
    if hole {
        hole::end(header, stamp);
    }
    header.last_up = stamp.sec;
    header.last_up_usec = stamp.usec;
    Ok(())
}

/// Ends a call: smooths seasons once, after all arguments.
fn end(scratch: &mut Scratch, header: &mut Header, rows: &mut impl Rows) -> Result<(), Error> {
    let is_over = scratch.seasons.smooth;
    scratch.seasons.clear();
    match is_over {
        true => aberrant::smooth_all(header, rows, &scratch.cfs),
        false => Ok(()),
    }
}

/// Ends a call with a single argument, which counts even if a season could not be smoothed.
#[inline(never)] // Out of the way of files without seasons, which most are.
fn end_of_one(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
) -> Result<(), Error> {
    match end(scratch, header, rows) {
        Err(error) if error.kind == Kind::NotSmoothed => Ok(()),
        done => done,
    }
}

/// Makes rows of points, in one pass over all archives.
fn close(
    scratch: &mut Scratch,
    header: &mut Header,
    rows: &mut impl Rows,
    (span, hole): (&Span, bool),
    seen: Option<&mut Vec<Written>>,
) -> Result<(), Error> {
    let lost = hole || hole::is_point_lost(header);
    let out = (&mut scratch.points, &mut scratch.calculator);
    pdp::close(header, &scratch.kinds, span, &scratch.fresh, out)?;
    if lost {
        scratch.points.fill(UNKNOWN);
    }
    cdp::consolidate(header, rows, scratch, span)?;
    if lost {
        hole::lose_carried(header, span);
    }
    if scratch.has_aberrant {
        let Scratch {
            cfs,
            points,
            seasons,
            ..
        } = scratch;
        aberrant::observe(header, rows, cfs, points, seasons, span.elapsed)?;
    }
    write::write_rows(header, rows, scratch, span.time, seen)
}
