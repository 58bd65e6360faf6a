//! Epochs: the writes of .rrd files that a checkpoint waits for are those that began before it.

/// The current epoch, which a checkpoint advances, and the number of running writes. A checkpoint waits for the writes of
/// the previous epoch, so there are never writes of more than two epochs.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: u32,
    /// Number of writes, by the lowest bit of their epoch.
    writes: [u32; 2],
}

impl Default for Epochs {
    fn default() -> Epochs {
        // 0 is not a valid epoch.
        Epochs {
            now: 1,
            writes: [0; 2],
        }
    }
}

fn at(epoch: u32) -> usize {
    (epoch & 1) as usize
}

impl Epochs {
    pub(crate) fn now(&self) -> u32 {
        self.now
    }

    /// Begins a write; returns its epoch.
    pub(crate) fn begin_write(&mut self) -> u32 {
        self.writes[at(self.now)] += 1;
        self.now
    }

    /// Ends a write that began in this epoch.
    pub(crate) fn end_write(&mut self, epoch: u32) {
        self.writes[at(epoch)] -= 1;
    }

    /// Begins a checkpoint; returns the epoch that has ended.
    pub(crate) fn advance(&mut self) -> u32 {
        let old = self.now;
        debug_assert!(
            self.writes[at(old.wrapping_add(1))] == 0,
            "BUG: two checkpoints at a time"
        );
        self.now = self.now.wrapping_add(1);
        old
    }

    /// Returns true if no write of an epoch is running.
    pub(crate) fn is_quiet(&self, epoch: u32) -> bool {
        self.writes[at(epoch)] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_waits_for_the_writes_that_began_before_it() {
        let mut epochs = Epochs::default();
        let early = epochs.begin_write();
        let old = epochs.advance();
        assert_eq!((old, epochs.now()), (early, early + 1));
        let late = epochs.begin_write();
        assert!(!epochs.is_quiet(old));
        epochs.end_write(early);
        assert!(epochs.is_quiet(old) && !epochs.is_quiet(late));
        assert_eq!(epochs.advance(), late);
        epochs.end_write(late);
        assert!(epochs.is_quiet(late));
    }

    #[test]
    #[should_panic(expected = "two checkpoints")]
    fn no_checkpoint_begins_before_the_one_before_has_waited() {
        let mut epochs = Epochs::default();
        epochs.begin_write();
        epochs.advance();
        epochs.advance();
    }
}
