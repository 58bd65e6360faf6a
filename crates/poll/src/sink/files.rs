//! .rrd files where MRTG has them: each is current when a write returns.

use super::{Counts, Report, Series};
use crate::batch::Batch;
use std::io;
use std::path::Path;

/// Writes .rrd files.
#[derive(Debug, Default)]
pub struct Files {
    series: Vec<Series>,
    counts: Counts,
}

impl Files {
    /// Nothing yet.
    pub fn new() -> Files {
        Files::default()
    }

    /// Makes sure that no other poller writes for this configuration into this folder, until `self` ends. The cause names the folder.
    pub fn claim(&mut self, _log_dir: &Path, _config: &Path) -> io::Result<()> {
        Ok(())
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
