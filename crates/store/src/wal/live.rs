//! LIVE: checksums of the changing part of an RRD file as the
//! store left it, by which changes of other programs are found.

use kymo_rrd::Header;
use kymo_rrd::cf::Cf;

/// Checksums of the changing part of a header as the store left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    /// Checksum of the fields that only updates change: last update, values and rows in progress, row pointers.
    pub(crate) updated: u32,
    /// Checksum of the fields that tune changes too: last readings, learned values of Holt-Winters archives.
    pub(crate) tuned: u32,
}

impl Live {
    /// Computes the checksums of a header and its seasonal archives.
    pub(crate) fn of(header: &Header, seasons: &[Vec<f64>]) -> Live {
        let (mut updated, mut tuned) = (0, 0);
        put(&mut updated, header.last_up as u64);
        put(&mut updated, header.last_up_usec as u64);
        for pdp in &header.pdp_prep {
            pdp.scratch.iter().for_each(|&word| put(&mut updated, word));
            tuned = crc32c::crc32c_append(tuned, &pdp.last_ds);
        }
        let width = header.ds.len().max(1);
        for (at, cdp) in header.cdp_prep.iter().enumerate() {
            let learnt = learnt(&header.rra[at / width]);
            for (at, &word) in cdp.scratch.iter().enumerate() {
                match learnt.contains(&at) {
                    true => put(&mut tuned, word),
                    false => put(&mut updated, word),
                }
            }
        }
        header
            .cur_row
            .iter()
            .for_each(|&row| put(&mut updated, row));
        for cell in seasons.iter().flatten() {
            put(&mut tuned, cell.to_bits());
        }
        Live { updated, tuned }
    }
}

fn put(crc: &mut u32, word: u64) {
    *crc = crc32c::crc32c_append(*crc, &word.to_le_bytes());
}

/// The words of a row in progress with values that the archive has learned.
fn learnt(rra: &kymo_rrd::header::RraDef) -> std::ops::Range<usize> {
    match Cf::of(rra.cf()) {
        Some(Cf::HwPredict | Cf::MhwPredict | Cf::Seasonal | Cf::DevSeasonal) => 2..8,
        Some(Cf::Failures) => 0..8,
        _ => 0..0,
    }
}
