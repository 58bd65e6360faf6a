//! Lines and labels of a graph's time axis, where the local time passes full hours, days, weeks or months.

use super::style::{Period, Weeks};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned, civil::Weekday};

/// A vertical line of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Line {
    #[default]
    None,
    /// Dotted.
    Minor,
    /// Red: a day, a week, a month or a year begins.
    Major,
}

/// Line and label of one time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub line: Line,
    pub label: Option<String>,
}

impl Mark {
    /// The mark at a time, seconds since 1970.
    pub(super) fn at(time_s: i64, period: Period, zone: &TimeZone, weeks: Weeks) -> Mark {
        let Ok(time) = Timestamp::from_second(time_s) else {
            return Mark::default();
        };
        let time = time.to_zoned(zone.clone());
        let (hour, minute, day) = (time.hour(), time.minute(), time.day());
        let is_monday = time.weekday() == Weekday::Monday;
        // Lines of both kinds, one without the other as rateup has it.
        let (minor, major, label) = match period {
            Period::Day => {
                let is_hour = minute < 5;
                let label = is_hour && hour % 2 == 0;
                let label = label.then(|| hour.to_string());
                (is_hour, is_hour && hour == 0, label)
            }
            Period::Week => {
                let is_day = minute < 30 && hour == 0;
                let label = minute < 30 && hour == 12;
                let name = time.strftime("%a").to_string();
                (is_day, is_day && is_monday, label.then_some(name))
            }
            Period::Month => {
                let is_night = hour < 2;
                let is_middle = (11..=12).contains(&hour) && time.weekday() == Weekday::Thursday;
                let label = is_middle.then(|| format!("Week {:02}", week(weeks, &time)));
                (is_night && is_monday, is_night && day == 1, label)
            }
            Period::Year => {
                let label = (day == 15).then(|| time.strftime("%b").to_string());
                (day == 1, time.day_of_year() == 1, label)
            }
        };
        let line = match (minor, major) {
            (_, true) => Line::Major,
            (true, false) => Line::Minor,
            (false, false) => Line::None,
        };
        Mark { line, label }
    }
}

/// The number of a week.
fn week(weeks: Weeks, time: &Zoned) -> i32 {
    let day = i32::from(time.day_of_year());
    let weekday = time.weekday();
    match weeks {
        Weeks::Iso => i32::from(time.date().iso_week_date().week()),
        Weeks::Sunday => (day + 6 - i32::from(weekday.to_sunday_zero_offset())) / 7,
        Weeks::Monday => (day + 6 - i32::from(weekday.to_monday_zero_offset())) / 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_marks() {
        // 2026-11-26 is a Thursday, 2026-06-01 a Monday.
        for (time, period, line, label) in [
            ("2026-11-26T00:04:59Z", Period::Day, Line::Major, Some("0")),
            ("2026-11-26T07:00:00Z", Period::Day, Line::Minor, None),
            ("2026-11-26T08:05:00Z", Period::Day, Line::None, None),
            ("2026-11-23T00:00:00Z", Period::Week, Line::Major, None),
            ("2026-11-24T00:29:00Z", Period::Week, Line::Minor, None),
            (
                "2026-11-26T12:00:00Z",
                Period::Week,
                Line::None,
                Some("Thu"),
            ),
            ("2026-06-01T00:00:00Z", Period::Month, Line::Major, None),
            (
                "2026-11-26T12:00:00Z",
                Period::Month,
                Line::None,
                Some("Week 48"),
            ),
            ("2026-01-01T00:00:00Z", Period::Year, Line::Major, None),
            (
                "2026-11-15T00:00:00Z",
                Period::Year,
                Line::None,
                Some("Nov"),
            ),
        ] {
            let time: Timestamp = time.parse().unwrap();
            let mark = Mark::at(time.as_second(), period, &TimeZone::UTC, Weeks::Iso);
            let label = label.map(String::from);
            assert_eq!(mark, Mark { line, label }, "{time}");
        }
        let far = Mark::at(i64::MAX, Period::Day, &TimeZone::UTC, Weeks::Iso);
        assert_eq!(far, Mark::default());
    }

    #[test]
    fn weeks_have_numbers() {
        let number = |weeks: Weeks, date: &str| {
            let time: Timestamp = format!("{date}T12:00:00Z").parse().unwrap();
            week(weeks, &time.to_zoned(TimeZone::UTC))
        };
        // date +%U, %V, %W
        for (date, [sunday, iso, monday]) in [
            ("2026-01-01", [0, 1, 0]),
            ("2026-01-04", [1, 1, 0]),
            ("2026-12-31", [52, 53, 52]),
            ("2027-01-01", [0, 53, 0]),
        ] {
            assert_eq!(number(Weeks::Sunday, date), sunday, "{date}");
            assert_eq!(number(Weeks::Iso, date), iso, "{date}");
            assert_eq!(number(Weeks::Monday, date), monday, "{date}");
        }
    }
}
