//! Expressions of node_exporter's world, asked of this machine's recording: each of the dashboard Node Exporter Full
//! has data, and each alert of node_exporter's mixin has its series, but where kymo or this machine lacks a metric,
//! which is named.

use std::fs;

use regex_lite::Regex;

use crate::prometheus_api::{Shown, escaped};

const DASHBOARD: &str =
    include_str!("../../crates/kernel/src/subsystem/expressions/node_exporter_full.txt");
const ALERTS: &str =
    include_str!("../../crates/kernel/src/subsystem/expressions/node_mixin_alerts.txt");
/// Metrics of the dashboard, those that kymo lacks with the reason behind a dash.
const NAMES: &str = include_str!("../../crates/kernel/src/subsystem/dashboard_names.txt");

/// Metrics of alerts that kymo lacks, by the beginning of their names, and why.
const NOT_OF_THE_KERNEL: &[(&str, &str)] = &[
    ("node_systemd_", "systemd is asked over D-Bus"),
    ("node_textfile_", "there is no folder of texts"),
];

/// Expressions that have no data of a machine like this one, by a part of their text, and why.
const EMPTY_HERE: &[(&str, &str)] = &[
    (
        "node_network_up{operstate",
        "node_network_up has no label operstate",
    ),
    (
        "node_network_speed_bytes",
        "an interface of a virtual machine states no speed",
    ),
    (
        "node_interrupts_total",
        "interrupts are not recorded by default",
    ),
    (
        "node_cpu_guest_seconds_total",
        "a machine without guests has no time in them",
    ),
];

/// Metrics that not every machine has, by the beginning of their names, and the file or folder without which there is
/// none.
const OF_SOME_MACHINES: &[(&str, &str)] = &[
    ("node_hwmon_", "/sys/class/hwmon/hwmon0"),
    (
        "node_cpu_scaling_",
        "/sys/devices/system/cpu/cpufreq/policy0",
    ),
    ("node_pressure_irq_", "/proc/pressure/irq"),
    ("node_pressure_", "/proc/pressure/cpu"),
    (
        "node_nf_conntrack_",
        "/proc/sys/net/netfilter/nf_conntrack_count",
    ),
    ("node_md_", "/sys/block/md0"),
    ("node_bonding_", "/sys/class/net/bonding_masters"),
    (
        "node_kernel_hung_",
        "/proc/sys/kernel/hung_task_detect_count",
    ),
];

/// Lines of a list, without those of its source.
fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// Metrics in an expression, each with its selector's matchers.
fn selectors(expression: &str) -> Vec<(String, String)> {
    let selector =
        Regex::new(r"\b((?:node|process)_[A-Za-z0-9_]+)(\{[^}]*\})?").expect("a pattern");
    let found = selector.captures_iter(expression).map(|found| {
        let part = |at| found.get(at).map_or("", |part| part.as_str()).to_string();
        (part(1), part(0))
    });
    found.collect()
}

/// Why this machine has no series of this metric; `None` if it should have some.
fn lacks(name: &str) -> Option<String> {
    let known = lines(NAMES).filter_map(|line| line.split_once(" - "));
    let known = known.filter(|(missing, _)| *missing == name);
    let of_kymo = NOT_OF_THE_KERNEL.iter().copied();
    let of_kymo = of_kymo.filter(|(start, _)| name.starts_with(start));
    if let Some((_, why)) = known.chain(of_kymo).next() {
        return Some(why.into());
    }
    let mut some = OF_SOME_MACHINES.iter();
    if let Some((_, path)) = some.find(|(start, _)| name.starts_with(start)) {
        return fs::metadata(path)
            .is_err()
            .then(|| format!("there is no {path}"));
    }
    let field = name.strip_prefix("node_memory_")?;
    let field = field.strip_suffix("_bytes").unwrap_or(field);
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let is_line = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        name.replace('(', "_").replace(')', "") == field
    };
    let has_line = meminfo.lines().any(is_line);
    (!has_line).then(|| format!("/proc/meminfo has no {field}"))
}

/// True of a machine that had more sockets than are read. Tests beside this one open some.
const MANY_SOCKETS: &str = "max_over_time((node_sockstat_TCP_inuse + node_sockstat_TCP_tw + node_sockstat_TCP6_inuse)[5m:1s]) > 1000";

/// True if the answer has a value.
fn has_data(shown: &Shown, expression: &str) -> bool {
    let data = shown.data(&format!("/api/v1/query?query={}", escaped(expression)));
    match data["resultType"].as_str() {
        Some("scalar") => data["result"][1] != "NaN",
        _ => data["result"]
            .as_array()
            .is_some_and(|series| !series.is_empty()),
    }
}

#[test]
fn node_exporter_full_has_data() {
    let shown = Shown::start("dashboard");
    let (mut with_data, mut unread, mut all, mut wrong) = (0, 0, 0, Vec::new());
    for template in lines(DASHBOARD) {
        all += 1;
        let expression = template.replace("instance=\"$node\"", "instance!=\"\"");
        let expression = expression.replace("\"$job\"", "\"node\"");
        let expression = expression.replace("$__rate_interval", "1m");
        if has_data(&shown, &expression) {
            with_data += 1;
            continue;
        }
        let empty = EMPTY_HERE.iter().find(|(part, _)| template.contains(part));
        let lacking = selectors(template).iter().find_map(|(name, _)| lacks(name));
        let lacking = lacking.or_else(|| Some(empty?.1.to_string()));
        let is_of_sockets = template.contains("node_tcp_connection_states");
        if is_of_sockets && has_data(&shown, MANY_SOCKETS) {
            eprintln!("no data, states of more than 1,000 sockets are not read: {template}");
            unread += 1;
            continue;
        }
        match lacking {
            Some(why) => eprintln!("no data, {why}: {template}"),
            None => wrong.push(template),
        }
    }
    eprintln!("{with_data} of {all} expressions have data");
    assert!(wrong.is_empty(), "no data: {wrong:#?}");
    assert_eq!(all, 286);
    assert!(with_data + unread >= 240, "only {with_data} have data");
}

#[test]
fn alerts_of_the_mixin_have_their_series() {
    let shown = Shown::start("alerts");
    let (mut whole, mut wrong) = (0, Vec::new());
    let alerts: Vec<(&str, &str)> = lines(ALERTS)
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert_eq!(alerts.len(), 26);
    for (alert, expression) in alerts {
        // An alert that fires on no machine at rest is evaluated all the same.
        shown.data(&format!("/api/v1/query?query={}", escaped(expression)));
        let selectors = selectors(expression);
        assert!(!selectors.is_empty(), "{alert}");
        let missing: Vec<_> = selectors
            .iter()
            .filter(|(_, selector)| !has_data(&shown, selector))
            .collect();
        whole += usize::from(missing.is_empty());
        for (name, selector) in missing {
            match lacks(name) {
                Some(why) => eprintln!("{alert}: no {name}: {why}"),
                None => wrong.push(format!("{alert}: {selector}")),
            }
        }
    }
    eprintln!("{whole} of 26 alerts have all their series");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(whole >= 19, "only {whole} alerts have their series");
}
