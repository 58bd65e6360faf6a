//! Initial state of a new data source or archive.

use crate::UNKNOWN;
use crate::cf::Cf;
use crate::header::{CdpPrep, PdpPrep, RraDef, Univals, field};

/// Bits of the unknown value in the header.
pub(crate) const UNKNOWN_BITS: u64 = UNKNOWN.to_bits();

/// Words of `cdp_prep_t` with the value of the first row of a pass, and of all
/// other rows.
pub(crate) const PRIMARY: usize = 8;
pub(crate) const SECONDARY: usize = 9;

/// A point in progress without known values.
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

/// A new row in progress.
pub(crate) fn new_cdp(last_up: i64, step: u64, rra: &RraDef, pdp: &PdpPrep) -> CdpPrep {
    let mut cdp = CdpPrep { scratch: [0; 10] };
    init_cdp(last_up, step, rra, pdp, &mut cdp.scratch);
    cdp
}

/// Initialises the words that matter in a row in progress.
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

/// Initialises a prediction that has learnt nothing.
pub(crate) fn init_prediction(words: &mut Univals) {
    words[2..6].fill(UNKNOWN_BITS);
    (words[6], words[7]) = (1, 1);
}

/// Clears the violations within the window of a FAILURES archive.
pub(crate) fn erase_violations(rra: &RraDef, words: &mut Univals) {
    let len = usize::try_from(rra.par[4]).unwrap_or(usize::MAX).min(80);
    for i in 0..len {
        words[i / 8] &= !(0xff << (8 * (i % 8)));
    }
}
