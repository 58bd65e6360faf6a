//! Python's libraries of OpenTelemetry: their messages are read, and they read our answer.

use std::process::Command;

use kymo_wire::otlp::response::put_response;
use kymo_wire::otlp::{OtlpLimits, OtlpSample, read_metrics};

use super::output_of;

/// How a test says that it is skipped; a module's name follows. `KYMO_TEST_PYTHON` names another Python than `python3`.
pub(crate) const PYTHON_MISSING: &str = "skipped: no python3 with";

/// Bytes that a script writes; `None`: there is no Python with that module.
pub(crate) fn python(module: &str, script: &str, words: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let name = std::env::var("KYMO_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import {module}");
    let probe = output_of(Command::new(&name).args(["-c", &import]), b"")?;
    if !probe.status.success() {
        return None;
    }
    let output = output_of(Command::new(&name).args(["-c", script]).args(words), input)?;
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    Some(output.stdout)
}

/// A request with each kind of metric.
const REQUEST: &str = r#"
import sys
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as Request
r = Request()
rm = r.resource_metrics.add()
def put(attributes, key, **value):
    kv = attributes.add(); kv.key = key
    for k, v in value.items(): setattr(kv.value, k, v)
    return kv
put(rm.resource.attributes, 'service.name', string_value='shop')
put(rm.resource.attributes, 'service.namespace', string_value='eu')
put(rm.resource.attributes, 'service.instance.id', string_value='i-1')
put(rm.resource.attributes, 'process.pid', int_value=77)
sm = rm.scope_metrics.add(); sm.scope.name = 'lib'; sm.scope.version = '1'
def metric(name, unit):
    m = sm.metrics.add(); m.name = name; m.unit = unit; m.description = 'About ' + name; return m
def times(p):
    p.start_time_unix_nano = 1600000000000000000; p.time_unix_nano = 1700000000123456789
m = metric('http.server.active_requests', '{request}')
p = m.sum.data_points.add(); times(p); p.as_int = -3; m.sum.aggregation_temporality = 2
put(p.attributes, 'http.method', string_value='GET'); put(p.attributes, 'secure', bool_value=True)
m = metric('jobs', '1'); m.sum.is_monotonic = True; m.sum.aggregation_temporality = 2
p = m.sum.data_points.add(); times(p); p.as_double = 1.5
e = p.exemplars.add(); e.as_double = 1; e.trace_id = b'0' * 16
m = metric('late', 's'); m.sum.is_monotonic = True; m.sum.aggregation_temporality = 1
p = m.sum.data_points.add(); times(p); p.as_int = 1
m = metric('usage', '1'); p = m.gauge.data_points.add(); times(p); p.as_double = 0.25
kv = put(p.attributes, 'list'); v = kv.value.array_value.values.add(); v.string_value = 'x'
v = kv.value.array_value.values.add(); v.double_value = 2.0
m = metric('wait', 'ms'); m.histogram.aggregation_temporality = 2
p = m.histogram.data_points.add(); times(p); p.count = 6; p.sum = 12.5; p.min = 0; p.max = 9
p.bucket_counts.extend([1, 2, 3]); p.explicit_bounds.extend([0.5, 10])
m = metric('exp', ''); m.exponential_histogram.aggregation_temporality = 2
p = m.exponential_histogram.data_points.add(); times(p); p.count = 1; p.scale = 3; p.positive.offset = -5; p.positive.bucket_counts.extend([1])
m = metric('sizes', 'By'); p = m.summary.data_points.add(); times(p); p.count = 4; p.sum = 8
q = p.quantile_values.add(); q.quantile = 0.99; q.value = 3
sys.stdout.buffer.write(r.SerializeToString())
"#;

/// Reads an answer, and writes its number and its text.
const RESPONSE: &str = r#"
import sys
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse as Response
r = Response.FromString(sys.stdin.buffer.read())
sys.stdout.write('%d %s' % (r.partial_success.rejected_data_points, r.partial_success.error_message))
"#;

#[test]
fn messages_of_opentelemetry_are_read() {
    let module = "opentelemetry.proto.collector.metrics.v1.metrics_service_pb2";
    let Some(message) = python(module, REQUEST, &[], b"") else {
        println!("{PYTHON_MISSING} {module}");
        return;
    };
    let mut lines = Vec::new();
    let counts = read_metrics(
        &message,
        &OtlpLimits::default(),
        &mut |sample: &OtlpSample| {
            let labels = sample
                .labels
                .iter()
                .filter(|(name, _)| !matches!(*name, "job" | "instance"));
            let labels: Vec<_> = labels
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            assert_eq!(
                labels.len() + 2,
                sample.labels.iter().len(),
                "job and instance"
            );
            assert_eq!(sample.t_ms, 1_700_000_000_123);
            let created = (sample.family != "target_info").then_some(1_600_000_000_000);
            assert_eq!(sample.created_ms, created);
            lines.push(format!(
                "{} {} {}",
                sample.metric_type.word(),
                labels.join(","),
                sample.value
            ));
        },
    );
    let counts = counts.unwrap();
    assert_eq!(
        lines,
        [
            "gauge __name__=http_server_active_requests,http_method=GET,secure=true -3",
            "counter __name__=jobs_total 1.5",
            "gauge __name__=usage_ratio,list=[\"x\",2] 0.25",
            "histogram __name__=wait_milliseconds_sum 12.5",
            "histogram __name__=wait_milliseconds_count 6",
            "histogram __name__=wait_milliseconds_bucket,le=0.5 1",
            "histogram __name__=wait_milliseconds_bucket,le=10 3",
            "histogram __name__=wait_milliseconds_bucket,le=+Inf 6",
            "summary __name__=sizes_bytes_sum 8",
            "summary __name__=sizes_bytes_count 4",
            "summary __name__=sizes_bytes,quantile=0.99 3",
            "gauge __name__=target_info,process_pid=77 1",
        ]
    );
    assert_eq!(
        (counts.points, counts.refused_points(), counts.exemplars),
        (5, 2, 1)
    );
    let mut answer = Vec::new();
    put_response(&mut answer, &counts);
    let reply = python(module, RESPONSE, &[], &answer).unwrap();
    let reply = String::from_utf8(reply).unwrap();
    assert!(
        reply.starts_with("2 not taken: 1 data points: delta"),
        "{reply}"
    );
    assert!(
        reply.contains("; 1 data points: an exponential histogram"),
        "{reply}"
    );
}
