//! Random numbers with a fixed seed: every ring is the same.

/// xorshift64*.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn part(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub(crate) fn is(&mut self, part: f64) -> bool {
        self.part() < part
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A whole number whose mean over many is `mean`: usually near it, now and then many times it.
    pub(crate) fn burst(&mut self, mean: f64) -> u64 {
        let scale = if self.is(0.02) { 10.0 } else { 0.8 };
        (mean * scale * 2.0 * self.part() + self.part()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn parts_are_parts_and_means_are_means() {
        let mut chance = Chance::new(7);
        let parts: Vec<f64> = (0..10_000).map(|_| chance.part()).collect();
        assert!(parts.iter().all(|part| (0.0..1.0).contains(part)));
        let mean = parts.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
        assert_eq!(chance.below(0), 0);
        assert!(!chance.is(0.0) && chance.is(1.0));
    }
}
