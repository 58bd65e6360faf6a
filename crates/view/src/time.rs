//! Local time: time zones, and forms of times. The zone is that of the recorded machine. `bound.rs` parses the times of
//! `--from` and `--thru`.

mod bound;

pub use bound::{Bound, Span, SpanPosition, WallTime, moment};

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use kymo_base::context::Context;
use kymo_base::name::DisplayName;
use kymo_base::scan::put_number;
use kymo_base::zone::USUAL_RULE;
use kymo_kernel::facts;

/// Offsets of zones change only at quarters of an hour.
const QUARTER_NS: i64 = 900_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
const DAY_SECS: i64 = 86_400;

/// A local time.
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

/// Converts moments to local time; caches the offset of the current quarter of an hour.
pub struct Zone {
    zone: TimeZone,
    quarter: i64,
    offset_secs: i64,
    /// Name of a zone that was not found.
    unknown: Option<String>,
}

impl Default for Zone {
    /// UTC.
    fn default() -> Zone {
        Zone::of(&Context::default())
    }
}

impl Zone {
    /// The zone in the context's `tz`: `Europe/Berlin`, `+0200`, `CET-1CEST`. UTC if it is missing or unknown.
    pub fn of(context: &Context) -> Zone {
        let name = context.get("tz").unwrap_or_default();
        let found = own_of_offset(name, context).or_else(|| found(name));
        let is_known = found.is_some() || name.is_empty();
        let zone = found.unwrap_or(TimeZone::UTC);
        Zone {
            zone,
            quarter: i64::MIN,
            offset_secs: 0,
            unknown: (!is_known).then(|| name.to_string()),
        }
    }

    /// A remark about a zone that was not found and is replaced by UTC.
    pub fn remark(&self) -> Option<String> {
        let zone = DisplayName(self.unknown.as_ref()?.as_bytes());
        Some(format!(
            "cannot find the time zone {zone}: times are in UTC"
        ))
    }

    /// Seconds east of UTC at a moment.
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

    /// The moment of a local time. In an hour that the clocks skip, it is the moment in the hour behind it.
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

/// The zone of the machine being played; a recording may change it.
#[derive(Default)]
pub struct PlayedZone(Option<(u64, Zone)>);

impl PlayedZone {
    /// The zone that the facts currently name.
    pub fn of(&mut self, context: &Context) -> &mut Zone {
        self.0.take_if(|(stamp, _)| *stamp != context.stamp());
        let zone = || (context.stamp(), Zone::of(context));
        &mut self.0.get_or_insert_with(zone).1
    }
}

/// Looks up a zone by its offset, its name, the path of its file, or a POSIX rule.
fn found(name: &str) -> Option<TimeZone> {
    let fixed = offset(name).and_then(|secs| Offset::from_seconds(secs).ok());
    let of_path = name.split_once("zoneinfo/").map_or(name, |(_, zone)| zone);
    let of_file = || TimeZone::tzif(of_path, &facts::zone_file(of_path)?).ok();
    fixed
        .map(TimeZone::fixed)
        .or_else(of_file)
        .or_else(|| TimeZone::posix(name).ok())
        .or_else(|| TimeZone::posix(&format!("{name}{USUAL_RULE}")).ok())
}

/// The zone for a file of collectl. Its header has no zone, only the offset at its start, which is wrong for part of a day
/// on which clocks change. So this machine's zone is used if it had the same offset then.
fn own_of_offset(name: &str, context: &Context) -> Option<TimeZone> {
    let began_s: i64 = context.get("began")?.parse().ok()?;
    let offset = offset(name)?;
    let own = found(context.get("own_tz")?)?;
    let began = Timestamp::from_second(began_s).ok()?;
    (own.to_offset(began).seconds() == offset).then_some(own)
}

/// Parses `+0200`, `-03:30` to seconds.
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

/// Converts days since 1970 to yyyymmdd, in the proleptic Gregorian calendar.
fn civil(days: i64) -> u32 {
    // Years begin in March here, so that the leap day is their last day.
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

/// The n-th of concatenated names of three letters.
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

    /// Name of the month, such as `Nov`.
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
            (
                "/usr/share/zoneinfo/Asia/Tokyo",
                1_795_287_647,
                "Sun Nov 22 04:00:47 2026",
            ),
            ("EST5EDT", 1_795_287_647, "Sat Nov 21 14:00:47 2026"),
            ("XYZ-3", 1_795_287_647, "Sat Nov 21 22:00:47 2026"),
            ("XST5XDT", 1_783_000_000, "Thu Jul  2 09:46:40 2026"),
        ] {
            let mut out = Vec::new();
            zone(tz).local(secs * SECOND_NS).put_long(&mut out, false);
            assert_eq!(String::from_utf8_lossy(&out), expect, "{tz}");
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
