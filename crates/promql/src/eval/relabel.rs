//! Functions of labels: `label_replace`, `label_join`, and the labels of `absent`.

use kymo_series::{Matcher, Op, anchored_regex};

use crate::eval::column::Column;
use crate::eval::error::EvalError;
use crate::eval::label_set::{LabelSet, is_of_metric};
use crate::eval::merge::merged;
use crate::eval::meter::Meter;

/// `label_replace`
pub(crate) struct Replacement<'a> {
    /// The label that is set.
    pub(crate) label: &'a str,
    /// The new value, with `$1` and the like.
    pub(crate) value: &'a str,
    /// The label that is looked at.
    pub(crate) source: &'a str,
    /// Has to match all of its value.
    pub(crate) expression: &'a str,
}

impl Replacement<'_> {
    /// The series with the label replaced where the expression matches.
    pub(crate) fn replace(
        &self,
        meter: &Meter,
        mut columns: Vec<Column>,
    ) -> Result<Vec<Column>, EvalError> {
        let regex = anchored_regex(self.expression).map_err(|_| {
            let expression = self.expression;
            EvalError::Execution(format!(
                "invalid regular expression in label_replace(): {expression}"
            ))
        })?;
        if self.label.is_empty() {
            return Err(no_name("destination", "label_replace", self.label));
        }
        let mut value = Vec::new();
        for column in &mut columns {
            let source = column.labels.get(self.source).as_bytes();
            let Some(found) = regex.captures(source) else {
                continue;
            };
            value.clear();
            found.expand(self.value.as_bytes(), &mut value);
            let labels = column
                .labels
                .with(self.label, &String::from_utf8_lossy(&value))?;
            grow(meter, &column.labels, &labels)?;
            column.labels = labels;
        }
        merged(meter, columns)
    }
}

fn no_name(kind: &str, function: &str, name: &str) -> EvalError {
    EvalError::Execution(format!("invalid {kind} label name in {function}(): {name}"))
}

/// `label_join`: sets a label to the values of others.
pub(crate) fn joined(
    meter: &Meter,
    mut columns: Vec<Column>,
    label: &str,
    separator: &str,
    sources: &[&str],
) -> Result<Vec<Column>, EvalError> {
    if sources.iter().any(|source| source.is_empty()) {
        return Err(no_name("source", "label_join", ""));
    }
    if label.is_empty() {
        return Err(no_name("destination", "label_join", label));
    }
    for column in &mut columns {
        let values: Vec<&str> = sources
            .iter()
            .map(|source| column.labels.get(source))
            .collect();
        let labels = column.labels.with(label, &values.join(separator))?;
        grow(meter, &column.labels, &labels)?;
        column.labels = labels;
    }
    merged(meter, columns)
}

/// Takes memory for what a set has more than the one before; a join may make it many times as long.
fn grow(meter: &Meter, before: &LabelSet, after: &LabelSet) -> Result<(), EvalError> {
    const VALUE_BYTES: usize = 8;
    let more = after.size_bytes().saturating_sub(before.size_bytes());
    meter.hold(more / VALUE_BYTES)
}

/// The labels of `absent`: those for which the matchers leave one value.
pub(crate) fn absent_labels(matchers: &[Matcher]) -> Result<LabelSet, EvalError> {
    let mut labels = LabelSet::empty();
    let mut known: Vec<&str> = Vec::new();
    for matcher in matchers
        .iter()
        .filter(|matcher| !is_of_metric(matcher.label()))
    {
        let name = matcher.label();
        let is_one = matcher.op() == Op::Equal && !known.contains(&name);
        let value = if is_one { matcher.value() } else { "" };
        labels = labels.with(name, value)?;
        if is_one {
            known.push(name);
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![Column {
            labels: LabelSet::new(&[("a", "foo:1"), ("b", "x")]),
            values: vec![1.0],
        }]
    }

    #[test]
    fn labels_are_replaced() {
        for (value, expression, expected) in [
            ("$2-$1", "(.*):(.*)", r#"{a="foo:1", b="x", c="1-foo"}"#),
            ("${1}z", "(.*):(?P<n>.*)", r#"{a="foo:1", b="x", c="fooz"}"#),
            ("$n", "(.*):(?P<n>.*)", r#"{a="foo:1", b="x", c="1"}"#),
            ("x", "foo", r#"{a="foo:1", b="x"}"#),
        ] {
            let replacement = Replacement {
                label: "c",
                value,
                source: "a",
                expression,
            };
            let replaced = replacement.replace(&Meter::unlimited(), columns()).unwrap();
            assert_eq!(replaced[0].labels.to_string(), expected);
        }
        let wrong = Replacement {
            label: "c",
            value: "",
            source: "a",
            expression: "(",
        };
        assert!(wrong.replace(&Meter::unlimited(), columns()).is_err());
        let joined = joined(
            &Meter::unlimited(),
            columns(),
            "c",
            "-",
            &["a", "none", "b"],
        )
        .unwrap();
        assert_eq!(joined[0].labels.get("c"), "foo:1--x");
    }

    #[test]
    fn matchers_tell_labels() {
        let matcher = |name, op, value| Matcher::new(name, op, value).unwrap();
        let matchers = [
            Matcher::of_metric("x"),
            matcher("a", Op::Equal, "1"),
            matcher("b", Op::Equal, "1"),
            matcher("b", Op::Equal, "2"),
            matcher("c", Op::NotEqual, "1"),
        ];
        assert_eq!(absent_labels(&matchers).unwrap().to_string(), r#"{a="1"}"#);
    }
}
