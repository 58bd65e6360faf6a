//! Names and units as Prometheus writes those of OpenTelemetry by default: illegal characters become `_`, a metric's
//! name ends in its unit in words, and in `_total` if it counts, or in `_ratio` if it is a share.

/// The part of a metric's type that its name depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// A gauge; of unit 1 it is a ratio.
    Gauge,
    /// A monotonic sum.
    Counter,
    /// Anything else.
    Other,
}

/// UCUM's units and their words.
const UNITS: [(&str, &str); 26] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("TiBy", "tibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("TBy", "terabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
    ("1", ""),
    ("%", "percent"),
];

/// Units behind a `/`: one of each.
const PER_UNITS: [(&str, &str); 7] = [
    ("s", "second"),
    ("m", "minute"),
    ("h", "hour"),
    ("d", "day"),
    ("w", "week"),
    ("mo", "month"),
    ("y", "year"),
];

/// The metric's name; `None`: nothing but illegal characters.
pub fn metric_name(name: &str, unit: &str, kind: NameKind) -> Option<String> {
    let (main, per) = unit_words(unit);
    let mut tokens: Vec<&str> = name
        .split(|c| !is_name_char(c))
        .filter(|t| !t.is_empty())
        .collect();
    let is_said = |tokens: &[&str], word: &str| word.is_empty() || tokens.contains(&word);
    let per = if per == "per_" {
        ""
    } else {
        per.trim_end_matches('_')
    };
    // A unit that the name has already is not said again; the other part of it is looked for in the name alone.
    let (main_said, per_said) = (is_said(&tokens, &main), is_said(&tokens, per));
    if !main_said {
        tokens.push(match per_said {
            true => &main,
            false => main.trim_end_matches('_'),
        });
    }
    if !per_said {
        tokens.push(per);
    }
    let end = match kind {
        NameKind::Counter => Some("total"),
        NameKind::Gauge if unit == "1" => Some("ratio"),
        NameKind::Gauge | NameKind::Other => None,
    };
    if let Some(end) = end {
        tokens.retain(|token| *token != end);
        tokens.push(end);
    }
    let joined = tokens.join("_");
    let is_usable = joined.bytes().any(|byte| byte != b'_');
    let begins_wrongly = joined.starts_with(|c: char| c.is_ascii_digit());
    let joined = if begins_wrongly {
        format!("_{joined}")
    } else {
        joined
    };
    is_usable.then_some(joined)
}

/// The unit in words, as metadata have it; may be empty.
pub fn unit_name(unit: &str) -> String {
    let (main, per) = unit_words(unit);
    let joined = match (main.is_empty(), per.is_empty()) {
        (false, false) => format!("{main}_{per}"),
        (_, true) => main,
        (true, false) => per,
    };
    let joined = joined.strip_prefix('_').unwrap_or(&joined);
    joined.strip_suffix('_').unwrap_or(joined).to_owned()
}

/// Appends a label's name for an attribute's key; `false`: nothing of it is left. A name that would begin with a digit
/// gets `key_` in front, one that would begin with a single `_` gets `key`.
pub fn put_label_name(out: &mut String, key: &str) -> bool {
    let mut chars = key.chars();
    let is_legal = |c: Option<char>| c.map(|c| c.is_ascii_alphanumeric());
    let (first, second) = (chars.next(), chars.next());
    let prefix = match (is_legal(first), is_legal(second)) {
        (None, _) => return false,
        (Some(true), _) if first.is_some_and(|c| c.is_ascii_digit()) => "key_",
        (Some(false), None | Some(true)) => "key",
        (Some(true), _) | (Some(false), Some(false)) => "",
    };
    out.push_str(prefix);
    let mut is_usable = !prefix.is_empty();
    for c in key.chars() {
        is_usable |= c.is_ascii_alphanumeric();
        out.push(if c.is_ascii_alphanumeric() { c } else { '_' });
    }
    is_usable
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ':'
}

/// Words of the unit and of the unit that it is by, the latter behind `per_`; empty: none, or one in braces, which is a
/// remark.
fn unit_words(unit: &str) -> (String, String) {
    let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
    let per = word_of(per, &PER_UNITS);
    let per = if per.is_empty() {
        String::new()
    } else {
        format!("per_{per}")
    };
    (legal_word(word_of(main, &UNITS)), legal_word(&per))
}

fn word_of<'a>(unit: &'a str, words: &[(&str, &'static str)]) -> &'a str {
    let unit = unit.trim();
    if unit.contains(['{', '}']) {
        return "";
    }
    let known = words.iter().find(|(known, _)| *known == unit);
    known.map_or(unit, |(_, word)| word)
}

/// Illegal characters become one `_` for those in a row, and one in front goes.
fn legal_word(word: &str) -> String {
    let mut legal = String::with_capacity(word.len());
    for c in word.chars() {
        match is_name_char(c) {
            true => legal.push(c),
            false if legal.ends_with('_') => {}
            false => legal.push('_'),
        }
    }
    match legal.strip_prefix('_') {
        Some(rest) => rest.to_owned(),
        None => legal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables were made by Prometheus' own library (otlptranslator 1.0) of texts put together at random.
    #[test]
    fn names_are_prometheus() {
        let table = include_str!("../../tests/otlp/metrics.tsv");
        for line in table.lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            let [name, unit, kind, expected, expected_unit] = columns[..] else {
                panic!("{line}");
            };
            let kind = match kind {
                "gauge" => NameKind::Gauge,
                "counter" => NameKind::Counter,
                _ => NameKind::Other,
            };
            assert_eq!(
                metric_name(name, unit, kind).unwrap_or_default(),
                expected,
                "{line}"
            );
            assert_eq!(unit_name(unit), expected_unit, "{line}");
        }
        let table = include_str!("../../tests/otlp/labels.tsv");
        for line in table.lines() {
            let (key, expected) = line.split_once('\t').unwrap();
            let mut name = String::new();
            assert_eq!(
                put_label_name(&mut name, key),
                !expected.is_empty(),
                "{line}"
            );
            assert!(expected.is_empty() || name == expected, "{line}: {name}");
        }
        assert!(!put_label_name(&mut String::new(), ""));
    }
}
