//! Prometheus' text format 0.0.4: the newest numbers under node_exporter's names, and kymo's own costs.
//!
//! The subsystems' tables (`Subsystem::exposed`) declare the metrics with types and units, and [`OWN`] declares kymo's own. A
//! metric's samples stand together behind its help and type. Missing numbers are left out. Samples have no timestamps, because
//! they are current; a metric of its own tells their age.

use std::collections::HashSet;
use std::io::Write as _;

use kymo_base::context::Context;
use kymo_base::field::Field;
use kymo_base::name::DisplayName;
use kymo_base::reading::{Reading, Row};
use kymo_kernel::exposition::{ExposedInstance, Floor, MetricGroup, SamplePart};
use kymo_kernel::subsystem::Subsystem;
use kymo_kernel::subsystem::exposed::{Family, Kind, MetricLabel};

/// The `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// kymo's own costs, and the state of its recording. NaN: the value is unknown, and left out.
#[derive(Clone, Copy, Debug)]
pub struct Cost<'a> {
    /// Version of kymo; empty if unknown.
    pub version: &'a str,
    /// The processes of kymo.
    pub processes: &'a [Process<'a>],
    /// Duration of the last read of each source in seconds, with the path of the source (`proc/stat`).
    pub sources: &'a [(&'a str, f64)],
    /// Samples that the recorder has taken since its start.
    pub samples: f64,
    /// Samples that the recorder has missed since its start.
    pub missed: f64,
    /// Samples taken but not recorded since then, because the disk was too slow.
    pub dropped: f64,
    /// Size of the recording on disk, in bytes.
    pub ring_bytes: f64,
    /// Limit of this size, in bytes.
    pub ring_limit_bytes: f64,
    /// Time of the oldest sample, in seconds since 1970.
    pub oldest: f64,
    /// Time before which nothing is stored, of this machine or of others, in seconds since 1970.
    pub lowest: f64,
    /// Time of the newest sample, in seconds since 1970.
    pub newest: f64,
    /// Age of the newest backup, in seconds.
    pub backup_age: f64,
    /// Backups that were made.
    pub backups: f64,
    /// Backups that failed.
    pub backup_failures: f64,
    /// Bytes that were sent for backups.
    pub backup_sent_bytes: f64,
    /// Files that the newest backup does not have.
    pub backup_left_out: f64,
    /// Time spent on this answer, in seconds.
    pub scrape_seconds: f64,
}

/// One of kymo's processes.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// Role of the process, unique to it: `recorder`, `hub`.
    pub name: &'a str,
    /// CPU time since its start, in seconds.
    pub cpu_seconds: f64,
    /// RssAnon + RssShmem, in bytes.
    pub memory_bytes: f64,
}

impl Cost<'_> {
    /// All values unknown.
    pub const UNKNOWN: Cost<'static> = Cost {
        version: "",
        processes: &[],
        sources: &[],
        samples: f64::NAN,
        missed: f64::NAN,
        dropped: f64::NAN,
        ring_bytes: f64::NAN,
        ring_limit_bytes: f64::NAN,
        oldest: f64::NAN,
        lowest: f64::NAN,
        newest: f64::NAN,
        backup_age: f64::NAN,
        backups: f64::NAN,
        backup_failures: f64::NAN,
        backup_sent_bytes: f64::NAN,
        backup_left_out: f64::NAN,
        scrape_seconds: f64::NAN,
    };
}

/// A metric about kymo itself.
pub struct Own {
    /// Name of the metric.
    pub name: &'static str,
    /// Type of the metric.
    pub kind: Kind,
    /// Label that distinguishes the samples; empty if there is a single sample.
    pub label: &'static str,
    /// Help text.
    pub help: &'static str,
    values: Values,
}

/// Source of a metric's values.
enum Values {
    One(fn(&Cost) -> f64),
    OfProcesses(fn(&Process) -> f64),
    OfSources,
    Version,
}

const fn own(
    name: &'static str,
    kind: Kind,
    label: &'static str,
    help: &'static str,
    values: Values,
) -> Own {
    Own {
        name,
        kind,
        label,
        help,
        values,
    }
}

/// All metrics about kymo itself.
pub const OWN: &[Own] = &[
    own(
        "kymo_build_info",
        Kind::Gauge,
        "version",
        "Always 1; which kymo answers",
        Values::Version,
    ),
    own(
        "kymo_cpu_seconds_total",
        Kind::Counter,
        "process",
        "CPU time of kymo's own processes",
        Values::OfProcesses(|process| process.cpu_seconds),
    ),
    own(
        "kymo_memory_bytes",
        Kind::Gauge,
        "process",
        "Memory of kymo's own processes, anonymous and shared",
        Values::OfProcesses(|process| process.memory_bytes),
    ),
    own(
        "kymo_source_read_seconds",
        Kind::Gauge,
        "source",
        "Time the last read of a kernel file took",
        Values::OfSources,
    ),
    own(
        "kymo_samples_total",
        Kind::Counter,
        "",
        "Samples taken since the recorder started",
        Values::One(|cost| cost.samples),
    ),
    own(
        "kymo_samples_missed_total",
        Kind::Counter,
        "",
        "Samples not taken in time since the recorder started",
        Values::One(|cost| cost.missed),
    ),
    own(
        "kymo_samples_dropped_total",
        Kind::Counter,
        "",
        "Samples taken but not recorded since the recorder started",
        Values::One(|cost| cost.dropped),
    ),
    own(
        "kymo_last_sample_timestamp_seconds",
        Kind::Gauge,
        "",
        "When the newest sample is of, since 1970",
        Values::One(|cost| cost.newest),
    ),
    own(
        "kymo_ring_oldest_timestamp_seconds",
        Kind::Gauge,
        "",
        "When the oldest sample that is held is of, since 1970",
        Values::One(|cost| cost.oldest),
    ),
    own(
        "prometheus_tsdb_lowest_timestamp_seconds",
        Kind::Gauge,
        "",
        "Before this there is no sample; 0: the store may have older ones (for engines that ask kymo as they ask Prometheus)",
        Values::One(|cost| cost.lowest),
    ),
    own(
        "kymo_ring_bytes",
        Kind::Gauge,
        "",
        "Bytes the recording takes on disk",
        Values::One(|cost| cost.ring_bytes),
    ),
    own(
        "kymo_ring_limit_bytes",
        Kind::Gauge,
        "",
        "Bytes the recording may take on disk",
        Values::One(|cost| cost.ring_limit_bytes),
    ),
    own(
        "kymo_backup_age_seconds",
        Kind::Gauge,
        "",
        "Age of the newest backup of [backup]",
        Values::One(|cost| cost.backup_age),
    ),
    own(
        "kymo_backups_total",
        Kind::Counter,
        "",
        "Backups of [backup] that were made",
        Values::One(|cost| cost.backups),
    ),
    own(
        "kymo_backup_failures_total",
        Kind::Counter,
        "",
        "Backups of [backup] that failed",
        Values::One(|cost| cost.backup_failures),
    ),
    own(
        "kymo_backup_sent_bytes_total",
        Kind::Counter,
        "",
        "Bytes sent for backups of [backup]",
        Values::One(|cost| cost.backup_sent_bytes),
    ),
    own(
        "kymo_backup_left_out_files",
        Kind::Gauge,
        "",
        "Files that the newest backup of [backup] does not have, since they could not be read",
        Values::One(|cost| cost.backup_left_out),
    ),
    own(
        "kymo_scrape_duration_seconds",
        Kind::Gauge,
        "",
        "Time it took to make this answer",
        Values::One(|cost| cost.scrape_seconds),
    ),
];

/// Appends the exposition of the readings and of the cost. Each subsystem may have one reading. `floor` must be the same
/// object for the lifetime of the program.
pub fn write<'a>(
    out: &mut Vec<u8>,
    floor: &mut Floor,
    readings: impl IntoIterator<Item = (&'static Subsystem, &'a Reading)>,
    context: &Context,
    cost: &Cost,
) {
    for (subsystem, reading) in readings {
        for group in floor.groups(subsystem, reading, context) {
            put_group(out, &group, (context, cost.newest));
        }
    }
    for metric in OWN {
        put_own(out, metric, cost);
    }
}

fn put_group(out: &mut Vec<u8>, group: &MetricGroup, at: (&Context, f64)) {
    let mut seen = HashSet::new();
    let instances = group.instances.iter();
    let instances = instances.map(|instance| (labels(group.labels, &instance.row), instance));
    // Two names may look the same once escaped, and a series may occur only once.
    let instances = instances.filter(|(labels, _)| seen.insert(labels.clone()));
    let instances: Vec<(String, &ExposedInstance)> = instances.collect();
    for family in group.families {
        let key = family.parts.label();
        let mut metric = Metric::of(family, group.fields);
        for (labels, instance) in &instances {
            instance.samples(family, group.fields, at, &mut |part, value| {
                let part = match part {
                    SamplePart::Whole => String::new(),
                    part => label(key, part.text().as_bytes()),
                };
                metric.put(out, labels, &part, value);
            });
        }
    }
}

/// The labels of a row, formatted.
fn labels(labels: &[MetricLabel], row: &Row) -> String {
    let mut value = Vec::new();
    let written = labels.iter().filter_map(|each| {
        value.clear();
        (each.put)(row, &mut value);
        let is_lacking = each.may_lack && value.is_empty();
        (!is_lacking).then(|| label(each.name, &value))
    });
    written.collect::<Vec<_>>().join(",")
}

fn put_own(out: &mut Vec<u8>, own: &Own, cost: &Cost) {
    let mut metric = Metric {
        name: own.name,
        kind: own.kind,
        help: own.help,
        is_begun: false,
    };
    match own.values {
        Values::One(value) => metric.put(out, "", "", value(cost)),
        Values::OfProcesses(value) => {
            for process in cost.processes {
                metric.put(
                    out,
                    &label(own.label, process.name.as_bytes()),
                    "",
                    value(process),
                );
            }
        }
        Values::OfSources => {
            for (source, seconds) in cost.sources {
                metric.put(out, &label(own.label, source.as_bytes()), "", *seconds);
            }
        }
        Values::Version => {
            if !cost.version.is_empty() {
                metric.put(out, &label(own.label, cost.version.as_bytes()), "", 1.0);
            }
        }
    }
}

/// Appends a metric with its name, kind and help, and a sample for each value of one label.
pub fn put_metric<'a>(
    out: &mut Vec<u8>,
    (name, kind, help): (&'static str, Kind, &'static str),
    key: &str,
    samples: impl Iterator<Item = (&'a str, f64)>,
) {
    let mut metric = Metric {
        name,
        kind,
        help,
        is_begun: false,
    };
    for (instance, value) in samples {
        metric.put(out, &label(key, instance.as_bytes()), "", value);
    }
}

/// A metric while it is written: help and type precede its first sample, and are left out if there is none.
struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    is_begun: bool,
}

impl Metric {
    fn of(family: &Family, fields: &'static [Field]) -> Metric {
        Metric {
            name: family.name,
            kind: family.kind,
            help: family.meaning(fields),
            is_begun: false,
        }
    }

    /// Appends a sample; `first` and `second` are formatted labels, or empty.
    fn put(&mut self, out: &mut Vec<u8>, first: &str, second: &str, value: f64) {
        if value.is_nan() {
            return;
        }
        let Metric {
            name, kind, help, ..
        } = *self;
        // Writes to a Vec do not fail.
        if !self.is_begun {
            self.is_begun = true;
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {}\n", kind.word());
        }
        let _ = match (first, second) {
            ("", "") => write!(out, "{name} "),
            ("", one) | (one, "") => write!(out, "{name}{{{one}}} "),
            (first, second) => write!(out, "{name}{{{first},{second}}} "),
        };
        put_value(out, value);
        out.push(b'\n');
    }
}

/// Appends the shortest decimal that parses to the same number.
fn put_value(out: &mut Vec<u8>, value: f64) {
    let _ = if value.is_infinite() {
        write!(out, "{}Inf", if value > 0.0 { '+' } else { '-' })
    } else {
        write!(out, "{value}")
    };
}

/// `key="name"`, with the name made safe and escaped.
fn label(key: &str, name: &[u8]) -> String {
    // `DisplayName` has escaped control characters; the format requires these two in addition.
    let name = DisplayName(name);
    let text = name.text();
    match text.contains(['\\', '"']) {
        false => format!("{key}=\"{text}\""),
        true => format!(
            "{key}=\"{}\"",
            text.replace('\\', "\\\\").replace('"', "\\\"")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_base::reading::MISSING;
    use kymo_kernel::subsystem::{ALL, cpu::CPU, disk::DISK, memory::MEMORY, net::NET};
    use proptest::prelude::*;

    fn row(name: &[u8], values: Vec<u64>) -> Row {
        Row {
            name: name.to_vec(),
            values,
            ..Row::default()
        }
    }

    fn text(subsystem: &'static Subsystem, reading: &Reading, cost: &Cost) -> String {
        let mut out = Vec::new();
        let floor = &mut Floor::default();
        write(
            &mut out,
            floor,
            [(subsystem, reading)],
            &Context::default(),
            cost,
        );
        String::from_utf8(out).expect("UTF-8")
    }

    fn series(text: &str, of: &str) -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with(of));
        lines.map(str::to_string).collect()
    }

    #[test]
    fn a_metric_stands_together() {
        let mut globals = vec![MISSING; CPU.globals.len()];
        globals[10] = 12;
        globals[15] = 7;
        let reading = Reading {
            globals,
            rows: vec![
                row(b"0", vec![1, 2, 3, 677_212, 5, 6, 7, 8, 9, MISSING]),
                row(b"1", vec![MISSING, MISSING, MISSING, 1]),
            ],
        };
        let expect = "\
# HELP node_intr_total Interrupts served
# TYPE node_intr_total counter
node_intr_total 12
# HELP node_load1 Load average over 1 minute
# TYPE node_load1 gauge
node_load1 0.07
# HELP node_cpu_seconds_total Time of each CPU by what it did
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 0.01
node_cpu_seconds_total{cpu=\"0\",mode=\"nice\"} 0.02
node_cpu_seconds_total{cpu=\"0\",mode=\"system\"} 0.03
node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 6772.12
node_cpu_seconds_total{cpu=\"0\",mode=\"iowait\"} 0.05
node_cpu_seconds_total{cpu=\"0\",mode=\"irq\"} 0.06
node_cpu_seconds_total{cpu=\"0\",mode=\"softirq\"} 0.07
node_cpu_seconds_total{cpu=\"0\",mode=\"steal\"} 0.08
node_cpu_seconds_total{cpu=\"1\",mode=\"idle\"} 0.01
# HELP node_cpu_guest_seconds_total Time of each CPU in guests, part of user and nice
# TYPE node_cpu_guest_seconds_total counter
node_cpu_guest_seconds_total{cpu=\"0\",mode=\"user\"} 0.09
";
        assert_eq!(text(&CPU, &reading, &Cost::UNKNOWN), expect);
    }

    #[test]
    fn what_kymo_costs() {
        let cost = Cost {
            version: "0.1.0",
            processes: &[
                Process {
                    name: "recorder",
                    cpu_seconds: 4.25,
                    memory_bytes: 6_000_000.0,
                },
                Process {
                    name: "hub",
                    cpu_seconds: 0.5,
                    memory_bytes: f64::NAN,
                },
            ],
            sources: &[("proc/stat", 0.000_012)],
            missed: 0.0,
            newest: 1_795_300_040.123,
            ..Cost::UNKNOWN
        };
        let expect = "\
# HELP kymo_build_info Always 1; which kymo answers
# TYPE kymo_build_info gauge
kymo_build_info{version=\"0.1.0\"} 1
# HELP kymo_cpu_seconds_total CPU time of kymo's own processes
# TYPE kymo_cpu_seconds_total counter
kymo_cpu_seconds_total{process=\"recorder\"} 4.25
kymo_cpu_seconds_total{process=\"hub\"} 0.5
# HELP kymo_memory_bytes Memory of kymo's own processes, anonymous and shared
# TYPE kymo_memory_bytes gauge
kymo_memory_bytes{process=\"recorder\"} 6000000
# HELP kymo_source_read_seconds Time the last read of a kernel file took
# TYPE kymo_source_read_seconds gauge
kymo_source_read_seconds{source=\"proc/stat\"} 0.000012
# HELP kymo_samples_missed_total Samples not taken in time since the recorder started
# TYPE kymo_samples_missed_total counter
kymo_samples_missed_total 0
# HELP kymo_last_sample_timestamp_seconds When the newest sample is of, since 1970
# TYPE kymo_last_sample_timestamp_seconds gauge
kymo_last_sample_timestamp_seconds 1795300040.123
";
        assert_eq!(text(&MEMORY, &Reading::default(), &cost), expect);
        assert_eq!(text(&MEMORY, &Reading::default(), &Cost::UNKNOWN), "");
    }

    #[test]
    fn names_from_outside() {
        for (name, shown) in [
            (&b"eth0"[..], r"eth0"),
            (b"a\"b", r#"a\"b"#),
            (b"a\\", r"a\\"),
            (b"a\nb", r"a\\x0ab"),
            (b"\xff", r"\\xff"),
            (b"\x1b[31m", r"\\x1b[31m"),
            (b"} 1", r"} 1"),
            (
                "caf\u{e9}\u{202e}".as_bytes(),
                "caf\u{e9}\\\\xe2\\\\x80\\\\xae",
            ),
            (b"", ""),
        ] {
            let reading = Reading {
                globals: vec![],
                rows: vec![row(name, vec![5])],
            };
            let line = format!("node_network_receive_bytes_total{{device=\"{shown}\"}} 5");
            let text = text(&NET, &reading, &Cost::UNKNOWN);
            assert_eq!(series(&text, "node_"), [line], "{name:?}");
        }
    }

    /// One interface is called `\xff`; the name of another one is a byte that is escaped as `\xff`.
    #[test]
    fn a_series_is_there_but_once() {
        let reading = Reading {
            globals: vec![],
            rows: vec![
                row(b"\xff", vec![1]),
                row(b"\\xff", vec![2]),
                row(b"b", vec![3]),
            ],
        };
        let text = text(&NET, &reading, &Cost::UNKNOWN);
        let values: Vec<_> = series(&text, "node_")
            .iter()
            .map(|l| l[l.len() - 1..].to_string())
            .collect();
        assert_eq!(values, ["1", "3"]);
    }

    /// With 100 ticks per second; CPU 1 appears in the last two only.
    #[test]
    fn idle_does_not_step_back() {
        let mut floor = Floor::default();
        for (idle, shown) in [
            (&[1000][..], &["10"][..]),
            (&[999], &["10"]),
            (&[MISSING], &[]),
            (&[998], &["10"]),
            (&[1001], &["10.01"]),
            (&[702], &["10.01"]),
            // A fall of three seconds is too much for jitter.
            (&[701, 5], &["7.01", "0.05"]),
            (&[700, 4], &["7.01", "0.05"]),
        ] {
            let cpus = ["0", "1"].iter().zip(idle);
            let rows =
                cpus.map(|(name, &idle)| row(name.as_bytes(), vec![9, MISSING, MISSING, idle]));
            let reading = Reading {
                globals: vec![],
                rows: rows.collect(),
            };
            let mut out = Vec::new();
            write(
                &mut out,
                &mut floor,
                [(&CPU, &reading)],
                &Context::default(),
                &Cost::UNKNOWN,
            );
            let text = String::from_utf8(out).expect("UTF-8");
            let lines = series(&text, "node_");
            let lines = lines.iter().filter(|line| line.contains("idle"));
            let values: Vec<_> = lines.filter_map(|line| line.rsplit(' ').next()).collect();
            assert_eq!(values, shown, "{idle:?}");
        }
    }

    #[test]
    fn partitions_are_left_out() {
        let rows = ["sda", "sda1", "loop0", "dm-0"];
        let reading = Reading {
            globals: vec![],
            rows: rows.map(|name| row(name.as_bytes(), vec![1])).to_vec(),
        };
        let text = text(&DISK, &reading, &Cost::UNKNOWN);
        assert_eq!(
            series(&text, "node_"),
            [
                "node_disk_reads_completed_total{device=\"sda\"} 1",
                "node_disk_reads_completed_total{device=\"dm-0\"} 1"
            ]
        );
    }

    #[test]
    fn values() {
        for (value, shown) in [
            (0.0, "0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e21, "1000000000000000000000"),
            (-2.5, "-2.5"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (5e-324, &format!("0.{}5", "0".repeat(323))),
        ] {
            let mut out = Vec::new();
            put_value(&mut out, value);
            assert_eq!(String::from_utf8_lossy(&out), shown);
            let back: f64 = shown.parse().expect("a number");
            assert_eq!(back.to_bits(), value.to_bits());
        }
    }

    /// Splits a label's value off at its closing quote, and returns the rest of the line.
    fn quoted(text: &str) -> Option<&str> {
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Some(&text[at + 1..]),
                '\\' if !matches!(chars.next()?.1, '\\' | '"' | 'n') => return None,
                '\\' => {}
                c if c.is_control() => return None,
                _ => {}
            }
        }
        None
    }

    /// Checks the rules of Prometheus' parser and of promtool.
    fn check(text: &str) -> Result<(), String> {
        let (mut families, mut series) = (HashSet::new(), HashSet::new());
        let mut family = "";
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                family = help.split(' ').next().unwrap_or_default();
                let begun = families.insert(family);
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
                let kind = kind.and_then(|kind| kind.strip_prefix(family));
                let known = matches!(kind, Some(" counter" | " gauge" | " untyped"));
                if !begun || !known {
                    return Err(line.into());
                }
                continue;
            }
            let mut rest = line.strip_prefix(family).ok_or(line)?;
            let begun = rest.starts_with('{');
            while let Some(label) = rest.strip_prefix(['{', ',']) {
                let (key, value) = label.split_once("=\"").ok_or(line)?;
                if !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
                    return Err(line.into());
                }
                rest = quoted(value).ok_or(line)?;
            }
            let rest = rest
                .strip_prefix(if begun { "} " } else { " " })
                .ok_or(line)?;
            rest.parse::<f64>().map_err(|_| line)?;
            if !series.insert(&line[..line.len() - rest.len()]) {
                return Err(format!("twice: {line}"));
            }
        }
        Ok(())
    }

    proptest! {
        /// Prometheus can parse the text for any names and numbers.
        #[test]
        fn any_names_and_numbers_can_be_read(
            names in prop::collection::vec(prop_oneof![
                any::<Vec<u8>>(),
                "[\\\\\"\n{},=\u{0}-\u{10}a\u{e9}\u{202e}]{0,6}".prop_map(String::into_bytes),
            ], 0..6),
            numbers: Vec<u64>,
            floats: [f64; 3],
        ) {
            let name = |n: usize| names.get(n).cloned().unwrap_or_default();
            let reading = Reading {
                globals: numbers.clone(),
                rows: names.iter().map(|name| row(name, numbers.clone())).collect(),
            };
            let text_of = |n: usize| String::from_utf8_lossy(&name(n)).into_owned();
            let (process, source) = (text_of(0), text_of(1));
            let cost = Cost {
                version: &process,
                processes: &[Process { name: &source, cpu_seconds: floats[0], memory_bytes: floats[1] }],
                sources: &[(&source, floats[2])],
                ..Cost::UNKNOWN
            };
            let mut out = b"".to_vec();
            let floor = &mut Floor::default();
            write(&mut out, floor, ALL.iter().map(|&subsystem| (subsystem, &reading)), &Context::default(), &cost);
            let text = String::from_utf8(out).expect("UTF-8");
            prop_assert_eq!(check(&text), Ok(()));
        }
    }

    #[test]
    fn the_checker_checks() {
        let head = "# HELP a b\n# TYPE a gauge\n";
        for (text, ok) in [
            ("a 1\n", true),
            ("a{x=\"1\",y=\"\\\\\\\"\"} 1\n", true),
            ("a{x=\"1\"} 1\na{x=\"2\"} +Inf\n", true),
            ("a{x=\"1\"} 1\na{x=\"1\"} 2\n", false),
            ("a{x=\"\\y\"} 1\n", false),
            ("a{x=\"\"\"} 1\n", false),
            ("b 1\n", false),
            ("a{} 1 2\n", false),
            ("a 1\n# HELP a b\n# TYPE a gauge\n", false),
        ] {
            assert_eq!(check(&format!("{head}{text}")).is_ok(), ok, "{text}");
        }
    }
}
