//! Requests in the forms in which programs for dashboards send them. Sources: of Perses' plugin for
//! Prometheus perses/plugins, prometheus/src/model/prometheus-client.ts at 01b88ddf and the files that call it; of
//! Grafana's data source grafana/grafana, pkg/promlib and packages/grafana-prometheus, and its traffic in
//! GreptimeTeam/greptimedb#3604.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use kymo_tests::served::LONG;
use serde_json::{Value, json};

use crate::prometheus_api::{Shown, escaped, now_s};

/// A request: program, method, path, and form or query. `START` and `END` are moments in seconds.
type Form = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// True of the data that an answer should have.
type Fits = fn(&Value) -> bool;

const FORMS: &[(Form, Fits)] = &[
    (
        (
            "perses",
            "POST",
            "/api/v1/query",
            &[("query", "node_load1"), ("time", "END")],
        ),
        |data| data["resultType"] == "vector" && data["result"][0]["metric"]["job"] == "node",
    ),
    (
        (
            "perses",
            "POST",
            "/api/v1/query_range",
            &[
                ("query", "rate(node_cpu_seconds_total[15s])"),
                ("start", "START"),
                ("end", "END"),
                ("step", "5"),
            ],
        ),
        |data| data["resultType"] == "matrix" && data["result"][0]["values"].is_array(),
    ),
    (
        (
            "perses",
            "POST",
            "/api/v1/labels",
            &[
                ("match[]", "node_load1"),
                ("match[]", "node_cpu_seconds_total"),
                ("start", "START"),
                ("end", "END"),
            ],
        ),
        |data| data == &json!(["__name__", "cpu", "instance", "job", "mode"]),
    ),
    // A data source's own parameters are in the URL of a form.
    (
        (
            "perses",
            "POST",
            "/api/v1/labels?tenant=a&limit=2",
            &[("match[]", "node_cpu_seconds_total")],
        ),
        |data| data == &json!(["__name__", "cpu"]),
    ),
    (
        (
            "perses",
            "GET",
            "/api/v1/label/mode/values",
            &[
                ("match[]", "node_cpu_seconds_total{cpu=\"0\"}"),
                ("start", "START"),
                ("end", "END"),
            ],
        ),
        |data| {
            data.as_array()
                .is_some_and(|modes| modes.contains(&json!("idle")))
        },
    ),
    (
        (
            "perses",
            "GET",
            "/api/v1/metadata",
            &[("metric", "node_load1")],
        ),
        |data| data["node_load1"][0]["type"] == "gauge",
    ),
    (
        (
            "perses",
            "POST",
            "/api/v1/series",
            &[
                ("match[]", "{__name__=~\"node_load.+\"}"),
                ("start", "START"),
                ("end", "END"),
                ("limit", "2"),
            ],
        ),
        |data| data.as_array().is_some_and(|all| all.len() == 2),
    ),
    (
        (
            "perses",
            "POST",
            "/api/v1/parse_query",
            &[("query", "sum by (mode) (rate(node_cpu_seconds_total[1m]))")],
        ),
        |data| data["type"] == "aggregation" && data["expr"]["func"]["name"] == "rate",
    ),
    (
        (
            "grafana",
            "POST",
            "/api/v1/query",
            &[("query", "1+1"), ("time", "4")],
        ),
        |data| data == &json!({"resultType": "scalar", "result": [4, "2"]}),
    ),
    (
        (
            "grafana",
            "POST",
            "/api/v1/query_range",
            &[
                ("query", "node_load1"),
                ("start", "START.123"),
                ("end", "END.123"),
                ("step", "1.000"),
                ("timeout", "30s"),
            ],
        ),
        |data| {
            data["result"][0]["values"]
                .as_array()
                .is_some_and(|values| values.len() > 2)
        },
    ),
    (
        (
            "grafana",
            "GET",
            "/api/v1/label/U__node_2e_name/values",
            &[("start", "START"), ("end", "END"), ("limit", "40000")],
        ),
        |data| data == &json!([]),
    ),
    (
        ("grafana", "GET", "/api/v1/metadata", &[("limit", "3")]),
        |data| data.as_object().is_some_and(|all| all.len() == 3),
    ),
    (
        (
            "grafana",
            "POST",
            "/api/v1/query_exemplars",
            &[("query", "node_load1"), ("start", "START"), ("end", "END")],
        ),
        |data| data == &json!([]),
    ),
    (("grafana", "GET", "/api/v1/rules", &[]), |data| {
        data == &json!({"groups": []})
    }),
    (
        ("grafana", "GET", "/api/v1/status/buildinfo", &[]),
        |data| data["features"].is_null(),
    ),
    (
        ("codemirror-promql", "GET", "/api/v1/status/flags", &[]),
        |data| {
            data["enable-feature"] == ""
                && data["query.timeout"] == "30s"
                && data["query.max-samples"] == "50000000"
        },
    ),
];

/// Status and body of the answer to a form or a query.
fn asked(address: &str, method: &str, path: &str, pairs: &[(&str, String)]) -> (u16, String) {
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    let text = pairs.join("&");
    let (path, body) = match method {
        "POST" => (path.to_string(), text),
        _ => (format!("{path}?{text}"), String::new()),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(LONG)).expect("a limit");
    stream
        .write_all((head + &body).as_bytes())
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    (status.expect("a status"), body.to_string())
}

#[test]
fn forms_of_dashboards_have_their_answers() {
    let shown = Shown::start("prometheus-forms");
    let (start, end) = ((now_s() - 10).to_string(), now_s().to_string());
    for ((program, method, path, form), fits) in FORMS {
        let value = |value: &str| value.replace("START", &start).replace("END", &end);
        let pairs: Vec<(&str, String)> = form
            .iter()
            .map(|(name, text)| (*name, value(text)))
            .collect();
        for prefix in ["", "/prometheus"] {
            let (status, body) = asked(&shown.address, method, &format!("{prefix}{path}"), &pairs);
            let answer: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(
                (status, &answer["status"]),
                (200, &json!("success")),
                "{program} {path}: {body}"
            );
            assert!(fits(&answer["data"]), "{program} {path}: {body}");
        }
    }
}

/// A data source is tried by its health, by Perses and by what balances loads.
#[test]
fn health_is_said_as_prometheus_says_it() {
    let shown = Shown::start("prometheus-health");
    for prefix in ["", "/prometheus"] {
        for (path, text) in [
            ("/-/healthy", "kymo is healthy.\n"),
            ("/-/ready", "kymo is ready.\n"),
        ] {
            let path = format!("{prefix}{path}");
            assert_eq!(
                asked(&shown.address, "GET", &path, &[]),
                (200, text.to_string()),
                "{path}"
            );
            assert_eq!(
                asked(&shown.address, "HEAD", &path, &[]),
                (200, String::new()),
                "{path}"
            );
            assert_eq!(asked(&shown.address, "POST", &path, &[]).0, 405, "{path}");
        }
    }
    let unknown = asked(&shown.address, "GET", "/-/reload", &[]);
    assert_eq!(unknown.0, 404, "{unknown:?}");
}
