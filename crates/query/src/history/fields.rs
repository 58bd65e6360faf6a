//! Means of the page's fields on their way to the store.

use kymo_base::label_set::Labels;
use kymo_wire::keeper::{LabelledSeries, LabelledValues, SeriesInfo};

use super::{COLUMN, HEARTBEAT_S, STEP_S, name};
use crate::downsample::Row;
use crate::sheet::Line;

/// Series of this machine's fields at most: interfaces and disks may come and go without end.
const SERIES_MAX: usize = 2048;

/// The series of the lines of a sheet.
pub(super) struct KeptFields<'a> {
    host: &'a str,
    /// Series that are stored, by name.
    stored: Vec<SeriesInfo>,
    /// By the number of the line; `None`: it has none, or none yet.
    lines: Vec<Option<Labels>>,
    /// New ones that there is room for.
    room: usize,
}

impl KeptFields<'_> {
    /// `stored`: the fields' series that are there, by name.
    pub(super) fn new(host: &str, stored: Vec<SeriesInfo>) -> KeptFields<'_> {
        KeptFields {
            host,
            lines: Vec::new(),
            room: SERIES_MAX.saturating_sub(stored.len()),
            stored,
        }
    }

    /// Series that have to be defined. A device has series once it does something.
    pub(super) fn learn(
        &mut self,
        lines: &[Line],
        rows: &[Row],
        begin: i64,
    ) -> Vec<LabelledSeries> {
        self.lines.resize(lines.len(), None);
        let mut new = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let (field, instance) = match line.id.split_once(':') {
                Some((field, instance)) => (field, Some(instance)),
                None => (&*line.id, None),
            };
            if self.lines[at].is_some() {
                continue;
            }
            let Some(labels) = name(self.host, field, instance) else {
                continue;
            };
            let by_name = |info: &SeriesInfo| (*info.name).cmp(labels.text());
            if self.stored.binary_search_by(by_name).is_err() {
                if self.room == 0 || instance.is_some() && is_quiet(rows, at) {
                    continue;
                }
                self.room -= 1;
                new.push(LabelledSeries {
                    labels: labels.clone(),
                    step: STEP_S,
                    heartbeat: HEARTBEAT_S,
                    start: begin,
                    columns: vec![(COLUMN.to_vec(), b"GAUGE".to_vec())],
                });
            }
            self.lines[at] = Some(labels);
        }
        new
    }

    /// The values of rows, a series each.
    pub(super) fn values(&self, rows: &[Row]) -> Vec<LabelledValues> {
        let values = self.lines.iter().enumerate().filter_map(|(line, labels)| {
            let known = rows.iter().filter_map(|row| {
                let mean = row.means.get(line).filter(|mean| !mean.is_nan())?;
                Some((row.thru_ns / 1_000_000, *mean))
            });
            let (stamps_ms, cells): (Vec<i64>, Vec<f64>) = known.unzip();
            (!cells.is_empty()).then_some(LabelledValues {
                labels: labels.clone()?,
                stamps_ms,
                cells,
            })
        });
        values.collect()
    }
}

/// True if a line is 0 wherever it is known.
fn is_quiet(rows: &[Row], line: usize) -> bool {
    let mut means = rows.iter().filter_map(|row| row.means.get(line));
    means.all(|mean| mean.is_nan() || *mean == 0.0)
}
