//! Matchers, which select series by one label.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};

use kymo_base::label_set::{self, put_value};

use crate::re2;

/// Longest expression, bytes.
const EXPRESSION_MAX: usize = 64 << 10;
/// Largest compiled expression, bytes.
const COMPILED_MAX: usize = 4 << 20;
/// Deepest nesting of groups.
const NESTED_MAX: u32 = 200;

/// Comparisons of a matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    NotMatches,
}

impl Op {
    /// All comparisons.
    pub const ALL: [Op; 4] = [Op::Equal, Op::NotEqual, Op::Matches, Op::NotMatches];

    /// The operator in PromQL.
    pub fn text(self) -> &'static str {
        match self {
            Op::Equal => "=",
            Op::NotEqual => "!=",
            Op::Matches => "=~",
            Op::NotMatches => "!~",
        }
    }

    fn is_negated(self) -> bool {
        match self {
            Op::Equal | Op::Matches => false,
            Op::NotEqual | Op::NotMatches => true,
        }
    }
}

/// Selects series by the value of a label. A series without the label has an empty value.
#[derive(Clone, Debug)]
pub struct Matcher {
    label: String,
    op: Op,
    value: String,
    test: Test,
}

/// The compiled comparison of a matcher.
#[derive(Clone, Debug)]
enum Test {
    /// The value is one of these, sorted: one for `=`, several for an expression such as
    /// `a|b`.
    OneOf(Box<[Box<str>]>),
    /// The value matches this expression.
    Expression(Box<Regex>),
    /// `.*`: any value.
    Anything,
    /// `.+`: any value but the empty one.
    Something,
}

/// Reason in words why a matcher is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatcherError(pub String);

impl fmt::Display for MatcherError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for MatcherError {}

impl Matcher {
    /// A matcher. An expression has Prometheus' syntax (RE2) and has to match the whole
    /// value.
    pub fn new(label: &str, op: Op, value: &str) -> Result<Matcher, MatcherError> {
        if !label_set::is_name(label.as_bytes()) {
            return Err(MatcherError(format!(
                "cannot use {label:?} as a label: {}",
                label_set::LabelError::Name
            )));
        }
        Matcher::of_any_label(label, op, value)
    }

    /// A matcher of a label that no kept series may have, such as `a.b` of Prometheus 3. Readers need not know it.
    pub fn of_any_label(label: &str, op: Op, value: &str) -> Result<Matcher, MatcherError> {
        let test = match op {
            Op::Equal | Op::NotEqual => Test::OneOf([value.into()].into()),
            Op::Matches | Op::NotMatches => Test::of_expression(value).map_err(|why| {
                MatcherError(format!("cannot use {value:?} as an expression: {why}"))
            })?,
        };
        Ok(Matcher {
            label: label.into(),
            op,
            value: value.into(),
            test,
        })
    }

    /// A matcher for the series of a metric.
    pub fn of_metric(name: &str) -> Matcher {
        Matcher {
            label: crate::names::METRIC.into(),
            op: Op::Equal,
            value: name.into(),
            test: Test::OneOf([name.into()].into()),
        }
    }

    /// The label's name.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The comparison.
    pub fn op(&self) -> Op {
        self.op
    }

    /// The value or expression as it was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// True if a series with this value of the label is selected. An empty value means no
    /// label.
    pub fn matches(&self, value: &[u8]) -> bool {
        let fits = match &self.test {
            Test::OneOf(values) => values
                .binary_search_by(|each| each.as_bytes().cmp(value))
                .is_ok(),
            Test::Expression(expression) => expression.is_match(value),
            Test::Anything => true,
            Test::Something => !value.is_empty(),
        };
        fits != self.op.is_negated()
    }

    /// True if series without the label are selected.
    pub fn matches_empty(&self) -> bool {
        self.matches(b"")
    }

    /// The only values that are selected, sorted; `None`: others may be, too.
    pub fn only(&self) -> Option<&[Box<str>]> {
        match &self.test {
            Test::OneOf(values) if !self.op.is_negated() => Some(values),
            _ => None,
        }
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Matcher) -> bool {
        (&self.label, self.op, &self.value) == (&other.label, other.op, &other.value)
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = Vec::new();
        put_value(&mut value, self.value.as_bytes());
        let value = String::from_utf8_lossy(&value);
        match label_set::is_name(self.label.as_bytes()) {
            true => write!(out, "{}{}\"{value}\"", self.label, self.op.text()),
            false => write!(out, "{:?}{}\"{value}\"", self.label, self.op.text()),
        }
    }
}

impl Test {
    fn of_expression(text: &str) -> Result<Test, String> {
        if text.len() > EXPRESSION_MAX {
            return Err(format!("it has more than {EXPRESSION_MAX} bytes"));
        }
        let is_plain =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '/' | ' ' | '|' | ',');
        match text {
            ".*" => return Ok(Test::Anything),
            ".+" => return Ok(Test::Something),
            _ if text.chars().all(is_plain) => {
                let mut values: Vec<Box<str>> = text.split('|').map(Box::from).collect();
                values.sort_unstable();
                values.dedup();
                return Ok(Test::OneOf(values.into()));
            }
            _ => {}
        }
        Ok(Test::Expression(Box::new(anchored_regex(text)?)))
    }
}

/// An expression as Prometheus has it (RE2), ready to run; it has to match all of a text. Groups keep their numbers.
pub fn anchored_regex(text: &str) -> Result<Regex, String> {
    if text.len() > EXPRESSION_MAX {
        return Err(format!("it has more than {EXPRESSION_MAX} bytes"));
    }
    let expression = RegexBuilder::new(&re2::anchored(text)?)
        .size_limit(COMPILED_MAX)
        .dfa_size_limit(COMPILED_MAX)
        .nest_limit(NESTED_MAX)
        .build();
    expression.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_string(),
        _ => "it is not valid".to_string(),
    })
}

#[cfg(test)]
mod tests;
