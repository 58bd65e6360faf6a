//! The store of another kymo, which is only read: series with archives as .rrd files, series of points with their samples, and
//! rows where samples have expired.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Error, Result, ensure};
use kymo_base::label_set::{Labels, is_set};
use kymo_store::{KnownSeries, PointSeries, PointsKind, Store, TierRow};
use kymo_sys::clock::{Clock, RealClock};
use kymo_sys::disk::{Disk, RealDisk};
use kymo_wire::keeper::{ImportedPoints, ImportedRow, ImportedSeries, PointKind};

use super::{Importer, PIECE_SAMPLES};
use crate::commands::data::place;
use crate::output::progress::WorkPace;

/// Seconds of the rows that stand for expired samples.
const ROW_STEPS_S: [u32; 2] = [300, 3600];

/// A store that is read.
pub(super) struct OtherStore {
    store: Store,
}

impl OtherStore {
    /// The store of a data folder, which is another one than `data`.
    pub(super) fn open(dir: &Path, data: &Path) -> Result<OtherStore> {
        let is_own = fs::canonicalize(dir).ok() == fs::canonicalize(data).ok();
        ensure!(
            !is_own,
            "cannot import {}: it is the folder that is imported into",
            dir.display()
        );
        let (folder, base) = place(dir)?;
        let (disk, clock): (Arc<dyn Disk>, Arc<dyn Clock>) =
            (Arc::new(RealDisk), Arc::new(RealClock));
        let store = Store::open_to_look(&folder, &base, &disk, &clock).map_err(Error::msg)?;
        Ok(OtherStore { store })
    }

    /// Hands over all series.
    pub(super) fn hand_over(self, importer: &mut Importer<'_>) -> Result<()> {
        let (pace, all) = (WorkPace::new(), u64::from(self.store.next_id()));
        let mut from = Some(0);
        while let Some(first) = from {
            let known = self.store.known(first);
            from = known.next();
            for series in known.series {
                importer.show(&pace, "series", (u64::from(series.id), Some(all)));
                if let Err(why) = self.series(&series, importer)? {
                    importer.leave_out(&series.name, &why);
                }
            }
        }
        Ok(())
    }

    /// Hands over a series; the inner error says why it cannot come.
    fn series(
        &self,
        series: &KnownSeries,
        importer: &mut Importer<'_>,
    ) -> Result<Result<(), String>> {
        if let Some(points) = series.points {
            return self.points(series, points, importer);
        }
        let exported = match self.store.export_known(series.id) {
            Ok(exported) if exported.damaged == 0 => exported,
            Ok(_) => return Ok(Err("some of its rows are damaged".into())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        if series.name.starts_with(b"/") && !is_set(&series.name) {
            return Ok(Err(
                "its file lies outside of the folder of .rrd files".into()
            ));
        }
        importer.add(ImportedSeries {
            name: series.name.clone(),
            file: exported.bytes,
        })?;
        Ok(Ok(()))
    }

    fn points(
        &self,
        series: &KnownSeries,
        (points, kind): (PointSeries, PointsKind),
        importer: &mut Importer<'_>,
    ) -> Result<Result<(), String>> {
        let Ok(labels) = Labels::parse(&series.name) else {
            return Ok(Err("its name is no label set".into()));
        };
        let samples = match self.store.samples(points, (i64::MIN, i64::MAX)) {
            Ok(samples) if samples.damaged == 0 => samples.points,
            Ok(_) => return Ok(Err("some of its samples are damaged".into())),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let stamps_ms: Vec<i64> = samples.iter().map(|point| point.t_ms).collect();
        let rows = match self.rows(points, &stamps_ms) {
            Ok(rows) => rows,
            Err(why) => return Ok(Err(why)),
        };
        let piece = |rows, stamps_ms: &[i64], values| ImportedPoints {
            labels: labels.clone(),
            kind: Some(point_kind(kind)),
            stamps_ms: stamps_ms.to_vec(),
            values,
            rows,
        };
        importer.add_points(piece(rows, &[], Vec::new()))?;
        let values: Vec<f64> = samples.iter().map(|point| point.v).collect();
        let pieces = stamps_ms.chunks(PIECE_SAMPLES);
        for (stamps_ms, values) in pieces.zip(values.chunks(PIECE_SAMPLES)) {
            importer.add_points(piece(Vec::new(), stamps_ms, values.to_vec()))?;
        }
        Ok(Ok(()))
    }

    /// Rows of times that no sample has.
    fn rows(&self, points: PointSeries, stamps_ms: &[i64]) -> Result<Vec<ImportedRow>, String> {
        let mut rows = Vec::new();
        for step_s in ROW_STEPS_S {
            let found = self.store.tier_rows(points, step_s, (0, i64::MAX / 2000));
            let found = found.map_err(|error| error.to_string())?;
            let lacks = |row: &TierRow| {
                let end_ms = row.end_s.saturating_mul(1000);
                let begin_ms = end_ms.saturating_sub(i64::from(step_s) * 1000);
                let first = stamps_ms.partition_point(|stamp| *stamp <= begin_ms);
                stamps_ms.get(first).is_none_or(|stamp| *stamp > end_ms)
            };
            rows.extend(
                found
                    .iter()
                    .filter(|row| lacks(row))
                    .map(|row| ImportedRow {
                        step_s,
                        end_s: row.end_s,
                        cells: [
                            row.tier.min,
                            row.tier.max,
                            row.tier.sum,
                            row.tier.count,
                            row.tier.last,
                            row.tier.increase,
                        ],
                    }),
            );
        }
        Ok(rows)
    }
}

fn point_kind(kind: PointsKind) -> PointKind {
    match kind {
        PointsKind::Untyped => PointKind::Untyped,
        PointsKind::Gauge => PointKind::Gauge,
        PointsKind::Counter => PointKind::Counter,
        PointsKind::Histogram => PointKind::Histogram,
    }
}
