//! The keeper of `kymo serve`, by its protocol (docs/formats/keeper.md).

use super::{Counts, Report, Series};
use crate::batch::Batch;
use kymo_sys::clock::Clock;
use std::path::PathBuf;
use std::sync::Arc;

/// Hands values to the keeper.
pub struct Keeper {
    #[expect(dead_code, reason = "the keeper has no question for it yet")]
    socket: PathBuf,
    #[expect(dead_code, reason = "the keeper has no question for it yet")]
    clock: Arc<dyn Clock>,
    series: Vec<Series>,
    counts: Counts,
}

impl Keeper {
    /// The keeper that answers on this socket, `keeper-write.sock`. Nothing is connected yet.
    pub fn at(socket: PathBuf, clock: Arc<dyn Clock>) -> Keeper {
        Keeper {
            socket,
            clock,
            series: Vec::new(),
            counts: Counts::default(),
        }
    }

    pub(super) fn begin(&mut self, series: Vec<Series>, _watched: &[u32]) {
        self.series = series;
    }

    pub(super) fn write(&mut self, batch: &Batch, report: &mut Report) {
        super::refuse_all(batch, report, &mut self.counts);
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}
