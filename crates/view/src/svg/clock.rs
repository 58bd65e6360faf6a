//! The time axis: ticks at round local times, the day at each change, and durations in words.

use crate::time::{Local, Zone};

const SECOND_NS: i64 = 1_000_000_000;
const DAY_SECS: i64 = 86_400;

/// Most ticks of an axis.
const TICKS_MAX: usize = 200;

/// Steps between ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Every {
    Millis(i64),
    Seconds(i64),
    Days(i64),
    Months(u32),
}

const STEPS: &[Every] = &[
    Every::Millis(100),
    Every::Millis(200),
    Every::Millis(500),
    Every::Seconds(1),
    Every::Seconds(2),
    Every::Seconds(5),
    Every::Seconds(10),
    Every::Seconds(15),
    Every::Seconds(30),
    Every::Seconds(60),
    Every::Seconds(120),
    Every::Seconds(300),
    Every::Seconds(600),
    Every::Seconds(900),
    Every::Seconds(1800),
    Every::Seconds(3600),
    Every::Seconds(7200),
    Every::Seconds(10_800),
    Every::Seconds(21_600),
    Every::Seconds(43_200),
    Every::Days(1),
    Every::Days(2),
    Every::Days(7),
    Every::Days(14),
    Every::Months(1),
    Every::Months(2),
    Every::Months(3),
    Every::Months(6),
    Every::Months(12),
    Every::Months(60),
    Every::Months(240),
];

impl Every {
    /// Approximate length.
    fn millis(self) -> i64 {
        match self {
            Every::Millis(millis) => millis,
            Every::Seconds(secs) => secs * 1000,
            Every::Days(days) => days * DAY_SECS * 1000,
            Every::Months(months) => i64::from(months) * 30 * DAY_SECS * 1000,
        }
    }
}

/// A tick of the time axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tick {
    /// Time of the tick.
    pub at_ns: i64,
    /// The time of day, or for steps of days and months their name.
    pub label: String,
    /// The day, if it differs from that of the previous tick.
    pub day: String,
}

/// Ticks at round local times from `from_ns` thru `thru_ns`, about `most` at most.
pub(super) fn ticks(zone: &mut Zone, from_ns: i64, thru_ns: i64, most: usize) -> Vec<Tick> {
    let span_ms = thru_ns.saturating_sub(from_ns) / 1_000_000;
    let most = most.clamp(1, TICKS_MAX) as i64;
    let fits = |every: &&Every| span_ms / every.millis() <= most;
    let every = STEPS.iter().find(fits).copied();
    let every = every.unwrap_or(Every::Months(240));
    let mut ticks: Vec<Tick> = Vec::new();
    let mut day = 0;
    each_moment(zone, every, from_ns, thru_ns, &mut |zone, at_ns| {
        let local = zone.local(at_ns);
        let changed = std::mem::replace(&mut day, local.day) != local.day;
        let clock = matches!(every, Every::Millis(_) | Every::Seconds(_));
        ticks.push(Tick {
            at_ns,
            label: label(every, local),
            day: if clock && changed {
                weekday_day(local)
            } else {
                String::new()
            },
        });
        ticks.len() < TICKS_MAX
    });
    ticks
}

/// Calls `each` with the round times of a range until it returns `false`.
fn each_moment(
    zone: &mut Zone,
    every: Every,
    from_ns: i64,
    thru_ns: i64,
    each: &mut dyn FnMut(&mut Zone, i64) -> bool,
) {
    let (step_ns, shift_ns) = match every {
        Every::Millis(millis) => (millis * 1_000_000, 0),
        Every::Seconds(secs) => (secs * SECOND_NS, 0),
        // 1970 began on a Thursday; weeks are to begin on Monday.
        Every::Days(days) => (days * DAY_SECS * SECOND_NS, 3 * DAY_SECS * SECOND_NS),
        Every::Months(_) => (DAY_SECS * SECOND_NS, 0),
    };
    let mut at_ns = from_ns.saturating_sub(1);
    while let Some(next_ns) = next_round(zone, at_ns, step_ns, shift_ns) {
        if next_ns > thru_ns || next_ns <= at_ns {
            return;
        }
        at_ns = next_ns;
        if let Every::Months(months) = every {
            let local = zone.local(at_ns);
            let month = local.day / 10_000 * 12 + local.day / 100 % 100 - 1;
            if local.day % 100 != 1 || !month.is_multiple_of(months) {
                continue;
            }
        }
        if !each(zone, at_ns) {
            return;
        }
    }
}

/// Start of a calendar unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Day,
    /// Weeks begin on Monday.
    Week,
    Month,
    Year,
}

/// The starts of days, weeks, months or years within a range.
pub(super) fn turns(zone: &mut Zone, turn: Turn, from_ns: i64, thru_ns: i64) -> Vec<i64> {
    let every = match turn {
        Turn::Day => Every::Days(1),
        Turn::Week => Every::Days(7),
        Turn::Month => Every::Months(1),
        Turn::Year => Every::Months(12),
    };
    let mut found = Vec::new();
    each_moment(zone, every, from_ns, thru_ns, &mut |_, at_ns| {
        found.push(at_ns);
        found.len() < TICKS_MAX
    });
    found
}

/// The first time after `at_ns` that is a multiple of the step in local time.
fn next_round(zone: &mut Zone, at_ns: i64, step_ns: i64, shift_ns: i64) -> Option<i64> {
    let offset_ns = zone.offset_secs(at_ns) * SECOND_NS;
    let local_ns = at_ns.checked_add(offset_ns)?.checked_add(shift_ns)?;
    let mut round_ns = local_ns
        .div_euclid(step_ns)
        .checked_add(1)?
        .checked_mul(step_ns)?;
    // Where clocks change, the multiple is earlier or later than computed, or has passed already.
    for _ in 0..3 {
        let guess_ns = round_ns.checked_sub(shift_ns)?.checked_sub(offset_ns)?;
        let then_ns = zone.offset_secs(guess_ns) * SECOND_NS;
        let mut moment_ns = guess_ns.checked_add(offset_ns - then_ns)?;
        if zone.offset_secs(moment_ns) * SECOND_NS != then_ns {
            // The hour that the clocks skip: takes the hour behind it.
            moment_ns = guess_ns;
        }
        if moment_ns > at_ns {
            return Some(moment_ns);
        }
        round_ns = round_ns.checked_add(step_ns)?;
    }
    None
}

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

fn label(every: Every, local: Local) -> String {
    match every {
        Every::Millis(_) => format!("{}.{}", clock(local, true), local.milli / 100),
        Every::Seconds(secs) => clock(local, secs < 60),
        Every::Days(_) => weekday_day(local),
        Every::Months(months) if months < 12 => format!("{} {}", month(local), local.day / 10_000),
        Every::Months(_) => (local.day / 10_000).to_string(),
    }
}

/// `14:30`, or `14:30:05`.
fn clock(local: Local, seconds: bool) -> String {
    let (hour, minute) = (local.second / 3600, local.second / 60 % 60);
    match seconds {
        true => format!("{hour:02}:{minute:02}:{:02}", local.second % 60),
        false => format!("{hour:02}:{minute:02}"),
    }
}

fn month(local: Local) -> &'static str {
    let month = (local.day / 100 % 100) as usize;
    MONTHS.get(month.wrapping_sub(1)).copied().unwrap_or("?")
}

/// `Sat 21 Nov`.
fn weekday_day(local: Local) -> String {
    let weekday = DAYS.get(local.weekday as usize).copied().unwrap_or("?");
    format!("{weekday} {} {}", local.day % 100, month(local))
}

/// A range in words: `Sat 21 Nov 2026 10:00:00 – 12:00:00 +01:00`.
pub(super) fn range(zone: &mut Zone, from_ns: i64, thru_ns: i64) -> String {
    let (from, thru) = (zone.local(from_ns), zone.local(thru_ns));
    let day = |local: Local| format!("{} {}", weekday_day(local), local.day / 10_000);
    let end = match from.day == thru.day {
        true => clock(thru, true),
        false => format!("{} {}", day(thru), clock(thru, true)),
    };
    let offset = zone.offset_secs(thru_ns);
    let zone = match offset {
        0 => "UTC".into(),
        _ => {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        }
    };
    format!("{} {} – {end} {zone}", day(from), clock(from, true))
}

/// A moment in words, for tooltips.
pub(super) fn moment(zone: &mut Zone, at_ns: i64) -> String {
    let local = zone.local(at_ns);
    format!("{} {}", weekday_day(local), clock(local, true))
}

/// A duration in words: `200 ms`, `5 s`, `2 min`, `1 h`, `3 d`; with a second unit if one is inexact.
pub(super) fn length(ns: i64) -> String {
    const UNITS: [(i64, &str); 5] = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "min"),
        (1000, "s"),
        (1, "ms"),
    ];
    let ms = ns.max(0) / 1_000_000;
    let found = UNITS.iter().position(|(size, _)| ms >= *size).unwrap_or(4);
    let (size, name) = UNITS[found];
    let whole = format!("{} {name}", ms / size);
    match UNITS.get(found + 1) {
        Some((next, name)) if ms % size >= *next && found < 3 => {
            format!("{whole} {} {name}", ms % size / next)
        }
        _ => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::context::Context;

    const S: i64 = SECOND_NS;
    /// Sat Nov 21 19:00:47 2026 UTC.
    const NOW: i64 = 1_795_287_647 * S;

    fn zone(name: &str) -> Zone {
        let mut context = Context::default();
        context.set("tz", name);
        Zone::of(&context)
    }

    #[test]
    fn days_weeks_months_and_years_begin_at_local_midnight() {
        let mut berlin = zone("Europe/Berlin");
        for (turn, days, expect) in [
            (Turn::Day, 1, &["Sat 21 Nov 00:00:00"][..]),
            (Turn::Week, 10, &["Mon 16 Nov 00:00:00"]),
            // The clocks go back between these.
            (
                Turn::Month,
                55,
                &["Thu 1 Oct 00:00:00", "Sun 1 Nov 00:00:00"],
            ),
            (Turn::Year, 400, &["Thu 1 Jan 00:00:00"]),
        ] {
            let found = turns(&mut berlin, turn, NOW - days * DAY_SECS * S, NOW);
            let found: Vec<String> = found
                .iter()
                .map(|&at_ns| moment(&mut berlin, at_ns))
                .collect();
            assert_eq!(found, expect, "{turn:?}");
        }
    }

    #[test]
    fn ticks_are_round_local_times() {
        const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";
        // Clocks go back in the night to Oct 25, 2026, forward in the night to Mar 29.
        let (back, forward) = (1_792_879_200 * S, 1_774_738_800 * S);
        for (tz, from, span_s, most, expect) in [
            (
                "UTC",
                NOW,
                3,
                4,
                "19:00:47|Sat 21 Nov 19:00:48 19:00:49 19:00:50",
            ),
            (
                "UTC",
                NOW,
                60,
                4,
                "19:01:00|Sat 21 Nov 19:01:15 19:01:30 19:01:45",
            ),
            (
                "UTC",
                NOW,
                6 * 3600,
                4,
                "20:00|Sat 21 Nov 22:00 00:00|Sun 22 Nov",
            ),
            ("+0530", NOW, 3600, 4, "00:45|Sun 22 Nov 01:00 01:15 01:30"),
            (
                "UTC",
                NOW,
                3 * 86_400,
                6,
                "00:00|Sun 22 Nov 12:00 00:00|Mon 23 Nov 12:00 00:00|Tue 24 Nov 12:00",
            ),
            (
                "UTC",
                NOW,
                21 * 86_400,
                4,
                "Mon 23 Nov Mon 30 Nov Mon 7 Dec",
            ),
            (
                "UTC",
                NOW,
                100 * 86_400,
                4,
                "Dec 2026 Jan 2027 Feb 2027 Mar 2027",
            ),
            ("UTC", NOW, 1500 * 86_400, 6, "2027 2028 2029 2030"),
            (
                BERLIN,
                back,
                10 * 3600,
                5,
                "00:00|Sun 25 Oct 02:00 04:00 06:00 08:00",
            ),
            (
                BERLIN,
                back,
                3 * 86_400,
                4,
                "Sun 25 Oct Mon 26 Oct Tue 27 Oct",
            ),
            (
                BERLIN,
                forward,
                10 * 3600,
                5,
                "00:00|Sun 29 Mar 03:00 04:00 06:00 08:00 10:00",
            ),
            ("UTC", NOW, 0, 4, "19:00:47.0|Sat 21 Nov"),
        ] {
            let ticks = ticks(&mut zone(tz), from, from + span_s * S, most);
            let words = ticks.iter().map(|tick| match tick.day.is_empty() {
                true => tick.label.clone(),
                false => format!("{}|{}", tick.label, tick.day),
            });
            let got = words.collect::<Vec<_>>().join(" ");
            assert_eq!(got, expect, "{tz} {span_s} {most}");
        }
    }

    #[test]
    fn spans_in_words() {
        for (tz, span_s, expect) in [
            ("UTC", 60, "Sat 21 Nov 2026 19:00:47 – 19:01:47 UTC"),
            ("+0100", 60, "Sat 21 Nov 2026 20:00:47 – 20:01:47 +01:00"),
            (
                "-0330",
                86_400,
                "Sat 21 Nov 2026 15:30:47 – Sun 22 Nov 2026 15:30:47 -03:30",
            ),
        ] {
            assert_eq!(range(&mut zone(tz), NOW, NOW + span_s * S), expect);
        }
        for (ms, expect) in [
            (0, "0 ms"),
            (200, "200 ms"),
            (1000, "1 s"),
            (1500, "1 s"),
            (61_000, "1 min 1 s"),
            (120_000, "2 min"),
            (5_400_000, "1 h 30 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(length(ms * 1_000_000), expect);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_range_ends(from in proptest::num::i64::ANY, span in 0i64..i64::MAX, most in 0usize..1000) {
            let thru = from.saturating_add(span);
            let ticks = ticks(&mut zone("CET-1CEST,M3.5.0,M10.5.0/3"), from, thru, most);
            assert!(ticks.len() <= TICKS_MAX);
            assert!(ticks.iter().all(|tick| from <= tick.at_ns && tick.at_ns <= thru));
        }
    }
}
