//! Joins samples from elsewhere to series of points. Samples that are newer than all of a series are appended. Older ones that it
//! lacks, and rows of times of which it has nothing, make it begin again with all of them (`erase/points.rs`). Where rows stand
//! for samples that have expired, samples of that time are passed over.

use super::{JoinMode, Joined};
use crate::consolidation::points_schema::{PointsKind, PointsSchema};
use crate::consolidation::tiers::Tiers;
use crate::engine::{Inner, Store};
use crate::erase::TimeRange;
use crate::erase::points::Remainder;
use crate::error::FileError;
use crate::memtable::point_tail::PointRefusal;
use crate::points::{PointSeries, PointsSnapshot, TierRow};
use crate::wal::point::Point;
use kymo_base::label_set::Labels;

/// Samples of one write of the journal.
const BATCH: usize = 4096;

/// Samples from elsewhere.
#[derive(Clone, Debug)]
pub struct ForeignPoints {
    /// Name of the series.
    pub labels: Labels,
    /// Kind of its values, if it begins.
    pub kind: PointsKind,
    /// Samples, each later than the one before.
    pub points: Vec<Point>,
    /// Rows of samples that have expired there, with the seconds of a row; those of other lengths than the series has are passed over.
    pub rows: Vec<(u32, TierRow)>,
}

/// Samples and rows that join a series.
struct Additions {
    /// Samples that are newer than all of the series.
    later: Vec<Point>,
    /// Samples that are not.
    early: Vec<Point>,
    /// Rows of each tier.
    tiers: Vec<Tiers>,
    joined: Joined,
}

impl Additions {
    fn begins_again(&self) -> bool {
        !self.early.is_empty() || self.tiers.iter().any(|tiers| !tiers.rows.is_empty())
    }
}

impl Store {
    /// Joins samples to series of points, which begin if there are none. What succeeded is on the disk when this returns.
    pub fn join_points(
        &self,
        foreign: &[ForeignPoints],
        mode: JoinMode,
    ) -> Vec<Result<Joined, FileError>> {
        let mut outcomes: Vec<Result<Joined, FileError>> = foreign
            .iter()
            .map(|foreign| self.join_some_points(foreign, mode))
            .collect();
        if mode == JoinMode::Change
            && let Err(error) = self.inner.sync_to(u64::MAX)
        {
            let text = error.to_string();
            outcomes.fill_with(|| Err(FileError::Journal(std::io::Error::other(text.clone()))));
        }
        outcomes
    }

    fn join_some_points(
        &self,
        foreign: &ForeignPoints,
        mode: JoinMode,
    ) -> Result<Joined, FileError> {
        let rising = foreign
            .points
            .is_sorted_by(|one, next| one.t_ms < next.t_ms);
        if !rising {
            return Err(FileError::Rrd("its samples are not in order".into()));
        }
        let known = self.inner.lock().series.by_path(foreign.labels.text());
        let is_new = known.is_none();
        if is_new {
            self.admit_labels(&foreign.labels)?;
            if mode == JoinMode::Look {
                let added = foreign.points.len() + foreign.rows.len();
                return Ok(Joined {
                    is_new,
                    added: u64::try_from(added).unwrap_or(u64::MAX),
                    differing: 0,
                });
            }
        }
        let schema = PointsSchema::new(foreign.kind, 0, 0);
        let series = self
            .define_points(&[(foreign.labels.clone(), schema)])
            .pop();
        let series = series.unwrap_or(Err(FileError::NoSuchFile))?;
        // The snapshot may have newer samples: those that both send count once.
        let newest_ms = self.inner.newest_point(series)?;
        let snapshot = self.inner.points_snapshot(series)?;
        let additions = snapshot.additions(foreign, newest_ms);
        let mut additions = additions.map_err(FileError::Io)?;
        if mode == JoinMode::Change {
            if additions.begins_again() {
                self.inner.begin_with_more(series, &additions)?;
            }
            additions.joined.differing += self.append_all(series, &additions.later)?;
        }
        Ok(Joined {
            is_new,
            ..additions.joined
        })
    }

    /// Appends samples. Returns the number of those of which the series got another value meanwhile.
    fn append_all(&self, series: PointSeries, points: &[Point]) -> Result<u64, FileError> {
        let mut differing = 0;
        for points in points.chunks(BATCH) {
            let samples: Vec<(PointSeries, Point)> =
                points.iter().map(|point| (series, *point)).collect();
            let mut refused = None;
            let mut batch = self.write_batch();
            batch.append_points(&samples, &mut |_, why| match why {
                PointRefusal::Duplicate => differing += 1,
                PointRefusal::NoSeries | PointRefusal::Held | PointRefusal::TooOld => {
                    refused = Some(why);
                }
            });
            batch.commit().map_err(FileError::Journal)?;
            if let Some(why) = refused {
                return Err(FileError::Rrd(why.why().into()));
            }
        }
        Ok(differing)
    }
}

impl PointsSnapshot {
    /// Samples and rows of the foreign series that this one lacks.
    fn additions(
        &self,
        foreign: &ForeignPoints,
        newest_ms: Option<i64>,
    ) -> std::io::Result<Additions> {
        let at = newest_ms.map_or(0, |newest_ms| {
            foreign
                .points
                .partition_point(|point| point.t_ms <= newest_ms)
        });
        let (early, later) = foreign.points.split_at(at);
        // Mostly all samples are newer, and nothing has to be read.
        let range_ms = match (early, &foreign.rows[..]) {
            ([], []) => None,
            ([first, .., last], []) => Some((first.t_ms, last.t_ms)),
            ([only], []) => Some((only.t_ms, only.t_ms)),
            (_, [_, ..]) => Some((i64::MIN, i64::MAX)),
        };
        let own = range_ms.map(|range_ms| self.samples(range_ms));
        let own = own.transpose()?.unwrap_or_default().points;
        let mut joined = Joined::default();
        let mut missing = Vec::new();
        for point in early {
            match own.binary_search_by_key(&point.t_ms, |own| own.t_ms) {
                Err(_) => missing.push(*point),
                Ok(at) if own[at].v.to_bits() == point.v.to_bits() => {}
                Ok(_) => joined.differing += 1,
            }
        }
        let mut tiers: Vec<Tiers> = Vec::new();
        tiers.resize_with(self.schema.archives.len(), Tiers::default);
        if !missing.is_empty() || !foreign.rows.is_empty() {
            let rows = self.rows_without(TimeRange::NONE)?;
            missing.retain(|point| !self.is_in_rows(&rows, *point));
            self.add_rows(foreign, (&own, &missing, later), &rows, &mut tiers);
        }
        let rows: usize = tiers.iter().map(|tiers| tiers.rows.len()).sum();
        let added = missing.len() + later.len() + rows;
        joined.added = u64::try_from(added).unwrap_or(u64::MAX);
        Ok(Additions {
            later: later.to_vec(),
            early: missing,
            tiers,
            joined,
        })
    }

    /// True if a row of some tier stands for samples of this moment.
    fn is_in_rows(&self, rows: &[Tiers], point: Point) -> bool {
        let archives = self.schema.archives.iter().zip(rows);
        archives
            .filter_map(|(archive, tiers)| Some((row_of(point.t_ms, archive.step)?, tiers)))
            .any(|(number, tiers)| tiers.rows.contains_key(&number))
    }

    /// Picks the foreign rows of times of which there is neither a row nor a sample.
    fn add_rows(
        &self,
        foreign: &ForeignPoints,
        (own, missing, later): (&[Point], &[Point], &[Point]),
        rows: &[Tiers],
        out: &mut [Tiers],
    ) {
        for (step_s, row) in &foreign.rows {
            let step = u64::from(*step_s);
            let archives = self.schema.archives.iter();
            let at = archives.clone().position(|archive| archive.step == step);
            let (Some(at), Ok(end_s)) = (at, u64::try_from(row.end_s)) else {
                continue;
            };
            let number = end_s / step.max(1);
            let end_ms = row.end_s.saturating_mul(1000);
            let begin_ms = end_ms.saturating_sub(i64::from(*step_s).saturating_mul(1000));
            let has = |points: &[Point]| {
                let first = points.partition_point(|point| point.t_ms <= begin_ms);
                points.get(first).is_some_and(|point| point.t_ms <= end_ms)
            };
            let is_free =
                !(rows[at].rows.contains_key(&number) || has(own) || has(missing) || has(later));
            if is_free && end_s.is_multiple_of(step.max(1)) {
                out[at].rows.insert(number, row.tier);
            }
        }
    }
}

/// Number of the row of a moment.
fn row_of(t_ms: i64, step: u64) -> Option<u64> {
    let step_ms = i64::try_from(step.checked_mul(1000)?).ok()?;
    u64::try_from(t_ms.saturating_add(step_ms - 1).div_euclid(step_ms)).ok()
}

impl Inner {
    /// Has a series begin again with more samples and rows.
    fn begin_with_more(&self, series: PointSeries, more: &Additions) -> Result<(), FileError> {
        let id = {
            let state = self.lock();
            let PointSeries(id) = series;
            state.series.moved(id)
        };
        let id = self.verified_soon(id)?;
        let _reserved = self.reserve(id)?.ok_or(FileError::NoSuchFile)?;
        let tail = self.points_snapshot(series)?.oldest_in_memory();
        let at = more
            .early
            .partition_point(|point| tail.is_none_or(|oldest_ms| point.t_ms < oldest_ms));
        let (saved, pending) = more.early.split_at(at);
        let left = |snapshot: &PointsSnapshot| {
            let mut left = snapshot.left(TimeRange::NONE)?;
            left.add(saved, &more.tiers)?;
            Ok(left)
        };
        self.begin_points_again(id, &left, &|points| {
            points.extend_from_slice(pending);
            points.sort_by_key(|point| point.t_ms);
        })
    }
}

impl Remainder {
    /// Adds samples and rows that are not there.
    fn add(&mut self, points: &[Point], tiers: &[Tiers]) -> Result<(), FileError> {
        self.points.extend_from_slice(points);
        self.points.sort_by_key(|point| point.t_ms);
        self.check_size()?;
        for (own, more) in self.tiers.iter_mut().zip(tiers) {
            own.rows.extend(&more.rows);
        }
        let first = self.points.first().map_or(i64::MAX, |first| first.t_ms);
        self.before = self.before.filter(|before| before.t_ms < first);
        let last = self.points.last().copied();
        self.last = self.last.into_iter().chain(last).max_by_key(|it| it.t_ms);
        Ok(())
    }
}
