//! Expressions of node_exporter's world, compared with the tables: the dashboard Node Exporter Full and the alerts of
//! node_exporter's mixin. An expression has data if kymo has each of its metrics, with the labels that its selectors
//! ask for, and the machine has their files.

use super::ALL;
use super::exposed::{Exposed, Family, MetricLabel};

const DASHBOARD: &str = include_str!("expressions/node_exporter_full.txt");
const ALERTS: &str = include_str!("expressions/node_mixin_alerts.txt");
/// Metrics of the dashboard, those that kymo lacks with the reason behind a dash.
const NAMES: &str = include_str!("dashboard_names.txt");

/// Labels of every series of this machine.
const OF_ALL: [&str; 2] = ["instance", "job"];

/// Metrics of alerts that kymo lacks, and why.
const NOT_OF_THE_KERNEL: [(&str, &str); 3] = [
    ("node_systemd_unit_state", "systemd is asked over D-Bus"),
    (
        "node_systemd_service_restart_total",
        "systemd is asked over D-Bus",
    ),
    ("node_textfile_scrape_error", "there is no folder of texts"),
];

/// Labels that a metric of the dashboard has in other versions of node_exporter alone.
const OTHER_LABELS: [(&str, &str); 1] = [("node_network_up", "operstate")];

/// Lines of a list, without those of its source.
fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// Metrics in an expression, each with the labels that its selector asks for.
fn selectors(expression: &str) -> Vec<(&str, Vec<&str>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(is_word) {
        let (_, word) = rest.split_at(start);
        let (word, after) = word.split_at(word.find(|c| !is_word(c)).unwrap_or(word.len()));
        rest = after;
        // Words in quotes are values of labels; no selector here has a quoted brace.
        let matchers = match after
            .strip_prefix('{')
            .and_then(|inner| inner.split_once('}'))
        {
            Some((inner, after)) => {
                rest = after;
                inner
            }
            None => "",
        };
        if ["node_", "process_"]
            .iter()
            .any(|start| word.starts_with(start))
        {
            let labels = matchers.split(',').filter_map(|part| {
                let (label, _) = part.split_once(['=', '!'])?;
                Some(label.trim())
            });
            found.push((word, labels.collect()));
        }
    }
    found
}

/// The labels of a metric; `None` if kymo does not have it.
fn labels_of(name: &str) -> Option<Vec<&'static str>> {
    let of = |family: &Family, labels: &[MetricLabel]| {
        let own = labels.iter().map(|label| label.name);
        own.chain(Some(family.parts.label())).collect()
    };
    ALL.iter().find_map(|subsystem| {
        let Exposed { machine, each } = &subsystem.exposed;
        let each = each.iter().map(|each| (each.families, each.labels));
        each.chain(Some((*machine, &[][..])))
            .find_map(|(families, labels)| {
                let family = families.iter().find(|family| family.name == name)?;
                Some(of(family, labels))
            })
    })
}

/// Why kymo has no series for this selector.
fn lacks(name: &str, required: &[&str]) -> Option<String> {
    let Some(labels) = labels_of(name) else {
        let known = lines(NAMES).filter_map(|line| line.split_once(" - "));
        let mut known = known.chain(NOT_OF_THE_KERNEL);
        let why = known.find(|(missing, _)| *missing == name);
        let (_, why) = why.unwrap_or_else(|| panic!("{name} is neither there nor on a list"));
        return Some(why.into());
    };
    let missing = required
        .iter()
        .find(|label| !labels.contains(label) && !OF_ALL.contains(label))?;
    let is_known = OTHER_LABELS.contains(&(name, missing));
    assert!(is_known, "{name} has no label {missing}");
    Some(format!("there is no label {missing}"))
}

fn first_lack(expression: &str) -> Option<String> {
    let selectors = selectors(expression);
    assert!(!selectors.is_empty(), "{expression}");
    selectors
        .iter()
        .find_map(|(name, labels)| lacks(name, labels))
}

#[test]
fn selectors_are_found() {
    let text = "sum by (mode) (rate(node_a{x=\"1\", y!~\"node_b\"}[5m])) / on(instance) process_c > bool 0";
    assert_eq!(
        selectors(text),
        [("node_a", vec!["x", "y"]), ("process_c", vec![])]
    );
}

/// node_exporter 1.5 has data for 234 expressions of the dashboard.
#[test]
fn expressions_of_the_dashboard() {
    let all: Vec<&str> = lines(DASHBOARD).collect();
    let there = all
        .iter()
        .filter(|expression| first_lack(expression).is_none());
    assert_eq!((there.count(), all.len()), (262, 286));
}

#[test]
fn alerts_of_the_mixin() {
    let alerts = lines(ALERTS).filter_map(|line| line.split_once(' '));
    let alerts: Vec<(&str, Option<String>)> = alerts
        .map(|(alert, expression)| (alert, first_lack(expression)))
        .collect();
    assert_eq!(alerts.len(), 26);
    let lacking: Vec<&str> = alerts
        .iter()
        .filter_map(|(alert, why)| why.as_ref().map(|_| *alert))
        .collect();
    let expect = [
        "NodeTextFileCollectorScrapeError",
        "NodeSystemdServiceFailed",
        "NodeSystemdServiceCrashlooping",
    ];
    assert_eq!(lacking, expect);
}
