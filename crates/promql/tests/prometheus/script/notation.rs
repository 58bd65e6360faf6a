//! The notation of series and their values: `up{job="a"} 1 2+3x2 _ stale`.

use kymo_promql::{LabelSet, parse_selector};
use kymo_series::stale;

/// A series as it is written.
pub(crate) struct Described {
    pub labels: LabelSet,
    /// A value a step; `None`: no sample.
    pub values: Vec<Option<f64>>,
    /// Some values are native histograms, and are left out here.
    pub has_histograms: bool,
}

/// Reads a series and its values.
pub(crate) fn described(line: &str) -> Described {
    let (labels, values) = split(line);
    let has_histograms = values.contains("{{");
    Described {
        labels: label_set(labels),
        values: match has_histograms {
            true => Vec::new(),
            false => values.split_whitespace().flat_map(item).collect(),
        },
        has_histograms,
    }
}

/// The name with its labels, and what stands behind.
fn split(line: &str) -> (&str, &str) {
    let head_end = line.find(['{', ' ', '\t']).unwrap_or(line.len());
    if !line[head_end..].trim_start().starts_with('{')
        || line[head_end..].trim_start().starts_with("{{")
    {
        return line.split_at(head_end);
    }
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in line.char_indices().skip(head_end) {
        match quote {
            None if c == '}' => return line.split_at(at + 1),
            None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
            None => {}
            Some(_) if escaped => escaped = false,
            Some('"' | '\'') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
        }
    }
    panic!("no end of labels: {line}")
}

fn label_set(text: &str) -> LabelSet {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if bare == "{}" {
        return LabelSet::empty();
    }
    // A set whose values are all empty is no selector.
    let padded = match text.rfind('}') {
        Some(end) => {
            let comma = if text[..end].trim_end().ends_with(['{', ',']) {
                ""
            } else {
                ","
            };
            format!("{}{comma}padding=\"x\"}}", &text[..end])
        }
        None => format!("{text}{{padding=\"x\"}}"),
    };
    let selector = parse_selector(&padded).unwrap_or_else(|error| panic!("{text}: {error}"));
    let labels = selector
        .matchers
        .iter()
        .map(|matcher| (matcher.label(), matcher.value()));
    let labels: Vec<(&str, &str)> = labels.filter(|(name, _)| *name != "padding").collect();
    LabelSet::new(&labels)
}

/// Values of an item such as `1+2x3`.
fn item(text: &str) -> Vec<Option<f64>> {
    let (value, times) = match text.rsplit_once('x') {
        Some((value, times)) => (
            value,
            times
                .parse::<usize>()
                .unwrap_or_else(|_| panic!("no count: {text}")),
        ),
        None if text == "_" => return vec![None],
        None => return vec![Some(number(text))],
    };
    if value == "_" {
        return vec![None; times];
    }
    let sign = value
        .char_indices()
        .skip(1)
        .find(|&(at, c)| matches!(c, '+' | '-') && !value[..at].ends_with(['e', 'E']));
    let (mut value, growth) = match sign {
        Some((at, _)) => (number(&value[..at]), number(&value[at..])),
        None => (number(value), 0.0),
    };
    let mut values = Vec::new();
    for _ in 0..=times {
        values.push(Some(value));
        if growth != 0.0 {
            value += growth;
        }
    }
    values
}

/// A number as Go reads it.
pub(crate) fn number(text: &str) -> f64 {
    if text == "stale" {
        return stale();
    }
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// Milliseconds of `1h30m`, `5ms`, `0` or a number of seconds.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    if text == "0" {
        return Some(0);
    }
    let (mut left, mut sum) = (text, 0);
    while !left.is_empty() {
        let digits = left.find(|c: char| !c.is_ascii_digit())?;
        let count: i64 = left[..digits].parse().ok()?;
        left = &left[digits..];
        let unit = left
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(left.len());
        sum += count
            * match &left[..unit] {
                "ms" => 1,
                "s" => 1000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                "w" => 7 * 86_400_000,
                "y" => 365 * 86_400_000,
                _ => return None,
            };
        left = &left[unit..];
    }
    Some(sum)
}
