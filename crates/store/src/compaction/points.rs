//! Series of points in a merge: samples that are too old become rows of tiers, others stay as they are.

use crate::compaction::rewrite::Rewrite;
use crate::consolidation::tiers::Tiers;
use crate::layout::STRIPE;
use crate::segment::block::{AGELESS, Head};
use crate::segment::builder::Builder;
use crate::segment::placed::Placed;
use crate::segment::point_column::PointDecoder;
use crate::segment::rows::{Column, ReadRows};
use crate::segment::samples::{SamplesWriter, each_entry};
use crate::wal::point::Point;
use std::io;
use std::sync::Arc;

/// A stripe's samples: those that stay, and the rows of each tier by member that the others become.
struct Sorted {
    samples: Vec<u8>,
    tiers: Vec<Vec<Tiers>>,
}

impl Rewrite<'_> {
    /// Samples and rows of a stripe.
    pub(super) fn points_and_tiers(
        &self,
        few: &[(&Placed, Arc<Head>)],
        builder: &mut Builder,
        stripe: u8,
    ) -> io::Result<()> {
        let archives = self.schema.archives.len();
        let members = || (0..STRIPE).map(|_| Tiers::default());
        let mut sorted = Sorted {
            samples: Vec::new(),
            tiers: (0..archives).map(|_| members().collect()).collect(),
        };
        let saved = self.members(stripe)?;
        for (placed, head) in few {
            let Some(part) = head.part(stripe) else {
                continue;
            };
            for archive in 0..archives {
                let Some(frame) = part.rows.get(archive).copied().flatten() else {
                    continue;
                };
                let Some(raw) = placed.frame(&frame)? else {
                    continue;
                };
                if let Some(column) = ReadRows::parse(&raw, self.schema.width) {
                    for &(member, stamp) in &saved {
                        let from = self.rows_from(archive, stamp);
                        let tiers = &mut sorted.tiers[archive][usize::from(member)];
                        tiers.add_rows(&column, member, from);
                    }
                }
            }
            let Some(frame) = part.points else { continue };
            let Some(raw) = placed.frame(&frame)? else {
                continue;
            };
            match self.has_old_points(placed) {
                true => self.make_rows(&raw, stripe, &mut sorted),
                false => self.keep(&raw, stripe, &mut sorted.samples),
            }
        }
        if !sorted.samples.is_empty() {
            builder.points(&sorted.samples)?;
        }
        for (archive, tiers) in sorted.tiers.iter().enumerate() {
            let (mut column, mut age) = (Column::default(), 0);
            for &(member, stamp) in &saved {
                let newest = tiers[usize::from(member)].put(member, &mut column);
                if newest > 0 {
                    age = age.max(self.age(archive, newest, stamp));
                }
            }
            builder.rows(archive, &column, age)?;
        }
        Ok(())
    }

    /// Number of the first row of an archive that is alive.
    fn rows_from(&self, archive: usize, stamp: Option<i64>) -> u64 {
        let own = stamp.map(|stamp| self.schema.newest(archive, stamp));
        let row_cnt = self.schema.archives[archive].row_cnt;
        own.map_or(0, |own| (own + 1).saturating_sub(row_cnt))
    }

    /// The newest row whose death means that a series' rows up to `last` are dead.
    fn age(&self, archive: usize, last: u64, stamp: Option<i64>) -> u64 {
        let own = stamp.map(|stamp| self.schema.newest(archive, stamp));
        let lag = own.map(|own| self.newest[archive].saturating_sub(own));
        match lag {
            Some(lag @ 0..=1) => last.saturating_add(lag),
            _ => AGELESS,
        }
    }

    /// Adds rows of the samples of a frame.
    fn make_rows(&self, raw: &[u8], stripe: u8, sorted: &mut Sorted) {
        let (mut decoder, mut points) = (PointDecoder::default(), Vec::new());
        for entry in each_entry(raw) {
            points.clear();
            if entry.read(&mut decoder, &mut points).is_none() {
                return;
            }
            if !self.is_alive(stripe, entry.member) {
                continue;
            }
            for (archive, tiers) in self.schema.archives.iter().zip(&mut sorted.tiers) {
                let tiers = &mut tiers[usize::from(entry.member)];
                tiers.add(archive.step, &points, entry.has_before);
            }
        }
    }

    /// Appends the samples of a frame but for those of series that are gone. Entries may need the one before them.
    fn keep(&self, raw: &[u8], stripe: u8, out: &mut Vec<u8>) {
        if each_entry(raw).all(|entry| self.is_alive(stripe, entry.member)) {
            out.extend_from_slice(raw);
            return;
        }
        let (mut decoder, mut points) = (PointDecoder::default(), Vec::<Point>::new());
        let mut writer = SamplesWriter::default();
        writer.begin();
        for entry in each_entry(raw) {
            points.clear();
            if entry.read(&mut decoder, &mut points).is_none() {
                return;
            }
            if self.is_alive(stripe, entry.member) {
                let before = points.first().copied().filter(|_| entry.has_before);
                let mine = &points[usize::from(before.is_some())..];
                writer.put(out, entry.member, before, mine);
            }
        }
    }
}
