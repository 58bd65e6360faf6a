//! Samples on their way to a sink: each series is defined before its first sample.

use super::by_series::BySeries;
use super::entries::{FrameSink, TailSample};
use super::{TailSeries, TailSink};
use crate::engine::Inner;
use crate::known::{Columns, KnownSeries};
use crate::memtable::state::State;
use crate::wal::tails::Missed;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Samples that are handed over at once.
const SAMPLES: usize = 8192;

/// Samples and changes that were read and not handed over yet.
#[derive(Default)]
pub(super) struct Batch {
    samples: Vec<TailSample>,
    /// By series: true if the sink knows it, or will know it with this batch.
    defined: BySeries<bool>,
    /// Series that the sink does not know yet.
    unknown: Vec<u32>,
    /// Samples without a definition.
    lost: u64,
    /// Changes of series behind the samples.
    behind: Vec<Change>,
}

enum Change {
    Gone(u32),
    Named(u32),
}

impl FrameSink for Batch {
    fn sample(&mut self, sample: TailSample) {
        if !self.defined.get(sample.series) {
            *self.defined.entry(sample.series) = true;
            self.unknown.push(sample.series);
        }
        self.samples.push(sample);
    }

    fn lost(&mut self) {
        self.lost += 1;
    }

    fn gone(&mut self, id: u32) {
        self.behind.push(Change::Gone(id));
    }

    fn named(&mut self, id: u32) {
        self.behind.push(Change::Named(id));
    }
}

impl Batch {
    /// True if the batch should be handed over before more is read.
    pub(super) fn is_full(&self) -> bool {
        self.samples.len() >= SAMPLES || !self.behind.is_empty() || self.lost > 0
    }

    /// Hands all over; `range`: the part of the journal that was read.
    pub(super) fn hand_over(&mut self, inner: &Inner, range: (u64, u64), sink: &mut dyn TailSink) {
        if !self.unknown.is_empty() {
            self.define(inner, sink);
        }
        if self.lost > 0 {
            let values = Some(std::mem::take(&mut self.lost));
            let (from, to) = range;
            sink.missed(Missed { from, to, values });
        }
        if !self.samples.is_empty() {
            sink.samples(&self.samples);
            self.samples.clear();
        }
        for change in self.behind.drain(..) {
            let (Change::Gone(id) | Change::Named(id)) = change;
            let was_defined = self.defined.get(id);
            if was_defined {
                *self.defined.entry(id) = false;
            }
            if let (Change::Gone(id), true) = (change, was_defined) {
                sink.gone(id);
            }
        }
    }

    /// Defines the new series. Samples of a series that is not known any more are lost.
    fn define(&mut self, inner: &Inner, sink: &mut dyn TailSink) {
        let (mut last, mut strange) = (None, Vec::new());
        let state = inner.lock();
        let found = self
            .unknown
            .iter()
            .map(|&id| (id, series(inner, &state, id, &mut last)));
        let found: Vec<(u32, Option<TailSeries>)> = found.collect();
        drop(state);
        self.unknown.clear();
        for (id, series) in found {
            match series {
                Some(series) => sink.defined(&series),
                None => strange.push(id),
            }
        }
        if strange.is_empty() {
            return;
        }
        strange.sort_unstable();
        let before = self.samples.len();
        let is_known = |sample: &TailSample| strange.binary_search(&sample.series).is_err();
        self.samples.retain(is_known);
        self.lost += u64::try_from(before - self.samples.len()).unwrap_or(0);
        for id in strange {
            *self.defined.entry(id) = false;
        }
    }
}

/// A series, if it exists or was kept when it was removed.
fn series(
    inner: &Inner,
    state: &State,
    id: u32,
    last: &mut Option<(usize, Arc<Columns>)>,
) -> Option<TailSeries> {
    let there = state.series.get(id);
    let there = there.and_then(|series| {
        let chunk = state.chunks.get(series.chunk)?;
        Some((&series.path, &chunk.schema))
    });
    let departed = || {
        state
            .departed
            .get(id)
            .map(|gone| (&gone.path, &gone.schema))
    };
    let (path, schema) = there.or_else(departed)?;
    let base = inner.settings.base.as_os_str().as_bytes();
    let sources = &schema.template.ds;
    Some(TailSeries {
        known: KnownSeries::of(base, (id, path), schema, last),
        heartbeat_s: sources.first().map_or(0, |source| source.par[0]),
    })
}
