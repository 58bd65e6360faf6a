//! Rules that change labels of samples or drop samples, as Prometheus' `metric_relabel_configs`.

use std::collections::BTreeMap;

use kymo_base::label_set::is_name;
use kymo_series::anchored_regex;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

/// Rules of a job at most.
const RULES_MAX: usize = 200;
/// Bytes that a rule may make of one label.
const VALUE_MAX: usize = 16_384;

/// A rule as the configuration has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RelabelRule {
    /// Labels whose values are compared, joined by the separator.
    pub source_labels: Vec<String>,
    /// Text between these values.
    pub separator: String,
    /// Expression that has to match all of it.
    pub regex: String,
    /// Label that is set.
    pub target_label: String,
    /// Value of this label, with `$1` for groups of the expression.
    pub replacement: String,
    /// Effect of the rule.
    pub action: RelabelAction,
}

/// Effect of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelabelAction {
    /// Sets a label if the expression matches.
    #[default]
    Replace,
    /// Drops samples that the expression does not match.
    Keep,
    /// Drops samples that the expression matches.
    Drop,
    /// Removes labels whose names the expression matches.
    LabelDrop,
    /// Removes labels whose names the expression does not match.
    LabelKeep,
}

impl RelabelAction {
    /// The word in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            RelabelAction::Replace => "replace",
            RelabelAction::Keep => "keep",
            RelabelAction::Drop => "drop",
            RelabelAction::LabelDrop => "labeldrop",
            RelabelAction::LabelKeep => "labelkeep",
        }
    }
}

impl Default for RelabelRule {
    fn default() -> RelabelRule {
        RelabelRule {
            source_labels: Vec::new(),
            separator: ";".into(),
            regex: "(.*)".into(),
            target_label: String::new(),
            replacement: "$1".into(),
            action: RelabelAction::Replace,
        }
    }
}

/// Labels of a sample.
pub(crate) type LabelMap = BTreeMap<String, String>;

/// Outcome of all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relabeled {
    /// The sample stays.
    Kept,
    /// The sample is dropped.
    Dropped,
}

/// Rules, ready to run.
#[derive(Clone, Debug, Default)]
pub struct Relabeling {
    rules: Vec<(RelabelRule, Regex)>,
}

impl Relabeling {
    /// Checks and compiles rules.
    pub fn new(rules: &[RelabelRule]) -> Result<Relabeling, String> {
        if rules.len() > RULES_MAX {
            return Err(format!("there are more than {RULES_MAX} rules"));
        }
        let compiled = rules.iter().map(|rule| {
            let regex = anchored_regex(&rule.regex)
                .map_err(|why| format!("regex {:?} cannot be used: {why}", rule.regex))?;
            let sets = rule.action == RelabelAction::Replace;
            if sets && rule.target_label.is_empty() {
                return Err("a rule that replaces needs target_label".to_string());
            }
            Ok((rule.clone(), regex))
        });
        Ok(Relabeling {
            rules: compiled.collect::<Result<_, _>>()?,
        })
    }

    /// Applies all rules in their order.
    pub(crate) fn apply(&self, labels: &mut LabelMap) -> Relabeled {
        for (rule, regex) in &self.rules {
            let matches = |text: &str| regex.is_match(text.as_bytes());
            match rule.action {
                RelabelAction::Replace => replace(rule, regex, labels),
                RelabelAction::Keep if !matches(&source(rule, labels)) => {
                    return Relabeled::Dropped;
                }
                RelabelAction::Drop if matches(&source(rule, labels)) => {
                    return Relabeled::Dropped;
                }
                RelabelAction::Keep | RelabelAction::Drop => {}
                RelabelAction::LabelDrop => labels.retain(|name, _| !matches(name)),
                RelabelAction::LabelKeep => labels.retain(|name, _| matches(name)),
            }
        }
        Relabeled::Kept
    }
}

fn source(rule: &RelabelRule, labels: &LabelMap) -> String {
    let values = rule.source_labels.iter();
    let values = values.map(|name| labels.get(name).map_or("", String::as_str));
    values.collect::<Vec<_>>().join(&rule.separator)
}

/// Sets a label. A name that is none, and a value that is too long, leave all as it is.
fn replace(rule: &RelabelRule, regex: &Regex, labels: &mut LabelMap) {
    let source = source(rule, labels);
    let Some(groups) = regex.captures(source.as_bytes()) else {
        return;
    };
    let expanded = |template: &str| {
        let mut out = Vec::new();
        groups.expand(template.as_bytes(), &mut out);
        String::from_utf8(out).ok()
    };
    let Some(name) = expanded(&rule.target_label).filter(|name| is_name(name.as_bytes())) else {
        return;
    };
    match expanded(&rule.replacement) {
        Some(value) if value.is_empty() => drop(labels.remove(&name)),
        Some(value) if value.len() <= VALUE_MAX => drop(labels.insert(name, value)),
        Some(_) | None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(
        source: &[&str],
        regex: &str,
        target: &str,
        replacement: &str,
        action: RelabelAction,
    ) -> RelabelRule {
        RelabelRule {
            source_labels: source.iter().map(|&name| name.into()).collect(),
            regex: regex.into(),
            target_label: target.into(),
            replacement: replacement.into(),
            action,
            ..RelabelRule::default()
        }
    }

    /// The cases of docs/guides/scrape.md and of Prometheus' rules for empty texts and names.
    #[test]
    fn rules_are_prometheus() {
        use RelabelAction::{Drop, Keep, LabelDrop, LabelKeep, Replace};
        let rules = |all: &[RelabelRule]| Relabeling::new(all).unwrap();
        for (all, expected) in [
            (
                vec![rule(&["__name__"], "up", "", "$1", Keep)],
                "__name__=up a=foo b=bar",
            ),
            (vec![rule(&["__name__"], "u", "", "$1", Keep)], "-"),
            (vec![rule(&["a", "b"], "foo;bar", "", "$1", Drop)], "-"),
            (vec![rule(&["a", "c"], "foo;", "", "$1", Drop)], "-"),
            (
                vec![rule(&["a"], "f(.*)", "d", "x$1", Replace)],
                "__name__=up a=foo b=bar d=xoo",
            ),
            (
                vec![rule(&["a"], "f(.*)", "d", "${1}_y", Replace)],
                "__name__=up a=foo b=bar d=oo_y",
            ),
            (
                vec![rule(&["a"], "g(.*)", "d", "x", Replace)],
                "__name__=up a=foo b=bar",
            ),
            (
                vec![rule(&["a"], "(?P<x>.*)", "e_$x", "1", Replace)],
                "__name__=up a=foo b=bar e_foo=1",
            ),
            (
                vec![rule(&["a"], ".*", "a", "", Replace)],
                "__name__=up b=bar",
            ),
            (
                vec![rule(&[], ".*", "z-", "1", Replace)],
                "__name__=up a=foo b=bar",
            ),
            (vec![rule(&[], "[ab]", "", "", LabelDrop)], "__name__=up"),
            (
                vec![rule(&[], "__name__|a", "", "", LabelKeep)],
                "__name__=up a=foo",
            ),
            (
                vec![
                    rule(&["b"], "(.*)", "a", "$1", Replace),
                    rule(&["a"], "bar", "", "", Keep),
                ],
                "__name__=up a=bar b=bar",
            ),
        ] {
            let given = [("__name__", "up"), ("a", "foo"), ("b", "bar")];
            let mut labels: LabelMap = given.map(|(n, v)| (n.into(), v.into())).into();
            let outcome = rules(&all).apply(&mut labels);
            let shown = labels.iter().map(|(name, value)| format!("{name}={value}"));
            let shown = match outcome {
                Relabeled::Kept => shown.collect::<Vec<_>>().join(" "),
                Relabeled::Dropped => "-".into(),
            };
            assert_eq!(shown, expected, "{all:?}");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        for (wrong, why) in [
            (
                rule(&[], "(", "a", "", RelabelAction::Replace),
                "regex \"(\"",
            ),
            (
                rule(&[], ".*", "", "", RelabelAction::Replace),
                "needs target_label",
            ),
        ] {
            let error = Relabeling::new(&[wrong]).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
        let many = vec![rule(&[], ".*", "a", "", RelabelAction::Replace); RULES_MAX + 1];
        assert!(Relabeling::new(&many).is_err());
    }
}
