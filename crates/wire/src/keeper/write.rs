//! Series named by label sets, and their values: requests on the socket for writing.

use kymo_base::label_set::Labels;

use super::body::{Put, Take};

/// Most definitions, or series with values, of one request.
const SERIES_MAX: usize = 4096;
/// Most columns of a series.
const COLUMNS_MAX: usize = 256;

/// Definition of a series named by a label set.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledSeries {
    /// Name of the series.
    pub labels: Labels,
    /// Seconds of a primary data point.
    pub step: u32,
    /// Seconds without a value after which the values are unknown.
    pub heartbeat: u32,
    /// The first value is later than this, in seconds since 1970; before it nothing is known.
    pub start: i64,
    /// Name and kind (`GAUGE`, `DERIVE` ...) of each column.
    pub columns: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Values of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledValues {
    /// Name of the series.
    pub labels: Labels,
    /// Stamps in milliseconds since 1970, oldest first.
    pub stamps_ms: Vec<i64>,
    /// For each stamp a cell for each column; NaN: unknown.
    pub cells: Vec<f64>,
}

pub(super) fn put_definitions(series: &[LabelledSeries], out: &mut Vec<u8>) {
    out.u16(series.len());
    for series in series {
        out.text(series.labels.text());
        out.u32(series.step);
        out.u32(series.heartbeat);
        out.i64(series.start);
        out.u16(series.columns.len());
        for (name, kind) in &series.columns {
            out.text(name);
            out.text(kind);
        }
    }
}

pub(super) fn definitions(body: &mut Take) -> Option<Vec<LabelledSeries>> {
    let count = body.count(SERIES_MAX)?;
    let series = (0..count).map(|_| {
        let labels = Labels::parse(body.text()?).ok()?;
        let (step, heartbeat, start) = (body.u32()?, body.u32()?, body.i64()?);
        let columns = body.count(COLUMNS_MAX)?;
        let columns = (0..columns).map(|_| Some((body.text()?.to_vec(), body.text()?.to_vec())));
        Some(LabelledSeries {
            labels,
            step,
            heartbeat,
            start,
            columns: columns.collect::<Option<_>>()?,
        })
    });
    series.collect()
}

pub(super) fn put_values(series: &[LabelledValues], out: &mut Vec<u8>) {
    out.u16(series.len());
    for series in series {
        let rows = series.stamps_ms.len();
        out.text(series.labels.text());
        out.u16(series.cells.len().checked_div(rows).unwrap_or(0));
        out.u32(u32::try_from(rows).unwrap_or(u32::MAX));
        series.stamps_ms.iter().for_each(|&ms| out.i64(ms));
        series.cells.iter().for_each(|cell| out.u64(cell.to_bits()));
    }
}

pub(super) fn values(body: &mut Take) -> Option<Vec<LabelledValues>> {
    let count = body.count(SERIES_MAX)?;
    let series = (0..count).map(|_| {
        let labels = Labels::parse(body.text()?).ok()?;
        let width = body.count(COLUMNS_MAX)?;
        let rows = body.u32()? as usize;
        // Rows without columns would be written again as no rows.
        if rows > 0 && width == 0 || rows == 0 && width > 0 {
            return None;
        }
        Some(LabelledValues {
            labels,
            stamps_ms: body.stamps(rows)?,
            cells: body.cells(rows.checked_mul(width)?)?,
        })
    });
    series.collect()
}
