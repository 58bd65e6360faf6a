//! Wall time: how a moment is written, and the times of `--from` and `--thru`. The time zone
//! is that of the recorded machine.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use kymo_base::context::Context;
use kymo_base::scan::put_number;

/// Offsets of all zones change at most each quarter of an hour.
const QUARTER_NS: i64 = 900_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const DAY_SECS: i64 = 86_400;
const DAY_LAST_SECOND: u32 = 86_399;

/// A wall-clock reading in local time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Local {
    /// The day as yyyymmdd.
    pub day: u32,
    /// Second of the day.
    pub second: u32,
    /// Millisecond of the second.
    pub milli: u32,
    /// Day of the week, 0 for Sunday.
    pub weekday: u32,
}

/// Turns moments into local time; remembers the offset of the quarter of an hour.
pub struct Zone {
    zone: TimeZone,
    quarter: i64,
    offset_secs: i64,
}

impl Zone {
    /// The zone that the context's `tz` names: `Europe/Berlin`, `+0200`, `CET-1CEST`; else UTC.
    pub fn of(context: &Context) -> Zone {
        let name = context.get("tz").unwrap_or_default();
        let fixed = || {
            offset(name)
                .and_then(|secs| Offset::from_seconds(secs).ok())
                .map(TimeZone::fixed)
        };
        let zone = fixed()
            .or_else(|| TimeZone::get(name).ok())
            .or_else(|| TimeZone::posix(name).ok())
            .unwrap_or(TimeZone::UTC);
        Zone {
            zone,
            quarter: i64::MIN,
            offset_secs: 0,
        }
    }

    /// Seconds east of Greenwich at a moment.
    pub fn offset_secs(&mut self, real_ns: i64) -> i64 {
        let quarter = real_ns.div_euclid(QUARTER_NS);
        if quarter != self.quarter {
            self.quarter = quarter;
            let moment =
                Timestamp::from_nanosecond(real_ns.into()).unwrap_or(Timestamp::UNIX_EPOCH);
            self.offset_secs = self.zone.to_offset(moment).seconds().into();
        }
        self.offset_secs
    }

    /// The local time of a moment.
    pub fn local(&mut self, real_ns: i64) -> Local {
        let secs = real_ns.div_euclid(SECOND_NS) + self.offset_secs(real_ns);
        let days = secs.div_euclid(DAY_SECS);
        Local {
            day: civil(days),
            second: secs.rem_euclid(DAY_SECS) as u32,
            milli: (real_ns.rem_euclid(SECOND_NS) / 1_000_000) as u32,
            weekday: (days + 4).rem_euclid(7) as u32,
        }
    }

    /// The moment of a local time; in the hour that a change of clocks leaves out, the one after it.
    pub fn moment(&self, day: u32, second: u32) -> Option<i64> {
        let date = jiff::civil::date(
            i16::try_from(day / 10_000).ok()?,
            (day / 100 % 100) as i8,
            (day % 100) as i8,
        );
        let clock = date.at(
            (second / 3600) as i8,
            (second / 60 % 60) as i8,
            (second % 60) as i8,
            0,
        );
        let zoned = clock.to_zoned(self.zone.clone()).ok()?;
        i64::try_from(zoned.timestamp().as_nanosecond()).ok()
    }
}

/// The zone of the machine that is played, which may be another one later.
#[derive(Default)]
pub(crate) struct PlayedZone(Option<(u64, Zone)>);

impl PlayedZone {
    /// The zone that the facts name now.
    pub(crate) fn of(&mut self, context: &Context) -> &mut Zone {
        self.0.take_if(|(stamp, _)| *stamp != context.stamp());
        let zone = || (context.stamp(), Zone::of(context));
        &mut self.0.get_or_insert_with(zone).1
    }
}

/// `+0200`, `-03:30` as seconds.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits = rest.replace(':', "");
    if digits.len() != 4 {
        return None;
    }
    let number: i32 = digits.parse().ok()?;
    Some(sign * (number / 100 * 3600 + number % 100 * 60))
}

/// Days since 1970 as yyyymmdd, by the proleptic Gregorian calendar.
fn civil(days: i64) -> u32 {
    // Years begin in March here, so that the leap day is the last one.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    u32::try_from(year * 10_000 + month * 100 + day).unwrap_or(0)
}

const DAYS: &[u8] = b"SunMonTueWedThuFriSat";
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// The n-th name of three letters.
fn three(names: &'static [u8], n: u32) -> &'static [u8] {
    let mut names = names.chunks(3).zip(0..);
    let found = names.find(|(_, at)| *at == n);
    found.map_or(b"???", |(name, _)| name)
}

impl Local {
    /// Appends `HH:MM:SS`.
    pub fn put_time(&self, out: &mut Vec<u8>) {
        put_number(out, (self.second / 3600).into(), 2, b'0');
        out.push(b':');
        put_number(out, (self.second / 60 % 60).into(), 2, b'0');
        out.push(b':');
        put_number(out, (self.second % 60).into(), 2, b'0');
    }

    /// Appends `YYYYMMDD`.
    pub fn put_day(&self, out: &mut Vec<u8>) {
        put_number(out, self.day.into(), 8, b'0');
    }

    /// Appends `MM/DD`.
    pub fn put_month_day(&self, out: &mut Vec<u8>) {
        put_number(out, (self.day / 100 % 100).into(), 2, b'0');
        out.push(b'/');
        put_number(out, (self.day % 100).into(), 2, b'0');
    }

    /// Appends `.mmm`.
    pub fn put_milli(&self, out: &mut Vec<u8>) {
        out.push(b'.');
        put_number(out, self.milli.into(), 3, b'0');
    }

    /// The month as `Nov`.
    fn month(&self) -> &'static [u8] {
        three(MONTHS, (self.day / 100 % 100).saturating_sub(1))
    }

    /// Appends `Nov21-20:50:27`.
    pub(crate) fn put_month_and_time(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.month());
        put_number(out, (self.day % 100).into(), 2, b'0');
        out.push(b'-');
        self.put_time(out);
    }

    /// Appends `Sat Nov 21 19:00:47 2026`.
    pub fn put_long(&self, out: &mut Vec<u8>, milliseconds: bool) {
        out.extend_from_slice(three(DAYS, self.weekday));
        out.push(b' ');
        out.extend_from_slice(self.month());
        out.push(b' ');
        put_number(out, (self.day % 100).into(), 2, b' ');
        out.push(b' ');
        self.put_time(out);
        if milliseconds {
            self.put_milli(out);
        }
        out.push(b' ');
        put_number(out, (self.day / 10_000).into(), 4, b'0');
    }
}

/// A bound of `--from` or `--thru`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// The day as yyyymmdd; without one it holds for every day.
    pub day: Option<u32>,
    /// Second of the day.
    pub second: u32,
}

impl Bound {
    /// Reads `[yyyymmdd:]hh:mm[:ss]`, or `yyyymmdd`: `whole_day` is the second of the day that is meant then.
    pub fn parse(switch: &str, text: &str, whole_day: u32) -> Result<Bound, String> {
        Bound::read(text, whole_day).ok_or_else(|| {
            format!(
                "cannot use {switch} {}: not a time such as 14:30 or 20261121:14:30:00",
                text.escape_debug()
            )
        })
    }

    fn read(text: &str, whole_day: u32) -> Option<Bound> {
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        let is_day = |part: &str| part.len() == 8 && digits(part);
        let (day, time) = match text.split_once(':') {
            Some((day, rest)) if is_day(day) => (Some(day.parse().ok()?), rest),
            None if is_day(text) => (Some(text.parse().ok()?), ""),
            _ => (None, text),
        };
        if let Some(day) = day {
            let (year, month, date): (u32, u32, u32) = (day / 10_000, day / 100 % 100, day % 100);
            jiff::civil::Date::new(i16::try_from(year).ok()?, month as i8, date as i8).ok()?;
        }
        if time.is_empty() && day.is_some() {
            return Some(Bound {
                day,
                second: whole_day,
            });
        }
        let parts: Vec<&str> = time.split(':').collect();
        if !(2..=3).contains(&parts.len())
            || !parts
                .iter()
                .all(|p| digits(p) && (1..=2).contains(&p.len()))
        {
            return None;
        }
        let number = |n: usize| {
            parts
                .get(n)
                .map_or(Some(0), |part| part.parse::<u32>().ok())
        };
        let (hour, minute, second) = (number(0)?, number(1)?, number(2)?);
        let sound =
            (hour < 24 && minute < 60 && second < 60) || (hour, minute, second) == (24, 0, 0);
        sound.then_some(Bound {
            day,
            second: hour * 3600 + minute * 60 + second,
        })
    }
}

/// The span of `--from` and `--thru`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Not before.
    pub from: Option<Bound>,
    /// Not after.
    pub thru: Option<Bound>,
}

/// Where a moment lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Before it, or between the spans of two days.
    Before,
    /// In it.
    Within,
    /// After it, and nothing in it comes any more unless the clock is set back.
    After,
}

impl Span {
    /// Reads the two switches, of which the first may have both times: `10:00-11:00`.
    pub fn parse(from: Option<&str>, thru: Option<&str>) -> Result<Span, String> {
        let (from, thru) = match from.and_then(|from| from.split_once('-')) {
            None => (from, thru),
            Some((from, until)) if thru.is_none() => (Some(from), Some(until)),
            Some(_) => return Err("cannot use --thru: --from has both times".into()),
        };
        let bound = |switch, text: Option<&str>, whole_day| {
            text.map(|text| Bound::parse(switch, text, whole_day))
                .transpose()
        };
        Ok(Span {
            from: bound("--from", from, 0)?,
            thru: bound("--thru", thru, DAY_LAST_SECOND)?,
        })
    }

    /// Where a local time lies. A time without a day holds for every day; with the end before the
    /// beginning, the span goes over midnight.
    pub fn place(&self, at: Local) -> Place {
        let day_of = |bound: Bound| bound.day.unwrap_or(at.day);
        let key = |bound: Bound| (day_of(bound), bound.second);
        let now = (at.day, at.second);
        let begun = self.from.is_none_or(|from| key(from) <= now);
        let over = self
            .thru
            .is_some_and(|thru| now > key(thru) || (now == key(thru) && at.milli > 999));
        if let (
            Some(Bound {
                day: None,
                second: from,
            }),
            Some(Bound {
                day: None,
                second: thru,
            }),
        ) = (self.from, self.thru)
            && from > thru
        {
            return if at.second >= from || at.second <= thru {
                Place::Within
            } else {
                Place::Before
            };
        }
        match (begun, over) {
            (true, false) => Place::Within,
            (true, true) if self.thru.is_some_and(|thru| thru.day.is_some()) => Place::After,
            _ => Place::Before,
        }
    }

    /// The span as moments: all that can be within it, where its days are given.
    pub fn moments(&self, zone: &Zone) -> (i64, i64) {
        let moment = |bound: Option<Bound>, add: i64| {
            let bound = bound?;
            Some(zone.moment(bound.day?, bound.second)? + add)
        };
        (
            moment(self.from, 0).unwrap_or(i64::MIN),
            moment(self.thru, SECOND_NS - 1).unwrap_or(i64::MAX),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        let mut context = Context::default();
        context.set("tz", name);
        Zone::of(&context)
    }

    #[test]
    fn local_time() {
        for (tz, secs, expect) in [
            ("", 1_795_287_647, "Sat Nov 21 19:00:47 2026"),
            ("+0530", 1_795_287_647, "Sun Nov 22 00:30:47 2026"),
            ("-03:30", 1_795_287_647, "Sat Nov 21 15:30:47 2026"),
            (
                "CET-1CEST,M3.5.0,M10.5.0/3",
                1_795_287_647,
                "Sat Nov 21 20:00:47 2026",
            ),
            ("no such zone", 951_782_400, "Tue Feb 29 00:00:00 2000"),
            ("UTC", -1, "Wed Dec 31 23:59:59 1969"),
        ] {
            let mut out = Vec::new();
            zone(tz).local(secs * SECOND_NS).put_long(&mut out, false);
            assert_eq!(String::from_utf8_lossy(&out), expect, "{tz}");
        }
    }

    #[test]
    fn bounds() {
        for (text, expect) in [
            ("14:30", Some((None, 52_200))),
            ("14:30:05", Some((None, 52_205))),
            ("20261121:14:30", Some((Some(20_261_121), 52_200))),
            ("24:00", Some((None, 86_400))),
            ("25:00", None),
            ("14", None),
            ("14:60", None),
            ("20261131:14:30", None),
            ("x", None),
            ("", None),
            ("1:2:3:4", None),
            ("-1:30", None),
            ("20261121", Some((Some(20_261_121), 7))),
            ("20261131", None),
            ("20261121:", Some((Some(20_261_121), 7))),
        ] {
            let got = Bound::parse("--from", text, 7)
                .ok()
                .map(|b| (b.day, b.second));
            assert_eq!(got, expect, "{text}");
        }
    }

    #[test]
    fn both_times_in_one() {
        let span = |from, thru| Span::parse(from, thru);
        for (one, from, thru) in [
            ("10:00-11:00", "10:00", "11:00"),
            (
                "20261121:10:00-20261122:11:00:05",
                "20261121:10:00",
                "20261122:11:00:05",
            ),
            ("20261121-20261122", "20261121:00:00", "20261122:23:59:59"),
        ] {
            assert_eq!(span(Some(one), None), span(Some(from), Some(thru)), "{one}");
        }
        for (from, thru) in [("10:00-11:00", Some("12:00")), ("10:00-", None)] {
            assert!(span(Some(from), thru).is_err(), "{from}");
        }
        assert!(span(None, Some("10:00-11:00")).is_err());
    }

    #[test]
    fn spans() {
        let local = |day: u32, hour: u32| Local {
            day,
            second: hour * 3600,
            milli: 0,
            weekday: 0,
        };
        use Place::*;
        for (from, thru, day, hour, expect) in [
            (None, None, 20_261_121, 5, Within),
            (Some("10:00"), None, 20_261_121, 9, Before),
            (Some("10:00"), None, 20_261_122, 10, Within),
            (Some("10:00"), Some("11:00"), 20_261_121, 11, Within),
            (Some("10:00"), Some("11:00"), 20_261_121, 12, Before),
            (Some("22:00"), Some("02:00"), 20_261_121, 23, Within),
            (Some("22:00"), Some("02:00"), 20_261_122, 1, Within),
            (Some("22:00"), Some("02:00"), 20_261_122, 12, Before),
            (
                Some("20261121:10:00"),
                Some("20261122:11:00"),
                20_261_122,
                9,
                Within,
            ),
            (
                Some("20261121:10:00"),
                Some("20261122:11:00"),
                20_261_122,
                12,
                After,
            ),
            (
                Some("20261121:10:00"),
                Some("20261122:11:00"),
                20_261_120,
                12,
                Before,
            ),
        ] {
            let span = Span::parse(from, thru).expect("sound");
            assert_eq!(
                span.place(local(day, hour)),
                expect,
                "{from:?} {thru:?} {day} {hour}"
            );
        }
    }

    #[test]
    fn there_and_back() {
        for name in ["", "+0530", "CET-1CEST,M3.5.0,M10.5.0/3"] {
            let mut zone = zone(name);
            for secs in [0i64, 1_795_287_647, 951_782_400, 1_774_746_000] {
                let local = zone.local(secs * SECOND_NS);
                assert_eq!(
                    zone.moment(local.day, local.second),
                    Some(secs * SECOND_NS),
                    "{name} {secs}"
                );
            }
        }
    }
}
