//! CRC-32C of any part of a byte slice, at a cost that hardly depends on the length of the part.

use std::ops::Range;

/// Distance between two stored checksums, in bytes.
const STEP: usize = 256;

/// The checksums of the bytes before every [`STEP`]th position. Appending `n` zero bytes is a linear map of the
/// checksum; the `k`-th matrix is the map for 2^`k` zeros.
pub(crate) struct Ranges<'a> {
    bytes: &'a [u8],
    before: Vec<u32>,
    zeros: Vec<[u32; 32]>,
}

impl<'a> Ranges<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Ranges<'a> {
        let mut before = vec![0];
        for step in bytes.chunks_exact(STEP) {
            before.push(crc32c::crc32c_append(before[before.len() - 1], step));
        }
        let one = std::array::from_fn(|bit| crc32c::crc32c_combine(1 << bit, 0, 1));
        let zeros = std::iter::successors(Some(one), |half: &[u32; 32]| {
            Some(half.map(|column| times(half, column)))
        });
        let count = usize::BITS - bytes.len().leading_zeros();
        Ranges {
            bytes,
            before,
            zeros: zeros.take(count as usize).collect(),
        }
    }

    /// Does the same as [`crc32c::crc32c_append`] of a part.
    pub(crate) fn append(&self, crc: u32, part: Range<usize>) -> u32 {
        let len = part.len();
        let shifted = (0..self.zeros.len())
            .filter(|bit| len >> bit & 1 != 0)
            .fold(crc ^ self.before(part.start), |crc, bit| {
                times(&self.zeros[bit], crc)
            });
        shifted ^ self.before(part.end)
    }

    fn before(&self, at: usize) -> u32 {
        let step = at / STEP;
        crc32c::crc32c_append(self.before[step], &self.bytes[step * STEP..at])
    }
}

fn times(matrix: &[u32; 32], vector: u32) -> u32 {
    let columns = matrix.iter().enumerate();
    columns.fold(0, |sum, (bit, column)| {
        sum ^ (column & (vector >> bit & 1).wrapping_neg())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::random::next_random;

    #[test]
    fn a_part_has_the_checksum_that_it_has_alone() {
        let mut random = 1;
        for len in [0, 1, 255, 256, 257, 5000, 70_000] {
            let bytes: Vec<u8> = (0..len).map(|_| next_random(&mut random) as u8).collect();
            let ranges = Ranges::of(&bytes);
            for _ in 0..200 {
                let start = next_random(&mut random) as usize % (len + 1);
                let end = start + next_random(&mut random) as usize % (len - start + 1);
                let crc = next_random(&mut random) as u32;
                let alone = crc32c::crc32c_append(crc, &bytes[start..end]);
                assert_eq!(ranges.append(crc, start..end), alone, "{len} {start} {end}");
            }
        }
    }
}
