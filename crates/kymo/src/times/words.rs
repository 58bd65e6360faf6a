//! Times in words: `yesterday 3pm`, as the grammar of `--from` has them.

use kymo_view::time::Zone;

const DAY_NS: i64 = 86_400_000_000_000;

/// Puts dates and 24 hours in place of `today`, `yesterday`, `3pm` and `3:30am`; all else stays as it is.
pub(crate) fn plain(text: &str, zone: &mut Zone, now_ns: i64) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(['-', ' ']) {
        let word = part.trim_end_matches(['-', ' ']);
        let ago = match word.to_ascii_lowercase().as_str() {
            "today" => Some(0),
            "yesterday" => Some(1),
            _ => None,
        };
        let rest = &part[word.len()..];
        match (ago, of_half_day(word)) {
            (Some(ago), _) => {
                let day = zone.local(now_ns - ago * DAY_NS).day;
                out.push_str(&day.to_string());
                out.push_str(if rest == " " { ":" } else { rest });
            }
            (None, Some(time)) => {
                out.push_str(&time);
                out.push_str(rest);
            }
            (None, None) => out.push_str(part),
        }
    }
    out
}

/// `15:30` of `3:30pm`.
fn of_half_day(word: &str) -> Option<String> {
    let small = word.to_ascii_lowercase();
    let (time, noon) = match (small.strip_suffix("am"), small.strip_suffix("pm")) {
        (Some(time), _) => (time, 0),
        (None, Some(time)) => (time, 12),
        (None, None) => return None,
    };
    let (hour, rest) = time.split_once(':').unwrap_or((time, "00"));
    let hour: u32 = hour.parse().ok().filter(|hour| (1..=12).contains(hour))?;
    Some(format!("{:02}:{rest}", hour % 12 + noon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_dates_and_hours() {
        // 2026-11-21 19:00:47 UTC.
        let now_ns = 1_795_287_647_000_000_000;
        for (text, expect) in [
            ("yesterday 3pm", "20261120:15:00"),
            ("today 12am", "20261121:00:00"),
            ("yesterday", "20261120"),
            ("yesterday 3:30pm-4pm", "20261120:15:30-16:00"),
            ("12:05pm", "12:05"),
            ("03:12", "03:12"),
            ("-10m", "-10m"),
            ("-2h--1h", "-2h--1h"),
            ("2026-11-21 10:00", "2026-11-21 10:00"),
            ("13pm", "13pm"),
            ("spam", "spam"),
        ] {
            assert_eq!(plain(text, &mut Zone::default(), now_ns), expect, "{text}");
        }
    }
}
