//! Primary data points: converts readings to rate × seconds, sums these up, and closes a point at the end of each step.
//! The order of operations is that of rrdtool (1.7.2 and later).

use super::Stamp;
use super::argument::{self, Field};
use crate::UNKNOWN;
use crate::error::Error;
use crate::header::{DsDef, Header, PdpPrep, field, until_nul};
use crate::kind::Dst;
use crate::number::{diff, to_u64};
use crate::rpn;

/// Words of `pdp_prep_t`.
const UNKNOWN_SEC: usize = 0;
const VALUE: usize = 1;
/// Amounts added to a COUNTER that went down: first for 32 bits, then up to 64.
const WRAP_32: f64 = 4_294_967_295.0;
const WRAP_64: f64 = 18_446_744_069_414_584_320.0;

/// The period that an update covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Seconds since the last update.
    pub interval: f64,
    /// Seconds before the end of the last complete step.
    pub before: f64,
    /// Seconds after it.
    pub after: f64,
    /// Number of completed steps.
    pub elapsed: u64,
    /// Number of steps from the epoch to the start of the open point.
    pub first_pdp: u64,
    /// Time at which its rows are written, as updatev shows it, seconds since the epoch.
    pub time: i64,
}

impl Span {
    /// The period from the last update to `stamp`.
    pub(super) fn new(header: &Header, stamp: Stamp) -> Span {
        let step = header.pdp_step;
        let (last, now) = (header.last_up as u64, stamp.sec as u64);
        let (began, over) = (last - last % step, now % step);
        let ended = now - over;
        let interval = interval(header, stamp);
        let (mut before, mut after) = (interval, 0.0);
        if ended > began {
            before = (ended as i64).wrapping_sub(header.last_up) as f64;
            before -= header.last_up_usec as f64 / 1e6;
            after = over as f64;
            after += stamp.usec as u64 as f64 / 1e6;
        }
        Span {
            interval,
            before,
            after,
            elapsed: ended.wrapping_sub(began) / step,
            first_pdp: began / step,
            time: stamp.sec,
        }
    }

    /// The split rule: if more than one step has ended and a point was open, that point is closed alone, over whole
    /// seconds. Cuts this part off the period and returns it.
    pub(super) fn cut_open(&mut self, header: &Header) -> Option<Span> {
        let open_sec = to_u64(self.before) % header.pdp_step;
        if self.elapsed <= 1 || open_sec == 0 {
            return None;
        }
        let open = Span {
            interval: open_sec as f64,
            before: open_sec as f64,
            after: 0.0,
            elapsed: 1,
            first_pdp: self.first_pdp,
            time: header.last_up.wrapping_add(open_sec as i64),
        };
        self.interval -= open.interval;
        self.before -= open.interval;
        self.elapsed -= 1;
        self.first_pdp = self.first_pdp.wrapping_add(1);
        Some(open)
    }
}

/// Seconds from the last update to `stamp`.
pub(super) fn interval(header: &Header, stamp: Stamp) -> f64 {
    stamp.sec.wrapping_sub(header.last_up) as f64
        + stamp.usec.wrapping_sub(header.last_up_usec) as f64 / 1e6
}

/// Converts readings to rate × seconds; NaN: unknown. After an error `fresh` has the readings before the bad one.
pub(super) fn prepare(
    header: &Header,
    kinds: &[Dst],
    (arg, fields): (&[u8], &[Field]),
    interval: f64,
    fresh: &mut Vec<f64>,
) -> Result<(), Error> {
    fresh.clear();
    for (i, ds) in header.ds.iter().enumerate() {
        let text = fields[i].map(|(from, end)| &arg[from..end]);
        let last = until_nul(&header.pdp_prep[i].last_ds);
        fresh.push(match text {
            Some(text) if is_read(ds, kinds[i], text, interval) => {
                reading(ds, kinds[i], text, last, interval)?
            }
            _ => UNKNOWN,
        });
    }
    Ok(())
}

/// False for a text that begins with U, which is unknown whatever follows.
fn is_read(ds: &DsDef, kind: Dst, text: &[u8], interval: f64) -> bool {
    text.first() != Some(&b'U') && kind != Dst::Compute && ds.par[0] as f64 >= interval
}

fn reading(ds: &DsDef, kind: Dst, text: &[u8], last: &[u8], interval: f64) -> Result<f64, Error> {
    let known = last.first() != Some(&b'U');
    let (value, rate) = match kind {
        Dst::Counter | Dst::Derive => {
            require_integer(kind, text)?;
            if !known {
                return Ok(UNKNOWN);
            }
            let value = counted(kind, diff(text, last));
            (value, value / interval)
        }
        Dst::Absolute => {
            let value = argument::number(text, "Function update_pdp_prep, case DST_ABSOLUTE")?;
            (value, value / interval)
        }
        Dst::Gauge => {
            let rate = argument::number(text, "Function update_pdp_prep, case DST_GAUGE")?;
            (rate * interval, rate)
        }
        Dst::Dcounter | Dst::Dderive if known => {
            let value = fractional_difference(kind, text, last)?;
            (value, value / interval)
        }
        // Without an earlier reading, the text is not parsed.
        Dst::Dcounter | Dst::Dderive | Dst::Compute => return Ok(UNKNOWN),
    };
    let [min, max] = [1, 2].map(|i| f64::from_bits(ds.par[i]));
    Ok(if rate > max || rate < min {
        UNKNOWN
    } else {
        value
    })
}

fn require_integer(kind: Dst, text: &[u8]) -> Result<(), Error> {
    let signed = kind == Dst::Derive;
    let digits = match text.split_first() {
        Some((b'-', rest)) if signed => rest,
        _ => text,
    };
    if digits.iter().all(u8::is_ascii_digit) {
        return Ok(());
    }
    let (word, text) = (
        if signed { "signed" } else { "unsigned" },
        String::from_utf8_lossy(text),
    );
    Err(Error::new(format!("not a simple {word} integer: '{text}'")))
}

fn counted(kind: Dst, mut value: f64) -> f64 {
    if kind == Dst::Counter && value < 0.0 {
        value += WRAP_32;
        if value < 0.0 {
            value += WRAP_64;
        }
    }
    value
}

/// The difference of two fractional counters. A DCOUNTER that changes its direction was reset.
fn fractional_difference(kind: Dst, text: &[u8], last: &[u8]) -> Result<f64, Error> {
    let place = match kind {
        Dst::Dcounter => "Function update_pdp_prep, case DST_DCOUNTER",
        _ => "Function update_pdp_prep, case DST_DDERIVE",
    };
    let new = argument::number(text, place)?;
    let old = argument::number(last, place)?;
    let turned = (new > 0.0 && old > new) || (new < 0.0 && new > old);
    Ok(if kind == Dst::Dcounter && turned {
        UNKNOWN
    } else {
        new - old
    })
}

/// Stores the texts of readings, 29 characters of each, for the next difference.
pub(super) fn keep_texts(pdp_prep: &mut [PdpPrep], arg: &[u8], fields: &[Field]) {
    for (pdp, text) in pdp_prep.iter_mut().zip(fields) {
        let text = text.map_or(&b"U"[..], |(from, end)| &arg[from..end]);
        pdp.last_ds = field(&text[..text.len().min(29)]);
    }
}

/// Adds readings to the open point, as no step has ended.
pub(super) fn gather(pdp_prep: &mut [PdpPrep], fresh: &[f64], interval: f64) {
    for (pdp, &fresh) in pdp_prep.iter_mut().zip(fresh) {
        let value = f64::from_bits(pdp.scratch[VALUE]);
        if fresh.is_nan() {
            pdp.scratch[UNKNOWN_SEC] = to_u64(pdp.scratch[UNKNOWN_SEC] as f64 + interval.floor());
        } else {
            let sum = if value.is_nan() { fresh } else { value + fresh };
            pdp.scratch[VALUE] = sum.to_bits();
        }
    }
}

/// Moves the open point's share of the readings from `fresh` to `open`.
pub(super) fn split(fresh: &mut [f64], open: &mut Vec<f64>, open_sec: f64, interval: f64) {
    open.clear();
    for fresh in fresh {
        if fresh.is_nan() || interval <= 0.0 {
            open.push(UNKNOWN);
            continue;
        }
        let share = *fresh * open_sec / interval;
        *fresh -= share;
        open.push(share);
    }
}

/// Closes the points of a period; `points` gets their rates.
pub(super) fn close(
    header: &mut Header,
    kinds: &[Dst],
    span: &Span,
    fresh: &[f64],
    (points, calculator): (&mut Vec<f64>, &mut rpn::Calculator),
) -> Result<(), Error> {
    points.resize(header.ds.len(), UNKNOWN);
    let seconds = span.elapsed.wrapping_mul(header.pdp_step);
    for (i, ds) in header.ds.iter().enumerate() {
        let pdp = &mut header.pdp_prep[i];
        points[i] = rate(pdp, ds.par[0], header.pdp_step, seconds, fresh[i], span);
        if kinds[i] == Dst::Compute {
            calculator.run(&ds.par, points, i, header.pdp_step)?;
        }
        begin_next(pdp, fresh[i], span);
    }
    Ok(())
}

fn rate(
    pdp: &mut PdpPrep,
    heartbeat: u64,
    step: u64,
    seconds: u64,
    fresh: f64,
    span: &Span,
) -> f64 {
    let mut unknown_before = 0.0;
    let mut value = f64::from_bits(pdp.scratch[VALUE]);
    if fresh.is_nan() {
        unknown_before = span.before;
    } else {
        if value.is_nan() {
            value = 0.0;
        }
        value += fresh / span.interval * span.before;
    }
    let unknown_sec = pdp.scratch[UNKNOWN_SEC];
    // The unknown seconds at the end do not count against the half that may be unknown.
    if span.interval > heartbeat as f64 || step as f64 / 2.0 < f64::from(unknown_sec as i32) {
        UNKNOWN
    } else {
        value / (seconds.wrapping_sub(unknown_sec) as f64 - unknown_before)
    }
}

fn begin_next(pdp: &mut PdpPrep, fresh: f64, span: &Span) {
    if fresh.is_nan() {
        pdp.scratch[UNKNOWN_SEC] = to_u64(span.after.floor());
        pdp.scratch[VALUE] = UNKNOWN.to_bits();
    } else {
        pdp.scratch[UNKNOWN_SEC] = 0;
        pdp.scratch[VALUE] = (fresh / span.interval * span.after).to_bits();
    }
}
