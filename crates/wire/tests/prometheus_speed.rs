//! How long a sample takes to read, printed; nothing is asserted. `cargo test --release -p kymo-wire --test
//! prometheus_speed -- --ignored --nocapture`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use kymo_wire::exposition_text::{ExposedLine, ExpositionFormat, ExpositionReader};
use kymo_wire::otlp::{OtlpLimits, OtlpSample, read_metrics};
use kymo_wire::remote_write::{
    WriteEncoder, WriteItem, WriteLabel, WriteLimits, WriteReader, WriteSample, WriteVersion,
    compress, decompress,
};

const SERIES: usize = 2000;
const ROUNDS: usize = 200;

/// A message of a node_exporter behind Prometheus: eight labels, one sample a series.
fn message(version: WriteVersion) -> Vec<u8> {
    let mut encoder = WriteEncoder::new(version);
    for at in 0..SERIES {
        let (cpu, instance) = (
            (at % 64).to_string(),
            format!("node-{}.example.net:9100", at / 512),
        );
        let labels = [
            ("__name__", "node_cpu_seconds_total"),
            ("cluster", "production-eu-west-1"),
            ("cpu", cpu.as_str()),
            ("env", "production"),
            ("instance", instance.as_str()),
            ("job", "node-exporter"),
            ("mode", ["user", "system", "idle", "iowait"][at / 64 % 4]),
            ("region", "eu-west-1"),
        ];
        let labels = labels.map(|(name, value)| WriteLabel { name, value });
        let sample = WriteSample {
            t_ms: 1_700_000_000_000,
            value: at as f64 * 1.25,
            created_ms: None,
        };
        encoder.push(&labels, &[sample], None);
    }
    let mut message = Vec::new();
    encoder.finish(&mut message);
    message
}

/// The best of several rounds, in ns a sample.
fn measure(what: &str, samples: usize, mut run: impl FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
    }
    println!("{what}: {:.1} ns a sample", best * 1e9 / samples as f64);
}

#[test]
#[ignore = "prints times"]
fn remote_write() {
    for version in [WriteVersion::V1, WriteVersion::V2] {
        let message = message(version);
        let (mut block, mut out) = (Vec::new(), Vec::new());
        compress(&message, &mut block).unwrap();
        println!(
            "{version:?}: {} bytes, {} packed",
            message.len(),
            block.len()
        );
        measure("  unpack", SERIES, || {
            decompress(black_box(&block), 1 << 25, &mut out).unwrap()
        });
        measure("  read", SERIES, || {
            let mut reader =
                WriteReader::new(version, black_box(&message), WriteLimits::default()).unwrap();
            let mut bytes = 0;
            while let Some(item) = reader.read().unwrap() {
                if let WriteItem::Series(series) = item {
                    bytes += series.labels.len() + series.samples.len();
                }
            }
            assert_eq!(bytes, 9 * SERIES);
        });
    }
}

/// A scrape of a node_exporter: three labels, no timestamps.
#[test]
#[ignore = "prints times"]
fn exposition_text() {
    let mut text = String::from("# TYPE node_cpu_seconds_total counter\n");
    for at in 0..SERIES {
        let mode = ["user", "system", "idle", "iowait"][at % 4];
        let value = at as f64 * 1.25;
        text += &format!(
            "node_cpu_seconds_total{{cpu=\"{}\",mode=\"{mode}\",zone=\"a\"}} {value}\n",
            at / 4
        );
    }
    println!("text: {} bytes", text.len());
    measure("  read", SERIES, || {
        let mut reader =
            ExpositionReader::new(ExpositionFormat::Prometheus, black_box(text.as_bytes()));
        let mut labels = 0;
        while let Some(line) = reader.read().unwrap() {
            if let ExposedLine::Sample(sample) = line {
                labels += sample.labels.len();
            }
        }
        assert_eq!(labels, 3 * SERIES);
    });
}

/// Sums of a program, three attributes each.
#[test]
#[ignore = "prints times"]
fn otlp() {
    // Heads of fields: the metrics of a resource, of a scope, a metric, its sum, a point, and attributes of a point.
    fn field(head: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![head];
        kymo_base::varint::put_bytes(&mut field, bytes);
        field
    }
    let attribute = |key: &str, value: &str| {
        let value = field(0x0a, value.as_bytes());
        field(
            0x3a,
            &[field(0x0a, key.as_bytes()), field(0x12, &value)].concat(),
        )
    };
    let mut points = b"\x10\x02\x18\x01".to_vec();
    for at in 0..SERIES {
        let number = (at as u64).to_le_bytes();
        let time = 1_700_000_000_000_000_000u64.to_le_bytes();
        let mut point = [&b"\x19"[..], &time, b"\x31", &number].concat();
        point.extend(attribute("http.route", &format!("/api/v1/{at}")));
        point.extend(attribute("http.request.method", "GET"));
        point.extend(attribute("http.response.status_code", "200"));
        points.extend(field(0x0a, &point));
    }
    let metric = [field(0x0a, b"http.server.requests"), field(0x3a, &points)].concat();
    let message = field(0x0a, &field(0x12, &field(0x12, &metric)));
    println!("otlp: {} bytes", message.len());
    measure("  read", SERIES, || {
        let mut labels = 0;
        let limits = OtlpLimits::default();
        let counts = read_metrics(black_box(&message), &limits, &mut |sample: &OtlpSample| {
            labels += sample.labels.iter().len();
        });
        assert_eq!(counts.unwrap().refused_points(), 0);
        assert_eq!(labels, 4 * SERIES);
    });
}
