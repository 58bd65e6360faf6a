//! Sums and means that lose no small values beside large ones (Kahan's summation with Neumaier's change).

/// A sum, and what rounding took from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    total: f64,
    rest: f64,
}

impl Sum {
    /// Adds a value.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let next = self.total + value;
        self.rest = if next.is_infinite() {
            0.0
        } else if self.total.abs() >= value.abs() {
            self.rest + ((self.total - next) + value)
        } else {
            self.rest + ((value - next) + self.total)
        };
        self.total = next;
    }

    /// The sum.
    #[inline]
    pub(crate) fn value(self) -> f64 {
        match self.total.is_infinite() {
            true => self.total,
            false => self.total + self.rest,
        }
    }
}

/// A mean: of the sum for as long as that is finite, then updated value by value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mean {
    sum: Sum,
    count: f64,
    is_running: bool,
}

impl Mean {
    /// The mean of one value.
    pub(crate) fn new(value: f64) -> Mean {
        Mean {
            sum: Sum {
                total: value,
                rest: 0.0,
            },
            count: 1.0,
            is_running: false,
        }
    }

    /// Takes one more value in.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let before = self.count;
        self.count += 1.0;
        if !self.is_running {
            let mut next = self.sum;
            next.add(value);
            if !next.total.is_infinite() {
                self.sum = next;
                return;
            }
            self.is_running = true;
            self.sum.total /= before;
            self.sum.rest /= before;
        }
        let share = before / self.count;
        self.sum.total *= share;
        self.sum.rest *= share;
        self.sum.add(value / self.count);
    }

    /// The mean.
    pub(crate) fn value(self) -> f64 {
        match self.is_running {
            true => self.sum.total + self.sum.rest,
            false => self.sum.total / self.count + self.sum.rest / self.count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_not_lost() {
        let mut sum = Sum::default();
        [1.0, 1e100, 1.0, -1e100]
            .into_iter()
            .for_each(|v| sum.add(v));
        assert_eq!(sum.value(), 2.0);
        let mut sum = Sum::default();
        [f64::INFINITY, 1.0].into_iter().for_each(|v| sum.add(v));
        assert_eq!(sum.value(), f64::INFINITY);
    }

    #[test]
    fn a_mean_does_not_overflow() {
        let mut mean = Mean::new(f64::MAX);
        (0..3).for_each(|_| mean.add(f64::MAX));
        assert!((mean.value() / f64::MAX - 1.0).abs() < 1e-15);
        let mut mean = Mean::new(f64::INFINITY);
        mean.add(f64::NEG_INFINITY);
        assert!(mean.value().is_nan());
    }
}
