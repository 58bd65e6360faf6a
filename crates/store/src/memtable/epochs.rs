//! Which writes of .rrd files a checkpoint has to wait for: those that began before it.

/// The epoch, which rises when a checkpoint begins, and the writes that are under way. A checkpoint waits for those of the
/// epoch before, so that there are never writes of more than two.
#[derive(Debug)]
pub(crate) struct Epochs {
    now: u32,
    /// By the epoch's lowest bit.
    writes: [u32; 2],
}

impl Default for Epochs {
    fn default() -> Epochs {
        // 0 is no epoch.
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

    /// A write begins; in which epoch.
    pub(crate) fn begin_write(&mut self) -> u32 {
        self.writes[at(self.now)] += 1;
        self.now
    }

    /// A write has ended that began in this epoch.
    pub(crate) fn end_write(&mut self, epoch: u32) {
        self.writes[at(epoch)] -= 1;
    }

    /// A checkpoint begins; the epoch that has ended.
    pub(crate) fn advance(&mut self) -> u32 {
        let old = self.now;
        debug_assert!(
            self.writes[at(old.wrapping_add(1))] == 0,
            "BUG: two checkpoints at a time"
        );
        self.now = self.now.wrapping_add(1);
        old
    }

    /// Whether no write of an epoch is under way.
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
