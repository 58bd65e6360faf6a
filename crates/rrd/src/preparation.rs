//! What a new data source or archive begins with, and points that are put into a row in the making one by one.

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::header::{CdpPrep, PdpPrep, RraDef, Univals, field};

/// The unknown value as the header has it.
pub(crate) const UNKNOWN_BITS: u64 = UNKNOWN.to_bits();

/// A point in the making of which nothing is known yet.
pub(crate) fn new_pdp(last_up: i64, step: u64) -> PdpPrep {
    let mut pdp = PdpPrep {
        last_ds: field(b"U"),
        pad: [0; 2],
        scratch: [0; 10],
    };
    pdp.scratch[0] = last_up as u64 % step;
    pdp.scratch[1] = UNKNOWN_BITS;
    pdp
}

/// A row in the making.
pub(crate) fn new_cdp(last_up: i64, step: u64, rra: &RraDef, pdp: &PdpPrep) -> CdpPrep {
    let mut cdp = CdpPrep { scratch: [0; 10] };
    init_cdp(last_up, step, rra, pdp, &mut cdp.scratch);
    cdp
}

/// Sets what matters of a row in the making and leaves the rest.
pub(crate) fn init_cdp(last_up: i64, step: u64, rra: &RraDef, pdp: &PdpPrep, words: &mut Univals) {
    match Cf::of(rra.cf()) {
        Some(Cf::HwPredict | Cf::MhwPredict) => init_prediction(words),
        Some(Cf::Seasonal | Cf::DevSeasonal) => {
            (words[2], words[3]) = (UNKNOWN_BITS, UNKNOWN_BITS);
            words[6] = 1;
        }
        Some(Cf::Failures) => *words = [0; 10],
        _ => {
            words[0] = UNKNOWN_BITS;
            let since = (last_up as u64).wrapping_sub(pdp.scratch[0]);
            words[1] = since % step.wrapping_mul(rra.pdp_cnt).max(1) / step;
        }
    }
}

/// A prediction that has learnt nothing.
pub(crate) fn init_prediction(words: &mut Univals) {
    words[2..6].fill(UNKNOWN_BITS);
    (words[6], words[7]) = (1, 1);
}

/// Forgets the violations within a FAILURES archive's window.
pub(crate) fn erase_violations(rra: &RraDef, words: &mut Univals) {
    let len = usize::try_from(rra.par[4]).unwrap_or(usize::MAX).min(80);
    for i in 0..len {
        words[i / 8] &= !(0xff << (8 * (i % 8)));
    }
}

/// Puts one point into a row in the making.
pub(crate) fn gather(words: &mut Univals, cf: Option<Cf>, point: f64) {
    if point.is_nan() {
        words[1] = words[1].wrapping_add(1);
        return;
    }
    let value = f64::from_bits(words[0]);
    let value = match cf {
        Some(Cf::Average) if !value.is_nan() => value + point,
        Some(Cf::Min) if !value.is_nan() && value <= point => value,
        Some(Cf::Max) if !value.is_nan() && value >= point => value,
        _ => point,
    };
    words[0] = value.to_bits();
}

/// Puts the last point into a row, and begins the next.
pub(crate) fn complete(words: &mut Univals, cf: Option<Cf>, rra: &RraDef, point: f64) {
    if point.is_nan() {
        words[1] = words[1].wrapping_add(1);
    }
    words[9] = if point.is_nan() {
        UNKNOWN_BITS
    } else {
        point.to_bits()
    };
    let (xff, unknown) = (f64::from_bits(rra.par[0]), words[1]);
    let primary = if unknown as f64 > rra.pdp_cnt as f64 * xff {
        UNKNOWN
    } else {
        whole(
            cf,
            f64::from_bits(words[0]),
            point,
            rra.pdp_cnt.wrapping_sub(unknown),
        )
    };
    let next = match cf {
        Some(Cf::Average) => 0.0,
        Some(Cf::Max) => f64::NEG_INFINITY,
        Some(Cf::Min) => f64::INFINITY,
        _ => UNKNOWN,
    };
    (words[0], words[1], words[8]) = (next.to_bits(), 0, primary.to_bits());
}

/// A row of what was gathered and its last point; `known` points of it are known.
fn whole(cf: Option<Cf>, value: f64, point: f64, known: u64) -> f64 {
    let or = |value: f64, instead: f64| if value.is_nan() { instead } else { value };
    match cf {
        Some(Cf::Average) => (or(value, 0.0) + or(point, 0.0)) / known as f64,
        Some(Cf::Max) => {
            let (value, point) = (or(value, f64::NEG_INFINITY), or(point, f64::NEG_INFINITY));
            if point > value { point } else { value }
        }
        Some(Cf::Min) => {
            let (value, point) = (or(value, f64::INFINITY), or(point, f64::INFINITY));
            if point < value { point } else { value }
        }
        _ => point,
    }
}
