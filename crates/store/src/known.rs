//! The known series, for callers that list or search them; read
//! slice by slice, so that the lock is never held for long.

use crate::consolidation::points_schema::PointsKind;
use crate::consolidation::schema::Schema;
use crate::engine::{Inner, Store};
use crate::memtable::state::State;
use crate::names;
use crate::points::PointSeries;
use kymo_base::label_set::Labels;
use kymo_rrd::header::DsDef;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Number of series that are read under one lock.
const SLICE: u32 = 1024;
const SLICE_LABELS: usize = 1024;

/// A series, as far as memory has it.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownSeries {
    /// Number of the series in this store, which is never reused.
    pub id: u32,
    /// For a series of points, its handle and the type of its values.
    pub points: Option<(PointSeries, PointsKind)>,
    /// Seconds from the newest value back to the start of its longest archive or tier.
    pub reach_s: u64,
    /// Name: a path below the base, an absolute path, or a label set.
    pub name: Vec<u8>,
    /// The newest accepted stamp, in seconds since 1970; `None` if the series never had a value.
    pub last: Option<f64>,
    /// Columns, shared by series with equal definitions.
    pub columns: Arc<Columns>,
}

/// The columns of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Step, in seconds.
    pub step: u64,
    /// Name and type (`GAUGE`, `DERIVE` ...) of each column.
    pub columns: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Series with consecutive numbers.
#[derive(Clone, Debug)]
pub struct KnownSlice {
    /// The series, in the order of their numbers; removed ones are missing.
    pub series: Vec<KnownSeries>,
    /// First number behind the slice. All later series have it or a larger one.
    pub end: u32,
    is_last: bool,
}

impl KnownSlice {
    /// The number at which to continue; `None` at the end.
    pub fn next(&self) -> Option<u32> {
        (!self.is_last).then_some(self.end)
    }
}

impl Store {
    /// The next slice of series with numbers from `from` on.
    pub fn known(&self, from: u32) -> KnownSlice {
        let inner = &*self.inner;
        let mut last: Option<(usize, Arc<Columns>)> = None;
        let state = inner.lock();
        let next_id = state.series.next_id();
        let end = next_id.min(from.saturating_add(SLICE));
        let series = (from..end).filter_map(|id| inner.known(&state, id, &mut last));
        KnownSlice {
            series: series.collect(),
            end,
            is_last: end == next_id,
        }
    }

    /// The series with these numbers; `None` for missing ones.
    pub fn known_of(&self, ids: &[u32]) -> Vec<Option<KnownSeries>> {
        let mut last: Option<(usize, Arc<Columns>)> = None;
        let state = self.inner.lock();
        let known = ids
            .iter()
            .map(|&id| self.inner.known(&state, id, &mut last));
        known.collect()
    }

    /// Number of series that this store has had, for estimates: others may begin at any time.
    pub fn next_id(&self) -> u32 {
        self.inner.lock().series.next_id()
    }

    /// Number of times that a series of this store was renamed.
    pub fn renamed(&self) -> u64 {
        self.inner.lock().series.renamed()
    }
}

impl Inner {
    fn known(
        &self,
        state: &State,
        id: u32,
        last: &mut Option<(usize, Arc<Columns>)>,
    ) -> Option<KnownSeries> {
        let base = self.settings.base.as_os_str().as_bytes();
        let series = state.series.get(id).filter(|series| !series.forgotten)?;
        let schema = &state.chunks.get(series.chunk)?.schema;
        let mut known = KnownSeries::of(base, (id, &series.path), schema, last);
        known.last = series.values.last.is_finite().then_some(series.values.last);
        Some(known)
    }
}

impl KnownSeries {
    /// A series of this number and path; values of it are not known. `last`: columns of the one before, which has mostly the same
    /// schema.
    pub(crate) fn of(
        base: &[u8],
        (id, path): (u32, &[u8]),
        schema: &Arc<Schema>,
        last: &mut Option<(usize, Arc<Columns>)>,
    ) -> KnownSeries {
        let points = schema.points.as_ref();
        KnownSeries {
            id,
            reach_s: reach_s(schema),
            points: points.map(|points| (PointSeries(id), points.kind)),
            name: names::below(base, path),
            last: None,
            columns: columns(schema, last),
        }
    }
}

impl Store {
    /// For each label set, true if there is a series.
    pub fn has(&self, labels: &[Labels]) -> Vec<bool> {
        let slices = labels.chunks(SLICE_LABELS);
        let found = slices.flat_map(|slice| {
            let state = self.inner.lock();
            let has = |labels: &Labels| {
                let id = state.series.by_path(labels.text());
                id.is_some_and(|id| state.series.is_known(id))
            };
            slice.iter().map(has).collect::<Vec<bool>>()
        });
        found.collect()
    }
}

fn reach_s(schema: &Schema) -> u64 {
    let archives = schema.archives.iter();
    let archives = archives.map(|archive| archive.step.saturating_mul(archive.row_cnt));
    archives.fold(schema.points_kept_s, u64::max)
}

/// The columns of a schema; those of the one before, if it is the same.
fn columns(schema: &Arc<Schema>, last: &mut Option<(usize, Arc<Columns>)>) -> Arc<Columns> {
    let address = Arc::as_ptr(schema) as usize;
    if let Some((_, columns)) = last.as_ref().filter(|(known, _)| *known == address) {
        return columns.clone();
    }
    let header = &schema.template;
    let pair = |ds: &DsDef| (ds.name().to_vec(), ds.dst().to_vec());
    let columns = Arc::new(Columns {
        step: header.pdp_step,
        columns: header.ds.iter().map(pair).collect(),
    });
    *last = Some((address, columns.clone()));
    columns
}
