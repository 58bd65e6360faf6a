//! The definition of series of points: samples as received, and tiers of rows that are written when samples expire.

use crate::consolidation::archive::Archive;
use crate::settings::PointsRetention;
use crate::wal::point::Point;
use kymo_base::varint::{put, put_count, take};
use kymo_rrd::Header;
use kymo_rrd::create::{self, Create};

/// First bytes of a schema of points, with which no file of rrdtool begins.
pub(crate) const MAGIC: &[u8] = b"KYMOPNTS";
/// Words of a series' state: stamp and value of its last saved sample.
pub(crate) const WORDS: usize = 2;
/// Cells of a row.
pub(crate) const ROW_CELLS: usize = 6;
/// Stamp of a series without saved samples.
const NEVER: i64 = i64::MIN;
/// Limits of the number of tiers, of the rows of one, and of the seconds of a row.
const TIERS_MAX: usize = 8;
const ROWS_MAX: u32 = 1 << 20;
/// Seconds of a row in the store's own tiers.
const STEPS_S: [u32; 2] = [300, 3600];
const STEP_MAX_S: u32 = 7 * 86_400;
/// Longest retention of samples: ten years.
const KEPT_MAX_S: u32 = 10 * 366 * 86_400;

/// Type of a series' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointsKind {
    /// Unknown type.
    Untyped,
    /// A value that may rise and fall.
    Gauge,
    /// A value that grows and restarts at 0.
    Counter,
    /// A part of a histogram, which is a counter.
    Histogram,
}

impl PointsKind {
    const ALL: [PointsKind; 4] = [
        PointsKind::Untyped,
        PointsKind::Gauge,
        PointsKind::Counter,
        PointsKind::Histogram,
    ];

    /// Returns true for counters.
    pub fn counts(self) -> bool {
        match self {
            PointsKind::Counter | PointsKind::Histogram => true,
            PointsKind::Untyped | PointsKind::Gauge => false,
        }
    }
}

/// A tier: rows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierDefinition {
    /// Seconds of a row.
    pub step_s: u32,
    /// Number of rows that are kept.
    pub rows: u32,
}

/// Definition that several series of points share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointsSchema {
    /// Type of the values.
    pub kind: PointsKind,
    /// Interval between samples, in seconds; 0 if unknown.
    pub interval_s: u32,
    /// Time without a sample after which a series is gone, in seconds; 0 if unknown.
    pub heartbeat_s: u32,
    /// Retention of samples, in seconds.
    pub kept_s: u32,
    /// Tiers for the rows made of expired samples, the finest first.
    pub tiers: Vec<TierDefinition>,
}

/// Seconds of a row and retention of each tier, the finest first.
fn tiers(retention: PointsRetention) -> [(u32, u32); 2] {
    let [fine, coarse] = STEPS_S;
    [(fine, retention.rows_5m_s), (coarse, retention.rows_1h_s)]
}

impl PointsSchema {
    /// Returns a schema with the retention of [`PointsRetention::default`].
    pub fn new(kind: PointsKind, interval_s: u32, heartbeat_s: u32) -> PointsSchema {
        let retention = PointsRetention::default();
        let tiers = tiers(retention).map(|(step_s, kept_s)| TierDefinition {
            step_s,
            rows: kept_s / step_s,
        });
        PointsSchema {
            kind,
            interval_s,
            heartbeat_s,
            kept_s: retention.samples_s,
            tiers: tiers.to_vec(),
        }
    }

    /// Returns the schema with a store's retention. Tiers with other steps stay unchanged.
    pub(crate) fn kept(mut self, retention: PointsRetention) -> PointsSchema {
        self.kept_s = retention.samples_s;
        for tier in &mut self.tiers {
            let mut said = tiers(retention).into_iter();
            if let Some((step_s, kept_s)) = said.find(|(step_s, _)| *step_s == tier.step_s) {
                tier.rows = kept_s.div_ceil(step_s).max(1);
            }
        }
        self
    }

    /// Returns true if the values are within the store's limits.
    pub(crate) fn is_valid(&self) -> bool {
        let tiers = self.tiers.iter();
        self.kept_s <= KEPT_MAX_S
            && self.tiers.len() <= TIERS_MAX
            && self
                .tiers
                .is_sorted_by(|one, next| one.step_s < next.step_s)
            && tiers.clone().all(|tier| {
                (1..=STEP_MAX_S).contains(&tier.step_s) && (1..=ROWS_MAX).contains(&tier.rows)
            })
    }

    pub(crate) fn front(&self) -> Vec<u8> {
        let mut front = MAGIC.to_vec();
        let kind = PointsKind::ALL.iter().position(|kind| *kind == self.kind);
        put_count(&mut front, kind.unwrap_or(0));
        put(&mut front, self.interval_s.into());
        put(&mut front, self.heartbeat_s.into());
        put(&mut front, self.kept_s.into());
        put_count(&mut front, self.tiers.len());
        for tier in &self.tiers {
            put(&mut front, tier.step_s.into());
            put(&mut front, tier.rows.into());
        }
        front
    }

    pub(crate) fn parse(front: &[u8]) -> Option<PointsSchema> {
        let mut input = front.strip_prefix(MAGIC)?;
        let mut number = || u32::try_from(take(&mut input)?).ok();
        let kind = PointsKind::ALL.get(usize::try_from(number()?).ok()?)?;
        let mut schema = PointsSchema {
            kind: *kind,
            interval_s: number()?,
            heartbeat_s: number()?,
            kept_s: number()?,
            tiers: Vec::new(),
        };
        for _ in 0..number().filter(|&count| count <= 8)? {
            schema.tiers.push(TierDefinition {
                step_s: number()?,
                rows: number()?,
            });
        }
        // The text must be the canonical one, so that no two texts are the same schema.
        (schema.is_valid() && schema.front() == front).then_some(schema)
    }

    pub(crate) fn archives(&self) -> Vec<Archive> {
        let (mut base, cells) = (0, 6);
        const _: () = assert!(ROW_CELLS == 6, "cells of a row");
        let archives = self.tiers.iter().map(|tier| {
            let archive = Archive {
                row_cnt: tier.rows.into(),
                step: tier.step_s.into(),
                base,
                seasonal: false,
            };
            base += archive.row_cnt * cells;
            archive
        });
        archives.collect()
    }

    /// A header with one source, for callers that need its step and its columns.
    pub(crate) fn template(&self) -> Option<Header> {
        let kind = if self.kind.counts() {
            "DERIVE"
        } else {
            "GAUGE"
        };
        let heartbeat = self.heartbeat_s.max(1);
        let source = format!("DS:value:{kind}:{heartbeat}:U:U");
        let request = Create {
            file_name: b"",
            step: self.interval_s.max(1).into(),
            start: Some(1),
            definitions: &[source.as_bytes(), b"RRA:AVERAGE:0.5:1:1"],
        };
        let (mut header, _) = create::define(&request, 1, &mut 1, None, false).ok()?;
        header.rra.clear();
        header.cdp_prep.clear();
        header.cur_row.clear();
        Some(header)
    }
}

/// State of a series after its last saved sample.
pub(crate) fn state_of(last: Option<Point>) -> Vec<u64> {
    let last = last.unwrap_or(Point {
        t_ms: NEVER,
        v: 0.0,
    });
    vec![last.t_ms.cast_unsigned(), last.v.to_bits()]
}

/// The last saved sample of a state; `None` if there is none.
pub(crate) fn last(words: &[u64]) -> Option<Point> {
    let &[t_ms, bits] = words else { return None };
    let t_ms = t_ms.cast_signed();
    (t_ms != NEVER).then_some(Point {
        t_ms,
        v: f64::from_bits(bits),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consolidation::schema::Schema;

    #[test]
    fn schemas_come_back() {
        for kind in PointsKind::ALL {
            let points = PointsSchema::new(kind, 10, 60);
            let schema = Schema::of_points(points.clone()).unwrap();
            assert_eq!(Schema::parse(&schema.front).as_ref(), Some(&schema));
            assert_eq!(schema.points, Some(points));
            for len in 0..schema.front.len() {
                assert_eq!(Schema::parse(&schema.front[..len]), None);
            }
            let last = Point {
                t_ms: 1_000_000_000_250,
                v: -0.0,
            };
            let words = state_of(Some(last));
            assert_eq!((schema.stamp(&words), schema.words), (1_000_000_000, 2));
            assert_eq!(schema.stamp_of(&words), 1_000_000_000.25);
            assert_eq!(schema.stamp_of(&state_of(None)), f64::NEG_INFINITY);
            assert!(schema.unpack(&words).is_some());
        }
    }

    #[test]
    fn odd_definitions_are_refused() {
        let usual = PointsSchema::new(PointsKind::Gauge, 10, 60);
        assert!(usual.is_valid());
        let tier = |step_s, rows| TierDefinition { step_s, rows };
        for tiers in [
            vec![tier(0, 1)],
            vec![tier(300, 0)],
            vec![tier(300, 1), tier(300, 1)],
            vec![tier(1, 1); 9],
        ] {
            let odd = PointsSchema {
                tiers,
                ..usual.clone()
            };
            assert!(!odd.is_valid(), "{odd:?}");
            assert_eq!(PointsSchema::parse(&odd.front()), None);
        }
    }
}
