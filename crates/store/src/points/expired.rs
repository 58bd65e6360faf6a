//! Rows that stand for expired samples: those of the finest tier that reaches so far back.

use std::io;

use super::{ExpiredRows, PointsSnapshot, TierRow};

impl PointsSnapshot {
    /// Rows of a range in which samples may have expired.
    pub(super) fn expired_rows(
        &self,
        (from_ms, thru_ms): (i64, i64),
        before: u8,
    ) -> io::Result<ExpiredRows> {
        let gone_s = self.samples_gone_before();
        let tiers = self.schema.archives.iter();
        let tiers: Vec<u32> = tiers
            .filter_map(|tier| u32::try_from(tier.step).ok())
            .collect();
        let Some(&finest) = tiers.first().filter(|_| gone_s > i64::MIN) else {
            return Ok(ExpiredRows {
                rows: Vec::new(),
                thru_ms: i64::MIN,
            });
        };
        let gone_s = row_end(gone_s, finest);
        let thru_s = thru_ms.div_euclid(1000);
        // Rows end after this second.
        let begin_s = from_ms.saturating_sub(1).div_euclid(1000).max(0);
        if begin_s >= gone_s {
            return Ok(ExpiredRows {
                rows: Vec::new(),
                thru_ms: gone_s.saturating_mul(1000),
            });
        }
        let (mut until_s, mut rows) = (gone_s, Vec::new());
        for step_s in tiers {
            let end_s = row_end(until_s, step_s);
            let after_s = (begin_s - i64::from(before) * i64::from(step_s)).max(0);
            let mut coarser = self.tier_rows((after_s, end_s.min(thru_s)), step_s)?;
            rows.retain(|(_, row): &(u32, TierRow)| row.end_s > end_s);
            let first = coarser.first();
            let first_s = first.map(|(_, row)| row.end_s - i64::from(step_s));
            coarser.append(&mut rows);
            rows = coarser;
            if first_s.is_some_and(|first_s| first_s <= after_s) {
                break;
            }
            until_s = first_s.unwrap_or(until_s);
        }
        let last_s = rows.last().map_or(gone_s, |(_, row)| row.end_s);
        Ok(ExpiredRows {
            rows,
            thru_ms: gone_s.max(last_s).saturating_mul(1000),
        })
    }

    /// Rows that end after one second and until another, with their length.
    fn tier_rows(
        &self,
        (after_s, until_s): (i64, i64),
        step_s: u32,
    ) -> io::Result<Vec<(u32, TierRow)>> {
        let step = i64::from(step_s);
        let (first, last) = (after_s.div_euclid(step) + 1, until_s.div_euclid(step));
        let (Ok(first), Ok(last)) = (u64::try_from(first), u64::try_from(last)) else {
            return Ok(Vec::new());
        };
        if first > last {
            return Ok(Vec::new());
        }
        let tiers = self.tiers(step_s, (first, last))?.rows;
        let known = tiers
            .range(first..=last)
            .filter(|(_, tier)| tier.count > 0.0);
        let rows = known.map(|(&number, &tier)| {
            let end_s = i64::try_from(number).unwrap_or(0).saturating_mul(step);
            (step_s, TierRow { end_s, tier })
        });
        Ok(rows.collect())
    }
}

/// End of the row that has a second.
fn row_end(second: i64, step_s: u32) -> i64 {
    let step = i64::from(step_s.max(1));
    let number = second.saturating_add(step - 1).div_euclid(step);
    number.saturating_mul(step)
}
