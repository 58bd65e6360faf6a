//! The side of a receiver that the reading of the tail needs, whatever protocol the receiver speaks.

use kymo_keeper_client::TailSink;

use super::ledger::Ledger;

/// A receiver.
pub(crate) trait Receiver: Send {
    /// Begins the next reading of the tail. All samples of the last one are forgotten.
    fn begin(&mut self);
    /// Takes the events of a reading.
    fn sink(&mut self) -> &mut dyn TailSink;
    /// Number of series or columns that go out, about.
    fn series(&self) -> usize;
    /// Sends the samples of the reading, and returns when the receiver has them or never takes them.
    fn deliver(&mut self, ledger: &mut Ledger);
}
