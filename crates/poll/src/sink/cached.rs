//! An rrdcached, `RRDCached:` of the configuration: its own BATCH of UPDATEs.

use super::{Counts, Report, Series};
use crate::batch::Batch;
use kymo_sys::clock::Clock;
use std::sync::Arc;

/// Hands values to an rrdcached.
pub struct Cached {
    #[expect(dead_code, reason = "nothing is sent yet")]
    address: Vec<u8>,
    #[expect(dead_code, reason = "nothing is sent yet")]
    clock: Arc<dyn Clock>,
    series: Vec<Series>,
    counts: Counts,
}

impl Cached {
    /// The daemon at `unix:/path` or `host:port`. Nothing is connected yet.
    pub fn at(address: Vec<u8>, clock: Arc<dyn Clock>) -> Cached {
        Cached {
            address,
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
