//! Local time as the C library computes it: `localtime`, and `mktime` with fields out of range, skipped
//! hours and repeated hours.
//!
//! In a repeated hour the C library first tries the offset of its previous answer and takes the first fit.
//! [`Calendar`] remembers this offset, too, so that the same calls give the same answers.

use crate::zone::own_zone;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Seconds of 400 years of the Gregorian calendar, which are a whole number of weeks.
const ERA: i64 = 146_097 * 86_400;
/// Attempts before `mktime` gives up.
const PROBES: usize = 6;
/// Distance and number of the times at which `mktime` looks for the wanted kind of daylight saving time.
const STRIDE: i64 = 601_200;
const STRIDES: i64 = 380;

/// `struct tm`, without the day of the year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tm {
    /// Seconds.
    pub sec: i32,
    /// Minutes.
    pub min: i32,
    /// Hours.
    pub hour: i32,
    /// Day of the month, from 1.
    pub mday: i32,
    /// Month, from 0.
    pub mon: i32,
    /// Years since 1900.
    pub year: i32,
    /// Day of the week, from Sunday.
    pub wday: i32,
    /// Daylight saving time: above 0 yes, 0 no, below 0 unknown.
    pub isdst: i32,
}

/// A time zone, and the offset that `mktime` tries first.
#[derive(Clone, Debug)]
pub struct Calendar {
    zone: TimeZone,
    /// Seconds from local time to UTC.
    guess: i64,
}

impl Calendar {
    /// A calendar in the state of a new process.
    pub fn new(zone: TimeZone) -> Calendar {
        Calendar { zone, guess: 0 }
    }

    /// The machine's time zone, or that of `TZ`.
    pub fn system() -> Calendar {
        Calendar::new(own_zone())
    }

    /// The time zone.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// `localtime`.
    pub fn local(&self, seconds: i64) -> Tm {
        let (offset, isdst) = self.offset(seconds);
        let local = seconds.saturating_add(offset);
        let (days, rest) = (local.div_euclid(86_400), local.rem_euclid(86_400) as i32);
        let (year, mon, mday) = civil(days);
        Tm {
            sec: rest % 60,
            min: rest / 60 % 60,
            hour: rest / 3600,
            mday,
            mon,
            year: (year - 1900) as i32,
            wday: (days + 4).rem_euclid(7) as i32,
            isdst: isdst.into(),
        }
    }

    /// `mktime`: brings the fields of `tm` into range. `None` if the C library answers -1.
    pub fn seconds(&mut self, tm: &mut Tm) -> Option<i64> {
        let wanted = clock_seconds(tm);
        let found = self.find(wanted, tm.isdst)?;
        self.guess = found - wanted;
        *tm = self.local(found);
        // A year out of range comes back as another one.
        (found != -1 && clock_seconds(tm).abs_diff(found) < ERA as u64).then_some(found)
    }

    /// The time at which local clocks show `wanted`.
    fn find(&self, wanted: i64, isdst: i32) -> Option<i64> {
        let mut time = wanted + self.guess;
        let (mut last, mut last_but_one, mut was_dst) = (time, time, false);
        for _ in 0..PROBES {
            let (offset, dst) = self.offset(time);
            let missing = wanted - (time + offset);
            if missing == 0 {
                return Some(self.as_asked(time, wanted, isdst));
            }
            let settled = if isdst < 0 {
                !was_dst || dst
            } else {
                (isdst != 0) != dst
            };
            // The search alternates between two times: clocks skip the wanted one.
            if time == last_but_one && time != last && settled {
                return Some(time);
            }
            (last_but_one, last, was_dst) = (last, time, dst);
            time += missing;
        }
        None
    }

    /// If daylight saving time is not as wanted, uses the offset of the nearest time at which it is.
    fn as_asked(&self, time: i64, wanted: i64, isdst: i32) -> i64 {
        let fits = |dst: bool| isdst < 0 || (isdst != 0) == dst;
        if fits(self.offset(time).1) {
            return time;
        }
        for stride in 1..STRIDES {
            for near in [time - stride * STRIDE, time + stride * STRIDE] {
                let (offset, dst) = self.offset(near);
                if fits(dst) {
                    return wanted - offset;
                }
            }
        }
        time + if isdst == 0 { 3600 } else { -3600 }
    }

    /// Seconds east of UTC, and true during daylight saving time. Outside the years that the zone covers
    /// its rules go on: the calendar repeats every 400 years.
    fn offset(&self, seconds: i64) -> (i64, bool) {
        let known = Timestamp::MIN.as_second() + ERA..Timestamp::MAX.as_second() - ERA;
        let inside = if seconds < known.start {
            known.start + (seconds - known.start).rem_euclid(ERA)
        } else if seconds >= known.end {
            known.end - ERA + (seconds - known.end).rem_euclid(ERA)
        } else {
            seconds
        };
        let Ok(stamp) = Timestamp::from_second(inside) else {
            return (0, false);
        };
        let info = self.zone.to_offset_info(stamp);
        (i64::from(info.offset().seconds()), info.dst().is_dst())
    }
}

/// The fields as seconds since the epoch in UTC.
fn clock_seconds(tm: &Tm) -> i64 {
    let year = 1900 + i64::from(tm.year) + i64::from(tm.mon.div_euclid(12));
    let days = days_before(year, tm.mon.rem_euclid(12)) + i64::from(tm.mday) - 1;
    days * 86_400 + i64::from(tm.hour) * 3600 + i64::from(tm.min) * 60 + i64::from(tm.sec)
}

/// Days from the epoch to the first of a month. Years start in March here, so that a leap day is the last
/// of its year.
fn days_before(year: i64, mon: i32) -> i64 {
    let months = i64::from((mon + 10) % 12);
    let year = if mon < 2 { year - 1 } else { year };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * months + 2) / 5 - 719_468
}

/// Year, month (from 0) and day (from 1) of a number of days since the epoch.
fn civil(days: i64) -> (i64, i32, i32) {
    let mut year = 1970 + days.div_euclid(146_097) * 400;
    let mut left = days.rem_euclid(146_097);
    // At most 400 years remain; the guess is at most one too high.
    let years = left / 365;
    if days_before(year + years, 0) > days {
        year += years - 1;
    } else {
        year += years;
    }
    if days_before(year, 0) > days {
        year -= 1;
    }
    left = days - days_before(year, 0);
    let mon = (1..12)
        .take_while(|&mon| days_before(year, mon) <= days)
        .count() as i32;
    let first = days_before(year, mon) - days_before(year, 0);
    (year, mon, (left - first) as i32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calendar(zone: &str) -> Calendar {
        Calendar::new(TimeZone::get(zone).unwrap())
    }

    fn tm(year: i32, mon: i32, mday: i32, hour: i32, min: i32, isdst: i32) -> Tm {
        Tm {
            sec: 0,
            min,
            hour,
            mday,
            mon: mon - 1,
            year: year - 1900,
            wday: 0,
            isdst,
        }
    }

    #[test]
    fn every_day_of_many_years_comes_back() {
        let mut calendar = Calendar::new(TimeZone::UTC);
        for days in (-1_000_000..1_000_000i64).step_by(13).chain(-1000..60_000) {
            let seconds = days * 86_400 + 12_345;
            let mut local = calendar.local(seconds);
            let before = local;
            assert_eq!(calendar.seconds(&mut local), Some(seconds), "{before:?}");
            assert_eq!(local, before);
        }
    }

    /// Answers of glibc 2.36.
    #[test]
    fn hours_skipped_and_hours_shown_twice() {
        let zurich = || calendar("Europe/Zurich");
        // A skipped hour: 02:30 becomes 03:30.
        let mut skipped = tm(2026, 3, 29, 2, 30, -1);
        assert_eq!(zurich().seconds(&mut skipped), Some(1_774_747_800));
        assert_eq!((skipped.hour, skipped.isdst), (3, 1));
        // A repeated hour: a new process finds the later one east of Greenwich and the earlier one west of
        // it. After an answer in summer it finds the earlier one.
        let mut twice = tm(2026, 10, 25, 2, 30, -1);
        assert_eq!(zurich().seconds(&mut twice.clone()), Some(1_792_891_800));
        let mut after_summer = zurich();
        after_summer.seconds(&mut tm(2026, 7, 1, 0, 0, -1));
        assert_eq!(after_summer.seconds(&mut twice), Some(1_792_888_200));
        let mut new_york = calendar("America/New_York");
        let mut twice = tm(2026, 11, 1, 1, 30, -1);
        assert_eq!(new_york.seconds(&mut twice), Some(1_793_511_000));
        // Summer time in winter: an hour earlier.
        let mut winter = tm(2026, 1, 15, 12, 0, 1);
        assert_eq!(zurich().seconds(&mut winter), Some(1_768_471_200));
        assert_eq!((winter.hour, winter.isdst), (11, 0));
    }

    #[test]
    fn fields_out_of_range_and_far_years_are_taken() {
        let mut calendar = Calendar::new(TimeZone::UTC);
        assert_eq!(calendar.seconds(&mut tm(2026, 15, 32, 25, 61, 0)), {
            calendar.seconds(&mut tm(2027, 4, 2, 2, 1, 0))
        });
        assert_eq!(calendar.seconds(&mut tm(2026, -11, 0, 0, 0, 0)), {
            calendar.seconds(&mut tm(2024, 12, 31, 0, 0, 0))
        });
        let far = calendar.seconds(&mut tm(30_000, 1, 1, 0, 0, -1));
        assert_eq!(far, Some(884_541_340_800));
    }
}
