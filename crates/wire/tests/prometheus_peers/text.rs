//! Texts that are scraped: `promtool check metrics` and Python's prometheus_client take and refuse the same.

use std::process::Command;

use kymo_wire::exposition_text::{ExposedLine, ExpositionFormat, ExpositionReader};

use super::output_of;
use super::python::{PYTHON_MISSING, python};

/// Texts of 0.0.4, and whether they are right. promtool's parser wants families together, and a line end behind the
/// last line.
const TEXTS: &[(&str, bool)] = &[
    ("a_total 1\n", true),
    ("a_total{b=\"c\"} 1 1700000000000\n", true),
    ("a_total{ b = \"c\" , } +Inf\n", true),
    ("a_total{b=\"q\\\"\\\\\\n\"} 1e3\n", true),
    (
        "# HELP a_total x \\\\ \\n\n# TYPE a_total counter\na_total 1\n",
        true,
    ),
    ("# a comment\n\n\na_total 1\n", true),
    (
        "# TYPE a summary\na{quantile=\"0.5\"} 1\na_sum 2\na_count 3\n",
        true,
    ),
    ("a_total 1 -5\n", true),
    ("a_total\n", false),
    ("a_total x\n", false),
    ("a_total 1 2 3\n", false),
    ("a_total 1 x\n", false),
    ("a_total{b=\"c} 1\n", false),
    ("a_total{b=c} 1\n", false),
    ("a_total{9=\"c\"} 1\n", false),
    ("9a 1\n", false),
    ("# TYPE a_total thing\n", false),
    ("# HELP 9a x\n", false),
];

fn is_read(format: ExpositionFormat, text: &str) -> bool {
    let mut reader = ExpositionReader::new(format, text.as_bytes());
    loop {
        match reader.read() {
            Ok(None) => return true,
            Ok(Some(_)) => {}
            Err(_) => return false,
        }
    }
}

#[test]
fn promtool_takes_the_same() {
    for (text, is_right) in TEXTS {
        assert_eq!(
            is_read(ExpositionFormat::Prometheus, text),
            *is_right,
            "{text}"
        );
        let mut promtool = Command::new("promtool");
        let promtool = output_of(promtool.args(["check", "metrics"]), text.as_bytes());
        let Some(output) = promtool else {
            println!("skipped: no promtool");
            return;
        };
        // 3 says that a name could be better.
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code() != Some(1),
            *is_right,
            "{text}: {message}"
        );
    }
}

/// Writes metrics of each kind in both formats, and the expected samples, a line `NAME LABELS VALUE` a sample.
const CLIENT: &str = r#"
import sys
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary, Info, Enum, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as open_latest
r = CollectorRegistry()
c = Counter('things', 'Things \\ of\na kind', ['a', 'b'], registry=r)
c.labels('x"y\\z\n', '\u00fc').inc(3, {'trace_id': 'abc'} if sys.argv[1] == 'open' else None)
Gauge('temperature_celsius', 'Now', registry=r, unit='celsius').set(float('inf'))
h = Histogram('wait_seconds', 'Waits', registry=r, buckets=(0.1, 1, 10))
for v in (0.05, 0.5, 5, 50): h.observe(v)
Summary('size', 'Sizes', registry=r).observe(1.5)
Info('build', 'Build', registry=r).info({'version': '1'})
Enum('state', 'State', registry=r, states=['on', 'off']).state('off')
sys.stdout.buffer.write((open_latest if sys.argv[1] == 'open' else generate_latest)(r))
sys.stdout.buffer.write(b'\0')
for f in r.collect():
    for s in f.samples:
        if not s.name.endswith('_created'):
            labels = ','.join('%s=%s' % p for p in sorted(s.labels.items()))
            sys.stdout.buffer.write(('%s %s %r\0' % (s.name, labels, float(s.value))).encode())
"#;

#[test]
fn texts_of_pythons_client_are_read() {
    for (word, format) in [
        ("plain", ExpositionFormat::Prometheus),
        ("open", ExpositionFormat::OpenMetrics),
    ] {
        let Some(output) = python("prometheus_client", CLIENT, &[word], b"") else {
            println!("{PYTHON_MISSING} prometheus_client");
            return;
        };
        let mut parts = output.split(|&byte| byte == 0);
        let text = parts.next().unwrap();
        let expected: Vec<String> = parts
            .filter(|part| !part.is_empty())
            .map(|part| String::from_utf8(part.to_vec()).unwrap())
            .collect();
        let mut reader = ExpositionReader::new(format, text);
        let mut found = Vec::new();
        while let Some(line) = reader.read().unwrap() {
            let ExposedLine::Sample(sample) = line else {
                continue;
            };
            let name = sample.name.text();
            if name.ends_with("_created") {
                continue;
            }
            let labels = sample.labels.iter();
            let mut labels: Vec<_> = labels
                .map(|l| format!("{}={}", l.name.text(), l.value.text()))
                .collect();
            labels.sort();
            found.push(format!("{name} {} {:?}", labels.join(","), sample.value));
        }
        assert_eq!(found, expected, "{word}");
        assert_eq!(reader.exemplars(), u64::from(word == "open"));
        assert!(found.len() > 10);
    }
}
