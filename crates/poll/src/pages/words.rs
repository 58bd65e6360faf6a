//! Words of a page in the languages of `Language`. They are our own, not MRTG's: scripts read comments, which have no language.

use super::style::Period;
use jiff::Zoned;
use std::sync::Arc;

/// Words of all languages: ten lines for each, between empty lines. `%` and a letter stand for a part of a text.
const ALL: &str = include_str!("words.txt");

/// The words of one language.
#[derive(Debug)]
pub(super) struct Words {
    /// The tag of the language by BCP 47.
    pub tag: &'static str,
    weekdays: [&'static str; 7],
    months: [&'static str; 12],
    /// Text of a date.
    date: &'static str,
    updated: &'static str,
    up: &'static str,
    /// A device without a name.
    pub device: &'static str,
    graphs: [&'static str; 4],
    averages: [&'static str; 4],
    peaks: &'static str,
    /// Largest, mean and newest value.
    pub columns: [&'static str; 3],
    /// In, out, percentage.
    pub rows: [&'static str; 3],
    traffic: [&'static str; 2],
    /// Texts of the legend for both peaks.
    pub peak_legends: [&'static str; 2],
    /// Bits, bytes.
    units: [&'static str; 2],
    /// Second, minute, hour.
    times: [&'static str; 3],
    /// Names of the colours of curves.
    pub colours: [&'static str; 5],
}

impl Words {
    /// The words of a value of `Language`; `None`: there are none.
    pub(super) fn of(language: &str) -> Option<Arc<Words>> {
        let language = language.trim().to_lowercase();
        let is_named = |block: &&str| {
            let names = block.split('|').next().unwrap_or_default();
            names.split(' ').any(|name| name == language)
        };
        let words = read(ALL.split("\n\n").find(is_named)?);
        Some(Arc::new(
            words.unwrap_or_else(|| unreachable!("BUG: words of {language}")),
        ))
    }

    /// The words of this language, or else English ones.
    pub(super) fn or_english(language: Option<&str>) -> Arc<Words> {
        let known = language.and_then(Words::of);
        known
            .or_else(|| Words::of("english"))
            .unwrap_or_else(|| unreachable!("BUG: no English words"))
    }

    /// A time of the local calendar.
    pub(super) fn date(&self, time: &Zoned) -> String {
        let weekday = time.weekday().to_sunday_zero_offset();
        let weekday = usize::try_from(weekday).map_or("", |at| self.weekdays[at % 7]);
        let month = usize::try_from(time.month()).unwrap_or(1);
        let clock = format!("{}:{:02}", time.hour(), time.minute());
        filled(
            self.date,
            &[
                ('W', weekday),
                ('d', &time.day().to_string()),
                ('M', self.months[(month + 11) % 12]),
                ('Y', &time.year().to_string()),
                ('t', &clock),
            ],
        )
    }

    /// The sentence about the time of the figures; `date` is HTML.
    pub(super) fn updated(&self, date: &str) -> String {
        filled(self.updated, &[('s', date)])
    }

    /// The sentence about how long a device has been up; `name` and `time` are HTML.
    pub(super) fn up(&self, name: &str, time: &str) -> String {
        filled(self.up, &[('n', name), ('s', time)])
    }

    /// The title of a period's graph.
    pub(super) fn title(&self, period: Period, minutes: &str) -> String {
        let at = period.place();
        let average = filled(self.averages[at], &[('n', minutes)]);
        format!("{} ({average})", self.graphs[at])
    }

    /// The line about means of peaks; `interval` is English.
    pub(super) fn peaks(&self, period: Period, interval: &str) -> String {
        let graph = self.graphs[period.place()];
        filled(self.peaks, &[('g', graph), ('i', interval)])
    }

    /// The legend of both directions.
    pub(super) fn traffic(&self, unit: usize, time: usize) -> [String; 2] {
        let parts = [('b', self.units[unit % 2]), ('t', self.times[time % 3])];
        self.traffic.map(|text| filled(text, &parts))
    }
}

/// A text with its parts.
fn filled(text: &str, parts: &[(char, &str)]) -> String {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        let part = parts.iter().find(|part| piece.starts_with(part.0));
        match part {
            Some(&(letter, part)) => {
                out.push_str(part);
                out.push_str(&piece[letter.len_utf8()..]);
            }
            None => out.push_str(piece),
        }
    }
    out
}

/// The words of a block; `None`: it lacks some.
fn read(block: &'static str) -> Option<Words> {
    let mut lines = block.trim_end().lines();
    let mut fields = |separator: char| Some(lines.next()?.split(separator));
    let [_, tag] = exactly(fields('|')?)?;
    let weekdays = exactly(fields(' ')?)?;
    let months = exactly(fields(' ')?)?;
    let [date, updated, up, device] = exactly(fields('|')?)?;
    let graphs = exactly(fields('|')?)?;
    let [day, week, month, year, peaks] = exactly(fields('|')?)?;
    let [max, mean, newest, inward, outward, percentage] = exactly(fields('|')?)?;
    let [traffic_in, traffic_out, peak_in, peak_out] = exactly(fields('|')?)?;
    let [bits, bytes, second, minute, hour] = exactly(fields('|')?)?;
    let colours = exactly(fields('|')?)?;
    Some(Words {
        tag,
        weekdays,
        months,
        date,
        updated,
        up,
        device,
        graphs,
        averages: [day, week, month, year],
        peaks,
        columns: [max, mean, newest],
        rows: [inward, outward, percentage],
        traffic: [traffic_in, traffic_out],
        peak_legends: [peak_in, peak_out],
        units: [bits, bytes],
        times: [second, minute, hour],
        colours,
    })
}

fn exactly<const N: usize>(
    fields: impl Iterator<Item = &'static str>,
) -> Option<[&'static str; N]> {
    fields.collect::<Vec<_>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_all_words() {
        let mut names = Vec::new();
        for block in ALL.trim_end().split("\n\n") {
            let words = read(block).unwrap_or_else(|| panic!("{block}"));
            let own = block.split('|').next().unwrap().split(' ');
            names.extend(own.map(String::from));
            let has = |text: &str, letters: &[char]| {
                let mut found: Vec<char> = text
                    .split('%')
                    .skip(1)
                    .filter_map(|piece| piece.chars().next())
                    .collect();
                found.sort_unstable();
                assert_eq!(found, letters, "{text}");
            };
            has(words.date, &['M', 'W', 'Y', 'd', 't']);
            has(words.updated, &['s']);
            has(words.up, &['n', 's']);
            has(words.averages[0], &['n']);
            words.traffic.iter().for_each(|text| has(text, &['b', 't']));
            assert!(words.peaks.contains("%g"), "{}", words.peaks);
        }
        assert_eq!(
            names.iter().collect::<std::collections::HashSet<_>>().len(),
            names.len()
        );
        assert_eq!(ALL.trim_end().split("\n\n").count(), 21);
        for name in ["german", "Deutsch", "FRANÇAIS", "default", "gb2312"] {
            assert!(Words::of(name).is_some(), "{name}");
        }
        for name in ["", "klingon", "hebrew", "german|de", "de"] {
            assert!(Words::of(name).is_none(), "{name}");
        }
    }

    #[test]
    fn dates_have_the_order_of_their_language() {
        let time: jiff::Timestamp = "2026-11-08T07:05:59Z".parse().unwrap();
        let time = time.to_zoned(jiff::tz::TimeZone::UTC);
        for (language, expected) in [
            ("english", "Sunday, 8 November 2026 at 7:05"),
            ("german", "Sonntag, 8. November 2026 um 7:05"),
            ("finnish", "sunnuntai 8. marraskuuta 2026 klo 7:05"),
            ("hungarian", "2026. november 8., vasárnap, 7:05"),
            ("eucjp", "2026年11月8日 日曜日 7:05"),
        ] {
            assert_eq!(Words::of(language).unwrap().date(&time), expected);
        }
    }
}
