//! Days, months and years of moments, in UTC.

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    /// 1 to 366.
    pub(crate) day_of_year: i64,
    /// 0: Sunday.
    pub(crate) weekday: i64,
}

const DAY_S: i64 = 86_400;
/// Days of 400 years, after which the calendar repeats itself.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const MARCH_0_DAYS: i64 = 719_468;

/// The day of a moment, in seconds since 1970.
pub(crate) fn date(t_s: i64) -> Date {
    let days = t_s.div_euclid(DAY_S);
    let since = days + MARCH_0_DAYS;
    let (cycle, day) = (since.div_euclid(CYCLE_DAYS), since.rem_euclid(CYCLE_DAYS));
    // Years begin in March, so that the leap day is the last one.
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_march_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_march_year + 2) / 153;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = cycle * 400 + year + i64::from(month <= 2);
    let day = day_of_march_year - (153 * month_from_march + 2) / 5 + 1;
    let before: i64 = (1..month).map(|month| days_in_month(year, month)).sum();
    Date {
        year,
        month,
        day,
        day_of_year: before + day,
        weekday: (days + 4).rem_euclid(7),
    }
}

/// How many days a month has.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The hour of a moment.
pub(crate) fn hour(t_s: i64) -> i64 {
    t_s.rem_euclid(DAY_S) / 3600
}

/// The minute of its hour.
pub(crate) fn minute(t_s: i64) -> i64 {
    t_s.rem_euclid(3600) / 60
}

/// A moment as RFC 3339 has it.
pub(crate) fn rfc3339(t_s: i64) -> String {
    let Date {
        year, month, day, ..
    } = date(t_s);
    let (hour, minute, second) = (hour(t_s), minute(t_s), t_s.rem_euclid(60));
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_dates() {
        for (t_s, text, day_of_year, weekday) in [
            (0, "1970-01-01T00:00:00Z", 1, 4),
            (-1, "1969-12-31T23:59:59Z", 365, 3),
            (951_782_400, "2000-02-29T00:00:00Z", 60, 2),
            (951_868_800, "2000-03-01T00:00:00Z", 61, 3),
            (4_107_542_399, "2100-02-28T23:59:59Z", 59, 0),
            (1_735_689_599, "2024-12-31T23:59:59Z", 366, 2),
            (-62_135_596_800, "0001-01-01T00:00:00Z", 1, 1),
            (i64::MAX, "292277026596-12-04T15:30:07Z", 339, 0),
        ] {
            assert_eq!(rfc3339(t_s), text);
            let date = date(t_s);
            assert_eq!(
                (date.day_of_year, date.weekday),
                (day_of_year, weekday),
                "{text}"
            );
        }
    }
}
