//! Times of `--from`, `--thru` and `--at`, in one grammar for all commands: a local time of the recorded machine (`14:30`,
//! `20261121:14:30`, `2026-11-21T14:30`), or a moment (`now`, `-1h`, `2026-11-21T14:30Z`, seconds since 1970).

use super::{Local, SECOND_NS, Zone};

const DAY_LAST_SECOND: u32 = 86_399;
/// Least digits of a number that means seconds since 1970; a day has eight digits.
const EPOCH_DIGITS_MIN: usize = 9;

/// A bound of `--from` or `--thru`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// A moment in nanoseconds since 1970.
    Moment(i64),
    /// A local time in the zone of the recorded machine.
    Wall(WallTime),
}

/// A local time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WallTime {
    /// The day as yyyymmdd; `None`: every day.
    pub day: Option<u32>,
    /// Second of the day.
    pub second: u32,
}

/// The end of a span that a bound is for; the span includes both.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Begin,
    End,
}

impl Bound {
    /// Parses the beginning of a span. `switch` is named in errors.
    pub fn parse(switch: &str, text: &str, now_ns: i64) -> Result<Bound, String> {
        Bound::at(Edge::Begin, switch, text, now_ns)
    }

    fn at(edge: Edge, switch: &str, text: &str, now_ns: i64) -> Result<Bound, String> {
        read(text, edge, now_ns).ok_or_else(|| {
            format!(
                "cannot use {switch} {}: not a time such as 14:30, 20261121:14:30:00, 2026-11-21T14:30, -1h or now",
                text.escape_debug()
            )
        })
    }

    /// The moment in nanoseconds since 1970. `None`: the time is for every day, or does not exist.
    pub fn moment(self, zone: &Zone) -> Option<i64> {
        match self {
            Bound::Moment(ns) => Some(ns),
            Bound::Wall(wall) => zone.moment(wall.day?, wall.second),
        }
    }

    /// The local time, if it has no day.
    pub fn of_every_day(&mut self) -> Option<&mut WallTime> {
        match self {
            Bound::Wall(wall) if wall.day.is_none() => Some(wall),
            _ => None,
        }
    }
}

fn read(text: &str, edge: Edge, now_ns: i64) -> Option<Bound> {
    match moment(text, now_ns) {
        Some(ns) => Some(Bound::Moment(ns)),
        None => wall(text, edge).map(Bound::Wall),
    }
}

/// Parses a moment that needs no zone, to nanoseconds since 1970: `now`, `-90`, `-1h30m`, `now-1h`, `2026-11-21T14:30Z`, and
/// seconds since 1970.
pub fn moment(text: &str, now_ns: i64) -> Option<i64> {
    if text == "now" {
        return Some(now_ns);
    }
    if let Some(ago) = text.strip_prefix("now").unwrap_or(text).strip_prefix('-') {
        return now_ns.checked_sub(length_s(ago)?.checked_mul(SECOND_NS)?);
    }
    if text.len() >= EPOCH_DIGITS_MIN && is_digits(text) {
        return text.parse::<i64>().ok()?.checked_mul(SECOND_NS);
    }
    let zone_at = text
        .find('Z')
        .or_else(|| Some(10 + text.get(10..)?.find(['+', '-'])?))?;
    let offset_s = match &text[zone_at..] {
        "Z" => 0,
        zone => super::offset(zone)?,
    };
    let wall = wall(&text[..zone_at], Edge::Begin)?;
    let in_utc = Bound::Wall(wall).moment(&Zone::default())?;
    in_utc.checked_sub(i64::from(offset_s) * SECOND_NS)
}

/// Parses a duration such as `1h30m` to seconds; a plain number is in seconds.
fn length_s(text: &str) -> Option<i64> {
    if is_digits(text) {
        return text.parse().ok();
    }
    let (mut rest, mut sum) = (text, 0i64);
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, behind) = rest.split_at(unit_at);
        let unit_end = behind.find(|c: char| c.is_ascii_digit());
        let (unit, next) = behind.split_at(unit_end.unwrap_or(behind.len()));
        let unit_s = match unit {
            "s" | "sec" => 1,
            "m" | "min" => 60,
            "h" => 3600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<i64>().ok()?.checked_mul(unit_s)?)?;
        rest = next;
    }
    (!text.is_empty()).then_some(sum)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Parses `[yyyymmdd:]hh:mm[:ss]` or `yyyymmdd`; the date may be in ISO form.
fn wall(text: &str, edge: Edge) -> Option<WallTime> {
    let plain = plain_day(text);
    let text = plain.as_deref().unwrap_or(text);
    let is_day = |part: &str| part.len() == 8 && is_digits(part);
    let (day, time) = match text.split_once(':') {
        Some((day, rest)) if is_day(day) => (Some(day.parse().ok()?), rest),
        None if is_day(text) => (Some(text.parse().ok()?), ""),
        _ => (None, text),
    };
    if let Some(day) = day {
        let (year, month, date): (u32, u32, u32) = (day / 10_000, day / 100 % 100, day % 100);
        jiff::civil::Date::new(i16::try_from(year).ok()?, month as i8, date as i8).ok()?;
    }
    let second = match (time, edge) {
        ("", Edge::Begin) if day.is_some() => 0,
        ("", Edge::End) if day.is_some() => DAY_LAST_SECOND,
        _ => second_of_day(time)?,
    };
    Some(WallTime { day, second })
}

/// Parses `hh:mm[:ss]`, up to 24:00.
fn second_of_day(time: &str) -> Option<u32> {
    let parts: Vec<&str> = time.split(':').collect();
    let is_sound = |part: &&str| is_digits(part) && part.len() <= 2;
    if !(2..=3).contains(&parts.len()) || !parts.iter().all(is_sound) {
        return None;
    }
    let number = |n: usize| {
        parts
            .get(n)
            .map_or(Some(0), |part| part.parse::<u32>().ok())
    };
    let (hour, minute, second) = (number(0)?, number(1)?, number(2)?);
    let is_sound =
        (hour < 24 && minute < 60 && second < 60) || (hour, minute, second) == (24, 0, 0);
    is_sound.then_some(hour * 3600 + minute * 60 + second)
}

/// Converts `2026-11-21T14:30` to `20261121:14:30`; a blank may replace the `T`, and the time may be missing.
fn plain_day(text: &str) -> Option<String> {
    let (date, rest) = (text.get(..10)?, text.get(10..)?);
    let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else {
        return None;
    };
    if [year.len(), month.len(), day.len()] != [4, 2, 2] {
        return None;
    }
    Some(match rest {
        "" => format!("{year}{month}{day}"),
        rest => format!("{year}{month}{day}:{}", rest.strip_prefix(['T', ' '])?),
    })
}

/// The span of `--from` and `--thru`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Start of the span, inclusive.
    pub from: Option<Bound>,
    /// End of the span, inclusive.
    pub thru: Option<Bound>,
}

/// Position of a moment relative to a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpanPosition {
    /// Before the span, or between the spans of two days.
    Before,
    /// Within the span.
    Within,
    /// After the span. No later moment is within it, unless the clock is set back.
    After,
}

impl Span {
    /// Parses the two switches. `--from` may contain both times: `10:00-11:00`.
    pub fn parse(from: Option<&str>, thru: Option<&str>, now_ns: i64) -> Result<Span, String> {
        let (from, thru) = match from.and_then(|from| both_times(from, now_ns)) {
            None => (from, thru),
            Some((from, until)) if thru.is_none() => (Some(from), Some(until)),
            Some(_) => return Err("cannot use --thru: --from has both times".into()),
        };
        let bound = |switch, text: Option<&str>, edge| {
            text.map(|text| Bound::at(edge, switch, text, now_ns))
                .transpose()
        };
        let thru = bound("--thru", thru, Edge::End)?;
        Ok(Span {
            from: bound("--from", from, Edge::Begin)?,
            thru: thru.map(|thru| match thru {
                Bound::Moment(ns) => Bound::Moment(ns.saturating_add(SECOND_NS - 1)),
                Bound::Wall(_) => thru,
            }),
        })
    }

    /// The position of a moment with local time `at`. A time without a day holds for every day; if its end is before its
    /// beginning, the span includes midnight.
    pub fn place(&self, real_ns: i64, at: Local) -> SpanPosition {
        if let (Some(Bound::Wall(from)), Some(Bound::Wall(thru))) = (self.from, self.thru)
            && (from.day, thru.day) == (None, None)
            && from.second > thru.second
        {
            return match at.second >= from.second || at.second <= thru.second {
                true => SpanPosition::Within,
                false => SpanPosition::Before,
            };
        }
        let now = (at.day, at.second);
        let key = |wall: WallTime| (wall.day.unwrap_or(at.day), wall.second);
        let has_begun = match self.from {
            None => true,
            Some(Bound::Moment(ns)) => ns <= real_ns,
            Some(Bound::Wall(wall)) => key(wall) <= now,
        };
        let (is_over, for_good) = match self.thru {
            None => (false, false),
            Some(Bound::Moment(ns)) => (real_ns > ns, true),
            Some(Bound::Wall(wall)) => (now > key(wall), wall.day.is_some()),
        };
        match (has_begun, is_over) {
            (true, false) => SpanPosition::Within,
            (true, true) if for_good => SpanPosition::After,
            _ => SpanPosition::Before,
        }
    }

    /// The moments of each day that can be within the span, from one moment to another, in their order. `None`: no bound is of
    /// every day, or one is of a single day.
    pub fn of_each_day(
        &self,
        zone: &mut Zone,
        first_ns: i64,
        last_ns: i64,
    ) -> Option<Vec<(i64, i64)>> {
        const HALF_DAY_S: u32 = 43_200;
        let second = |bound: Option<Bound>| match bound {
            None => Some(None),
            Some(Bound::Wall(wall)) if wall.day.is_none() => Some(Some(i64::from(wall.second))),
            Some(Bound::Wall(_) | Bound::Moment(_)) => None,
        };
        let (from, thru) = (second(self.from)?, second(self.thru)?);
        from.or(thru)?;
        let from_ns = from.unwrap_or(0) * SECOND_NS;
        let thru_ns = (thru.unwrap_or(DAY_LAST_SECOND.into()) + 1) * SECOND_NS - 1;
        let mut spans: Vec<(i64, i64)> = Vec::new();
        let mut add = |from_ns: i64, thru_ns: i64| match spans.last_mut() {
            Some(last) if from_ns <= last.1.saturating_add(1) => last.1 = last.1.max(thru_ns),
            _ => spans.push((from_ns, thru_ns)),
        };
        let mut day = zone.local(first_ns).day;
        loop {
            let begin_ns = zone.moment(day, 0)?;
            if begin_ns > last_ns {
                return Some(spans);
            }
            // Whatever the clocks do, half a day after noon and half a day more is in the next day.
            let noon_ns = zone.moment(day, HALF_DAY_S)?;
            day = zone
                .local(noon_ns.checked_add(2 * i64::from(HALF_DAY_S) * SECOND_NS)?)
                .day;
            let next_ns = zone.moment(day, 0)?;
            match next_ns - begin_ns == 2 * i64::from(HALF_DAY_S) * SECOND_NS {
                // The clocks are changed.
                false => add(begin_ns, next_ns - 1),
                true if from_ns > thru_ns => {
                    add(begin_ns, begin_ns + thru_ns);
                    add(begin_ns + from_ns, next_ns - 1);
                }
                true => add(begin_ns + from_ns, begin_ns + thru_ns),
            }
        }
    }

    /// The limits of all moments that can be within the span; unlimited where a bound has no day.
    pub fn moments(&self, zone: &Zone) -> (i64, i64) {
        let begin = self.from.and_then(|from| from.moment(zone));
        let end = self.thru.and_then(|thru| match thru {
            Bound::Moment(ns) => Some(ns),
            Bound::Wall(_) => Some(thru.moment(zone)?.saturating_add(SECOND_NS - 1)),
        });
        (begin.unwrap_or(i64::MIN), end.unwrap_or(i64::MAX))
    }
}

/// Splits `10:00-11:00` into its times, although dates and relative times contain a `-` too.
fn both_times(text: &str, now_ns: i64) -> Option<(&str, &str)> {
    if read(text, Edge::Begin, now_ns).is_some() {
        return None;
    }
    let sides = |(at, _)| (&text[..at], &text[at + 1..]);
    let mut all = text.match_indices('-').map(sides);
    let is_begin = |(from, _): &(&str, &str)| read(from, Edge::Begin, now_ns).is_some();
    let is_both = |both: &(&str, &str)| is_begin(both) && read(both.1, Edge::End, now_ns).is_some();
    all.clone().find(is_both).or_else(|| all.find(is_begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-21 19:00:47 UTC.
    const NOW_S: i64 = 1_795_287_647;
    const NOW_NS: i64 = NOW_S * SECOND_NS;

    #[test]
    fn times_of_the_clock() {
        const DAY: Option<u32> = Some(20_261_121);
        for (text, expect) in [
            ("14:30", Some((None, 52_200))),
            ("14:30:05", Some((None, 52_205))),
            ("20261121:14:30", Some((DAY, 52_200))),
            ("24:00", Some((None, 86_400))),
            ("25:00", None),
            ("14", None),
            ("14:60", None),
            ("20261131:14:30", None),
            ("x", None),
            ("", None),
            ("1:2:3:4", None),
            ("-1:30", None),
            ("20261121", Some((DAY, 86_399))),
            ("20261131", None),
            ("2026-11-21", Some((DAY, 86_399))),
            ("2026-11-21T14:30", Some((DAY, 52_200))),
            ("2026-11-21 14:30:05", Some((DAY, 52_205))),
            ("2026-11-31", None),
            ("2026-1-21", None),
            ("2026-11-21x14:30", None),
            ("2026-11-21T", Some((DAY, 86_399))),
            ("20261121:", Some((DAY, 86_399))),
        ] {
            let expect = expect.map(|(day, second)| Bound::Wall(WallTime { day, second }));
            assert_eq!(read(text, Edge::End, NOW_NS), expect, "{text}");
        }
    }

    #[test]
    fn moments_before_now_and_of_a_zone() {
        for (text, expect) in [
            ("now", Some(NOW_S)),
            ("-1h", Some(NOW_S - 3600)),
            ("now-1h", Some(NOW_S - 3600)),
            ("-90", Some(NOW_S - 90)),
            ("-5m", Some(NOW_S - 300)),
            ("-5min", Some(NOW_S - 300)),
            ("-1h30m", Some(NOW_S - 5400)),
            ("-2w1d", Some(NOW_S - 15 * 86_400)),
            ("-7s", Some(NOW_S - 7)),
            ("1795287647", Some(NOW_S)),
            ("2026-11-21T19:00:47Z", Some(NOW_S)),
            ("2026-11-21T20:00+01:00", Some(NOW_S - 47)),
            ("2026-11-21T19:00:47", None),
            ("-", None),
            ("now-", None),
            ("-h", None),
            ("-1y", None),
            ("-1h30", None),
            ("-99999999999999999999s", None),
            ("-9999999999999w", None),
            ("99999999999999999", None),
            ("+1h", None),
            ("nowhere", None),
        ] {
            let expect = expect.map(|secs: i64| secs * SECOND_NS);
            assert_eq!(moment(text, NOW_NS), expect, "{text}");
        }
    }

    #[test]
    fn both_times_in_one() {
        let span = |from, thru| Span::parse(from, thru, NOW_NS);
        for (one, from, thru) in [
            ("10:00-11:00", "10:00", "11:00"),
            (
                "20261121:10:00-20261122:11:00:05",
                "20261121:10:00",
                "20261122:11:00:05",
            ),
            ("20261121-20261122", "20261121:00:00", "20261122:23:59:59"),
            (
                "2026-11-21-2026-11-22T10:00",
                "20261121:00:00",
                "20261122:10:00",
            ),
            ("-2h--1h", "-2h", "-1h"),
            ("now-2h-now", "-2h", "now"),
            ("2026-11-21T10:00-now", "20261121:10:00", "now"),
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
        use SpanPosition::*;
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
            let span = Span::parse(from, thru, NOW_NS).expect("sound");
            assert_eq!(
                span.place(0, local(day, hour)),
                expect,
                "{from:?} {thru:?} {day} {hour}"
            );
        }
    }

    /// No moment within a span is between its parts, also where the clocks are changed (2026-10-25 and 2026-03-29).
    #[test]
    fn each_day_of_a_span() {
        const QUARTER_NS: i64 = 900 * SECOND_NS;
        let text = "tz=Europe/Berlin\n".as_bytes();
        let mut zone = Zone::of(&kymo_base::context::Context::parse(text));
        let at = |zone: &Zone, day: u32| zone.moment(day, 0).expect("a day");
        for (from, thru, days, parts, hours) in [
            (
                Some("14:30"),
                Some("14:39"),
                (20_261_101, 20_261_103),
                3,
                0.5,
            ),
            (
                Some("22:00"),
                Some("02:00"),
                (20_261_101, 20_261_103),
                4,
                12.0,
            ),
            (
                Some("02:00"),
                Some("02:59"),
                (20_261_024, 20_261_026),
                3,
                27.0,
            ),
            (
                Some("02:00"),
                Some("02:59"),
                (20_260_328, 20_260_330),
                3,
                25.0,
            ),
            (Some("10:00"), None, (20_261_101, 20_261_102), 2, 28.0),
            (None, Some("10:00"), (20_261_101, 20_261_102), 2, 20.0),
            (
                Some("23:59:59"),
                Some("24:00"),
                (20_261_101, 20_261_101),
                1,
                0.0,
            ),
        ] {
            let span = Span::parse(from, thru, NOW_NS).expect("sound");
            let (first_ns, last_ns) = (at(&zone, days.0), at(&zone, days.1) + 86_399 * SECOND_NS);
            let found = span
                .of_each_day(&mut zone, first_ns, last_ns)
                .expect("parts");
            assert_eq!(found.len(), parts, "{from:?} {thru:?}: {found:?}");
            let length: i64 = found.iter().map(|(from, thru)| thru - from).sum();
            let length = length as f64 / 3.6e12;
            assert!(
                (length - hours).abs() < 0.4,
                "{from:?} {thru:?}: {length} h"
            );
            let mut moments = first_ns;
            while moments <= last_ns {
                let is_within = span.place(moments, zone.local(moments)) == SpanPosition::Within;
                let is_found = found
                    .iter()
                    .any(|(from, thru)| (*from..=*thru).contains(&moments));
                assert!(is_found || !is_within, "{from:?} {thru:?} {moments}");
                moments += QUARTER_NS;
            }
        }
        for (from, thru) in [
            (None, None),
            (Some("-1h"), Some("11:00")),
            (Some("20261121:10:00"), None),
            (Some("10:00"), Some("20261121:10:00")),
        ] {
            let span = Span::parse(from, thru, NOW_NS).expect("sound");
            assert_eq!(
                span.of_each_day(&mut zone, 0, NOW_NS),
                None,
                "{from:?} {thru:?}"
            );
        }
    }

    #[test]
    fn spans_of_moments() {
        let span = Span::parse(Some("-2h"), Some("-1h"), NOW_NS).expect("sound");
        let at = Local::default();
        for (ago_s, expect) in [
            (7201, SpanPosition::Before),
            (7200, SpanPosition::Within),
            (3600, SpanPosition::Within),
            (3599, SpanPosition::After),
        ] {
            let real_ns = NOW_NS - ago_s * SECOND_NS;
            assert_eq!(span.place(real_ns, at), expect, "{ago_s} s ago");
        }
        let mixed = Span::parse(Some("-2h"), Some("11:00"), NOW_NS).expect("sound");
        let late = Local {
            second: 12 * 3600,
            ..at
        };
        assert_eq!(mixed.place(NOW_NS, late), SpanPosition::Before);
    }
}
