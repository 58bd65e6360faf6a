//! The price of a read in one byte: a logarithm, eight steps an octave (9 % apart).

/// Nanoseconds → code. 0 means under 1.1 ns, 255 about 3.9 s or more.
#[inline]
pub fn encode(ns: u64) -> u8 {
    if ns <= 1 {
        return 0;
    }
    let octave = ns.ilog2();
    // The three bits below the leading one pick the eighth of the octave.
    let eighth = if octave >= 3 {
        ns >> (octave - 3)
    } else {
        ns << (3 - octave)
    } & 7;
    (octave * 8 + eighth as u32).min(255) as u8
}

/// Code → nanoseconds, the lower edge of its step.
#[inline]
pub fn decode(code: u8) -> u64 {
    let (octave, eighth) = (u32::from(code) / 8, u64::from(code) % 8);
    ((8 + eighth) << octave) >> 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn within_an_eighth_of_an_octave() {
        for ns in [1u64, 2, 9, 100, 1_500, 14_999, 10_000_000, 3_000_000_000] {
            let back = decode(encode(ns));
            assert!(
                back <= ns && ns - back <= ns / 8 + 1,
                "{ns} came back as {back}"
            );
        }
        assert_eq!(encode(u64::MAX), 255);
    }
}
