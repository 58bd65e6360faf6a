//! IMPORT: series from elsewhere join those of the store: as the bytes of an .rrd file, or as samples with their times.

use kymo_base::label_set::Labels;

use super::body::{Put, Take};
use super::put_flag;
use super::tail::PointKind;

/// Most bytes of an IMPORT. A file of collectd's rrdtool plugin has some 150 KB.
pub const IMPORT_MAX: usize = 32 << 20;
/// Most series of each kind of one IMPORT.
const SERIES_MAX: usize = 4096;

/// Series that are to join those of the store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Import {
    /// False: the answer says what would change, and nothing does.
    pub changes: bool,
    /// True: the series are those of another kymo's store. They may have names that only this machine's own history has.
    pub of_kymo: bool,
    /// Series with archives.
    pub series: Vec<ImportedSeries>,
    /// Series of points.
    pub points: Vec<ImportedPoints>,
}

/// Cells of a row.
pub const ROW_CELLS: usize = 6;

/// Samples from elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedPoints {
    /// Name of the series.
    pub labels: Labels,
    /// Kind of the values, if the series begins; `None`: that of the metric.
    pub kind: Option<PointKind>,
    /// Times, milliseconds since 1970, each later than the one before.
    pub stamps_ms: Vec<i64>,
    /// A value for each time.
    pub values: Vec<f64>,
    /// Rows of samples that have expired there.
    pub rows: Vec<ImportedRow>,
}

/// A row of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImportedRow {
    /// Seconds of the row.
    pub step_s: u32,
    /// End of the row, seconds since 1970.
    pub end_s: i64,
    /// Minimum, maximum, sum, count, last value, growth of a counter.
    pub cells: [f64; ROW_CELLS],
}

/// A series from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedSeries {
    /// Path below the base, with `.rrd`, or a label set.
    pub name: Vec<u8>,
    /// The bytes of an .rrd file.
    pub file: Vec<u8>,
}

/// Outcome of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// True if the store had no series of this name.
    pub is_new: bool,
    /// Rows, or samples, that the store did not have.
    pub added: u64,
    /// Rows, or samples, that both have with other values; those of the store stay.
    pub differing: u64,
    /// Reason for the refusal, for people; empty: the series is in the store.
    pub why: String,
}

impl Import {
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        put_flag(&self.changes, out);
        put_flag(&self.of_kymo, out);
        out.u16(self.series.len());
        for series in &self.series {
            out.text(&series.name);
            out.length(series.file.len());
            out.extend_from_slice(&series.file);
        }
        out.u16(self.points.len());
        self.points.iter().for_each(|points| points.put(out));
    }

    pub(super) fn take(body: &mut Take) -> Option<Import> {
        let (changes, of_kymo) = (body.flag()?, body.flag()?);
        let count = body.count(SERIES_MAX)?;
        let series = (0..count).map(|_| {
            let name = body.text()?.to_vec();
            let bytes = usize::try_from(body.u32()?).ok()?;
            Some(ImportedSeries {
                name,
                file: body.bytes(bytes)?.to_vec(),
            })
        });
        let series = series.collect::<Option<_>>()?;
        let count = body.count(SERIES_MAX)?;
        let points = (0..count).map(|_| ImportedPoints::take(body));
        Some(Import {
            changes,
            of_kymo,
            series,
            points: points.collect::<Option<_>>()?,
        })
    }
}

impl ImportedPoints {
    fn put(&self, out: &mut Vec<u8>) {
        out.text(self.labels.text());
        PointKind::put(self.kind, out);
        out.length(self.stamps_ms.len());
        self.stamps_ms.iter().for_each(|&stamp| out.i64(stamp));
        out.cells(self.values.iter().copied());
        out.length(self.rows.len());
        for row in &self.rows {
            out.u32(row.step_s);
            out.i64(row.end_s);
            out.cells(row.cells.iter().copied());
        }
    }

    fn take(body: &mut Take) -> Option<ImportedPoints> {
        let labels = Labels::parse(body.text()?).ok()?;
        let kind = PointKind::take(body)?;
        let count = usize::try_from(body.u32()?).ok()?;
        let (stamps_ms, values) = (body.stamps(count)?, body.cells(count)?);
        let count = body.u32()?;
        let rows = (0..count).map(|_| {
            Some(ImportedRow {
                step_s: body.u32()?,
                end_s: body.i64()?,
                cells: body.cells(ROW_CELLS)?.try_into().ok()?,
            })
        });
        Some(ImportedPoints {
            labels,
            kind,
            stamps_ms,
            values,
            rows: rows.collect::<Option<_>>()?,
        })
    }
}

pub(super) fn put_outcomes(outcomes: &[Imported], out: &mut Vec<u8>) {
    out.u16(outcomes.len());
    for outcome in outcomes {
        put_flag(&outcome.is_new, out);
        out.u64(outcome.added);
        out.u64(outcome.differing);
        out.text(outcome.why.as_bytes());
    }
}

pub(super) fn take_outcomes(body: &mut Take) -> Option<Vec<Imported>> {
    let count = body.count(2 * SERIES_MAX)?;
    let outcomes = (0..count).map(|_| {
        Some(Imported {
            is_new: body.flag()?,
            added: body.u64()?,
            differing: body.u64()?,
            why: String::from_utf8(body.text()?.to_vec()).ok()?,
        })
    });
    outcomes.collect()
}
