//! Old backups go: of each of the last hours, days and weeks that have one the newest stays, and with them the contents that
//! they need.

use std::collections::{BTreeSet, HashSet};

use crate::error::Result;
use crate::target::Target;

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;
/// Days from a Monday to 1970-01-01, a Thursday.
const MONDAY_MS: i64 = 3 * DAY_MS;

/// Numbers of backups that stay; the newest one always stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Number of hours of which one stays.
    pub hourly: usize,
    /// Number of days, in UTC.
    pub daily: usize,
    /// Number of weeks, from Monday on.
    pub weekly: usize,
}

/// Removed backups and contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Backups.
    pub backups: u64,
    /// Bytes of contents that no backup needs any more.
    pub bytes: u64,
}

impl Keep {
    /// Reads `24h,7d,8w`, of which parts may be missing.
    pub fn parse(text: &str) -> Option<Keep> {
        let mut keep = Keep::default();
        let mut seen = String::new();
        for part in text.split(',') {
            let unit = part.chars().last()?;
            let count = part.strip_suffix(unit)?;
            let is_plain = count.bytes().all(|byte| byte.is_ascii_digit());
            let count: usize = count.parse().ok().filter(|_| is_plain)?;
            match unit {
                'h' => keep.hourly = count,
                'd' => keep.daily = count,
                'w' => keep.weekly = count,
                _ => return None,
            }
            if seen.contains(unit) {
                return None;
            }
            seen.push(unit);
        }
        Some(keep)
    }

    /// The backups that stay, of those of these times, oldest first.
    fn kept(self, times_ms: &[i64]) -> BTreeSet<i64> {
        let mut kept: BTreeSet<i64> = times_ms.last().copied().into_iter().collect();
        for (count, period_ms, offset_ms) in [
            (self.hourly, HOUR_MS, 0),
            (self.daily, DAY_MS, 0),
            (self.weekly, WEEK_MS, MONDAY_MS),
        ] {
            let mut periods = BTreeSet::new();
            for time_ms in times_ms.iter().rev() {
                let period = time_ms.saturating_add(offset_ms).div_euclid(period_ms);
                if periods.len() < count && periods.insert(period) {
                    kept.insert(*time_ms);
                }
            }
        }
        kept
    }
}

/// Removes backups, and contents that no backup needs. A backup that cannot be read keeps all contents.
pub fn prune(target: &mut Target, keep: Keep) -> Result<Removed> {
    let times_ms = target.times_ms()?;
    let kept = keep.kept(&times_ms);
    let old: Vec<i64> = times_ms
        .into_iter()
        .filter(|time| !kept.contains(time))
        .collect();
    let mut needed = HashSet::new();
    for time_ms in kept {
        let manifest = target.manifest(time_ms)?;
        needed.extend(manifest.pieces().map(|piece| piece.hash));
    }
    let mut removed = Removed::default();
    target.remove_manifests(&old)?;
    removed.backups = u64::try_from(old.len()).unwrap_or(u64::MAX);
    for (hash, bytes) in target.contents()? {
        if !needed.contains(&hash) {
            target.remove(hash)?;
            removed.bytes += bytes;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_is_read() {
        let keep = |hourly, daily, weekly| Keep {
            hourly,
            daily,
            weekly,
        };
        for (text, read) in [
            ("24h,7d,8w", Some(keep(24, 7, 8))),
            ("7d", Some(keep(0, 7, 0))),
            ("8w,1h", Some(keep(1, 0, 8))),
            ("", None),
            ("h", None),
            ("7", None),
            ("+7d", None),
            ("7d,8d", None),
            ("7d,", None),
            ("7y", None),
            ("7é", None),
        ] {
            assert_eq!(Keep::parse(text), read, "{text}");
        }
    }

    #[test]
    fn the_newest_of_each_hour_day_and_week_stays() {
        let keep = |text: &str| Keep::parse(text).unwrap();
        // Four a day at 0, 6, 12 and 18 h, for three weeks from a Monday on.
        let monday = 4 * DAY_MS;
        let times: Vec<i64> = (0..84).map(|n| monday + n * 6 * HOUR_MS).collect();
        let last = |day: i64| monday + day * DAY_MS + 18 * HOUR_MS;
        for (text, kept) in [
            ("0h", vec![last(20)]),
            ("3h", times[81..].to_vec()),
            ("3d", vec![last(18), last(19), last(20)]),
            ("2w", vec![last(13), last(20)]),
            (
                "2h,2d,3w",
                vec![last(6), last(13), last(19), times[82], last(20)],
            ),
        ] {
            let all: Vec<i64> = keep(text).kept(&times).into_iter().collect();
            assert_eq!(all, kept, "{text}");
        }
        assert!(keep("3d").kept(&[]).is_empty());
    }
}
