//! Selectors of PromQL for the engine.

use std::collections::{BTreeMap, BTreeSet};

use kymo_base::label_set::{self, put_value};
use kymo_series::names::METRIC;
use kymo_series::{Labels, Matcher, Op};
use kymo_wire::keeper::{LabelMatcher, MatchOp};

/// A matcher that any metric fits: engines refuse selectors that fit a series without labels.
const ANY_METRIC: &str = "__name__=~\".+\"";

/// The selector of a client's matchers.
pub(crate) fn of_matchers(matchers: &[LabelMatcher]) -> Result<String, String> {
    let (mut texts, mut matches_empty) = (Vec::new(), true);
    for of in matchers {
        let op = match of.op {
            MatchOp::Equal => Op::Equal,
            MatchOp::NotEqual => Op::NotEqual,
            MatchOp::Matches => Op::Matches,
            MatchOp::NotMatches => Op::NotMatches,
        };
        let matcher = Matcher::new(&of.label, op, &of.value).map_err(|error| error.to_string())?;
        matches_empty &= matcher.matches_empty();
        texts.push(matcher.to_string());
    }
    if matches_empty {
        texts.push(ANY_METRIC.into());
    }
    Ok(format!("{{{}}}", texts.join(",")))
}

/// A selector that picks these series and few others: by their metrics, and by the label that tells most of them apart.
pub(crate) fn of_series(series: &[&Labels]) -> String {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for labels in series {
        for (name, value) in label_set::each(labels.text()) {
            let name = String::from_utf8_lossy(name).into_owned();
            let value = String::from_utf8_lossy(&value).into_owned();
            values.entry(name).or_default().insert(value);
        }
    }
    for (name, of_label) in &mut values {
        let has_it = |labels: &&&Labels| !label_set::value(labels.text(), name).is_empty();
        if series.iter().filter(has_it).count() < series.len() {
            of_label.insert(String::new());
        }
    }
    let metrics = values.remove(METRIC).unwrap_or_default();
    let apart = values.iter().max_by_key(|(_, of_label)| of_label.len());
    let mut texts = vec![one_of(METRIC, &metrics)];
    texts.extend(apart.map(|(name, of_label)| one_of(name, of_label)));
    format!("{{{}}}", texts.join(","))
}

/// A matcher of a label that has one of these values.
fn one_of(name: &str, values: &BTreeSet<String>) -> String {
    if values.is_empty() {
        return ANY_METRIC.into();
    }
    let (op, text) = match values.len() {
        1 => ("=", values.iter().next().cloned().unwrap_or_default()),
        _ => {
            let escaped: Vec<String> = values.iter().map(|value| escaped(value)).collect();
            ("=~", escaped.join("|"))
        }
    };
    let mut quoted = Vec::new();
    put_value(&mut quoted, text.as_bytes());
    format!("{name}{op}\"{}\"", String::from_utf8_lossy(&quoted))
}

/// A text as an expression that fits it alone.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(label: &str, op: MatchOp, value: &str) -> LabelMatcher {
        LabelMatcher {
            label: label.into(),
            op,
            value: value.into(),
        }
    }

    #[test]
    fn matchers_become_a_selector_that_engines_take() {
        use MatchOp::{Equal, Matches, NotMatches};
        for (matchers, selector) in [
            (vec![matcher("job", Equal, "a\"b")], r#"{job="a\"b"}"#),
            (vec![], r#"{__name__=~".+"}"#),
            (
                vec![
                    matcher("user", Equal, ""),
                    matcher("__name__", NotMatches, "a|b"),
                ],
                r#"{user="",__name__!~"a|b",__name__=~".+"}"#,
            ),
            (vec![matcher("a", Matches, r"x\.y")], r#"{a=~"x\\.y"}"#),
        ] {
            assert_eq!(of_matchers(&matchers).as_deref(), Ok(selector));
        }
        assert!(of_matchers(&[matcher("a", Matches, "(")]).is_err());
        assert!(of_matchers(&[matcher("a.b", Equal, "c")]).is_err());
    }

    #[test]
    fn series_become_a_selector_by_what_tells_them_apart() {
        let series = |texts: &[&str]| -> String {
            let all: Vec<Labels> = texts
                .iter()
                .map(|text| Labels::parse(text.as_bytes()).unwrap())
                .collect();
            of_series(&all.iter().collect::<Vec<_>>())
        };
        for (texts, selector) in [
            (
                &[r#"{__name__="up",job="a"}"#][..],
                r#"{__name__="up",job="a"}"#,
            ),
            (
                &[
                    r#"{__name__="up",instance="a:1",job="x"}"#,
                    r#"{__name__="up",instance="b.c:1",job="x"}"#,
                ],
                r#"{__name__="up",instance=~"a:1|b\\.c:1"}"#,
            ),
            (
                &[r#"{__name__="a"}"#, r#"{__name__="b",job="x|y"}"#],
                r#"{__name__=~"a|b",job=~"|x\\|y"}"#,
            ),
            (&[r#"{job="x"}"#], r#"{__name__=~".+",job="x"}"#),
        ] {
            assert_eq!(series(texts), selector);
        }
    }
}
